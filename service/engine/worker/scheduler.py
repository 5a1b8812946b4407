"""Scheduler of waiting segments: which join the running ones, without torch, event loop or clock.

Owns the waiting queues, one per priority. Between two steps the engine asks for one *chunk*:
segments that are encoded together as one padded batch. Four rules make it:

1. **Turns.** A class is shared evenly by its clients and their requests
   (`service.engine.worker.turns`); between the classes the one goes first that has had less. Work
   is rows × source tokens, about the row-steps a segment will take. What joins is charged to its
   class, divided by the class's share (`bulk_share`, and the rest), and the lower charge goes
   first: start-time fair queueing (Goyal, Vin, Cheng 1996). A class that had nothing to run has no
   claim to the past, and no claim grows beyond `CREDIT_TOKENS` a row. So interactive goes first
   until so much has passed that it is bulk's turn: bulk ages by what passes it, not by seconds,
   which needs no tuning to the speed of a machine and protects interactive segments from a bulk
   request however long that takes.
2. **Room.** Bulk leaves `reserved_share` of the rows and of the slots free for interactive
   segments, always. Nothing that runs can be put aside, so a row given to bulk is gone for a
   sentence; an idle row costs little, because a step computes only the rows in use. The
   candidates are the first, in the order of turns, that their room can hold all at once.
3. **Overtaking.** A segment too wide for its room is passed by at most `max_overtakes` others
   that take of that room; then nothing more may take of it until the segment joins, so a wide
   beam gets its rows as others end. Interactive segments within the reserve take none of it.
4. **Lengths.** The first candidate of a class opens the chunk, of both classes in alternation,
   and the nearest lengths fill it, up to a budget of padded source tokens (longest × count):
   running segments are kept waiting for one small encoder batch at a time. The others have
   their room, and join within the next few steps.

What follows, for segments of one width in a session that gets through *c* work a second outside
the reserve, with s = `bulk_share`, L = `max_rows` × `CREDIT_TOKENS` and K the work of the largest
chunk (a wider segment waits in addition for `max_overtakes` others and for its rows to end). A
segment is *behind* the work of its class that joins before it: as much as would have by the end of
its request, were all requests served at once and evenly; never more than there is.

- A segment that keeps its room joins within two turns of the loop (a chunk and a step each) for
  every segment of its class that it is behind and that has room too, and two for itself.
- An interactive segment that finds, itself included, no more interactive rows and slots than are
  reserved has room at once and keeps it, whatever bulk does.
- Any other interactive segment, behind interactive work W, has room before more than
  s · (W / (1 - s) + L) + K of bulk's work has taken any: after (W / (1 - s) + L + K) / c and a
  sentence.
- A bulk segment behind bulk work W has room before more than (1 - s) · (W / s + L) + K of
  interactive work has taken any outside the reserve: after (W / s + L + K) / c and a sentence,
  whatever comes.

So no segment starves, and length reorders only segments that join almost together. A segment longer
than the token budget is a chunk of its own. A bulk segment wider than all that is not reserved
has to use the reserve, or it would never run: the one exception to rule 2. One that could never
fit is the client's to refuse.
"""

from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from itertools import islice
from operator import itemgetter

from service.engine.worker.turns import WaitingSegment, shared_by_clients
from service.priority import PRIORITIES, Priority

__all__ = ["Scheduler", "WaitingSegment", "similar_lengths"]

SLACK_TOKENS = 16
"""Lengths this near always share a chunk; beyond it the longest is at most twice the shortest."""
CREDIT_TOKENS = 64
"""Source tokens per row of the session that a class may be behind its share, at most."""


