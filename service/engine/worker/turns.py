"""Order of turns among the waiting segments of one class: shared fairly by client and request.

Owns which request comes next within a class. Clients share it evenly, and within a client its
requests do, by work. But with turns of one segment each, all requests would wait for all others: of
two equal ones both would end when the second one could. So the request that would end first, if all
were served at once and evenly, is served first, and whole: no request ends later than it would
then, but for a segment, and most end earlier (the fair sojourn protocol: Friedman, Henderson 2003).
Equal requests go in the order of arrival, and a small one does not wait for a large one.

Each *flow* (a client, or one of its requests) has a charge: the work that has joined for it, from
the level at which it began to wait. The level rises, with all that joins, by each waiting flow's
part of it (the clock of weighted fair queueing: Parekh, Gallager 1993), so a new flow has neither a
claim to the past nor a way past flows that have waited longer than their work takes. The lowest
goes first of charge and what its first request still has to do.

Does not own whether there is room: `service.engine.worker.scheduler`.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from heapq import heappop, heappush, heapreplace
from itertools import chain, count
from typing import NamedTuple, Protocol

from service.priority import Priority

_MIN_IDLE_CHARGES = 1024
"""So many flows that do not wait are remembered before any is forgotten."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingSegment:
    """Waiting segment as far as the scheduler needs to know it.

    Attributes:
        segment_id: Its number.
        num_source_tokens: Source tokens with EOS.
        num_rows: Rows it will hold, its beam size.
        priority: The class it waits in.
        client: Whose it is, as a number that says nothing of them.
        request: Which request it belongs to.
        request_work: The work of all segments of that request; 0 where that is not known.
    """

    segment_id: int
    num_source_tokens: int
    num_rows: int
    priority: Priority = "interactive"
    client: int = 0
    request: int = 0
    request_work: int = 0

    @property
    def work(self) -> int:
        """Row-steps it will take, in proportion."""
        return self.num_rows * self.num_source_tokens


class Flow(Protocol):
    """Flow of waiting segments, in an order of its own."""

    def __len__(self) -> int:
        """How many."""

    @property
    def ahead(self) -> int:
        """The work that its first request still has to do; there is one."""

    def add(self, segment: WaitingSegment) -> None:
        """Add a segment to its flow."""

    def join(self, segment: WaitingSegment) -> None:
        """Take a segment out, on account of its flow."""

    def remove(self, segment: WaitingSegment) -> None:
        """Take out a segment that was cancelled."""

    def requests(self) -> Iterator["Request"]:
        """Its requests in their order; looks no further than it is asked to."""


class Request:
    """Waiting segments of one request: first come, first served."""

    def __init__(self) -> None:
        self._segments: dict[int, WaitingSegment] = {}
        self._waiting = 0  # work
        self._gone = 0

    def __len__(self) -> int:
        return len(self._segments)

    @property
    def ahead(self) -> int:
        """The work that is still to be done."""
        first = next(iter(self._segments.values()))
        return max(first.request_work - self._gone, self._waiting)

    def add(self, segment: WaitingSegment) -> None:
        """Put a segment at the end."""
        self._segments[segment.segment_id] = segment
        self._waiting += segment.work

    def join(self, segment: WaitingSegment) -> None:
        """Take a segment out."""
        self.remove(segment)

    def remove(self, segment: WaitingSegment) -> None:
        """Take a segment out."""
        del self._segments[segment.segment_id]
        self._waiting -= segment.work
        self._gone += segment.work

    def requests(self) -> Iterator["Request"]:
        """Itself."""
        yield self

    def __iter__(self) -> Iterator[WaitingSegment]:
        """Its segments, the oldest first."""
        return iter(self._segments.values())


class _Position(NamedTuple):
    """Place of a flow among the others: by its virtual finishing time, then by arrival."""

    end: float
    since: int
    key: int


