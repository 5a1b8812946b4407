"""The real scheduler and the real pacing in an engine that only counts, under a virtual clock.

A turn takes what an encoder batch and a step of so many tokens and rows would take. Arrivals
and lengths come from a seeded generator, so every figure below is the same on every machine.
"""

import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from statistics import mean

import pytest

from service.engine.worker.pacing import PAUSE_STEPS, Pacing
from service.engine.worker.scheduler import CREDIT_TOKENS, Priority, Scheduler, WaitingSegment

MAX_ROWS, MAX_SLOTS, BEAM = 128, 64, 4
RESERVED_SHARE, BULK_SHARE = 0.25, 0.2
RESERVED_ROWS = int(MAX_ROWS * RESERVED_SHARE)
CEILING = 1024
CREDIT = MAX_ROWS * CREDIT_TOKENS
LOAD = 0.9


def step_seconds(num_rows: int) -> float:
    return 0.004 + 0.00015 * num_rows


def encoder_seconds(num_tokens: int) -> float:
    return 0.002 + 0.00004 * num_tokens


@dataclass(slots=True, kw_only=True)
class Sentence:
    """One segment's way, with the work that had joined when it came and when it joined."""

    number: int
    priority: Priority
    arrived: float
    num_tokens: int
    num_steps: int
    waiting: WaitingSegment
    elders_work: int = 0
    num_elders: int = 0
    is_within_reserve: bool = False
    num_turns_before: int = 0
    num_turns: int = 0
    others_before: int = 0
    others_work: int = 0
    joined: float = -1.0
    steps_left: int = 0

    @property
    def wait(self) -> float:
        return self.joined - self.arrived


def sentences(
    arrivals: Iterable[tuple[float, Priority]], *, seed: int, with_priorities: bool
) -> list[Sentence]:
    generator = random.Random(seed)
    made = []
    for number, (arrived, priority) in enumerate(sorted(arrivals)):
        tokens = min(100, max(4, round(generator.lognormvariate(2.9, 0.5))))
        waiting = WaitingSegment(
            segment_id=number,
            num_source_tokens=tokens,
            num_rows=BEAM,
            priority=priority if with_priorities else "interactive",
        )
        steps = max(2, round(tokens * generator.uniform(0.7, 1.5)))
        made.append(
            Sentence(
                number=number,
                priority=priority,
                arrived=arrived,
                num_tokens=tokens,
                num_steps=steps,
                waiting=waiting,
            )
        )
    return made


@dataclass(slots=True)
class Simulation:
    """An engine's loop: receive, plan, encode, step, release."""

    coming: list[Sentence]
    scheduler: Scheduler = field(
        default_factory=lambda: Scheduler(
            max_rows=MAX_ROWS,
            max_slots=MAX_SLOTS,
            reserved_share=RESERVED_SHARE,
            bulk_share=BULK_SHARE,
        )
    )
    pacing: Pacing = field(default_factory=Pacing)
    now: float = 0.0
    num_turns: int = 0
    largest_chunk: int = 0
    longest_turn: float = 0.0
    longest_pause: float = 0.0  # in steps, of a session at least half full
    contended: float = 0.0
    contended_rows: float = 0.0
    waiting: dict[int, Sentence] = field(default_factory=dict)
    running: dict[int, Sentence] = field(default_factory=dict)
    joined: dict[str, int] = field(default_factory=lambda: {"interactive": 0, "bulk": 0})

    def run(self) -> list[Sentence]:
        coming, at = self.coming, 0
        while at < len(coming) or self.waiting or self.running:
            if not self.waiting and not self.running:
                self.now = max(self.now, coming[at].arrived)
            while at < len(coming) and coming[at].arrived <= self.now:
                self._arrive(coming[at])
                at += 1
            self._turn()
        return coming

    def rows_of(self, priority: Priority) -> int:
        return BEAM * sum(one.waiting.priority == priority for one in self.running.values())

    def _arrive(self, sentence: Sentence) -> None:
        priority = sentence.waiting.priority
        elders = [one for one in self.waiting.values() if one.waiting.priority == priority]
        sentence.num_elders = len(elders)
        sentence.elders_work = sum(one.waiting.work for one in elders)
        sentence.num_turns_before = self.num_turns
        rows = self.rows_of("interactive") + BEAM * (len(elders) + 1)
        sentence.is_within_reserve = priority == "interactive" and rows <= RESERVED_ROWS
        sentence.others_before = self.joined[_other(priority)]
        self.waiting[sentence.number] = sentence
        self.scheduler.add([sentence.waiting])

    def _turn(self) -> None:
        started = self.now
        self.num_turns += 1
        self._join(self._plan())
        num_rows = BEAM * len(self.running)
        seconds = step_seconds(num_rows)
        self.now += seconds
        self.pacing.stepped(seconds=seconds)
        self.longest_turn = max(self.longest_turn, self.now - started)
        if len(self.waiting) >= MAX_SLOTS:
            self.contended += self.now - started
            self.contended_rows += num_rows * (self.now - started)
        for sentence in list(self.running.values()):
            sentence.steps_left -= 1
            if sentence.steps_left == 0:
                del self.running[sentence.number]
                self.scheduler.release(sentence.number)

    def _plan(self) -> list[int]:
        free_rows = MAX_ROWS - BEAM * len(self.running)
        budget = self.pacing.token_budget(ceiling=CEILING) if self.running else CEILING
        chosen = self.scheduler.plan(
            free_rows=free_rows, free_slots=MAX_SLOTS - len(self.running), token_budget=budget
        )
        if not chosen:
            self._assert_nobody_fits(free_rows)
        return chosen

    def _assert_nobody_fits(self, free_rows: int) -> None:
        waiting = {one.waiting.priority for one in self.waiting.values()}
        if "interactive" in waiting:
            assert free_rows < BEAM
        elif "bulk" in waiting:
            idle_reserve = max(0, RESERVED_ROWS - self.rows_of("interactive"))
            assert free_rows - idle_reserve < BEAM

    def _join(self, chosen: list[int]) -> None:
        joining = [self.waiting.pop(number) for number in chosen]
        for sentence in joining:
            sentence.joined = self.now
            sentence.num_turns = self.num_turns - sentence.num_turns_before
            other = _other(sentence.waiting.priority)
            sentence.others_work = self.joined[other] - sentence.others_before
        work = {"interactive": 0, "bulk": 0}
        for sentence in joining:
            sentence.steps_left = sentence.num_steps
            self.running[sentence.number] = sentence
            priority = sentence.waiting.priority
            # What interactive segments take of their reserve is nobody else's.
            if priority == "bulk" or self.rows_of("interactive") > RESERVED_ROWS:
                work[priority] += sentence.waiting.work
        for priority, amount in work.items():
            self.joined[priority] += amount
        if joining:
            self._encode(joining)

    def _encode(self, joining: list[Sentence]) -> None:
        tokens = max(one.num_tokens for one in joining) * len(joining)
        seconds = encoder_seconds(tokens)
        num_kept_waiting = len(self.running) - len(joining)
        if num_kept_waiting >= 16 and len(joining) > 1 and self.num_turns > 100:
            pause = seconds / step_seconds(BEAM * num_kept_waiting)
            self.longest_pause = max(self.longest_pause, pause)
        self.now += seconds
        self.pacing.encoded(tokens, seconds=seconds)
        work = sum(one.waiting.work for one in joining)
        self.largest_chunk = max(self.largest_chunk, work)


