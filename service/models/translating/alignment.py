"""Alignments through two translations: from target tokens by the text between to source tokens.

Owns how positions of one tokenizer become positions of another one's: both cut the same text, so
a piece is found by where its middle lies in the text's bytes, without spaces, which tokenizers
treat in their own ways. Pure.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

_BYTE_PIECE = re.compile("<0x[0-9A-F]{2}>")
_WORD_BEGIN = "\u2581"


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstHop:
    """Translation into the pivot, of one segment.

    Attributes:
        widths: Of every token that it wrote: its bytes, as of `width`.
        alignment: For each of them the source token that it attended to most.
        end: The last source token: what is aligned with tokens that stand for no text.
    """

    widths: Sequence[int]
    alignment: Sequence[int]
    end: int


class PieceWidths:
    """Widths of the tokens of one side of a checkpoint, made when they are first asked for.

    Args:
        pieces: The piece of every id that stands for text.
    """

    def __init__(self, pieces: Callable[[], Mapping[int, str]]) -> None:
        self._pieces = pieces

    def of(self, token_ids: Sequence[int]) -> list[int]:
        """The width of each token; 0 of one without a piece."""
        known = self._by_id
        return [known[token] if token < len(known) else 0 for token in token_ids]

    @cached_property
    def _by_id(self) -> list[int]:
        pieces = self._pieces()
        widths = [0] * (max(pieces, default=-1) + 1)
        for token, piece in pieces.items():
            widths[token] = width(piece)
        return widths


def width(piece: str) -> int:
    """Bytes of a piece without spaces: 1 of a byte piece, 0 of a bare word boundary."""
    if _BYTE_PIECE.fullmatch(piece):
        return 1
    return len("".join(piece.replace(_WORD_BEGIN, " ").split()).encode("utf-8", "replace"))


def composed(first: FirstHop, widths: Sequence[int], alignment: Sequence[int]) -> tuple[int, ...]:
    """For every target token of the second hop a source token of the first.

    Args:
        first: The first hop.
        widths: Of every source token of the second hop; 0 for a tag and for the end token. Where
            a tokenizer normalises, they may sum up to something else than the first hop's: places
            are compared as shares of the whole.
        alignment: For each target token of the second hop a source token of it.
    """
    ends = list(accumulate(first.widths))
    own_ends = list(accumulate(widths))
    if not ends or not ends[-1] or not own_ends or not own_ends[-1]:
        return (first.end,) * len(alignment)
    scale = ends[-1] / own_ends[-1]

    def source_of(token: int) -> int:
        if not widths[token]:
            return first.end
        middle = (own_ends[token] - widths[token] / 2) * scale
        return first.alignment[min(bisect_right(ends, middle), len(ends) - 1)]

    return tuple(map(source_of, alignment))
