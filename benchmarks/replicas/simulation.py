"""Discrete-event simulation of fronts and N replicas, fed with measured times.

Owns the model: fronts that each do a request's two halves one at a time, an owner that all of them
ask, and replicas that each admit what waits and step all their rows at once, as the engine does.
Requests come from clients that wait for their answers, or at given times whoever waits. Who gets a
sentence is decided by the server's own function. It knows no clock: its time is what the events
say.
"""

import heapq
import statistics
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from random import Random

from benchmarks.replicas.steps import BEAM_SIZE, Sentence, StepTimes
from service.engine.client.pool.choice import Load, choose
from service.priority import work_of

_Event = tuple[float, int, Callable[[], None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is simulated.

    Attributes:
        num_replicas: Engines.
        num_clients: Clients, each of which asks again when it has its answer.
        num_requests: Requests until the end.
        front_seconds: What a request takes of its front, both halves together.
        num_fronts: Fronts, which requests take in turn.
        owner_seconds: What it takes of the owner, both halves together; there is none beside one
            front.
        segment_seconds: What a sentence takes of its engine beside encoding and steps.
        fill_rows: As of the server.
        max_rows: Rows that run at once in a replica.
    """

    num_replicas: int
    num_clients: int = 0
    num_requests: int = 4000
    front_seconds: float = 0.0
    num_fronts: int = 1
    owner_seconds: float = 0.0
    segment_seconds: float = 0.0
    fill_rows: int = 0
    max_rows: int = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of it.

    Attributes:
        requests_per_second: Answered, over all of the time but the beginning.
        p50_seconds: Median of the latencies.
        p99_seconds: What one of a hundred takes longer than.
        mean_rows: Of a step, over all replicas.
        front_share: Of the time, what a front was at work.
        owner_share: Of the time, what the owner was.
        replica_shares: Of the time, what each replica was at work.
    """

    requests_per_second: float
    p50_seconds: float
    p99_seconds: float
    mean_rows: float
    front_share: float
    replica_shares: tuple[float, ...]
    owner_share: float = 0.0


@dataclass(slots=True, kw_only=True)
class _Asked:
    """A sentence in a replica."""

    sentence: Sentence
    num_left: int
    on_done: Callable[[], None]


@dataclass(slots=True, kw_only=True)
class _Replica:
    """What one has to do, and has done."""

    waiting: deque[_Asked] = field(default_factory=deque)
    running: list[_Asked] = field(default_factory=list)
    load: Load = field(default_factory=Load)
    is_busy: bool = False
    busy_seconds: float = 0.0
    num_steps: int = 0
    num_row_steps: int = 0


@dataclass(slots=True, kw_only=True)
class _Desk:
    """A process that does one thing after the other."""

    free_at: float = 0.0
    busy_seconds: float = 0.0


class Simulation:
    """One run.

    Args:
        plan: What is simulated.
        times: What everything takes.
        random: Chooses the sentences.
        arrivals: When requests come, ascending; none: clients of the plan ask one after the other.
    """

    def __init__(
        self, plan: Plan, times: StepTimes, random: Random, arrivals: Sequence[float] = ()
    ) -> None:
        self._plan = plan
        self._arrivals = arrivals
        self._times = times
        self._random = random
        self._now = 0.0
        self._numbers = count()
        self._events: list[_Event] = []
        self._replicas = [_Replica() for _ in range(plan.num_replicas)]
        self._fronts = [_Desk() for _ in range(plan.num_fronts)]
        self._owner = _Desk()
        self._num_asked = 0
        self._answers: list[tuple[float, float]] = []  # when, and how long it took

    def run(self) -> Outcome:
        """Simulate until all requests are answered."""
        for seconds in self._arrivals:
            self._at(seconds, self._ask)
        for _ in range(0 if self._arrivals else self._plan.num_clients):
            self._ask()
        while self._events:
            self._now, _, happen = heapq.heappop(self._events)
            happen()
        return self._outcome()

    def _at(self, seconds: float, happen: Callable[[], None]) -> None:
        heapq.heappush(self._events, (seconds, next(self._numbers), happen))

    def _half(self, desk: _Desk, seconds: float, happen: Callable[[], None]) -> None:
        """Half of a request's work in a process, behind what it has to do already."""
        desk.free_at = max(desk.free_at, self._now) + seconds / 2
        desk.busy_seconds += seconds / 2
        self._at(desk.free_at, happen)

    def _ask(self) -> None:
        if not self._arrivals and self._num_asked == self._plan.num_requests:
            return
        front = self._fronts[self._num_asked % self._plan.num_fronts]
        self._num_asked += 1
        sentence, began = self._random.choice(self._times.sentences), self._now
        of_front, of_owner = self._plan.front_seconds, self._plan.owner_seconds

        def answered() -> None:
            self._answers.append((self._now, self._now - began))
            if not self._arrivals:
                self._ask()

        def back() -> None:
            self._half(self._owner, of_owner, lambda: self._half(front, of_front, answered))

        def submit() -> None:
            self._submit(sentence, back)

        self._half(front, of_front, lambda: self._half(self._owner, of_owner, submit))

    def _submit(self, sentence: Sentence, on_done: Callable[[], None]) -> None:
        loads = [replica.load for replica in self._replicas]
        place = choose(loads, num_rows=BEAM_SIZE, fill_rows=self._plan.fill_rows)
        assert place is not None
        replica = self._replicas[place]
        replica.waiting.append(
            _Asked(sentence=sentence, num_left=sentence.num_steps, on_done=on_done)
        )
        replica.load = replica.load.with_segment(num_rows=BEAM_SIZE, num_row_steps=_work(sentence))
        if not replica.is_busy:
            self._turn(replica)

    def _turn(self, replica: _Replica) -> None:
        """Admit what there is room for, and step; what ends is told when the step is over."""
        seconds = 0.0
        while replica.waiting and (len(replica.running) + 1) * BEAM_SIZE <= self._plan.max_rows:
            replica.running.append(replica.waiting.popleft())
            seconds += self._times.encode_seconds + self._plan.segment_seconds
        num_rows = len(replica.running) * BEAM_SIZE
        replica.is_busy = num_rows > 0
        if not replica.is_busy:
            return
        seconds += self._times.step(num_rows)
        replica.busy_seconds += seconds
        replica.num_steps += 1
        replica.num_row_steps += num_rows
        self._at(self._now + seconds, lambda: self._stepped(replica))

    def _stepped(self, replica: _Replica) -> None:
        for one in replica.running:
            one.num_left -= 1
        done = [one for one in replica.running if not one.num_left]
        replica.running = [one for one in replica.running if one.num_left]
        for one in done:
            replica.load = Load(
                num_rows=replica.load.num_rows - BEAM_SIZE,
                num_row_steps=replica.load.num_row_steps - _work(one.sentence),
            )
            one.on_done()
        self._turn(replica)

    def _outcome(self) -> Outcome:
        num_left_out = len(self._answers) // 10
        begin = self._answers[num_left_out][0] if num_left_out else 0.0
        kept = self._answers[num_left_out:]
        latencies = sorted(seconds for _, seconds in kept)
        steps = sum(replica.num_steps for replica in self._replicas)
        return Outcome(
            requests_per_second=(len(kept) - 1) / max(self._now - begin, 1e-12),
            p50_seconds=statistics.median(latencies),
            p99_seconds=latencies[int(0.99 * (len(latencies) - 1))],
            mean_rows=sum(replica.num_row_steps for replica in self._replicas) / max(steps, 1),
            front_share=sum(one.busy_seconds for one in self._fronts)
            / (self._plan.num_fronts * self._now),
            owner_share=self._owner.busy_seconds / self._now,
            replica_shares=tuple(replica.busy_seconds / self._now for replica in self._replicas),
        )


def simulate(
    plan: Plan, times: StepTimes, *, seed: int = 1, arrivals: Sequence[float] = ()
) -> Outcome:
    """What comes of a plan, with clients that wait or with requests that come at given times."""
    return Simulation(plan, times, Random(seed), arrivals).run()


def knee(outcomes: Sequence[tuple[int, Outcome]], *, share: float = 0.95) -> int | None:
    """The first number of replicas at which the front is busy for this share of the time."""
    return next((number for number, one in outcomes if one.front_share >= share), None)


def _work(sentence: Sentence) -> int:
    return work_of((sentence.num_source_tokens,), beam_size=BEAM_SIZE)
