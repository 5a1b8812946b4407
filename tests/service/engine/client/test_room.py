from itertools import product

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
    assert room.excess(1, first) == Excess(7, 6, "class")
    assert room.excess(2, other) is None
    assert room.excess(3, other) == Excess(9, 8)
    assert room.excess(7, other) == Excess(7, 6, "class")  # its own limit is named first
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
    assert room.excess(1, "bulk", share=0.95) == Excess(144, 143, "class")
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
        1 / (room.num - 1)
    assert room.num == 0


def _flood(room: Room, *owners: str) -> dict[str, int]:
    """What each has, when all of them take turns until no place is given."""
    taken = dict.fromkeys(owners, 0)
    waiting = list(owners)
    while waiting:
        owner = waiting.pop(0)
        if room.excess(1, None, owner=owner) is None:
            room.take(1, "interactive", owner=owner)
            taken[owner] += 1
            waiting.append(owner)
    return taken


@pytest.mark.parametrize(("owners", "each"), [("a", 75), ("ab", 43), ("abcd", 23)])
def test_an_owner_that_floods_leaves_room_for_the_next_one(owners: str, each: int) -> None:
    room = Room(100, reserved_share=0.25)
    taken = _flood(room, *owners)
    assert all(abs(number - each) <= 1 for number in taken.values())
    refused = room.excess(1, None, owner="a")
    assert refused is not None
    assert refused.limit <= taken["a"]
    assert room.excess(1, "bulk", owner="new") is None


def test_one_owner_is_refused_by_its_own_limit_and_another_is_not() -> None:
    room = Room(8, reserved_share=0.25)
    room.take(3, "bulk", owner=1)
    room.take(3, "interactive", owner=1)
    assert room.excess(1, "interactive", owner=1) == Excess(7, 6, "owner")
    assert room.excess(1, "interactive", owner=2) is None
    assert room.excess(2, "interactive", owner=2) is None
    room.leave(3, "bulk", owner=1)
    assert room.excess(1, "interactive", owner=1) is None


def test_places_of_an_owner_are_given_back() -> None:
    room = Room(4, reserved_share=0.25)
    with room.holding(3, "bulk", owner="a"):
        assert room.excess(1, "interactive", owner="a") == Excess(4, 3, "owner")
    assert room.num == 0
    assert room.excess(3, "bulk", owner="a") is None


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_there_is_a_place_for_any_owner_however_small_the_whole(limit: int) -> None:
    assert Room(limit, reserved_share=0.99).excess(1, "interactive", owner="a") is None


def test_a_part_that_is_the_whole_is_told_as_such() -> None:
    room = Room(2, reserved_share=0.25)
    room.take(2, "bulk", owner="a")
    assert room.excess(1, "bulk", owner="a") == Excess(3, 2, "whole")


def _excess_by_each_limit(
    room: Room, taken: dict[tuple[str, str], int], number: int, priority: str, owner: str
) -> Excess | None:
    """What the limits say one after another, whatever is free."""

    def part(limit: int) -> int:
        return max(1, limit - int(limit * 0.25))

    num = sum(taken.values())
    of_class = sum(value for (name, _), value in taken.items() if name == priority) + number
    own = sum(value for (_, name), value in taken.items() if name == owner) + number
    of_owner = part(room.limit - num + own - number)
    if part(room.limit) < room.limit and of_class > part(room.limit):
        return Excess(of_class, part(room.limit), "class")
    if of_owner < room.limit and own > of_owner:
        return Excess(own, of_owner, "owner")
    return Excess(num + number, room.limit) if num + number > room.limit else None


@pytest.mark.parametrize("limit", range(1, 10))
def test_a_room_that_is_mostly_free_is_asked_in_one_look_with_the_same_answer(limit: int) -> None:
    places = [(name, owner) for name in PRIORITIES for owner in ("a", "b")]
    for numbers in product(range(4), repeat=len(places)):
        room, taken = Room(limit, reserved_share=0.25), dict(zip(places, numbers, strict=True))
        for (name, owner), number in taken.items():
            room.take(number, name, owner=owner)
        for number in (1, 2, limit):
            wanted = _excess_by_each_limit(room, taken, number, "bulk", "a")
            assert room.excess(number, "bulk", owner="a") == wanted
