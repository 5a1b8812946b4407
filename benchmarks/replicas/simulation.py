"""Discrete-event simulation of clients, fronts and N replicas, fed with measured times.

Owns the model: clients that send and read, fronts that each do a request's two halves one at a
time, an owner that all of them ask, and engines (`benchmarks.replicas.engine`). Requests come from
clients that wait for their answers, or at given times whoever waits, of a sentence that is drawn or
of those that they had. Which engine gets a sentence is decided by the server's own function. How
processes share cores, and what waking costs, is `benchmarks.replicas.processors`.
"""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from random import Random

from benchmarks.replicas.engine import SimulatedEngine, TurnCosts
from benchmarks.replicas.processors import Cores, Process, Timeline
from benchmarks.replicas.steps import BEAM_SIZE, Sentence, StepTimes
from service.engine.client.pool.choice import choose


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is simulated.

    Attributes:
        num_replicas: Engines.
        num_clients: Clients, each of which asks again when it has its answer.
        num_requests: Requests until the end.
        front_seconds: What a request takes of its front, both halves together.
        num_fronts: Fronts, which requests take in turn.
        owner_seconds: What it takes of the owner, both halves together, waking included; there is
            none beside one front.
        segment_seconds: What a sentence takes of its engine beside encoding and steps.
        turn_seconds: What a step takes of an engine besides itself, however many rows it has.
        client_seconds: What a request takes of the process that all clients are in, both halves
            together.
        wake_seconds: What waking from idleness takes of a front.
        client_wake_seconds: Of the clients' process.
        engine_wake_seconds: Of an engine.
        delay_seconds: From an event to the process that waited for it.
        cold_seconds: Sleep after which a process pays all of waking and of this delay; 0: any.
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
    engine_wake_seconds: float = 0.0
    delay_seconds: float = 0.0
    cold_seconds: float = 0.0
    num_cores: int = 0
    fill_rows: int = 0
    max_rows: int = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Steady:
    """Shares of the time that processes were at work, after the beginning, while requests came.

    Attributes:
        front_shares: Of each front.
        replica_shares: Of each engine.
        owner_share: Of the owner.
    """

    front_shares: tuple[float, ...] = ()
    replica_shares: tuple[float, ...] = ()
    owner_share: float = 0.0


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
        seconds: From the first request to the last answer.
        num_requests: All of them.
        segments_a_request: Sentences.
        turns_a_request: Steps of engines, whatever their rows.
        front_wakes_a_request: How often fronts woke.
        client_wakes_a_request: How often the clients' process did.
        engine_wakes_a_request: How often engines did.
        latencies: Of each request, in the order in which they came.
        steady: What processes were at work for while requests came at given times.
    """

    requests_per_second: float
    p50_seconds: float
    p99_seconds: float
    mean_rows: float
    front_share: float
    replica_shares: tuple[float, ...]
    owner_share: float = 0.0
    seconds: float = 0.0
    num_requests: int = 0
    segments_a_request: float = 1.0
    turns_a_request: float = 0.0
    front_wakes_a_request: float = 0.0
    client_wakes_a_request: float = 0.0
    engine_wakes_a_request: float = 0.0
    latencies: tuple[float, ...] = field(default=(), repr=False)
    steady: Steady = field(default_factory=Steady)


class Simulation:
    """One run.

    Args:
        plan: What is simulated.
        times: What everything takes.
        random: Chooses the sentences.
        arrivals: When requests come, ascending; none: clients of the plan ask one after the other.
        asked: Sentences of each arrival, or of the requests that clients draw from; none: each
            request is one sentence that is drawn.
    """

    def __init__(
        self,
        plan: Plan,
        times: StepTimes,
        random: Random,
        arrivals: Sequence[float] = (),
        asked: Sequence[Sequence[Sentence]] = (),
    ) -> None:
        self._plan = plan
        self._arrivals = arrivals
        self._asked = asked
        self._times = times
        self._random = random
        self._time = Timeline()
        new = partial(
            Process,
            timeline=self._time,
            cores=Cores(self._time, plan.num_cores),
            delay_seconds=plan.delay_seconds,
            cold_seconds=plan.cold_seconds,
        )
        costs = TurnCosts(
            times=times, segment_seconds=plan.segment_seconds, turn_seconds=plan.turn_seconds
        )
        self._replicas = [
            SimulatedEngine(
                process=new(wake_seconds=plan.engine_wake_seconds),
                costs=costs,
                max_rows=plan.max_rows,
            )
            for _ in range(plan.num_replicas)
        ]
        self._fronts = [new(wake_seconds=plan.wake_seconds) for _ in range(plan.num_fronts)]
        self._owner = new()
        self._clients = new(wake_seconds=plan.client_wake_seconds)
        self._num_asked = self._num_segments = 0
        self._answers: list[tuple[float, float]] = []  # when, and how long it took
        self._latencies: dict[int, float] = {}  # of each request, by its number
        self._steady_since = (0.0, list[float]())  # when, and what had been worked until then
        self._steady = Steady()

    def run(self) -> Outcome:
        """Simulate until all requests are answered."""
        for place, seconds in enumerate(self._arrivals):
            own = self._asked[place] if self._asked else ()
            self._time.at(seconds, partial(self._ask, own))
        if self._arrivals:
            self._time.at(self._arrivals[len(self._arrivals) // 10], self._begin_steady)
            self._time.at(self._arrivals[-1], self._end_steady)
        for _ in range(0 if self._arrivals else self._plan.num_clients):
            self._ask()
        self._time.run()
        return self._outcome()

    def _ask(self, sentences: Sequence[Sentence] = ()) -> None:
        plan = self._plan
        if not self._arrivals and self._num_asked == plan.num_requests:
            return
        number = self._num_asked
        front = self._fronts[number % plan.num_fronts]
        self._num_asked += 1
        sentences = sentences or self._drawn()
        there: list[tuple[Process, float]] = [(self._clients, plan.client_seconds / 2)]
        there.append((front, plan.front_seconds / 2))
        if plan.owner_seconds:
            there.append((self._owner, plan.owner_seconds / 2))
        num_left, began = len(sentences), self._time.now

        def answered() -> None:
            self._latencies[number] = self._time.now - began
            self._answers.append((self._time.now, self._time.now - began))
            if not self._arrivals:
                self._ask()

        def one_done() -> None:
            nonlocal num_left
            num_left -= 1
            if not num_left:
                _one_after_another([*reversed(there)], answered)

        def begin() -> None:
            nonlocal began
            began = self._time.now
            _one_after_another(there, lambda: self._submit(number, sentences, one_done))

        if self._arrivals:
            self._clients.do(0.0, begin)  # it is awake before anything is sent
        else:
            begin()

    def _drawn(self) -> tuple[Sentence, ...]:
        """A request of the clients': any sentence, or any of the requests that are given."""
        if self._asked:
            return tuple(self._random.choice(self._asked))
        return (self._random.choice(self._times.sentences),)

    def _submit(
        self, number: int, sentences: Sequence[Sentence], on_done: Callable[[], None]
    ) -> None:
        """Hand the sentences of a request to engines, as the front does."""
        request_work = BEAM_SIZE * sum(one.num_source_tokens for one in sentences)
        for sentence in sentences:
            self._num_segments += 1
            loads = [replica.load for replica in self._replicas]
            place = choose(loads, num_rows=BEAM_SIZE, fill_rows=self._plan.fill_rows)
            assert place is not None
            self._replicas[place].accept(
                sentence, request=number, request_work=request_work, on_done=on_done
            )

    def _worked(self) -> list[float]:
        engines = [one.process for one in self._replicas]
        return [one.busy_seconds for one in (self._owner, *self._fronts, *engines)]

    def _begin_steady(self) -> None:
        self._steady_since = self._time.now, self._worked()

    def _end_steady(self) -> None:
        since, before = self._steady_since
        seconds = max(self._time.now - since, 1e-12)
        owner, *others = [
            (now - then) / seconds for now, then in zip(self._worked(), before, strict=True)
        ]
        number = self._plan.num_fronts
        self._steady = Steady(
            front_shares=tuple(others[:number]),
            replica_shares=tuple(others[number:]),
            owner_share=owner,
        )

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
            seconds=ended,
            num_requests=len(self._answers),
            segments_a_request=self._num_segments / len(self._answers),
            turns_a_request=steps / len(self._answers),
            front_wakes_a_request=sum(one.num_wakes for one in self._fronts) / len(self._answers),
            client_wakes_a_request=self._clients.num_wakes / len(self._answers),
            engine_wakes_a_request=sum(one.process.num_wakes for one in self._replicas)
            / len(self._answers),
            latencies=tuple(self._latencies[number] for number in range(len(self._latencies))),
            steady=self._steady,
        )


def _one_after_another(steps: Sequence[tuple[Process, float]], on_done: Callable[[], None]) -> None:
    """Have processes each do something, one when the one before it has done its part."""
    (process, seconds), *rest = steps
    following = partial(_one_after_another, rest, on_done) if rest else on_done
    process.do(seconds, following)


def simulate(
    plan: Plan,
    times: StepTimes,
    *,
    seed: int = 1,
    arrivals: Sequence[float] = (),
    asked: Sequence[Sequence[Sentence]] = (),
) -> Outcome:
    """What comes of a plan, with clients that wait or with requests that come at given times."""
    return Simulation(plan, times, Random(seed), arrivals, asked).run()


def knee(outcomes: Sequence[tuple[int, Outcome]], *, share: float = 0.95) -> int | None:
    """The first number of replicas at which the front is busy for this share of the time."""
    return next((number for number, one in outcomes if one.front_share >= share), None)