class FairQueue:
    """Fair queue over flows, which share the work evenly.

    Args:
        key_of: The flow that a segment belongs to.
        new_flow: Makes an empty one.
    """

    def __init__(
        self, *, key_of: Callable[[WaitingSegment], int], new_flow: Callable[[], Flow]
    ) -> None:
        self._key_of = key_of
        self._new_flow = new_flow
        self._flows: dict[int, Flow] = {}  # those that wait
        self._charges: dict[int, float] = {}  # theirs, and of some that do not wait
        self._positions: dict[int, _Position] = {}
        self._order: list[_Position] = []  # sorted
        self._level = 0.0
        self._numbers = count()
        self._num_segments = 0
        self._max_idle = _MIN_IDLE_CHARGES

    def __len__(self) -> int:
        return self._num_segments

    @property
    def ahead(self) -> int:
        """The work that the first request of the first flow still has to do."""
        return self._flows[self._order[0].key].ahead

    def add(self, segment: WaitingSegment) -> None:
        """Put a segment into its flow, which begins to wait if it did not."""
        key = self._key_of(segment)
        if key not in self._flows:
            self._flows[key] = self._new_flow()
            self._charges[key] = max(self._charges.get(key, 0.0), self._level)
            self._positions[key] = _Position(0.0, next(self._numbers), key)
        else:
            self._take_out(key)
        self._flows[key].add(segment)
        self._num_segments += 1
        self._insert(key)

    def join(self, segment: WaitingSegment) -> None:
        """Take a segment out and charge its flow."""
        key = self._key_of(segment)
        self._level += segment.work / len(self._flows)
        self._charges[key] += segment.work
        self._take_out(key)
        self._flows[key].join(segment)
        self._end_removal(key)

    def remove(self, segment: WaitingSegment) -> None:
        """Take out a segment without a charge."""
        key = self._key_of(segment)
        self._take_out(key)
        self._flows[key].remove(segment)
        self._end_removal(key)

    def requests(self) -> Iterator["Request"]:
        """All requests in their order, as if each was done when it is named."""
        begun: list[tuple[_Position, Iterator[Request], Request]] = []
        for position in self._order:
            while begun and begun[0][0] < position:
                yield from _first_of(begun)
            flow = self._flows[position.key].requests()
            heappush(begun, (position, flow, next(flow)))
        while begun:
            yield from _first_of(begun)

    def in_turn(self) -> Iterator[WaitingSegment]:
        """All segments in the order of their requests."""
        return chain.from_iterable(self.requests())

    def _insert(self, key: int) -> None:
        position = self._positions[key]
        position = position._replace(end=self._charges[key] + self._flows[key].ahead)
        self._positions[key] = position
        insort(self._order, position)

    def _take_out(self, key: int) -> None:
        del self._order[bisect_left(self._order, self._positions[key])]

    def _end_removal(self, key: int) -> None:
        """One segment less; a flow without any leaves, and what it owes is kept."""
        self._num_segments -= 1
        if self._flows[key]:
            self._insert(key)
            return
        del self._flows[key], self._positions[key]
        if len(self._charges) - len(self._flows) > self._max_idle:
            # A flow that is not above the level would begin there anyway.
            self._charges = {
                name: charge
                for name, charge in self._charges.items()
                if name in self._flows or charge > self._level
            }
            num_idle = len(self._charges) - len(self._flows)
            self._max_idle = max(2 * num_idle, _MIN_IDLE_CHARGES)


def _first_of(begun: list[tuple[_Position, Iterator["Request"], Request]]) -> Iterator[Request]:
    """The request that ends first; its flow then stands where its next one ends."""
    position, flow, request = begun[0]
    yield request
    following = next(flow, None)
    if following is None:
        heappop(begun)
    else:
        heapreplace(begun, (position._replace(end=position.end + following.ahead), flow, following))


def shared_by_clients() -> FairQueue:
    """The segments of one class: clients share it evenly, and within each its requests."""

    def requests_of_client() -> FairQueue:
        return FairQueue(key_of=lambda segment: segment.request, new_flow=Request)

    return FairQueue(key_of=lambda segment: segment.client, new_flow=requests_of_client)
