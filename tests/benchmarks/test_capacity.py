"""What rates need, and the simulation of several fronts, against what can be told without them."""

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from benchmarks.capacity.__main__ import Measured, compared, plan_of
from benchmarks.capacity.calibration import calibrated_fronts
from benchmarks.capacity.classes import classes, measure_class
from benchmarks.capacity.load import Level, arrival_times
from benchmarks.capacity.needs import (
    Memory,
    Needs,
    Terms,
    capacity_of,
    kind_of,
    memory_of,
    needs,
    report,
)
from benchmarks.capacity.shape import Kind, Shape, outcome_of, smallest_shape
from benchmarks.replicas.simulation import Outcome, Plan, simulate
from benchmarks.replicas.steps import NUM_SENTENCES, Sentence, StepTimes
from benchmarks.soak.server import ONE_BUNDLED
from service.placement import FILL_ROWS, FILL_ROWS_ON_DEVICES

TIMES = StepTimes(  # rows cost what they cost alone; a sentence takes 20 ms of its engine
    num_threads=1,
    step_seconds=((4, 0.001), (128, 0.032)),
    encode_seconds=0.0,
    sentences=(Sentence(num_source_tokens=10, num_steps=20),),
)
PLAN = Plan(num_replicas=1, front_seconds=0.001, fill_rows=4)
KIND = Kind(
    times=TIMES,
    one_front=PLAN,
    several_fronts=replace(PLAN, front_seconds=0.00125, owner_seconds=0.0002),
)
MEMORY = Memory(engine=50, front=100, shared=20)


def _needs(rate: float, *, on_device: bool = False, **others: float) -> Needs:
    terms = Terms(**({"share": 0.5, "core_price": 0.1, "device_price": 2.0} | others))
    return needs(KIND, MEMORY, rate, terms, on_device=on_device)


def test_one_request_a_second_needs_one_of_each():
    found = _needs(1)
    assert (found.num_servers, found.num_fronts, found.num_engines) == (1, 1, 1)
    assert (found.num_cores, found.num_devices, found.limit) == (2, 0, "engine")
    assert found.per_hour == pytest.approx(0.2)
    assert found.memory_gib == pytest.approx(170 / 1024, abs=0.01)
    assert found.p50_ms == pytest.approx(21, rel=0.01)


def test_on_devices_each_engine_has_one_and_a_core_and_both_cost():
    found = _needs(100, on_device=True)
    assert found.num_devices == found.num_engines > 1
    assert found.num_cores == found.num_engines + 1
    assert found.per_hour == pytest.approx(0.1 * found.num_cores + 2.0 * found.num_devices)


def test_where_one_front_is_full_there_are_several_and_their_owner():
    found = _needs(700)
    assert (found.num_servers, found.num_fronts) == (1, 2)
    assert found.num_cores == 2 + found.num_engines + 1
    assert found.owner_share == pytest.approx(0.14, rel=0.1)
    assert found.most_per_second == pytest.approx(50 * found.num_engines, rel=0.05)


def test_where_an_owner_is_full_there_are_several_servers_of_the_same_shape():
    slow_owner = replace(KIND.several_fronts, owner_seconds=0.001)
    kind = replace(KIND, several_fronts=slow_owner)
    shape, outcome = smallest_shape(kind, 1500, share=0.6)
    assert shape.num_servers >= 2
    assert max(outcome.steady.owner_share, *outcome.steady.front_shares) <= 0.6


def test_where_the_network_is_full_there_are_several_servers_too():
    assert _needs(100, network_mbit=0.5).num_servers == 4


def test_memory_that_was_not_measured_is_not_told():
    unknown = Memory(engine=None, front=100, shared=20)
    assert needs(KIND, unknown, 1, Terms(), on_device=False).memory_gib is None


@pytest.mark.parametrize("share", [0.5, 0.7, 0.9])
@pytest.mark.parametrize("rate", [5.0, 60.0, 400.0])
def test_a_shape_is_enough_and_one_with_an_engine_or_a_front_less_is_not(rate: float, share: float):
    shape, outcome = smallest_shape(KIND, rate, share=share)
    assert _is_enough(outcome, share)
    for name in ("num_engines", "num_fronts"):
        number = getattr(shape, name)
        if number > 1:
            less = outcome_of(KIND, replace(shape, **{name: number - 1}), rate)
            assert not _is_enough(less, share), name


def _is_enough(outcome: Outcome, share: float) -> bool:
    engines = outcome.steady.replica_shares
    return (
        sum(engines) / len(engines) <= share
        and sum(outcome.steady.front_shares) / len(outcome.steady.front_shares) <= share
        and outcome.steady.owner_share <= share
    )


def test_the_first_engine_is_busy_however_many_there_are_beside_it():
    """It gets a sentence first whenever it rests, so engines count in the mean."""
    busy = {}
    for number in (10, 40):
        shape = Shape(num_servers=1, num_fronts=1, num_engines=number)
        shares = outcome_of(KIND, shape, 300).steady.replica_shares
        assert max(shares) == shares[0]
        busy[number] = shares[0]
    assert busy[40] > 0.8


