"""The `vocabulary` part of an experiment file: pieces of text, and how SentencePiece learns them.

Owns the keys and their limits. The learning is `model.train.data.vocabulary`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from model.errors import ConfigError
from model.train.config.limits import at_least

Normalisation = Literal["nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf", "identity"]
"""The rules that SentencePiece has by name; "_cf" folds upper case."""

_MAX_PIECES = 1_000_000  # SentencePiece has no limit of its own, and fails in odd ways far above
_SPECIAL_PIECE = re.compile(r"<pad>|</?s>|<unk>|<0x[0-9A-Fa-f]{2}>")


@dataclass(frozen=True, slots=True, kw_only=True)
class VocabularyConfig:
    """A SentencePiece model, trained on the training split only.

    Attributes:
        kind: "bpe" or "unigram".
        size: Pieces, special and byte pieces included; per side when not joint.
        is_joint: One model for both sides.
        character_coverage: Share of characters that get a piece of their own.
        byte_fallback: Characters without a piece are spelt in bytes, so nothing is unknown.
        split_digits: Every digit is a piece.
        normalisation: SentencePiece's rule.
        denormalisation: What is put back wherever pieces are joined to text: NFKC folds the
            full-width punctuation that Chinese is written with.
        user_symbols: Texts that are always one piece, such as placeholders.
        max_lines: Learn from so many lines of either side, evenly spread over the text; 0 means
            all. SentencePiece holds in memory what it learns from.
    """

    kind: Literal["bpe", "unigram"] = "bpe"
    size: int = 8000
    is_joint: bool = True
    character_coverage: float = 0.9995
    byte_fallback: bool = True
    split_digits: bool = True
    normalisation: Normalisation = "nmt_nfkc"
    denormalisation: Mapping[str, str] = field(default_factory=dict)
    user_symbols: tuple[str, ...] = ()
    max_lines: int = 0

    def __post_init__(self) -> None:
        """Reject sizes and symbols that cannot be."""
        if not 8 <= self.size <= _MAX_PIECES:
            raise ConfigError(f"vocabulary.size is {self.size}; it must be from 8 to {_MAX_PIECES}")
        at_least("vocabulary.max_lines", self.max_lines, 0)
        for symbol in self.user_symbols:
            is_repeated = self.user_symbols.count(symbol) > 1
            if is_repeated or not symbol or "\0" in symbol or any(map(str.isspace, symbol)):
                raise ConfigError(
                    f"vocabulary.user_symbols has {symbol!r}; symbols are not empty, have no space"
                    " and no NUL, and occur once"
                )
            if _SPECIAL_PIECE.fullmatch(symbol):
                raise ConfigError(
                    f"vocabulary.user_symbols has {symbol!r}; text must not spell a special piece"
                )
        if "" in self.denormalisation:
            raise ConfigError("vocabulary.denormalisation has '' as a key; it must be some text")
        for text in (*self.denormalisation, *self.denormalisation.values()):
            if "\0" in text:
                raise ConfigError(f"vocabulary.denormalisation has {text!r}; text has no NUL here")
        if not 0.9 <= self.character_coverage <= 1.0:
            raise ConfigError(
                f"vocabulary.character_coverage is {self.character_coverage};"
                " it must be from 0.9 to 1"
            )
