"""What rates need, and the simulation of several fronts, against what can be told without them."""

import argparse
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.capacity.__main__ import (
    Measured,
    capacity_of,
    check_table,
    compared,
    plan_of,
)
from benchmarks.capacity.load import Level, arrival_times
from benchmarks.capacity.needs import Costs, needs
from benchmarks.replicas.simulation import Outcome, Plan, simulate
from benchmarks.replicas.steps import Sentence, StepTimes

TIMES = StepTimes(  # rows cost what they cost alone; a sentence takes 20 ms of its engine
    num_threads=1,
    step_seconds=((4, 0.001), (128, 0.032)),
    encode_seconds=0.0,
    sentences=(Sentence(num_source_tokens=10, num_steps=20),),
)
COSTS = Costs(
    engine_seconds=0.002,
    front_seconds=0.001,
    shared_front_seconds=0.00125,
    owner_seconds=0.0002,
    num_bytes=1000,
    engine_mib=50,
    front_mib=100,
    shared_mib=20,
)


def _needs(rate: float, **others: float):
    return needs(COSTS, rate, **({"share": 0.5, "price": 0.1, "network_mbit": 1000} | others))


def test_one_request_a_second_needs_one_of_each():
    found = _needs(1)
    assert (found.num_servers, found.num_fronts, found.num_engine_cores) == (1, 1, 1)
    assert (found.num_cores, found.limit) == (2, "engine")
    assert found.per_hour == pytest.approx(0.2)
    assert found.memory_gib == pytest.approx(170 / 1024, abs=0.01)


def test_where_one_front_is_full_there_are_several_and_their_owner():
    assert _needs(500).num_fronts == 1
    found = _needs(1000)
    assert (found.num_fronts, found.num_servers, found.num_engine_cores) == (3, 1, 4)
    assert found.num_cores == 3 + 1 + 4


def test_where_an_owner_is_full_there_are_several_servers():
    found = _needs(10_000)
    assert found.num_servers == 4
    assert found.num_cores == 25 + 40 + 4


def test_where_the_network_is_full_there_are_several_servers_too():
    assert _needs(1000, network_mbit=4).num_servers == 4


@given(rate=st.floats(0.1, 1e5), share=st.floats(0.2, 1.0))
@settings(max_examples=50, deadline=None)
def test_no_process_is_busier_than_it_may_be(rate: float, share: float):
    found = _needs(rate, share=share)
    assert rate * COSTS.engine_seconds <= share * found.num_engine_cores * (1 + 1e-9)
    assert rate * COSTS.front_seconds <= share * found.num_fronts * (1 + 1e-9)
    if found.num_fronts > 1:
        assert rate * COSTS.shared_front_seconds <= share * found.num_fronts * (1 + 1e-9)
        assert rate * COSTS.owner_seconds <= share * found.num_servers * (1 + 1e-9)


def test_requests_that_come_by_chance_come_at_their_rate_and_always_alike():
    times = arrival_times(50, 100, seed=1)
    assert len(times) == pytest.approx(5000, rel=0.05)
    assert times == sorted(times) == arrival_times(50, 100, seed=1)
    assert times[-1] < 100


def test_requests_that_come_slowly_find_nobody_before_them():
    plan = Plan(num_replicas=1, front_seconds=0.002)
    outcome = simulate(plan, TIMES, arrivals=[float(number) for number in range(100)])
    assert outcome.p50_seconds == pytest.approx(0.022)
    assert outcome.p99_seconds == pytest.approx(0.022)


def test_requests_that_come_faster_than_they_are_answered_wait_longer_and_longer():
    plan = Plan(num_replicas=1, front_seconds=0.002)
    outcome = simulate(plan, TIMES, arrivals=arrival_times(100, 20, seed=2))
    assert outcome.p99_seconds > 1.5 * outcome.p50_seconds > 1
    assert outcome.requests_per_second == pytest.approx(50, rel=0.05)
    assert outcome.replica_shares[0] == pytest.approx(1, abs=0.05)


