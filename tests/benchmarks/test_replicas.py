"""The simulation of replicas, against what can be told without it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.replicas.__main__ import (
    front_seconds,
    numbers_of_clients,
    simulated,
    variants,
)
from benchmarks.replicas.served import Variant
from benchmarks.replicas.simulation import Plan, knee, simulate
from benchmarks.replicas.steps import Sentence, StepTimes

FLAT = StepTimes(  # a step costs the same however many rows it has, as on a device
    num_threads=1,
    step_seconds=((4, 0.01), (128, 0.01)),
    encode_seconds=0.0,
    sentences=(Sentence(num_source_tokens=10, num_steps=20),),
)
LINEAR = StepTimes(  # rows cost what they cost alone: batches gain nothing
    num_threads=1,
    step_seconds=((4, 0.01), (128, 0.32)),
    encode_seconds=0.0,
    sentences=(Sentence(num_source_tokens=10, num_steps=20),),
)


def test_a_client_alone_waits_for_its_steps_and_the_front():
    outcome = simulate(Plan(num_replicas=1, num_clients=1, front_seconds=0.1), FLAT)
    assert outcome.p50_seconds == pytest.approx(0.3)
    assert outcome.requests_per_second == pytest.approx(1 / 0.3)
    assert outcome.mean_rows == 4


@given(number=st.integers(1, 8))
@settings(max_examples=8, deadline=None)
def test_where_batches_gain_nothing_throughput_grows_with_the_replicas(number):
    plan = Plan(num_replicas=number, num_clients=8 * number, num_requests=800 * number)
    assert simulate(plan, LINEAR).requests_per_second == pytest.approx(5 * number, rel=0.02)


def test_where_rows_cost_nothing_one_replica_that_is_filled_does_what_eight_do():
    alone = simulate(Plan(num_replicas=1, num_clients=16, num_requests=1600), FLAT)
    filled = simulate(Plan(num_replicas=8, num_clients=16, num_requests=1600, fill_rows=64), FLAT)
    assert filled.requests_per_second == pytest.approx(alone.requests_per_second, rel=0.01)
    assert filled.mean_rows == pytest.approx(
        64, rel=0.06
    )  # the first is a step ahead of the others
    assert filled.replica_shares[1:] == (0.0,) * 7


@given(number=st.integers(1, 6), fill_rows=st.integers(0, 40), seed=st.integers(0, 99))
@settings(max_examples=20, deadline=None)
def test_the_work_that_was_asked_for_is_done_by_somebody(number, fill_rows, seed):
    mixed = StepTimes(
        num_threads=1,
        step_seconds=((4, 0.01), (16, 0.02)),
        encode_seconds=0.001,
        sentences=tuple(Sentence(num_source_tokens=n, num_steps=n + 2) for n in range(3, 30)),
    )
    plan = Plan(
        num_replicas=number,
        num_clients=10,
        num_requests=200,
        fill_rows=fill_rows,
        front_seconds=0.002,
    )
    outcome = simulate(plan, mixed, seed=seed)
    assert 4 <= outcome.mean_rows <= 40
    assert all(0 <= share <= 1 + 1e-9 for share in outcome.replica_shares)
    assert outcome.front_share <= 1 + 1e-9
    assert outcome == simulate(plan, mixed, seed=seed)


def test_the_front_is_the_limit_where_its_time_is():
    outcomes = [
        (
            number,
            simulate(Plan(num_replicas=number, num_clients=64, front_seconds=0.01), LINEAR),
        )
        for number in (4, 16, 32)
    ]
    assert knee(outcomes) == 32
    assert outcomes[-1][1].requests_per_second == pytest.approx(100, rel=0.02)


def test_steps_are_linear_between_what_was_measured_and_beyond():
    times = StepTimes(
        num_threads=1,
        step_seconds=((4, 1.0), (8, 1.2), (16, 3.2)),
        encode_seconds=0.1,
        sentences=FLAT.sentences,
    )
    found = [times.step(rows) for rows in (1, 4, 6, 8, 12, 16, 20)]
    assert found == pytest.approx([1.0, 1.0, 1.1, 1.2, 2.2, 3.2, 4.2])
    assert times.rows_that_cost_little() == 8


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_the_most_replicas_are_measured_with_several_fronts_too(device: str):
    found = variants(4, device=device)
    assert [one.fronts for one in found if one.fronts] == [2, 4]
    assert {one.replicas for one in found if one.fronts} == {4}
    assert Variant(replicas=4, fronts=2).environment == {
        "DRAGOMAN_REPLICAS": "4",
        "DRAGOMAN_FRONTS": "2",
    }


def test_on_one_core_or_gpu_there_is_one_front():
    assert all(one.fronts is None for one in variants(1, device="cpu"))


def test_there_are_as_many_clients_more_as_there_are_replicas():
    assert numbers_of_clients([1, 8, 32], 1) == [1, 8, 32]
    assert numbers_of_clients([1, 8, 32], 16) == [1, 8, 32, 128, 512]


def test_the_time_of_one_front_is_none_of_several():
    rows = [{"fronts": None, "front_ms_a_request": 0.5}, {"fronts": 2, "front_ms_a_request": 0.1}]
    assert front_seconds(rows) == 0.0005


@pytest.mark.replicas
def test_every_number_of_replicas_is_a_row_of_figures():
    rows = simulated([LINEAR], front=0.001, clients=(2,))
    assert {row["num_replicas"] for row in rows} == {1, 2, 4, 8, 16, 32, 64}
    assert all(isinstance(value, (int, float)) for row in rows for value in row.values())
