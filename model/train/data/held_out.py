"""A held-out corpus that a run is scored on, and a warning where it is trained on, too.

Does not own how it is read (`model.train.data.reading`), nor its scores
(`model.train.loop.validation`).
"""

import logging
from collections.abc import Mapping, Set
from dataclasses import dataclass

from model.text.languages.tags import LanguagePair
from model.train.config.data import DirectionConfig
from model.train.data.parallel import ParallelText, TokenisedPairs

_LOGGER = logging.getLogger("dragoman.train")

HeldOutPairs = Mapping[DirectionConfig, Set[tuple[str, str]]]
"""Source and target of every held-out pair, by direction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DevText:
    """A held-out corpus, as text and as tokens.

    Attributes:
        text: Its lines.
        pairs: Its tokens, for the loss: without pairs that have a side that is empty when
            normalised, or too long to train on.
        pair: Its direction.
        is_choosing: It is the first of its direction, which chooses the best weights.
    """

    text: ParallelText
    pairs: TokenisedPairs
    pair: LanguagePair
    is_choosing: bool

    @property
    def num_left_out(self) -> int:
        """Pairs that the dev loss leaves out; BLEU and chrF are of all."""
        return len(self.text) - len(self.pairs)


def held_out_pairs(texts: Mapping[tuple[DirectionConfig, str], ParallelText]) -> HeldOutPairs:
    """The pairs of held-out texts, which come by direction and name."""
    found: dict[DirectionConfig, set[tuple[str, str]]] = {}
    for (direction, _), text in texts.items():
        found.setdefault(direction, set()).update(zip(text.source, text.target, strict=True))
    return found


def warn_of_held_out(label: str, num_pairs: int) -> None:
    """Warning that pairs of a training corpus are held-out ones, if there are any."""
    if num_pairs:
        fields = {
            "corpus": label,
            "pairs": num_pairs,
            "reason": "these pairs are in held-out text, too: its scores are of text that was"
            " learnt, and too high",
        }
        _LOGGER.warning("held_out_text_in_training", extra={"fields": fields})
