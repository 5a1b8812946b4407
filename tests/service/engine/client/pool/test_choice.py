"""The choice of a replica, against its own definition and by what must always hold."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from service.engine.client.pool.choice import Load, assign, candidates, choose

LOADS = st.lists(
    st.builds(
        Load,
        num_rows=st.integers(0, 64),
        num_row_steps=st.integers(0, 2000),
        is_ready=st.booleans(),
        is_silent=st.booleans(),
    ),
    min_size=1,
    max_size=8,
)
FILL_ROWS = st.integers(0, 48)
ROWS = st.integers(1, 8)


def ready(*rows: int) -> list[Load]:
    return [Load(num_rows=number, num_row_steps=10 * number) for number in rows]


@given(LOADS, ROWS, FILL_ROWS)
def test_a_replica_that_is_not_ready_gets_nothing(loads, num_rows, fill_rows):
    place = choose(loads, num_rows=num_rows, fill_rows=fill_rows)
    if place is None:
        assert not any(load.is_ready for load in loads)
    else:
        assert loads[place].is_ready


@given(LOADS, ROWS, FILL_ROWS)
def test_a_silent_replica_gets_nothing_while_another_one_speaks(loads, num_rows, fill_rows):
    place = choose(loads, num_rows=num_rows, fill_rows=fill_rows)
    if place is not None and loads[place].is_silent:
        assert all(load.is_silent for load in loads if load.is_ready)


@given(LOADS, ROWS, FILL_ROWS)
def test_while_one_has_room_the_busiest_that_has_is_filled(loads, num_rows, fill_rows):
    place = choose(loads, num_rows=num_rows, fill_rows=fill_rows)
    with_room = [
        loads[one].num_rows
        for one in candidates(loads)
        if loads[one].num_rows + num_rows <= fill_rows
    ]
    if with_room:
        assert place is not None
        assert loads[place].num_rows == max(with_room)


@given(LOADS, ROWS, FILL_ROWS)
def test_where_none_has_room_the_one_with_the_least_work_gets_it(loads, num_rows, fill_rows):
    able = [loads[one] for one in candidates(loads)]
    if able and all(load.num_rows + num_rows > fill_rows for load in able):
        place = choose(loads, num_rows=num_rows, fill_rows=fill_rows)
        assert place is not None
        assert loads[place].num_row_steps == min(load.num_row_steps for load in able)


@given(
    LOADS.filter(lambda loads: any(load.is_ready for load in loads)),
    st.lists(st.integers(1, 400), max_size=30),
    ROWS,
    FILL_ROWS,
)
def test_a_request_is_cut_as_if_its_segments_had_come_one_by_one(
    loads, row_steps, num_rows, fill_rows
):
    one_by_one = []
    now = list(loads)
    for steps in row_steps:
        place = choose(now, num_rows=num_rows, fill_rows=fill_rows)
        assert place is not None
        now[place] = now[place].with_segment(num_rows=num_rows, num_row_steps=steps)
        one_by_one.append(place)
    assert assign(loads, row_steps, num_rows=num_rows, fill_rows=fill_rows) == one_by_one


@given(st.integers(2, 8), st.lists(st.integers(1, 400), min_size=40, max_size=60))
def test_a_long_request_is_spread_as_evenly_as_its_longest_segment_allows(number, row_steps):
    places = assign([Load()] * number, row_steps, num_rows=4, fill_rows=0)
    work = [0] * number
    for place, steps in zip(places, row_steps, strict=True):
        work[place] += steps
    assert max(work) - min(work) <= max(row_steps)


def test_few_clients_are_on_one_replica_and_the_next_one_begins_when_it_is_full():
    loads = ready(0, 0, 0)
    places = assign(loads, [20] * 5, num_rows=4, fill_rows=8)
    assert places == [0, 0, 1, 1, 2]


def test_what_leaves_makes_room_where_most_runs():
    assert choose(ready(8, 4, 0), num_rows=4, fill_rows=8) == 1
    assert choose(ready(4, 8, 0), num_rows=4, fill_rows=8) == 0


def test_rows_that_wait_are_no_room():
    assert choose(ready(40, 12), num_rows=4, fill_rows=8) == 1


def test_without_a_replica_that_is_ready_there_is_no_choice():
    gone = [replace(load, is_ready=False) for load in ready(0, 4)]
    assert choose(gone, num_rows=4, fill_rows=8) is None
    assert candidates(gone) == []
