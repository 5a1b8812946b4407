"""Replicas and fronts that are not there, against what can be told without a simulation."""

import pytest

from benchmarks.capacity.scaling import scaling
from benchmarks.capacity.shape import Kind
from benchmarks.replicas.simulation import Plan
from benchmarks.replicas.steps import Sentence, StepTimes

TIMES = StepTimes(  # rows cost what they cost alone: an engine does 50 sentences a second
    num_threads=1,
    step_seconds=((4, 0.001), (128, 0.032)),
    encode_seconds=0.0,
    sentences=(Sentence(num_source_tokens=10, num_steps=20),),
)
KIND = Kind(
    times=TIMES,
    one_front=Plan(num_replicas=1, front_seconds=0.01),
    several_fronts=Plan(num_replicas=1, front_seconds=0.0125, owner_seconds=0.005),
)


@pytest.mark.replicas
def test_replicas_count_until_the_fronts_are_full_and_fronts_until_their_owner_is():
    rows = scaling(KIND, replicas=(1, 2, 8), fronts=(1, 2, 4))
    rates = {(one["replicas"], one["fronts"]): one["requests_per_second"] for one in rows}
    assert rates[1, 1] == pytest.approx(50, rel=0.05)
    assert rates[2, 1] == pytest.approx(100, rel=0.05)
    assert rates[8, 1] == pytest.approx(100, rel=0.05), "of the one front"
    assert rates[8, 2] == pytest.approx(160, rel=0.05), "of two"
    assert rates[8, 4] == pytest.approx(200, rel=0.05), "of the owner"