def _other(priority: Priority) -> Priority:
    return "bulk" if priority == "interactive" else "interactive"


def percentile(values: Iterable[float], share: float) -> float:
    ranked = sorted(values)
    return ranked[min(len(ranked) - 1, int(share * len(ranked)))]


@cache
def capacity() -> float:
    """Segments a second of a session that is never short of them, without classes."""
    backlog = sentences([(0.0, "interactive")] * 3000, seed=1, with_priorities=False)
    simulation = Simulation(backlog)
    simulation.run()
    return len(backlog) / simulation.now


@cache
def outer_rate() -> float:
    """Work a second that such a session gets through in the rows outside the reserve."""
    backlog = sentences([(0.0, "interactive")] * 3000, seed=1, with_priorities=False)
    simulation = Simulation(backlog)
    simulation.run()
    work = sum(one.waiting.work for one in backlog)
    return work / simulation.now * (MAX_ROWS - RESERVED_ROWS) / MAX_ROWS


def poisson(generator: random.Random, rate: float, seconds: float) -> list[float]:
    times, now = [], generator.expovariate(rate)
    while now < seconds:
        times.append(now)
        now += generator.expovariate(rate)
    return times


def steady_arrivals(
    *, interactive_share: float, seconds: float = 150.0
) -> list[tuple[float, Priority]]:
    """Single sentences, and bulk requests of 40; together `LOAD` of the capacity."""
    generator = random.Random(3)
    rate, texts = LOAD * capacity(), 40
    singles = poisson(generator, rate * interactive_share, seconds)
    batches = poisson(generator, rate * (1.0 - interactive_share) / texts, seconds)
    arrivals: list[tuple[float, Priority]] = [(at, "interactive") for at in singles]
    return arrivals + [(at, "bulk") for at in batches for _ in range(texts)]


def burst_arrivals() -> list[tuple[float, Priority]]:
    """A bulk request of 500 segments, then ten interactive ones a second."""
    arrivals: list[tuple[float, Priority]] = [(0.0, "bulk")] * 500
    return arrivals + [(0.5 + 0.1 * number, "interactive") for number in range(150)]


def overload_arrivals() -> list[tuple[float, Priority]]:
    """The same bulk request under half as many interactive segments again as there is room for."""
    arrivals: list[tuple[float, Priority]] = [(0.0, "bulk")] * 500
    times = poisson(random.Random(5), 1.5 * capacity(), 60.0)
    return arrivals + [(at, "interactive") for at in times]


