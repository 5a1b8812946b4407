"""Sentences of a request's texts, each translated by itself and reported as it is done.

Owns which sentences there are, where they stand, and how they become texts again. What is done to
a sentence is `service.models.translating.translator`. Pure but for what it calls, and for the turns
that it leaves others where there is much to report.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from model.request import Hypothesis
from model.text.drafts.rounds import Draft
from model.text.drafts.segments import expected_separators
from service.models.requests.translation import DoneSegment

Text = Draft[Hypothesis]

REPORTS_PER_TURN = 64
"""Reports in a row, about a millisecond of them: the event loop has others to serve."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DonePart:
    """A sentence of which nothing will change any more.

    Attributes:
        text_index: Which text of the request it is of.
        index: Which sentence of it, as it was cut at first.
        start: Characters of the text before it.
        separator: What stands before it in the translation.
        text: The text, as it was cut at first.
        part: What has become of the sentence, as a text.
    """

    text_index: int
    index: int
    start: int
    separator: str
    text: Text
    part: Text

    @property
    def is_copied(self) -> bool:
        """Whether the network has not seen it."""
        return self.text.pieces[self.index].segment.is_verbatim

    @property
    def segment(self) -> DoneSegment:
        """The report of it."""
        translation = self.part.translation
        return DoneSegment(
            text_index=self.text_index,
            index=self.index,
            start=self.start,
            separator=self.separator,
            source=self.text.pieces[self.index].segment.text,
            text=translation.text,
            segments=translation.segments,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PartedText:
    """A text as its sentences.

    Attributes:
        text: As it was cut at first.
        parts: Each sentence as a text of its own.
        starts: Characters of the text before each.
        separators: What stands before each in the translation, and behind the last.
    """

    text: Text
    parts: tuple[Text, ...]
    starts: list[int]
    separators: list[str]


def parted(text: Text) -> PartedText:
    """A text of which nothing was asked yet as its sentences."""
    return PartedText(
        text=text,
        parts=text.parts,
        starts=_starts(text),
        separators=expected_separators(text.prepared),
    )


class Parts:
    """The sentences of texts.

    Args:
        texts: As they were cut at first.
        on_done: Called with each sentence when it is done.
    """

    def __init__(self, texts: Sequence[PartedText], on_done: Callable[[DonePart], None]) -> None:
        self._texts = list(texts)
        self._parts = [list(text.parts) for text in texts]
        self._on_done = on_done
        self._asked: list[tuple[int, int]] = []
        self._copied: list[tuple[int, int]] = []
        for place, text in enumerate(texts):
            for index, piece in enumerate(text.text.pieces):
                own = self._copied if piece.segment.is_verbatim else self._asked
                own.append((place, index))

    def __repr__(self) -> str:
        return f"<Parts: {len(self._asked)} asked for, {len(self._copied)} copied>"

    @property
    def asked(self) -> list[tuple[int, int]]:
        """Text and index of the sentences that the network is asked for, by number."""
        return self._asked

    async def report_copied(self) -> None:
        """Report the sentences that the network does not see; between some of them others run."""
        for number, place in enumerate(self._copied, 1):
            self._report(place)
            if number % REPORTS_PER_TURN == 0:
                await asyncio.sleep(0)

    def answered(self, number: int, hypotheses: Sequence[Hypothesis]) -> Text:
        """A sentence with what was found for it.

        Args:
            number: Which one, of those that the network is asked for.
            hypotheses: Best first.
        """
        return self._part(self._asked[number]).answered([hypotheses])

    def finish(self, number: int, part: Text) -> None:
        """Keep the result of a sentence, and report it."""
        place, index = self._asked[number]
        self._parts[place][index] = part
        self._report((place, index))

    def whole(self, place: int) -> Text:
        """The text at this place, of which every sentence is done."""
        parts = self._parts[place]
        return self._texts[place].text.with_parts((part.pieces, part.separators) for part in parts)

    def _part(self, place: tuple[int, int]) -> Text:
        return self._parts[place[0]][place[1]]

    def _report(self, place: tuple[int, int]) -> None:
        text_index, index = place
        self._on_done(
            DonePart(
                text_index=text_index,
                index=index,
                start=self._texts[text_index].starts[index],
                separator=self._texts[text_index].separators[index],
                text=self._texts[text_index].text,
                part=self._part(place),
            )
        )


class WholeTexts:
    """Texts, each reported once when all its sentences are done.

    Args:
        on_done: Called with which text it is, and the text.
    """

    def __init__(self, on_done: Callable[[int, Text], None]) -> None:
        self._on_done = on_done
        self._parts: dict[int, dict[int, Text]] = {}

    def __call__(self, done: DonePart) -> None:
        """Take a sentence."""
        parts = self._parts.setdefault(done.text_index, {})
        parts[done.index] = done.part
        if len(parts) < len(done.text.pieces):
            return
        ordered = (parts[index] for index in range(len(parts)))
        whole = done.text.with_parts((part.pieces, part.separators) for part in ordered)
        self._on_done(done.text_index, whole)


def _starts(text: Text) -> list[int]:
    """Characters of a text before each of its pieces."""
    pieces = [len(piece.segment.text) for piece in text.pieces]
    lengths = [len(one) + size for one, size in zip(text.separators[1:], pieces, strict=True)]
    return list(accumulate(lengths, initial=len(text.separators[0])))[: len(pieces)]
