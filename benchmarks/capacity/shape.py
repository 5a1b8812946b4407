"""The smallest shape of servers that carries a rate: whole engines, fronts and servers, simulated.

Owns the search. What comes of a shape is told by the simulation, with requests that come by chance;
what processes take there are measured times. Pure.

Engines count in the mean: the server gives a sentence to the first of those that rest, so the first
engine is busy most of the time however many there are beside it, and has no queue for that.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from benchmarks.capacity.load import arrival_times
from benchmarks.replicas.simulation import Outcome, Plan, simulate
from benchmarks.replicas.steps import StepTimes

_SECONDS = 2.0
_FEWEST_REQUESTS = 2000
_MOST_ROUNDS = 100
"""More than any search has: each makes something larger."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What is there.

    Attributes:
        num_servers: Side by side, each with the same share of the requests.
        num_fronts: Of each.
        num_engines: Of each.
    """

    num_servers: int
    num_fronts: int
    num_engines: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What servers are made of.

    Attributes:
        times: Of an engine.
        one_front: Costs of a server with one front; its engines, fronts and clients do not count.
        several_fronts: Of one that has several, and so an owner.
    """

    times: StepTimes
    one_front: Plan
    several_fronts: Plan

    def plan(self, shape: Shape) -> Plan:
        """The plan of one server: each process has a core of its own, clients are elsewhere."""
        return replace(
            self.one_front if shape.num_fronts == 1 else self.several_fronts,
            num_replicas=shape.num_engines,
            num_fronts=shape.num_fronts,
            num_cores=0,
            client_seconds=0.0,
            client_wake_seconds=0.0,
        )


def outcome_of(kind: Kind, shape: Shape, rate: float) -> Outcome:
    """What comes of a rate in one server of this shape, whose share of it comes by chance."""
    own = rate / shape.num_servers
    arrivals = arrival_times(own, max(_SECONDS, _FEWEST_REQUESTS / own), seed=1)
    return simulate(kind.plan(shape), kind.times, arrivals=arrivals)


def smallest_shape(
    kind: Kind, rate: float, *, share: float, fewest_servers: int = 1
) -> tuple[Shape, Outcome]:
    """The fewest servers, of these the fewest fronts and engines, and what comes of them.

    No kind of process is busy for more than the share of the time, in the mean of all of its
    kind. Busy time only grows with engines and fronts, as batches get smaller and sleeps longer: so
    what a shape is busy for says how many it takes at least, and from below the first that suffices
    is the smallest.

    Args:
        kind: What servers are made of.
        rate: Requests a second.
        share: Of a process' time, at most.
        fewest_servers: What the network takes.
    """
    shape = _least(kind, fewest_servers, rate, share)
    for _ in range(_MOST_ROUNDS):
        outcome = outcome_of(kind, shape, rate)
        wanted = _grown(kind, shape, outcome, rate, share)
        if wanted == shape:
            return shape, outcome
        shape = wanted
    raise AssertionError(f"no shape for {rate} requests a second in {_MOST_ROUNDS} rounds")


def _least(kind: Kind, num_servers: int, rate: float, share: float) -> Shape:
    """What it takes if nobody ever sleeps and all engines are full, where sentences are cheapest.

    There may be more servers than asked for, as there are if their owners have too much to do.
    """
    own = rate / num_servers
    num_fronts = 1
    if own * kind.one_front.front_seconds > share:
        num_fronts = max(2, math.ceil(own * kind.several_fronts.front_seconds / share))
        num_owners = math.ceil(rate * kind.several_fronts.owner_seconds / share)
        if num_owners > num_servers:
            return _least(kind, num_owners, rate, share)
    num_engines = math.ceil(own * engine_seconds(kind.times, kind.one_front) / share)
    return Shape(num_servers=num_servers, num_fronts=num_fronts, num_engines=num_engines)


def _grown(kind: Kind, shape: Shape, outcome: Outcome, rate: float, share: float) -> Shape:
    """The least shape that may do, by what one that may not do was busy for."""
    steady = outcome.steady
    if steady.owner_share > share:
        num_servers = math.ceil(shape.num_servers * steady.owner_share / share)
        return _least(kind, num_servers, rate, share)
    return replace(
        shape,
        num_fronts=_enough(steady.front_shares, share),
        num_engines=_enough(steady.replica_shares, share),
    )


def _enough(shares: Sequence[float], share: float) -> int:
    mean = sum(shares) / len(shares)
    return len(shares) if mean <= share else math.ceil(sum(shares) / share)


def engine_seconds(times: StepTimes, plan: Plan, *, num_clients: int = 32) -> float:
    """An engine's time that a sentence takes if the engine is full: 128 rows at a beam of 4."""
    full = Plan(
        num_replicas=1,
        num_clients=num_clients,
        segment_seconds=plan.segment_seconds,
        turn_seconds=plan.turn_seconds,
    )
    return 1 / simulate(full, times).requests_per_second