def test_shares_of_the_time_leave_the_beginning_out():
    plan = Plan(num_replicas=1, front_seconds=0.002)
    arrivals = [100.0 + number for number in range(100)]
    steady = simulate(plan, TIMES, arrivals=arrivals).steady
    assert steady.replica_shares == pytest.approx([0.02], rel=0.05)
    assert steady.front_shares == pytest.approx([0.002], rel=0.05)
    assert steady.owner_share == 0


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


@pytest.mark.replicas
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


@pytest.mark.replicas
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


@pytest.mark.replicas
def test_what_a_request_takes_of_several_fronts_is_found_by_the_full_load():
    real = Plan(
        num_replicas=1,
        num_clients=64,
        num_fronts=2,
        front_seconds=0.003,
        owner_seconds=0.001,
        wake_seconds=0.0005,
        num_cores=2,
    )
    found = simulate(real, TIMES)
    each_ms = 1000 * found.seconds / found.num_requests
    level = _level(front_ms=2 * found.front_share * each_ms, owner_ms=found.owner_share * each_ms)
    cheap = replace(real, front_seconds=0.002, owner_seconds=0.0)
    plan = calibrated_fronts(cheap, full=(level, lambda one: simulate(one, TIMES)))
    assert plan.front_seconds == pytest.approx(real.front_seconds, rel=0.02)
    assert plan.wake_seconds == real.wake_seconds
    assert plan.owner_seconds == pytest.approx(real.owner_seconds, rel=0.01)
    sleepy = replace(real, wake_seconds=0.002)
    plan = calibrated_fronts(sleepy, full=(level, lambda one: simulate(one, TIMES)))
    assert plan.front_seconds == pytest.approx(real.front_seconds, rel=0.02)
    assert plan.wake_seconds == pytest.approx(real.wake_seconds, rel=0.2)


MEASURED = {
    "device": "cpu",
    "steps": {"small, avx2, 1": TIMES.described(), "base, avx2, 1": TIMES.described()},
    "plan": asdict(replace(PLAN, num_clients=64, num_requests=500)),
    "two_fronts": asdict(_level(owner_ms=0.2)),
    "memory_mib": {name: asdict(MEMORY) for name in ("small", "base")},
}
RESULT = json.loads(json.dumps(MEASURED))


@pytest.mark.replicas
def test_what_rates_need_is_told_of_a_file_by_class(tmp_path: Path):
    path = tmp_path / "capacity-1.json"
    path.write_text(json.dumps(RESULT), encoding="utf-8")
    found = report(path, [1, 100], Terms())
    assert found["source"] == "capacity-1.json"
    small, base = found["capacity"]
    assert (small["class"], base["class"]) == ("small, avx2, 1", "base, avx2, 1")
    assert small["requests_per_second_a_core"] == pytest.approx(50, rel=0.05)
    assert [one["requests_per_second"] for one in small["needs"]] == [1, 100]
    assert small["needs"] == base["needs"]


def test_a_file_of_a_device_has_a_device_for_each_engine_and_fills_one_before_the_next():
    device = RESULT | {"device": "cuda"}
    assert kind_of(RESULT, "small, avx2, 1").one_front.fill_rows == FILL_ROWS
    assert kind_of(device, "small, avx2, 1").one_front.fill_rows == FILL_ROWS_ON_DEVICES
    [need] = capacity_of(device, "small, avx2, 1", [100], Terms())["needs"]
    assert need["num_devices"] == need["num_engines"]


def test_a_file_without_the_larger_networks_memory_says_nothing_of_it():
    costs = {"engine_mib": 43.0, "front_mib": 60.0, "shared_mib": 7.0}
    old = {
        "capacity": [{"class": f"{size}, avx2, 1", "costs": costs} for size in ("small", "base")]
    }
    assert memory_of(old, "small") == Memory(engine=43.0, front=60.0, shared=7.0)
    assert memory_of(old, "base").engine is None


def test_errors_of_all_loads_are_counted():
    found = Measured(
        times={"small, avx2, 1": TIMES},
        alone=_level(),
        full=_level(),
        levels=[([0.1, 0.2], _level(num_errors=2))],
        two=_level(owner_ms=0.2, num_errors=1),
        memory={},
    )
    assert found.num_errors == 3


def test_classes_on_a_device_have_neither_instructions_nor_threads():
    assert classes("cuda") == [("small", "cuda", 1), ("base", "cuda", 1)]
    assert {threads for _, _, threads in classes()} == {1, 2}


def test_times_of_a_class_are_measured_where_the_device_says():
    times = measure_class(ONE_BUNDLED, ["Good morning.", "It rains."], 1, 0.05, device="cpu")
    assert [rows for rows, _ in times.step_seconds] == [4 * number for number in NUM_SENTENCES]
    assert times.encode_seconds > 0
    with pytest.raises(Exception, match=r"(?i)cuda|gpu|nvidia"):
        measure_class(ONE_BUNDLED, ["Good morning."], 1, 0.05, device="cuda")
