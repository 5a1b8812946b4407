"""Text to words and back by the scripts of Moses, and their pieces by byte pair encoding.

Owns the order in which the scripts run, which differs between those who trained networks with them,
and the import of `sacremoses`, which has the scripts' rules. It does not own the merging
(`model.text.subwords.bpe`) or any ids (`model.text.subwords.tokenizer`).
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from model.errors import ConfigError, shown
from model.text.subwords.bpe import Merges, PieceMarks, WordPieces

if TYPE_CHECKING:
    from sacremoses import MosesDetokenizer, MosesPunctNormalizer, MosesTokenizer

_LANGUAGE = re.compile("[a-z]{2,3}")


@dataclass(frozen=True, slots=True, kw_only=True)
class MosesBpe:
    """Pieces without SentencePiece: Moses' words, then byte pair encoding.

    Attributes:
        source_language: Two or three small letters, by which Moses chooses its rules; a language
            that it does not know has those of English.
        target_language: The same for the target.
        marks: How pieces say where words end.
        replaces_punctuation: Full-width and typographic punctuation is first replaced by ASCII's.
        removes_control_characters: Characters without a glyph are left out before words are cut.
        splits_dashes: "well-known" is three words, the dash "@-@".
    """

    source_language: str
    target_language: str
    marks: PieceMarks
    replaces_punctuation: bool = True
    removes_control_characters: bool = True
    splits_dashes: bool = True

    def __post_init__(self) -> None:
        """Reject what is no language."""
        for side in ("source_language", "target_language"):
            value = getattr(self, side)
            if _LANGUAGE.fullmatch(value) is None:
                raise ConfigError(f"{side} is {shown(value)}; it must be like 'en'")


class MosesPieces:
    """Pieces of one side, as `model.text.subwords.pieces.PieceModel` has them for SentencePiece.

    Threads may share one.

    Args:
        data: The merges file.
        rules: Of the network's text.
        language: Of this side.

    Attributes:
        merges: Of both sides' words.

    Raises:
        ConfigError: The file has no merges, or sacremoses is not installed.
    """

    def __init__(self, data: bytes, rules: MosesBpe, language: str) -> None:
        self.merges = Merges(data, rules.marks)
        self._rules = rules
        self._words = WordPieces(self.merges, rules.marks)
        self._normaliser, self._tokeniser, self._detokeniser = _scripts(language)

    def __repr__(self) -> str:
        return f"<MosesPieces {self._words!r}>"

    def pieces(self, text: str) -> list[str]:
        """The pieces of a text."""
        return self._words.split(self.words(text))

    def text(self, pieces: Sequence[str]) -> str:
        """The text of some pieces."""
        return cast("str", self._detokeniser.detokenize(self._words.join(pieces)))

    def words(self, text: str) -> list[str]:
        """The words of a text, with `&` and its like escaped as Moses' own files have them."""
        rules = self._rules
        if rules.replaces_punctuation:
            text = self._normaliser.replace_unicode_punct(text)
        text = self._normaliser.normalize(text)
        if rules.removes_control_characters:
            text = _without_control_characters(text)
        words = self._tokeniser.tokenize(text, aggressive_dash_splits=rules.splits_dashes)
        return [word for word in words if word]


def _scripts(language: str) -> tuple["MosesPunctNormalizer", "MosesTokenizer", "MosesDetokenizer"]:
    try:
        from sacremoses import (  # noqa: PLC0415  # only networks of Moses' text need it
            MosesDetokenizer,
            MosesPunctNormalizer,
            MosesTokenizer,
        )
    except ImportError as error:
        raise ConfigError(
            "needs the package sacremoses for its text, which is not installed;"
            " pip install 'dragoman[models]'"
        ) from error
    return (
        MosesPunctNormalizer(lang=language),
        MosesTokenizer(lang=language),
        MosesDetokenizer(lang=language),
    )


def _without_control_characters(text: str) -> str:
    """Without the characters of Unicode's category C: control, format, private, unassigned."""
    return "".join(item for item in text if not unicodedata.category(item).startswith("C"))