SCENARIOS = {
    "even": lambda: steady_arrivals(interactive_share=0.5),
    "mostly bulk": lambda: steady_arrivals(interactive_share=0.2),
    "mostly interactive": lambda: steady_arrivals(interactive_share=0.8),
    "burst": burst_arrivals,
    "overload": overload_arrivals,
}
STEADY = ("even", "mostly bulk", "mostly interactive")


@cache
def simulated(name: str, *, with_priorities: bool = True) -> Simulation:
    simulation = Simulation(sentences(SCENARIOS[name](), seed=2, with_priorities=with_priorities))
    simulation.run()
    return simulation


def waits(simulation: Simulation, priority: Priority) -> list[float]:
    return [one.wait for one in simulation.coming if one.priority == priority]


@pytest.mark.parametrize("name", SCENARIOS)
def test_both_classes_wait_no_longer_than_the_scheduler_says(name):
    simulation = simulated(name)
    longest = max(one.num_steps for one in simulation.coming) * simulation.longest_turn
    for one in simulation.coming:
        own, others = BULK_SHARE, 1.0 - BULK_SHARE
        if one.priority == "interactive":
            own, others = others, own
        limit = others * (one.elders_work / own + CREDIT) + simulation.largest_chunk
        assert one.others_work <= limit
        work = one.elders_work / own + CREDIT + simulation.largest_chunk
        assert one.wait <= work / outer_rate() + longest


@pytest.mark.parametrize("name", SCENARIOS)
def test_within_the_reserve_an_interactive_segment_waits_for_turns_only(name):
    lucky = [one for one in simulated(name).coming if one.is_within_reserve]
    assert lucky
    for one in lucky:
        assert one.num_turns <= 2 * (one.num_elders + 1)


@pytest.mark.parametrize("name", STEADY)
def test_at_90_percent_load_interactive_waits_are_a_fraction_of_those_without_classes(name):
    with_classes, without = simulated(name), simulated(name, with_priorities=False)
    p99 = percentile(waits(with_classes, "interactive"), 0.99)
    assert p99 < 0.2 * percentile(waits(without, "interactive"), 0.99)
    assert p99 < 0.5


@pytest.mark.parametrize("name", STEADY)
def test_at_90_percent_load_bulk_waits_longer_by_what_goes_first_and_no_more(name):
    # Cobham 1954: behind a class that uses ρ of the server, waits grow by 1 / (1 - ρ).
    with_classes, without = simulated(name), simulated(name, with_priorities=False)
    num_first = len(waits(with_classes, "interactive"))
    share_first = LOAD * num_first / len(with_classes.coming)
    mean_with, mean_without = (mean(waits(one, "bulk")) for one in (with_classes, without))
    assert mean_with < 1.25 * mean_without / (1.0 - share_first)


def test_behind_a_bulk_request_of_500_segments_an_interactive_one_waits_a_few_steps():
    with_classes, without = simulated("burst"), simulated("burst", with_priorities=False)
    p99 = percentile(waits(with_classes, "interactive"), 0.99)
    assert p99 < 3 * with_classes.longest_turn
    assert p99 < 0.02 * percentile(waits(without, "interactive"), 0.99)
    # Bulk pays with the reserve and the overtaking, not with its throughput.
    assert max(waits(with_classes, "bulk")) < 1.4 * max(waits(without, "bulk"))


def test_bulk_has_its_share_while_more_interactive_segments_come_than_there_is_room_for():
    simulation = simulated("overload")
    bulk = sorted(one.joined for one in simulation.coming if one.priority == "bulk")
    begin, end = bulk[50], bulk[-1]
    work = {"interactive": 0, "bulk": 0}
    for one in simulation.coming:
        if begin <= one.joined <= end:
            work[one.priority] += one.waiting.work
    share = work["bulk"] / sum(work.values())
    assert BULK_SHARE * 0.9 < share < BULK_SHARE * 1.3
    # It comes in small pieces all the time, not after a long wait.
    assert max(later - sooner for sooner, later in pairwise(bulk)) < 1.0


@pytest.mark.parametrize("name", SCENARIOS)
def test_no_row_outside_the_reserve_is_idle_while_many_wait(name):
    # That every plan which leaves a row unused must is asserted in each turn; this is the sum.
    simulation = simulated(name)
    assert simulation.contended > 0
    mean_rows = simulation.contended_rows / simulation.contended
    assert mean_rows >= 0.97 * (MAX_ROWS - RESERVED_ROWS)


def test_classes_cost_no_throughput():
    with_classes, without = simulated("even"), simulated("even", with_priorities=False)
    assert with_classes.now < 1.02 * without.now


def test_a_slow_encoder_is_given_no_more_than_the_pause_allows(monkeypatch):
    monkeypatch.setitem(globals(), "encoder_seconds", lambda tokens: 0.004 + 0.0003 * tokens)
    arrivals: list[tuple[float, Priority]] = [
        (2.0 * number, "bulk") for number in range(10) for _ in range(60)
    ]
    simulation = Simulation(sentences(arrivals, seed=2, with_priorities=True))
    simulation.run()
    assert 1.0 < simulation.longest_pause < 1.5 * PAUSE_STEPS
