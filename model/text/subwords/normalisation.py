"""Cleaning of source text before it is cut into pieces, as a network's training text was cleaned.

Owns the rules by name. SentencePiece files have rules of their own, which come after these.
"""

import re
import unicodedata
from collections.abc import Sequence
from typing import Literal

from model.text.subwords.pieces import Pieces

Normalisation = Literal["opus-mt"]
"""Rules by their name in a manifest: "opus-mt" is what the preprocess.sh of its releases does."""

_OPUS_MT = str.maketrans(
    {
        "，": ",",
        "、": ",",
        "”": '"',
        "“": '"',
        "∶": ":",
        "：": ":",
        "？": "?",
        "《": '"',
        "》": '"',
        "）": ")",
        "！": "!",
        "（": "(",
        "；": ";",
        "１": '"',  # an error of Moses' script, which the networks were trained with
        "」": '"',
        "「": '"',
        "０": "0",
        "３": "3",
        "２": "2",
        "５": "5",
        "６": "6",
        "９": "9",
        "７": "7",
        "８": "8",
        "４": "4",
        "～": "~",
        "’": "'",
        "…": "...",
        "━": "-",
        "〈": "<",
        "〉": ">",
        "【": "[",
        "】": "]",
        "％": "%",
    }
)
_FULL_STOPS = re.compile("[。．] *")
_SPACES = re.compile(" +")


class NormalisedPieces:
    """Pieces of text that is cleaned first.

    Attributes:
        inner: Pieces of clean text.

    Args:
        pieces: Of clean text.
        rules: How it is cleaned.
    """

    def __init__(self, pieces: Pieces, rules: Normalisation) -> None:
        self.inner = pieces
        self._rules = rules

    def __repr__(self) -> str:
        return f"<NormalisedPieces {self._rules} {self.inner!r}>"

    def pieces(self, text: str) -> list[str]:
        """The pieces of a text."""
        return self.inner.pieces(normalised(text, self._rules))

    def text(self, pieces: Sequence[str]) -> str:
        """The text of some pieces."""
        return self.inner.text(pieces)


def normalised(text: str, rules: Normalisation) -> str:
    """A text as a network's training text was cleaned.

    "opus-mt": Full-width and typographic punctuation becomes ASCII's, every character of Unicode's
    category C (control, format, private, unassigned) a space, several spaces one, none at the ends.
    """
    assert rules == "opus-mt"
    text = _FULL_STOPS.sub(". ", text.translate(_OPUS_MT))
    text = "".join(" " if unicodedata.category(c).startswith("C") else c for c in text)
    return _SPACES.sub(" ", text).strip(" ")