def test_several_fronts_carry_what_they_can_until_their_owner_is_full():
    plan = Plan(
        num_replicas=64, num_clients=256, num_requests=8000, front_seconds=0.01, owner_seconds=0.002
    )
    rates = {
        number: simulate(replace(plan, num_fronts=number), TIMES).requests_per_second
        for number in (1, 2, 4, 8)
    }
    assert rates[1] == pytest.approx(100, rel=0.02)
    assert rates[2] == pytest.approx(200, rel=0.02)
    assert rates[4] == pytest.approx(400, rel=0.02)
    assert rates[8] == pytest.approx(500, rel=0.02), "of the owner"


def _level(**others: float) -> Level:
    found = {
        "num_requests": 100,
        "num_errors": 0,
        "requests_per_second": 45.0,
        "p50_ms": 25.0,
        "p99_ms": 60.0,
        "engine_ms": 22.0,
        "front_ms": 0.8,
        "owner_ms": 0.0,
        "client_ms": 0.2,
    }
    return Level(**(found | others))  # type: ignore[arg-type]


def _measured(plan: Plan, found: Outcome) -> Level:
    """What would be measured of a server that is a simulation."""
    each_ms = 1000 * found.seconds / found.num_requests
    client_wakes = found.client_wakes_a_request * plan.client_wake_seconds
    return _level(
        engine_ms=found.replica_shares[0] * each_ms,
        front_ms=found.front_share * each_ms,
        client_ms=1000 * (plan.client_seconds + client_wakes),
        p50_ms=1000 * found.p50_seconds,
    )


def test_what_is_done_beside_steps_is_found_by_the_ends_of_the_load():
    """A server that is itself a simulation: from the ends of its load its parts are found again."""
    real = Plan(
        num_replicas=1,
        num_clients=64,
        front_seconds=0.002,
        client_seconds=0.001,
        wake_seconds=0.0005,
        client_wake_seconds=0.0004,
        engine_wake_seconds=0.0008,
        turn_seconds=0.0003,
        segment_seconds=0.001,
        delay_seconds=0.0002,
        cold_seconds=0.01,
        num_cores=2,
    )
    alone, full = (
        _measured(real, simulate(replace(real, num_clients=number), TIMES)) for number in (1, 64)
    )
    seldom = arrival_times(3, 200, seed=1)
    low = _measured(real, simulate(real, TIMES, arrivals=seldom))
    plan = plan_of(TIMES, alone, full, seldom=(seldom, low), num_cores=2)
    for name in (
        "wake_seconds",
        "client_wake_seconds",
        "engine_wake_seconds",
        "turn_seconds",
        "segment_seconds",
    ):
        assert getattr(plan, name) == pytest.approx(getattr(real, name), rel=0.1), name
    assert plan.delay_seconds == pytest.approx(real.delay_seconds, rel=0.2)
    for rate in (10, 20, 30):
        arrivals = arrival_times(rate, 100, seed=rate)
        row = compared(_level(), simulate(real, TIMES, arrivals=arrivals))
        again = compared(_level(), simulate(plan, TIMES, arrivals=arrivals))
        assert row["simulated"]["p50_ms"] == pytest.approx(again["simulated"]["p50_ms"], rel=0.05)
        assert row["simulated"]["p99_ms"] == pytest.approx(again["simulated"]["p99_ms"], rel=0.1)


def test_the_comparison_is_told_as_the_page_has_it():
    row = compared(_level(), simulate(Plan(num_replicas=1, num_clients=1, num_requests=50), TIMES))
    assert check_table(["1 client"], [row]).splitlines()[2:] == [
        "| 1 client | 45 / 50 | 25.0 / 20.0 | 60.0 / 20.0 |"
    ]


def test_a_class_is_told_with_what_each_rate_needs():
    found = Measured(
        times={"small, avx2, 1": TIMES},
        alone=_level(),
        full=_level(),
        levels=[([0.1, 0.2], _level(num_errors=2))],
        memory={"engine": 50.0, "front": 60.0},
        two=_level(owner_ms=0.2, num_errors=1),
        shared_mib={"small": 7.0},
    )
    arguments = argparse.Namespace(share=0.7, price=0.04, network_mbit=1000.0, rates=[1, 1000])
    row = capacity_of("small, avx2, 1", found, Plan(num_replicas=1), arguments)
    assert row["requests_per_second_a_core"] == pytest.approx(50, rel=0.05)
    assert [one["num_engine_cores"] for one in row["needs"]] == [1, 29]
    assert found.num_errors == 3
