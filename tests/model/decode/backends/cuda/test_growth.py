"""How far tables may grow: the bytes of it, and who has been refused or promised some."""

import pytest

from model.decode.backends.cuda.growth import Room, Sizes, growth_bytes


def test_the_bytes_of_growth_are_those_that_are_there_while_each_table_is_copied() -> None:
    sizes = [(10, 20), (50, 100), (7, 7), (1, 4)]
    present = sum(before for before, _ in sizes)
    most = now = present
    for before, after in sizes:
        if after != before:
            now += after  # the new one beside the old one
            most = max(most, now)
            now -= before
    assert growth_bytes(sizes) == most - present == 110
    assert growth_bytes([(7, 7)]) == 0


def test_what_did_not_fit_is_not_asked_for_again_until_something_is_dropped() -> None:
    asked: list[int] = []
    room = Room(lambda: asked.append(0) or 108, reserved=100)
    small, large, wide = (
        Sizes(num_slots=n, num_columns=8, source_length=m) for n, m in ((8, 1), (9, 1), (9, 2))
    )

    def has(sizes: Sizes) -> bool:
        room.look_again()
        return room.has_for(4, sizes, lambda: sizes.num_slots)

    assert has(small)
    assert [has(large), has(large), has(wide)] == [False] * 3
    assert has(small)
    assert len(asked) == 3
    room.forget(2)
    assert not has(wide)
    assert len(asked) == 4


def test_what_one_grid_may_come_to_need_the_others_do_not_get() -> None:
    room = Room(lambda: 108, reserved=100)
    room.promise(4, 3)
    assert room.has(4, lambda: 8)
    assert room.has(2, lambda: 5)
    assert not room.has(2, lambda: 6)
    room.forget(4)
    assert room.has(2, lambda: 8)


def test_nothing_bounds_growth_where_memory_is_not_asked() -> None:
    assert Room(None).has(4, pytest.fail)
