"""Who joins the running segments now: a decision, taken without torch, event loop or clock.

Owns the waiting queue. Between two steps the engine asks for one *chunk*: segments that are
encoded together as one padded batch. Two rules make it:

1. Room goes by age. The oldest segments that free rows and slots can hold, all of them at
   once, are the candidates. A segment too wide for what its elders leave is passed by at most
   `max_overtakes` younger ones; then nothing joins behind it until it does itself, so a wide
   beam gets its rows as others end.
2. Of the candidates the oldest opens the chunk and the nearest lengths fill it, up to a budget
   of padded source tokens (longest × count): running segments are kept waiting for one small
   encoder batch at a time. The others have their room, and join within the next few steps.

So nobody starves, and length reorders only those who join almost together. A segment longer
than the token budget is a chunk of its own; one that could never fit is the client's to refuse.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

SLACK_TOKENS = 16
"""Lengths this near always share a chunk; beyond it the longest is at most twice the shortest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingSegment:
    """What the scheduler needs to know of a segment.

    Attributes:
        segment_id: Its number.
        num_source_tokens: Source tokens with EOS.
        num_rows: Rows it will hold, its beam size.
    """

    segment_id: int
    num_source_tokens: int
    num_rows: int


class Scheduler:
    """The waiting queue and the rules by which it empties.

    Args:
        admit_token_budget: Padded source tokens of a chunk.
        max_overtakes: Segments that may pass one that is too wide for the room there is.
        window: Oldest segments that are looked at; bounds the work of a plan.
    """

    def __init__(
        self, *, admit_token_budget: int, max_overtakes: int = 16, window: int = 256
    ) -> None:
        self._admit_token_budget = admit_token_budget
        self._max_overtakes = max_overtakes
        self._window = window
        self._waiting: dict[int, WaitingSegment] = {}  # in order of arrival
        self._blocked_id: int | None = None
        self._num_overtakes = 0

    def __repr__(self) -> str:
        return f"<Scheduler waiting={self.num_waiting}>"

    @property
    def num_waiting(self) -> int:
        """Segments in the queue."""
        return len(self._waiting)

    def add(self, segments: Iterable[WaitingSegment]) -> None:
        """Put segments at the end of the queue, in their order."""
        for segment in segments:
            assert segment.segment_id not in self._waiting
            self._waiting[segment.segment_id] = segment

    def cancel(self, segment_id: int) -> bool:
        """Take a segment out of the queue; False when it does not wait."""
        return self._waiting.pop(segment_id, None) is not None

    def plan(self, *, free_rows: int, free_slots: int) -> list[int]:
        """Take the next chunk out of the queue; empty when nothing may join now."""
        elders, passers = self._candidates(free_rows, free_slots)
        chunk = similar_lengths([*elders, *passers], token_budget=self._admit_token_budget)
        self._num_overtakes += len(set(chunk).intersection(passers))
        for segment in chunk:
            del self._waiting[segment.segment_id]
        return [segment.segment_id for segment in chunk]

    def _candidates(
        self, free_rows: int, free_slots: int
    ) -> tuple[list[WaitingSegment], list[WaitingSegment]]:
        """Those there is room for, oldest first: before the first that is too wide, and after."""
        elders: list[WaitingSegment] = []
        passers: list[WaitingSegment] = []
        joining, num_left = elders, free_slots
        for segment in islice(self._waiting.values(), self._window):
            if free_rows < 1 or num_left < 1:
                break
            if segment.num_rows <= free_rows:
                joining.append(segment)
                free_rows -= segment.num_rows
                num_left -= 1
            elif joining is elders:
                joining, num_left = passers, min(num_left, self._overtakes_left(segment))
        return elders, passers

    def _overtakes_left(self, blocked: WaitingSegment) -> int:
        if self._blocked_id != blocked.segment_id:
            self._blocked_id = blocked.segment_id
            self._num_overtakes = 0
        return self._max_overtakes - self._num_overtakes


def similar_lengths(
    candidates: Sequence[WaitingSegment], *, token_budget: int
) -> list[WaitingSegment]:
    """The first candidate, and the others of about its length that the budget allows."""
    if not candidates:
        return []
    longest = shortest = length = candidates[0].num_source_tokens
    chunk = [candidates[0]]
    for segment in sorted(candidates[1:], key=lambda one: abs(one.num_source_tokens - length)):
        new_longest = max(longest, segment.num_source_tokens)
        new_shortest = min(shortest, segment.num_source_tokens)
        is_affordable = new_longest * (len(chunk) + 1) <= token_budget
        if is_affordable and new_longest <= max(2 * new_shortest, new_shortest + SLACK_TOKENS):
            longest, shortest = new_longest, new_shortest
            chunk.append(segment)
    return chunk
