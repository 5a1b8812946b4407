"""Waiting segments: batches of like length, piles in turns, each segment once."""

from hypothesis import given
from hypothesis import strategies as st

from model.offline.waiting import WaitingSegments


def _filled(
    piles: dict[int, list[int]], *, max_tokens: int
) -> WaitingSegments[tuple[int, int, int]]:
    waiting: WaitingSegments[tuple[int, int, int]] = WaitingSegments(max_tokens=max_tokens)
    for pile, lengths in piles.items():
        for number, length in enumerate(lengths):
            waiting.put(pile, length, (pile, number, length))
    return waiting


def test_the_longest_goes_first_and_the_nearest_in_length_join_it() -> None:
    waiting = _filled({1: [3, 9, 4], 2: [8, 30, 2]}, max_tokens=1_000)
    assert [length for _, _, length in waiting.next_batch(3)] == [9, 8, 4]
    assert [length for _, _, length in waiting.next_batch(9)] == [30, 3, 2]
    assert len(waiting) == 0
    assert waiting.next_batch(9) == []


def test_a_long_pile_does_not_hold_back_a_short_one() -> None:
    waiting = _filled({1: [50] * 1_000, 2: [5]}, max_tokens=100)
    assert [pile for pile, _, _ in waiting.next_batch(8)] == [1, 1]
    assert [pile for pile, _, _ in waiting.next_batch(8)] == [2]


def test_a_segment_longer_than_a_batch_goes_alone() -> None:
    waiting = _filled({1: [500, 500]}, max_tokens=100)
    assert len(waiting.next_batch(8)) == 1
    assert len(waiting) == 1


def test_nothing_joins_where_there_is_no_room() -> None:
    assert _filled({1: [5]}, max_tokens=100).next_batch(0) == []


@given(
    piles=st.dictionaries(
        st.integers(0, 4), st.lists(st.integers(0, 40), min_size=1, max_size=20), max_size=4
    ),
    rooms=st.lists(st.integers(1, 9), min_size=1, max_size=5),
)
def test_each_segment_is_given_once_in_batches_within_their_bounds(
    piles: dict[int, list[int]], rooms: list[int]
) -> None:
    waiting = _filled(piles, max_tokens=60)
    given_out: list[tuple[int, int, int]] = []
    while waiting:
        batch = waiting.next_batch(rooms[len(given_out) % len(rooms)])
        lengths = [length for _, _, length in batch]
        assert batch
        assert lengths == sorted(lengths, reverse=True)
        assert len(batch) == 1 or len(batch) * lengths[0] <= 60
        given_out += batch
    expected = [(pile, n, length) for pile in piles for n, length in enumerate(piles[pile])]
    assert sorted(given_out) == sorted(expected)
