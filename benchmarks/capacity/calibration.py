"""Calibration of the simulation: what a request takes beside steps, by the two ends of a load.

Owns the deduction alone. Under many clients that wait everything is always awake, and what is done
once a step is shared by many sentences; where requests come seldom everybody sleeps in between, is
woken again and again, and has each step to itself. One client that waits has each step to itself
too and sleeps little, which tells an engine's cost of a step from that of waking. What lies between
the ends is left to the simulation.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from benchmarks.capacity.load import Level
from benchmarks.replicas.simulation import Outcome, Plan

Load = Callable[[Plan], Outcome]
"""An end of the load, simulated."""

SELDOM_SHARE = 0.08
"""Of what a server can do: at this rate everything sleeps between requests."""
COLD_SECONDS = 0.01
"""Sleep after which waking has its full price: a core sleeps deeply then, and caches are cold."""
_NUM_ROUNDS = 4
_WAKES = 4
"""On a request's way, if all sleep: the front's, the engine's, the front's and the client's."""


def calibrated(
    plan: Plan,
    *,
    low: tuple[Level, Load],
    full: tuple[Level, Load],
    alone: tuple[Level, Load],
) -> Plan:
    """The plan with what processes take beside steps.

    Args:
        plan: What is served: engines, fronts, cores.
        low: The end at which everybody sleeps in between, as it was measured and as it is
            simulated.
        full: The end at which nobody does.
        alone: One client that waits.
    """
    (few, few_load), (many, many_load) = low, full
    plan = replace(plan, front_seconds=many.front_ms / 1000, client_seconds=many.client_ms / 1000)
    at_few, at_many = few_load(plan), many_load(plan)
    front_wake = _each(
        few.front_ms - many.front_ms,
        at_few.front_wakes_a_request - at_many.front_wakes_a_request,
    )
    client_wake = _each(
        few.client_ms - many.client_ms,
        at_few.client_wakes_a_request - at_many.client_wakes_a_request,
    )
    plan = replace(
        plan,
        wake_seconds=front_wake,
        front_seconds=plan.front_seconds - at_many.front_wakes_a_request * front_wake,
        client_wake_seconds=client_wake,
        client_seconds=plan.client_seconds - at_many.client_wakes_a_request * client_wake,
    )
    plan = _with_engine(plan, (low, alone, full))
    late = few.p50_ms / 1000 - few_load(plan).p50_seconds
    return replace(plan, delay_seconds=max(0.0, late) / _WAKES)


def calibrated_fronts(plan: Plan, *, full: tuple[Level, Load]) -> Plan:
    """The plan of a server with several fronts, with what a request takes of them and their owner.

    A request takes no less of one of several fronts than of one that is alone; what is missing to
    what was measured is of the request, and what is too much is of waking. All that an owner takes
    is of requests: it has no load of its own that would tell what waking costs it, and this way it
    is not thought to carry more than it does.

    Args:
        plan: Of the server, calibrated with one front, and the number of fronts that it has.
        full: The full load on it, as it was measured and as it is simulated.
    """
    level, load = full
    least, measured = plan.front_seconds, level.front_ms / 1000
    plan = replace(plan, owner_seconds=level.owner_ms / 1000)
    for _ in range(_NUM_ROUNDS):
        found = load(plan)
        missing = measured - found.front_share * plan.num_fronts * found.seconds / (
            found.num_requests
        )
        of_request = max(least, plan.front_seconds + missing)
        of_waking = _each(
            -1000 * min(0.0, plan.front_seconds + missing - least), found.front_wakes_a_request
        )
        plan = replace(
            plan,
            front_seconds=of_request,
            wake_seconds=max(0.0, plan.wake_seconds - of_waking),
        )
    return plan


def _with_engine(plan: Plan, loads: Sequence[tuple[Level, Load]]) -> Plan:
    """The plan with what engines take beside steps, of each, of each sentence and of waking.

    Three loads have these three costs in different numbers: as many equations. The numbers are
    those of a simulation that has the costs, so it is done again with what was found.
    """
    costs = np.zeros(3)
    for _ in range(_NUM_ROUNDS):
        simulated = [load(plan) for _, load in loads]
        numbers = np.array(
            [
                (one.turns_a_request, one.segments_a_request, one.engine_wakes_a_request)
                for one in simulated
            ]
        )
        steps = np.array([engine_seconds_a_request(one) for one in simulated]) - numbers @ costs
        measured = np.array([level.engine_ms / 1000 for level, _ in loads])
        found, *_ = np.linalg.lstsq(numbers, measured - steps, rcond=None)
        costs = np.maximum(found, 0.0)
        plan = replace(
            plan,
            turn_seconds=float(costs[0]),
            segment_seconds=float(costs[1]),
            engine_wake_seconds=float(costs[2]),
        )
    return plan


def engine_seconds_a_request(outcome: Outcome) -> float:
    """Processor time that a request takes of engines."""
    return sum(outcome.replica_shares) * outcome.seconds / outcome.num_requests


def _each(milliseconds: float, number: float) -> float:
    """Seconds of each of so many, if there are any."""
    return max(0.0, milliseconds) / 1000 / number if number > 0 else 0.0
