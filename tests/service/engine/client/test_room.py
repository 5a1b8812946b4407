import pytest

from service.engine.client.room import Excess, Room
from service.priority import PRIORITIES


@pytest.mark.parametrize("first", PRIORITIES)
def test_a_class_that_fills_its_part_is_refused_and_the_other_is_not(first: str) -> None:
    other = next(name for name in PRIORITIES if name != first)
    room = Room(8, reserved_share=0.25)
    for _ in range(6):
        assert room.excess(1, first) is None
        room.take(1, first)
    assert room.excess(1, first) == Excess(7, 6)
    assert room.excess(2, other) is None
    assert room.excess(3, other) == Excess(9, 8)
    assert room.excess(7, other) == Excess(7, 6)  # its own limit is named first
    room.take(2, other)
    assert room.excess(1, other) == Excess(9, 8)
    room.leave(1, first)
    assert room.excess(1, other) is None
    assert room.excess(1, first) is None


def test_before_its_class_is_known_a_request_asks_for_the_whole() -> None:
    room = Room(8, reserved_share=0.25)
    room.take(6, "bulk")
    assert room.excess(1, None) is None
    assert room.excess(2, None) is None
    assert room.excess(3, None) == Excess(9, 8)


def test_a_share_of_the_limits_is_rounded_up() -> None:
    room = Room(200, reserved_share=0.25)
    room.take(142, "bulk")
    assert room.excess(1, "bulk", share=0.95) is None
    room.take(1, "bulk")
    assert room.excess(1, "bulk", share=0.95) == Excess(144, 143)
    room.take(47, "interactive")
    assert room.excess(1, None, share=0.95) == Excess(191, 190)


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_there_is_a_place_for_either_class_however_small_the_whole(limit: int) -> None:
    for priority in PRIORITIES:
        assert Room(limit, reserved_share=0.99).excess(1, priority) is None


def test_a_place_is_given_back_whatever_happens_meanwhile() -> None:
    room = Room(1)
    with room.holding(1, "bulk"):
        assert (room.num, repr(room)) == (1, "<Room interactive=0 bulk=1 of 1>")
    assert room.num == 0
    with pytest.raises(ZeroDivisionError), room.holding(1, "bulk"):
        1 / room.num_of("interactive")
    assert room.num == 0
