import pytest

from service.engine.counters import only_totals, summed
from service.engine.messages import ROWS_BUCKETS, EngineCounters
from service.engine.worker.totals import Totals

GAUGES = {
    "num_waiting": 0,
    "num_waiting_bulk": 0,
    "num_rows": 0,
    "num_slots": 0,
    "max_rows": 8,
    "max_slots": 2,
}


@pytest.mark.parametrize(
    ("num_rows", "bucket"),
    [(1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (512, 9), (513, 10), (4096, 12), (4097, 13)],
)
def test_a_step_is_counted_under_the_first_bound_that_holds_its_rows(num_rows, bucket):
    totals = Totals()
    totals.count_step(num_rows, seconds=0.5)
    counts = totals.counters(**GAUGES).rows_per_step
    assert counts.index(1) == bucket
    assert len(counts) == len(ROWS_BUCKETS) + 1


def test_steps_and_their_rows_and_seconds_add_up():
    totals = Totals()
    for num_rows in (4, 8, 16):
        totals.count_step(num_rows, seconds=0.25)
    counters = totals.counters(**GAUGES)
    assert (counters.num_steps, counters.num_row_steps, counters.step_seconds) == (3, 28, 0.75)
    assert sum(counters.rows_per_step) == 3


def test_padding_is_what_the_network_ran_over_beyond_the_sources():
    totals = Totals()
    totals.count_admission([5, 9, 7], num_encoded_tokens=27, seconds=0.1)
    totals.count_admission([4], num_encoded_tokens=4, seconds=0.1)
    counters = totals.counters(**GAUGES)
    assert (counters.num_admissions, counters.num_admitted) == (2, 4)
    assert (counters.num_source_tokens, counters.num_padded_source_tokens) == (25, 31)
    assert counters.admit_seconds == pytest.approx(0.2)


def test_gauges_are_what_they_are_now():
    now = {"num_waiting": 3, "num_waiting_bulk": 2, "num_rows": 4, "num_slots": 1}
    counters = Totals().counters(**(GAUGES | now))
    assert (counters.num_waiting, counters.num_waiting_bulk) == (3, 2)
    assert counters.num_running == 1
    assert (counters.num_rows, counters.num_slots) == (4, 1)
    assert (counters.max_rows, counters.max_slots) == (8, 2)


def test_two_counters_add_up_number_by_number():
    totals = Totals()
    totals.count_step(4, seconds=0.5)
    totals.count_admission([5, 9], num_encoded_tokens=18, seconds=0.1)
    one = totals.counters(**(GAUGES | {"num_waiting": 3, "num_slots": 1}))
    both = summed([one, one])
    assert (both.num_steps, both.step_seconds, both.num_admitted) == (2, 1.0, 4)
    assert (both.num_waiting, both.num_slots, both.max_rows) == (6, 2, 16)
    assert both.rows_per_step == tuple(2 * count for count in one.rows_per_step)
    assert summed([one]) == one


def test_counters_are_the_totals_and_the_gauges_and_start_at_none():
    totals, gauges = Totals.__struct_fields__, {"num_running"} | set(GAUGES)
    assert set(EngineCounters.__struct_fields__) == {*totals, *gauges}
    assert Totals().counters(**dict.fromkeys(GAUGES, 0)) == EngineCounters()


def test_every_total_is_told_under_its_own_name_and_outlives_the_engine():
    counted = {name: number for number, name in enumerate(Totals.__struct_fields__, start=1)}
    counted["rows_per_step"] = tuple(range(len(ROWS_BUCKETS) + 1))
    counters = Totals(**counted).counters(**GAUGES)
    assert {name: getattr(counters, name) for name in counted} == counted
    assert only_totals(counters) == EngineCounters(**counted)
