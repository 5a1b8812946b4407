from dataclasses import fields

import pytest

from service.engine.counters import summed
from service.engine.messages import ROWS_BUCKETS, Snapshot
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
    counts = totals.snapshot(**GAUGES).rows_per_step
    assert counts.index(1) == bucket
    assert len(counts) == len(ROWS_BUCKETS) + 1


def test_steps_and_their_rows_and_seconds_add_up():
    totals = Totals()
    for num_rows in (4, 8, 16):
        totals.count_step(num_rows, seconds=0.25)
    snapshot = totals.snapshot(**GAUGES)
    assert (snapshot.num_steps, snapshot.num_row_steps, snapshot.step_seconds) == (3, 28, 0.75)
    assert sum(snapshot.rows_per_step) == 3


def test_padding_is_what_the_network_ran_over_beyond_the_sources():
    totals = Totals()
    totals.count_admission([5, 9, 7], num_encoded_tokens=27, seconds=0.1)
    totals.count_admission([4], num_encoded_tokens=4, seconds=0.1)
    snapshot = totals.snapshot(**GAUGES)
    assert (snapshot.num_admissions, snapshot.num_admitted) == (2, 4)
    assert (snapshot.num_source_tokens, snapshot.num_padded_source_tokens) == (25, 31)
    assert snapshot.admit_seconds == pytest.approx(0.2)


def test_gauges_are_what_they_are_now():
    now = {"num_waiting": 3, "num_waiting_bulk": 2, "num_rows": 4, "num_slots": 1}
    snapshot = Totals().snapshot(**(GAUGES | now))
    assert (snapshot.num_waiting, snapshot.num_waiting_bulk) == (3, 2)
    assert snapshot.num_running == 1
    assert (snapshot.num_rows, snapshot.num_slots) == (4, 1)
    assert (snapshot.max_rows, snapshot.max_slots) == (8, 2)


def test_two_snapshots_add_up_number_by_number():
    totals = Totals()
    totals.count_step(4, seconds=0.5)
    totals.count_admission([5, 9], num_encoded_tokens=18, seconds=0.1)
    one = totals.snapshot(**(GAUGES | {"num_waiting": 3, "num_slots": 1}))
    both = summed([one, one])
    assert (both.num_steps, both.step_seconds, both.num_admitted) == (2, 1.0, 4)
    assert (both.num_waiting, both.num_slots, both.max_rows) == (6, 2, 16)
    assert both.rows_per_step == tuple(2 * count for count in one.rows_per_step)
    assert summed([one]) == one


def test_every_total_is_a_number_of_the_snapshot_and_starts_at_none():
    assert {one.name for one in fields(Totals)} | {"num_running"} | set(GAUGES) == set(
        Snapshot.__struct_fields__
    )
    assert Totals().snapshot(**dict.fromkeys(GAUGES, 0)) == Snapshot()


def test_every_total_is_told_under_its_own_name():
    counted = {one.name: number for number, one in enumerate(fields(Totals), start=1)}
    counted["rows_per_step"] = list(range(len(ROWS_BUCKETS) + 1))
    snapshot = Totals(**counted).snapshot(**GAUGES)
    told = {name: getattr(snapshot, name) for name in counted}
    assert told == counted | {"rows_per_step": tuple(counted["rows_per_step"])}
