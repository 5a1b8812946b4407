"""Labels that a font can show: pieces of any script, never boxes.

Owns which font a piece is written in. matplotlib's own font has no Chinese, so an installed font is
looked for, by what it can show and not by its name; a piece that none can show is named by its
number. Needs the extra `train`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib import font_manager
from matplotlib.ft2font import FT2Font

from model.explain.sentence import Piece

SPACE_MARK = "▁"
"""What SentencePiece writes for the space before a word."""

# Looked into before all others, so that one machine always takes the same: families that were made
# for Chinese, by a part of their files' names.
_PREFERRED = (
    "notosanscjk",
    "sourcehansans",
    "notosanssc",
    "wqy-microhei",
    "wqy-zenhei",
    "droidsansfallback",
)
_LAST_RESORT = "lastresort"  # shows every character, as a box


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """Label of an axis.

    Attributes:
        text: The words.
        font: File of the font that has all of their characters.
    """

    text: str
    font: Path


class Fonts:
    """Some font files, in the order they are tried.

    Args:
        paths: The first one is that of figures and Latin pieces.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = tuple(paths)
        self._characters: dict[Path, frozenset[int]] = {}

    @property
    def default(self) -> Path:
        """The first font."""
        return self._paths[0]

    def find(self, text: str) -> Path | None:
        """The first font that has every character of a text."""
        needed = {ord(character) for character in text}
        return next((path for path in self._paths if needed <= self._known(path)), None)

    def _known(self, path: Path) -> frozenset[int]:
        if path not in self._characters:
            try:
                self._characters[path] = frozenset(FT2Font(str(path)).get_charmap())
            except (OSError, RuntimeError):  # a damaged file, or a kind FreeType does not read
                self._characters[path] = frozenset()
        return self._characters[path]


def installed_fonts() -> Fonts:
    """The font of matplotlib itself, then those of this machine, fonts for Chinese first."""
    own = Path(font_manager.findfont("DejaVu Sans"))
    # The files themselves: matplotlib's list is a cache that a newly installed font is not in.
    files = {Path(name) for name in font_manager.findSystemFonts()} - {own}
    found = [path for path in files if _LAST_RESORT not in path.name.lower()]
    return Fonts([own, *sorted(found, key=_rank)])


def label_pieces(pieces: Iterable[Piece], fonts: Fonts) -> list[Label]:
    """A label for every piece, "#17" for one that no font can show."""
    return [_label(piece, fonts) for piece in pieces]


def unshown(pieces: Iterable[Piece], fonts: Fonts) -> list[str]:
    """The characters of some pieces that are named by their numbers, each once, in order."""
    found = (
        character
        for piece in pieces
        if _label(piece, fonts).text == _number(piece)
        for character in piece.text
        if fonts.find(character) is None
    )
    return list(dict.fromkeys(found))


def _label(piece: Piece, fonts: Fonts) -> Label:
    for text in (piece.text, piece.text.replace(SPACE_MARK, "_"), _number(piece)):
        font = fonts.find(text)
        if font is not None:
            return Label(text=text, font=font)
    return Label(text=_number(piece), font=fonts.default)


def _number(piece: Piece) -> str:
    return f"#{piece.token_id}"


def _rank(path: Path) -> tuple[int, str]:
    name = path.name.lower()
    ranks = (rank for rank, part in enumerate(_PREFERRED) if part in name)
    return next(ranks, len(_PREFERRED)), str(path)
