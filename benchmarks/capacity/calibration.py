"""Calibration of the simulation: what a request takes beside steps, by the two ends of a load.

Owns the deduction alone. Under many clients that wait everything is always awake, and what is done
once a step is shared by many sentences; where requests come seldom everybody sleeps in between, is
woken again and again, and has each step to itself. One client that waits has each step to itself
too and sleeps little, which tells an engine's cost of a step from that of waking. What lies between
the ends is left to the simulation.
"""

from collections.abc import Callable
from dataclasses import replace

from benchmarks.capacity.load import Level
from benchmarks.replicas.simulation import Outcome, Plan

Load = Callable[[Plan], Outcome]
"""An end of the load, simulated."""

_WAKES = 4
"""On a request's way, if all sleep: the front's, the engine's, the front's and the client's."""


def calibrated(
    plan: Plan,
    *,
    low: tuple[Level, Load],
    full: tuple[Level, Load],
    alone: tuple[Level, Load] | None = None,
) -> Plan:
    """The plan with what processes take beside steps.

    Args:
        plan: What is served: engines, fronts, cores.
        low: The end at which everybody sleeps in between, as it was measured and as it is
            simulated.
        full: The end at which nobody does.
        alone: One client that waits; None: steps have all that engines take more at the low end.
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
    plan = _with_engine(plan, alone or low, full)
    if alone is not None:
        at_few = few_load(plan)
        missing = few.engine_ms - 1000 * engine_seconds_a_request(at_few)
        plan = replace(plan, engine_wake_seconds=_each(missing, at_few.engine_wakes_a_request))
    late = few.p50_ms / 1000 - few_load(plan).p50_seconds
    return replace(plan, delay_seconds=max(0.0, late) / _WAKES)


def _with_engine(plan: Plan, few: tuple[Level, Load], full: tuple[Level, Load]) -> Plan:
    """The plan with what engines take beside steps, of each and of each sentence."""
    loads = [load(plan) for _, load in (few, full)]
    missing_few, missing_many = (
        level.engine_ms - 1000 * engine_seconds_a_request(found)
        for (level, _), found in zip((few, full), loads, strict=True)
    )
    at_few, at_many = loads
    turn_seconds = _each(
        missing_few - missing_many, at_few.turns_a_request - at_many.turns_a_request
    )
    others = missing_many / 1000 - at_many.turns_a_request * turn_seconds
    return replace(
        plan,
        turn_seconds=turn_seconds,
        segment_seconds=max(0.0, others) / max(at_many.segments_a_request, 1.0),
    )


def engine_seconds_a_request(outcome: Outcome) -> float:
    """Processor time that a request takes of engines."""
    return sum(outcome.replica_shares) * outcome.seconds / outcome.num_requests


def _each(milliseconds: float, number: float) -> float:
    """Seconds of each of so many, if there are any."""
    return max(0.0, milliseconds) / 1000 / number if number > 0 else 0.0
