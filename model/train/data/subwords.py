"""Subword regularisation: another segmentation of a sentence each time it is read.

Owns the random numbers. SentencePiece can sample too, but from one seed it samples differently in
every process, so that a resumed run, or a second worker, would read other rows.

Words are sampled one by one, because no piece reaches across a space. A word has `NUM_VARIANTS`
variants, each drawn from a seed of its own when it is first needed; an occurrence picks one of
them. So rows depend on the seed and the lines alone, and frequent words cost a look-up.
"""

import itertools
import math
import random
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Literal

import numpy as np
import sentencepiece

from model.train.config.regularisation import RegularisationConfig
from model.train.data.segmentation import PieceTable, best_paths, merge_pieces, sample_path

NUM_VARIANTS = 64
"""How many segmentations of a word a run sees at most."""

_MAX_VARIANTS = 400_000  # remembered at once
_MAX_REMEMBERED_LENGTH = 32  # longer ones, such as Chinese without spaces, hardly come again
_SPACE = "\u2581"


class SegmentDrawer:
    """Sampler of segmentations of lines by one SentencePiece model.

    Args:
        pieces: The model.
        kind: Of the model.
        config: How to draw.
        user_symbols: Texts that are one piece whatever is drawn.
        seed: Of the variants of words.
    """

    def __init__(
        self,
        pieces: sentencepiece.SentencePieceProcessor,
        *,
        kind: Literal["bpe", "unigram"],
        config: RegularisationConfig,
        user_symbols: Sequence[str] = (),
        seed: int,
    ) -> None:
        self._pieces = pieces
        self._kind = kind
        self._config = config
        self._seed = seed
        self._table = PieceTable(pieces, user_symbols)
        self._symbols = {symbol: pieces.piece_to_id(symbol) for symbol in user_symbols}
        crosses_spaces = any(_SPACE in piece[1:] for piece in self._table.ids)
        word = ".+" if crosses_spaces else f"{_SPACE}?[^{_SPACE}]+|{_SPACE}"
        self._word = re.compile(word, re.DOTALL)
        longest_first = sorted(map(re.escape, user_symbols), key=len, reverse=True)
        self._symbol = re.compile(f"({'|'.join(longest_first)})") if user_symbols else None
        self._remembered = lru_cache(maxsize=_MAX_VARIANTS)(self._drawn_ids)

    def draw(self, lines: Sequence[str], *, seed: Sequence[int]) -> list[list[int]]:
        """Token ids of `lines`; the same for the same lines and seed, in every process."""
        words = [list(self._words(line)) for line in lines]
        generator = np.random.default_rng(seed)
        picks = iter(generator.integers(NUM_VARIANTS, size=sum(map(len, words))).tolist())
        return [
            [
                number
                for word, pick in zip(own, itertools.islice(picks, len(own)), strict=True)
                for number in self._variant(word, pick)
            ]
            for own in words
        ]

    def _words(self, line: str) -> Iterator[str]:
        text = self._pieces.normalize(line)
        parts = [text] if self._symbol is None else self._symbol.split(text)
        for part in parts:
            if part in self._symbols:
                yield part
            else:
                yield from self._word.findall(part)

    def _variant(self, word: str, pick: int) -> list[int]:
        if word in self._symbols:
            return [self._symbols[word]]
        is_remembered = len(word) <= _MAX_REMEMBERED_LENGTH
        return self._remembered(word, pick) if is_remembered else self._drawn_ids(word, pick)

    def _drawn_ids(self, word: str, pick: int) -> list[int]:
        # Seeding by text is the same in every process; hash() is not.
        chance = random.Random(f"{self._seed} {pick} {word}")  # noqa: S311  # no secret
        return self._table.numbers(self._drawn(word, chance))

    def _drawn(self, word: str, chance: random.Random) -> list[str]:
        alpha = self._config.alpha
        if self._kind == "bpe":
            return merge_pieces(word, self._table.scores, lambda: chance.random() < alpha)
        if self._config.nbest_size == -1:
            return sample_path(word, self._table, alpha, chance)
        paths = best_paths(word, self._table, self._config.nbest_size)
        highest = paths[0][0]
        weights = [math.exp(alpha * (score - highest)) for score, _ in paths]
        ((_, parts),) = chance.choices(paths, weights)
        return parts
