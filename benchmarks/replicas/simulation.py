"""Discrete-event simulation of clients, fronts and N replicas, fed with measured times.

Owns the model: clients that send and read, fronts that each do a request's two halves one at a
time, an owner that all of them ask, and replicas that each admit what waits and step all their rows
at once, as the engine does. Requests come from clients that wait for their answers, or at given
times whoever waits. Who gets a sentence is decided by the server's own function. How processes
share cores, and what waking costs, is `benchmarks.replicas.processors`.
"""

import statistics
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from random import Random

from benchmarks.replicas.processors import Cores, Process, Timeline
from benchmarks.replicas.steps import BEAM_SIZE, Sentence, StepTimes
from service.engine.client.pool.choice import Load, choose
from service.priority import work_of


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
        turn_seconds: What a step takes of an engine besides itself, however many rows it has.
        client_seconds: What a request takes of the process that all clients are in, both halves
            together.
        wake_seconds: What waking from idleness takes of a front or of the owner.
        client_wake_seconds: Of the clients' process.
        delay_seconds: From an event to the process that waited for it.
        num_cores: Of the machine; 0: each process has one of its own.
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
    turn_seconds: float = 0.0
    client_seconds: float = 0.0
    wake_seconds: float = 0.0
    client_wake_seconds: float = 0.0
    delay_seconds: float = 0.0
    num_cores: int = 0
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
        turns_a_request: Steps of engines, whatever their rows.
    """

    requests_per_second: float
    p50_seconds: float
    p99_seconds: float
    mean_rows: float
    front_share: float
    replica_shares: tuple[float, ...]
    owner_share: float = 0.0
    turns_a_request: float = 0.0


@dataclass(slots=True, kw_only=True)
class _Asked:
    """A sentence in a replica."""

    sentence: Sentence
    num_left: int
    on_done: Callable[[], None]


@dataclass(slots=True, kw_only=True)
class _Replica:
    """What one has to do, and has done."""

    process: Process
    waiting: deque[_Asked] = field(default_factory=deque)
    running: list[_Asked] = field(default_factory=list)
    load: Load = field(default_factory=Load)
    num_steps: int = 0
    num_row_steps: int = 0


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
        self._time = Timeline()
        new = partial(
            Process,
            timeline=self._time,
            cores=Cores(self._time, plan.num_cores),
            delay_seconds=plan.delay_seconds,
        )
        self._replicas = [_Replica(process=new()) for _ in range(plan.num_replicas)]
        self._fronts = [new(wake_seconds=plan.wake_seconds) for _ in range(plan.num_fronts)]
        self._owner = new(wake_seconds=plan.wake_seconds)
        self._clients = new(wake_seconds=plan.client_wake_seconds)
        self._num_asked = 0
        self._answers: list[tuple[float, float]] = []  # when, and how long it took

    def run(self) -> Outcome:
        """Simulate until all requests are answered."""
        for seconds in self._arrivals:
            self._time.at(seconds, self._ask)
        for _ in range(0 if self._arrivals else self._plan.num_clients):
            self._ask()
        self._time.run()
        return self._outcome()

    def _ask(self) -> None:
        if not self._arrivals and self._num_asked == self._plan.num_requests:
            return
        front = self._fronts[self._num_asked % self._plan.num_fronts]
        self._num_asked += 1
        sentence, began = self._random.choice(self._times.sentences), self._time.now
        there: list[tuple[Process, float]] = [(self._clients, self._plan.client_seconds / 2)]
        there.append((front, self._plan.front_seconds / 2))
        if self._plan.owner_seconds:
            there.append((self._owner, self._plan.owner_seconds / 2))

        def answered() -> None:
            self._answers.append((self._time.now, self._time.now - began))
            if not self._arrivals:
                self._ask()

        def back() -> None:
            _one_after_another([*reversed(there)], answered)

        _one_after_another(there, lambda: self._submit(sentence, back))

    def _submit(self, sentence: Sentence, on_done: Callable[[], None]) -> None:
        loads = [replica.load for replica in self._replicas]
        place = choose(loads, num_rows=BEAM_SIZE, fill_rows=self._plan.fill_rows)
        assert place is not None
        replica = self._replicas[place]
        replica.waiting.append(
            _Asked(sentence=sentence, num_left=sentence.num_steps, on_done=on_done)
        )
        replica.load = replica.load.with_segment(num_rows=BEAM_SIZE, num_row_steps=_work(sentence))
        if not replica.process.is_awake:
            replica.process.do(0.0, lambda: self._turn(replica))

    def _turn(self, replica: _Replica) -> None:
        """Admit what there is room for, and step; what ends is told when the step is over."""
        seconds = 0.0
        while replica.waiting and (len(replica.running) + 1) * BEAM_SIZE <= self._plan.max_rows:
            replica.running.append(replica.waiting.popleft())
            seconds += self._times.encode_seconds + self._plan.segment_seconds
        num_rows = len(replica.running) * BEAM_SIZE
        if not num_rows:
            return
        seconds += self._times.step(num_rows) + self._plan.turn_seconds
        replica.num_steps += 1
        replica.num_row_steps += num_rows
        replica.process.do(seconds, lambda: self._stepped(replica))

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
        ended = self._time.now
        return Outcome(
            requests_per_second=(len(kept) - 1) / max(ended - begin, 1e-12),
            p50_seconds=statistics.median(latencies),
            p99_seconds=latencies[int(0.99 * (len(latencies) - 1))],
            mean_rows=sum(replica.num_row_steps for replica in self._replicas) / max(steps, 1),
            front_share=sum(one.busy_seconds for one in self._fronts)
            / (self._plan.num_fronts * ended),
            owner_share=self._owner.busy_seconds / ended,
            replica_shares=tuple(one.process.busy_seconds / ended for one in self._replicas),
            turns_a_request=steps / len(self._answers),
        )


def _one_after_another(steps: Sequence[tuple[Process, float]], on_done: Callable[[], None]) -> None:
    """Have processes each do something, one when the one before it has done its part."""
    (process, seconds), *rest = steps
    following = partial(_one_after_another, rest, on_done) if rest else on_done
    process.do(seconds, following)


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
