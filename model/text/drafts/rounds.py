"""Rounds of a text through the network: what was asked, what was found, what is asked again.

Owns the state between two rounds, and which of several tries stands. It is pure: a driver asks
the network for whatever a draft asks for, hands the answers in, and has the draft reviewed, until
nothing is asked any more. How often a stretch may be tried is `model.text.drafts.tries`.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from model.text.drafts.segments import (
    PreparedText,
    Segment,
    SegmentOutput,
    TranslatedSegment,
    Translation,
    copied,
    joined,
)
from model.text.languages.tags import LanguagePair

OutputT = TypeVar("OutputT", bound=SegmentOutput)


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece(Generic[OutputT]):
    """A segment on its way.

    Attributes:
        segment: It.
        found: Its hypotheses, best first; None until they are handed in. Of a segment that is
            copied there are none.
        translated: The best of them as text, judged; None until then.
        earlier: The same stretch as it was tried before.
    """

    segment: Segment
    found: tuple[OutputT, ...] | None = None
    translated: TranslatedSegment | None = None
    earlier: "Piece[OutputT] | None" = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft(Generic[OutputT]):
    """A text on its way.

    Attributes:
        pair: Its direction.
        pieces: Its segments, in order.
        separators: What stands before, between and after them.
    """

    pair: LanguagePair
    pieces: tuple[Piece[OutputT], ...]
    separators: tuple[str, ...]

    @property
    def asked(self) -> tuple[Segment, ...]:
        """What the network has to translate now; empty when the text is whole."""
        return tuple(piece.segment for piece in self.pieces if piece.found is None)

    @property
    def prepared(self) -> PreparedText:
        """The text as the segments that it now has."""
        segments = tuple(piece.segment for piece in self.pieces)
        return PreparedText(pair=self.pair, segments=segments, separators=self.separators)

    @property
    def found(self) -> list[tuple[OutputT, ...]]:
        """Hypotheses of every segment that the network has seen, best first."""
        pieces = self.pieces
        return [piece.found or () for piece in pieces if not piece.segment.is_verbatim]

    @property
    def translation(self) -> Translation:
        """The text that is whole."""
        segments = [piece.translated or copied(piece.segment) for piece in self.pieces]
        return joined(self.prepared, segments)

    @property
    def parts(self) -> "tuple[Draft[OutputT], ...]":
        """Each piece as a text of its own, with nothing around it."""
        return tuple(replace(self, pieces=(piece,), separators=("", "")) for piece in self.pieces)

    def with_parts(
        self, parts: "Iterable[tuple[Sequence[Piece[OutputT]], Sequence[str]]]"
    ) -> "Draft[OutputT]":
        """With what has become of each piece: pieces, and what stands before, between and after."""
        pieces: list[Piece[OutputT]] = []
        separators = [self.separators[0]]
        for (own, between), separator in zip(parts, self.separators[1:], strict=True):
            pieces += own
            separators[-1] += between[0]
            separators += between[1:]
            separators[-1] += separator
        return Draft(pair=self.pair, pieces=tuple(pieces), separators=tuple(separators))

    def answered(self, found: Sequence[Sequence[OutputT]]) -> "Draft[OutputT]":
        """With hypotheses for each of `asked`, in order; it has to be reviewed then."""
        answers = iter([tuple(ranked) for ranked in found])
        pieces = tuple(
            Piece(segment=piece.segment, found=next(answers), earlier=piece.earlier)
            if piece.found is None
            else piece
            for piece in self.pieces
        )
        return Draft(pair=self.pair, pieces=pieces, separators=self.separators)


def started(prepared: PreparedText) -> Draft[OutputT]:
    """A text of which nothing was asked yet."""
    pieces: Iterator[Piece[OutputT]] = (
        Piece(segment=segment, found=() if segment.is_verbatim else None)
        for segment in prepared.segments
    )
    return Draft(pair=prepared.pair, pieces=tuple(pieces), separators=prepared.separators)


def best_of(piece: Piece[OutputT]) -> Piece[OutputT]:
    """Of all tries of a stretch the one with the fewest failures, the first of equals.

    It says how many there were.
    """
    num_tries, translated = piece.segment.num_tries, piece.translated
    is_only = piece.earlier is None
    if is_only and translated is not None and translated.quality.num_tries == num_tries:
        return piece
    tries = [piece]
    while tries[-1].earlier is not None:
        tries.append(tries[-1].earlier)
    chosen = min(reversed(tries), key=_num_failed)
    if chosen.translated is None:
        return replace(chosen, earlier=None)
    quality = replace(chosen.translated.quality, num_tries=num_tries)
    return replace(chosen, translated=replace(chosen.translated, quality=quality), earlier=None)


def _num_failed(piece: Piece[OutputT]) -> int:
    return 0 if piece.translated is None else len(piece.translated.quality.failed)
