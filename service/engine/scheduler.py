"""Who joins the running segments now: a decision, taken without torch, event loop or clock.

Owns the waiting queue. Between two steps the engine asks for one *chunk*: segments that are
encoded together as one padded batch. A chunk respects three budgets: free rows, free slots,
and padded source tokens (longest × count), so that running segments are never kept waiting
for more than one small encoder batch.

The oldest segment that fits opens the chunk; younger ones of a similar length, taken from a
window at the front of the queue, fill it. Two rules keep that fair:

* the oldest waiting segment, if it fits, is in the chunk; and
* a segment that `max_overtakes` chunks have passed is a barrier: nothing younger joins until
  it does. So a wide beam gets its rows, because running segments end and none takes them.

A segment longer than the token budget opens its chunk alone. One that could never fit is the
client's to refuse.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice


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


@dataclass(slots=True, kw_only=True)
class _Waiter:
    segment: WaitingSegment
    num_overtakes: int = 0


@dataclass(slots=True, kw_only=True)
class _Chunk:
    """Segments to encode together, and what is left for more."""

    free_rows: int
    free_slots: int
    token_budget: int
    longest: int = 0
    shortest: int = 0
    segment_ids: list[int]

    def try_join(self, segment: WaitingSegment) -> bool:
        """Add the segment if every budget allows it; the first may pass the token budget."""
        if segment.num_rows > self.free_rows or self.free_slots < 1:
            return False
        longest = max(self.longest, segment.num_source_tokens)
        shortest = min(self.shortest, segment.num_source_tokens) if self.segment_ids else longest
        if self.segment_ids and not self._is_dense(longest, shortest):
            return False
        self.longest, self.shortest = longest, shortest
        self.free_rows -= segment.num_rows
        self.free_slots -= 1
        self.segment_ids.append(segment.segment_id)
        return True

    def _is_dense(self, longest: int, shortest: int) -> bool:
        fits = longest * (len(self.segment_ids) + 1) <= self.token_budget
        return fits and longest <= max(2 * shortest, shortest + SLACK_TOKENS)


SLACK_TOKENS = 16
"""Lengths this near always share a chunk; above it the longest is at most twice the shortest."""


class Scheduler:
    """The waiting queue and the rule by which it empties.

    Args of the constructor:
        admit_token_budget: Padded source tokens of a chunk.
        window: Oldest segments that are considered together; bounds the work of a plan.
        max_overtakes: Chunks that may pass a waiting segment.
    """

    def __init__(
        self, *, admit_token_budget: int, window: int = 128, max_overtakes: int = 8
    ) -> None:
        self._admit_token_budget = admit_token_budget
        self._window = window
        self._max_overtakes = max_overtakes
        self._waiters: dict[int, _Waiter] = {}

    def __repr__(self) -> str:
        return f"<Scheduler waiting={self.num_waiting}>"

    @property
    def num_waiting(self) -> int:
        """Segments in the queue."""
        return len(self._waiters)

    def add(self, segments: Iterable[WaitingSegment]) -> None:
        """Put segments at the end of the queue, in their order."""
        for segment in segments:
            assert segment.segment_id not in self._waiters
            self._waiters[segment.segment_id] = _Waiter(segment=segment)

    def cancel(self, segment_id: int) -> bool:
        """Take a segment out of the queue; False when it does not wait."""
        return self._waiters.pop(segment_id, None) is not None

    def plan(self, *, free_rows: int, free_slots: int) -> list[int]:
        """Take the next chunk out of the queue; empty when nothing may join now."""
        if not self._waiters or free_rows < 1 or free_slots < 1:
            return []
        candidates = self._candidates()
        chunk = _Chunk(
            free_rows=free_rows,
            free_slots=free_slots,
            token_budget=self._admit_token_budget,
            segment_ids=[],
        )
        opener = next((waiter for waiter in candidates if chunk.try_join(waiter.segment)), None)
        if opener is None:
            return []
        length = opener.segment.num_source_tokens
        for waiter in sorted(
            (waiter for waiter in candidates if waiter is not opener),
            key=lambda waiter: abs(waiter.segment.num_source_tokens - length),
        ):
            chunk.try_join(waiter.segment)
        self._take(candidates, chunk.segment_ids)
        return chunk.segment_ids

    def _candidates(self) -> list[_Waiter]:
        """The window, oldest first, up to and with the first barrier."""
        candidates = []
        for waiter in islice(self._waiters.values(), self._window):
            candidates.append(waiter)
            if waiter.num_overtakes >= self._max_overtakes:
                break
        return candidates

    def _take(self, candidates: Sequence[_Waiter], segment_ids: Sequence[int]) -> None:
        """Remove the chunk from the queue and count whom it has passed."""
        chosen = set(segment_ids)
        is_passed = False
        for waiter in reversed(candidates):
            if waiter.segment.segment_id in chosen:
                del self._waiters[waiter.segment.segment_id]
                is_passed = True
            elif is_passed:
                waiter.num_overtakes += 1
