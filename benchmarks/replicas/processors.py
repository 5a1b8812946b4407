"""Processes on the cores of one machine, as a simulation has them: who runs when, and for how long.

Owns time, which is what its events say, and how processes share cores: each does one thing after
the other, and where more of them want to run than there are cores, all run slower alike. A process
that had nothing to do wakes late, and waking costs it processor time: all of both if it has slept
for long, as its caches are others' by then and its core sleeps too. What processes do is
`benchmarks.replicas.simulation`.
"""

import heapq
import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count

Happen = Callable[[], None]


class Timeline:
    """Events in their order.

    Attributes:
        now: Time of the event that happens.
    """

    def __init__(self) -> None:
        self.now = 0.0
        self._numbers = count()
        self._events: list[tuple[float, int, Happen]] = []

    def at(self, seconds: float, happen: Happen) -> None:
        """Have something happen at a time."""
        heapq.heappush(self._events, (seconds, next(self._numbers), happen))

    def run(self) -> None:
        """Have everything happen, and what comes of it."""
        while self._events:
            self.now, _, happen = heapq.heappop(self._events)
            happen()


@dataclass(slots=True, kw_only=True, eq=False)
class _Job:
    """What a process is at."""

    num_seconds_left: float
    on_done: Happen


class Cores:
    """Cores that processes share.

    Args:
        timeline: When.
        number: Cores; 0: each process has one of its own.
    """

    def __init__(self, timeline: Timeline, number: int) -> None:
        self._timeline = timeline
        self._number = number
        self._running: list[_Job] = []
        self._since = 0.0
        self._version = 0

    def run(self, seconds: float, on_done: Happen) -> None:
        """Run for so much processor time."""
        if not self._number:
            self._timeline.at(self._timeline.now + seconds, on_done)
            return
        self._advance()
        self._running.append(_Job(num_seconds_left=seconds, on_done=on_done))
        self._plan_next()

    @property
    def _rate(self) -> float:
        return min(1.0, self._number / max(len(self._running), 1))

    def _advance(self) -> None:
        done = (self._timeline.now - self._since) * self._rate
        self._since = self._timeline.now
        for job in self._running:
            job.num_seconds_left -= done

    def _plan_next(self) -> None:
        """Have the next one end; an event that was planned before others came or went is void."""
        self._version += 1
        if self._running:
            job, version = min(self._running, key=lambda one: one.num_seconds_left), self._version
            seconds = max(0.0, job.num_seconds_left) / self._rate
            self._timeline.at(self._timeline.now + seconds, lambda: self._end(job, version))

    def _end(self, job: _Job, version: int) -> None:
        if version == self._version:
            self._advance()
            self._running.remove(job)
            self._plan_next()
            job.on_done()


@dataclass(slots=True, kw_only=True, eq=False)
class Process:
    """A process that does one thing after the other.

    Attributes:
        timeline: When.
        cores: Where.
        wake_seconds: What waking costs it, of processor time.
        delay_seconds: How late it wakes.
        cold_seconds: Sleep after which it pays all of that; after less it pays its part.
        busy_seconds: Processor time that it had.
        num_wakes: How often it woke, each counted by the part of the price that it paid.
        is_awake: It does something, or is about to.
    """

    timeline: Timeline
    cores: Cores
    wake_seconds: float = 0.0
    delay_seconds: float = 0.0
    cold_seconds: float = 0.0
    busy_seconds: float = 0.0
    num_wakes: float = 0.0
    is_awake: bool = False
    _slept_since: float = -math.inf
    _waiting: deque[tuple[float, Happen]] = field(default_factory=deque)

    def do(self, seconds: float, on_done: Happen) -> None:
        """Do something, behind what it has to do already."""
        self._waiting.append((seconds, on_done))
        if not self.is_awake:
            self.is_awake = True
            slept = self.timeline.now - self._slept_since
            price = min(1.0, slept / self.cold_seconds) if self.cold_seconds else 1.0
            self.num_wakes += price
            self.timeline.at(
                self.timeline.now + price * self.delay_seconds,
                lambda: self._next(price * self.wake_seconds),
            )

    def _next(self, more_seconds: float = 0.0) -> None:
        if not self._waiting:
            self.is_awake, self._slept_since = False, self.timeline.now
            return
        seconds, on_done = self._waiting.popleft()
        seconds += more_seconds
        self.busy_seconds += seconds

        def ended() -> None:
            on_done()
            self._next()

        self.cores.run(seconds, ended)