class Scheduler:
    """Waiting queues of the two classes, and the rules by which segments leave them.

    Args:
        max_rows: Rows of the session.
        max_slots: Slots of the session.
        reserved_share: Of the rows and slots, those that bulk leaves free; in [0, 1).
        bulk_share: Of the work that joins while both classes wait, what is bulk's; in (0, 1).
        max_overtakes: Segments that may pass one that is too wide for the room there is.
        window: First segments that are looked at; bounds the work of a plan.
    """

    def __init__(
        self,
        *,
        max_rows: int,
        max_slots: int,
        reserved_share: float = 0.25,
        bulk_share: float = 0.2,
        max_overtakes: int = 16,
        window: int = 256,
    ) -> None:
        self._max_rows = max_rows
        self._reserved_share = reserved_share
        self._reserved_slots = int(max_slots * reserved_share)
        self._max_credit = max_rows * CREDIT_TOKENS
        self._max_overtakes = max_overtakes
        self._window = window
        self._queues: dict[Priority, _Queue] = {
            "interactive": _Queue(share=1.0 - bulk_share),
            "bulk": _Queue(share=bulk_share),
        }
        self._waiting: dict[int, WaitingSegment] = {}  # of all queues
        self._level = 0.0  # what a class that starts to wait is taken to have had
        self._last_opener: Priority | None = None
        self._running: dict[int, WaitingSegment] = {}  # interactive ones: they use the reserve
        self._num_rows = 0  # theirs

    def __repr__(self) -> str:
        waiting = " ".join(f"{name}={self.num_waiting_of(name)}" for name in PRIORITIES)
        return f"<Scheduler waiting: {waiting}>"

    @property
    def num_waiting(self) -> int:
        """Segments in the queues."""
        return sum(map(self.num_waiting_of, PRIORITIES))

    def num_waiting_of(self, priority: Priority) -> int:
        """Segments in the queue of one class."""
        return len(self._queues[priority].turns)

    @property
    def num_interactive(self) -> int:
        """Interactive segments, waiting and running."""
        return self.num_waiting_of("interactive") + len(self._running)

    def add(self, segments: Iterable[WaitingSegment]) -> None:
        """Put segments into their queues, in their order."""
        for segment in segments:
            assert segment.segment_id not in self._waiting
            self._waiting[segment.segment_id] = segment
            self._queues[segment.priority].turns.add(segment)

    def cancel(self, segment_id: int) -> bool:
        """Forget a segment, waiting or running; False when it did not wait."""
        self.release(segment_id)
        segment = self._waiting.pop(segment_id, None)
        if segment is None:
            return False
        queue = self._queues[segment.priority]
        queue.turns.remove(segment)
        queue.num_overtakes.pop(segment_id, None)
        return True

    def release(self, segment_id: int) -> None:
        """A segment that joined has left its rows; any other number is ignored."""
        segment = self._running.pop(segment_id, None)
        if segment is not None:
            self._num_rows -= segment.num_rows

    def plan(
        self, *, free_rows: int, free_slots: int, token_budget: int, max_rows: int | None = None
    ) -> list[int]:
        """Take the next chunk out of the queues; empty when nothing may join now.

        Args:
            free_rows: Rows that no running segment holds.
            free_slots: Slots that no running segment holds.
            token_budget: Padded source tokens of the chunk.
            max_rows: Rows that may be held at once, where that is fewer than the session has now.
        """
        max_rows = self._max_rows if max_rows is None else max_rows
        reserved_rows = int(max_rows * self._reserved_share)
        self._forget_old_claims()
        scan = _Scan(
            self._queues,
            rows=free_rows,
            slots=free_slots,
            idle_rows=max(0, reserved_rows - self._num_rows),
            idle_slots=max(0, self._reserved_slots - len(self._running)),
            max_bulk_rows=max_rows - reserved_rows,
            max_overtakes=self._max_overtakes,
        )
        for segment in islice(scan.in_turn(), self._window):
            scan.consider(segment)
        chunk = similar_lengths(self._opener_first(scan.candidates), token_budget=token_budget)
        for segment in chunk:
            self._join(segment, passed=scan.passed[segment.segment_id])
        return [segment.segment_id for segment in chunk]

    def _forget_old_claims(self) -> None:
        """Lift the charges of those that wait to what they may claim at most."""
        active = [queue for queue in self._queues.values() if queue.turns]
        if active:
            charges = [queue.charge for queue in active]
            self._level = max(self._level, min(charges), max(charges) - self._max_credit)
        for queue in active:
            queue.charge = max(queue.charge, self._level)

    def _opener_first(self, candidates: list[WaitingSegment]) -> list[WaitingSegment]:
        """The candidates, one of the class that did not open the last chunk before the others."""
        for index, segment in enumerate(candidates):
            if segment.priority != self._last_opener:
                candidates.insert(0, candidates.pop(index))
                break
        if candidates:
            self._last_opener = candidates[0].priority
        return candidates

    def _join(self, segment: WaitingSegment, *, passed: Sequence[WaitingSegment]) -> None:
        queue = self._queues[segment.priority]
        del self._waiting[segment.segment_id]
        queue.turns.join(segment)
        queue.num_overtakes.pop(segment.segment_id, None)
        queue.charge += segment.work / queue.share
        for elder in passed:
            self._queues[elder.priority].num_overtakes[elder.segment_id] += 1
        if segment.priority == "interactive":
            self._running[segment.segment_id] = segment
            self._num_rows += segment.num_rows


