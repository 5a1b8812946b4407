"""Processes on shared cores, against what can be told without a simulation."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.replicas.processors import Cores, Process, Timeline


def _ends(num_cores: int, *works: float) -> list[float]:
    """When processes end that each begin something at once."""
    timeline = Timeline()
    cores, ends = Cores(timeline, num_cores), [0.0] * len(works)

    def end(place: int) -> None:
        ends[place] = timeline.now

    for place, seconds in enumerate(works):
        process = Process(timeline=timeline, cores=cores)
        process.do(seconds, lambda place=place: end(place))  # type: ignore[misc]
    timeline.run()
    return ends


def test_as_many_processes_as_cores_hinder_nobody():
    assert _ends(2, 1.0, 3.0) == pytest.approx([1.0, 3.0])
    assert _ends(0, 1.0, 3.0, 5.0) == pytest.approx([1.0, 3.0, 5.0])


def test_more_processes_than_cores_are_slower_alike_until_one_is_done():
    assert _ends(1, 1.0, 1.0) == pytest.approx([2.0, 2.0])
    assert _ends(1, 1.0, 3.0) == pytest.approx([2.0, 4.0])
    assert _ends(2, 2.0, 2.0, 2.0) == pytest.approx([3.0, 3.0, 3.0])


@given(number=st.integers(1, 4), works=st.lists(st.floats(0.01, 10.0), min_size=1, max_size=6))
def test_cores_do_all_of_the_work_and_no_more(number: int, works: list[float]):
    last = max(_ends(number, *works))
    assert last >= sum(works) / number - 1e-6
    assert last >= max(works) - 1e-6
    assert last <= sum(works) + 1e-6


def test_a_process_does_one_thing_after_the_other_and_wakes_late_and_at_a_price():
    timeline = Timeline()
    process = Process(
        timeline=timeline, cores=Cores(timeline, 2), wake_seconds=0.5, delay_seconds=0.25
    )
    ends = []
    for _ in range(2):
        process.do(1.0, lambda: ends.append(timeline.now))
    timeline.at(10.0, lambda: process.do(1.0, lambda: ends.append(timeline.now)))
    timeline.run()
    assert ends == pytest.approx([1.75, 2.75, 11.75])
    assert process.busy_seconds == pytest.approx(4.0)
    assert not process.is_awake
