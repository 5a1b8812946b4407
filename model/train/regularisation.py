"""Subword regularisation: another segmentation of a sentence each time it is read.

Owns how segmentations are drawn so that they depend on nothing but the seed of the run and the
batch's position: a resumed run, and every one of several workers, draws the same ones.
Kudo 2018 (unigram: samples of the lattice), Provilkov et al. 2020 (BPE-dropout).
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import sentencepiece

from model.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class RegularisationConfig:
    """How segmentations are drawn.

    Attributes:
        alpha: BPE: the probability that a merge is left out. Unigram: how much the likely
            segmentations are preferred; smaller is more random.
        nbest_size: Unigram only: draw among so many best ones; -1 for all there are.
        is_source_drawn: Draw for the source.
        is_target_drawn: Draw for the target.
    """

    alpha: float = 0.1
    nbest_size: int = -1
    is_source_drawn: bool = True
    is_target_drawn: bool = True

    def __post_init__(self) -> None:
        """Reject what SentencePiece does not draw from."""
        if not 0.0 < self.alpha <= 1.0:
            raise ConfigError(
                f"data.regularisation.alpha is {self.alpha}; it must be above 0 and at most 1"
            )
        if self.nbest_size != -1 and not 2 <= self.nbest_size <= 512:
            raise ConfigError(
                f"data.regularisation.nbest_size is {self.nbest_size}; it must be -1, or from 2"
                " to 512"
            )


def draw_segmentations(
    pieces: sentencepiece.SentencePieceProcessor,
    lines: Sequence[str],
    config: RegularisationConfig,
    *,
    seed: Sequence[int],
) -> list[list[int]]:
    """Token ids of `lines` in segmentations that only `seed` decides.

    Args:
        pieces: A loaded model.
        lines: Texts.
        config: How to draw.
        seed: Any non-negative integers; others give other segmentations.
    """
    word = int(np.random.SeedSequence(seed).generate_state(1)[0]) >> 1  # all ones mean no seed
    found: list[list[int]] = []

    def draw() -> None:
        found.extend(
            pieces.encode(
                list(lines),
                enable_sampling=True,
                alpha=config.alpha,
                nbest_size=config.nbest_size,
                num_threads=1,
            )
        )

    # SentencePiece has one generator a thread, which takes the seed when it is first used.
    sentencepiece.set_random_generator_seed(word)
    thread = threading.Thread(target=draw, name="segmentations")
    thread.start()
    thread.join()
    if len(found) != len(lines):
        raise RuntimeError(f"{len(found)} segmentations of {len(lines)} lines")
    return found