class _Queue:
    """Waiting segments of one class, and the work that the class has been charged."""

    def __init__(self, *, share: float) -> None:
        self.share = share
        self.turns = shared_by_clients()
        self.charge = 0.0
        self.num_overtakes: dict[int, int] = {}  # of those that were first and had no room


class _Scan:
    """One pass over the queues: the room there is, given out in the order of turns.

    Attributes:
        candidates: Those that have room, all of them at once.
        passed: For each of them the blocked segments that it would overtake.
    """

    def __init__(
        self,
        queues: dict[Priority, _Queue],
        *,
        rows: int,
        slots: int,
        idle_rows: int,
        idle_slots: int,
        max_bulk_rows: int,
        max_overtakes: int,
    ) -> None:
        self.candidates: list[WaitingSegment] = []
        self.passed: dict[int, list[WaitingSegment]] = {}
        self._queues = queues
        self._rows, self._slots = rows, slots
        self._idle_rows, self._idle_slots = idle_rows, idle_slots  # of the reserve
        self._max_bulk_rows = max_bulk_rows
        self._max_overtakes = max_overtakes
        self._blocked: dict[Priority, WaitingSegment] = {}
        self._overtakes_left: dict[Priority, int] = {}

    def in_turn(self) -> Iterator[WaitingSegment]:
        """The waiting segments, the class with the lower charge first, while there is any room."""
        turns = merge(*map(self._turns_of, PRIORITIES), key=itemgetter(0))
        return (segment for _, segment in turns)

    def _turns_of(self, priority: Priority) -> Iterator[tuple[float, WaitingSegment]]:
        queue = self._queues[priority]
        charge = queue.charge
        for segment in queue.turns.in_turn():
            if self._is_closed(priority):
                return
            yield charge, segment
            charge += segment.work / queue.share

    def _is_closed(self, priority: Priority) -> bool:
        """Nothing more of this class can join: the rest of its queue need not be looked at."""
        is_reserve_idle = self._idle_rows > 0 and self._idle_slots > 0
        if priority == "bulk":
            is_full = self._rows <= self._idle_rows or self._slots <= self._idle_slots
        else:
            is_full = self._rows < 1 or self._slots < 1
        held_up_by = {other for other, left in self._overtakes_left.items() if left < 1}
        if priority == "interactive" and is_reserve_idle:
            held_up_by.discard("bulk")
        return is_full or bool(held_up_by)

    def consider(self, segment: WaitingSegment) -> None:
        """Give the segment its room, or note that it has none."""
        passed = [elder for elder in self._blocked.values() if self._takes_from(elder, segment)]
        is_held_up = any(self._overtakes_left[elder.priority] < 1 for elder in passed)
        if is_held_up or not self._has_room(segment):
            self._block(segment)
            return
        for elder in passed:
            self._overtakes_left[elder.priority] -= 1
        self.candidates.append(segment)
        self.passed[segment.segment_id] = passed
        self._rows -= segment.num_rows
        self._slots -= 1
        if segment.priority == "interactive":
            self._idle_rows = max(0, self._idle_rows - segment.num_rows)
            self._idle_slots = max(0, self._idle_slots - 1)

    def _has_room(self, segment: WaitingSegment) -> bool:
        is_all_open = segment.priority == "interactive" or segment.num_rows > self._max_bulk_rows
        kept_rows, kept_slots = (0, 0) if is_all_open else (self._idle_rows, self._idle_slots)
        return segment.num_rows <= self._rows - kept_rows and self._slots > kept_slots

    def _takes_from(self, elder: WaitingSegment, segment: WaitingSegment) -> bool:
        """Whether `segment`, if it joined, would leave less room to a blocked elder."""
        if elder.priority == "interactive" or elder.num_rows > self._max_bulk_rows:
            return True
        is_within_reserve = segment.num_rows <= self._idle_rows and self._idle_slots > 0
        return segment.priority == "bulk" or not is_within_reserve

    def _block(self, segment: WaitingSegment) -> None:
        """Only the first of a class counts: those behind it wait for it."""
        if segment.priority not in self._blocked:
            self._blocked[segment.priority] = segment
            counts = self._queues[segment.priority].num_overtakes
            num_overtakes = counts.setdefault(segment.segment_id, 0)
            self._overtakes_left[segment.priority] = self._max_overtakes - num_overtakes


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
