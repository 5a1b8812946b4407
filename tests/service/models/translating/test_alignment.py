import pytest

from service.models.translating.alignment import FirstHop, PieceWidths, composed, width

# "Das Haus" → "the house": [the, hou, se] from source tokens [Das, Haus, EOS].
FIRST = FirstHop(widths=[3, 3, 2], alignment=[0, 1, 1], end=2)


@pytest.mark.parametrize(
    ("piece", "expected"),
    [("▁the", 3), ("▁", 0), ("", 0), ("<0xE4>", 1), ("<0xE4", 5), ("猫", 3), ("▁a b", 2)],
)
def test_the_width_of_a_piece_is_its_bytes_without_spaces(piece: str, expected: int) -> None:
    assert width(piece) == expected


def test_equal_tokens_are_followed_one_by_one() -> None:
    assert composed(FIRST, [3, 3, 2, 0], [0, 1, 2]) == (0, 1, 1)
    assert composed(FIRST, [3, 3, 2, 0], [2, 0, 1, 1]) == (1, 0, 1, 1)


def test_other_tokens_of_the_same_text_are_found_by_their_place() -> None:
    assert composed(FIRST, [0, 8, 0], [1]) == (1,), "the middle of all is in the house"
    assert composed(FIRST, [1, 1, 1, 5], [0, 1, 2, 3]) == (0, 0, 0, 1)


def test_tokens_that_stand_for_no_text_mean_the_end() -> None:
    assert composed(FIRST, [0, 3, 5, 0], [0, 1, 3]) == (2, 0, 2)


def test_a_text_that_was_normalised_is_compared_by_shares() -> None:
    assert composed(FIRST, [6, 6, 4, 0], [0, 1, 2]) == (0, 1, 1)


@pytest.mark.parametrize(
    ("first", "widths"),
    [
        (FirstHop(widths=[], alignment=[], end=2), [3, 0]),
        (FirstHop(widths=[0], alignment=[0], end=2), [3, 0]),
        (FIRST, [0, 0]),
    ],
)
def test_where_there_is_no_text_between_everything_means_the_end(
    first: FirstHop, widths: list[int]
) -> None:
    assert composed(first, widths, [0, 0]) == (2, 2)
    assert composed(first, widths, []) == ()


def test_every_place_lies_in_the_source() -> None:
    for lengths in ([1], [1, 7], [5, 5, 5], [2, 0, 9, 1]):
        aligned = composed(FIRST, [*lengths, 0], list(range(len(lengths) + 1)))
        assert all(0 <= index <= FIRST.end for index in aligned)


def test_widths_are_made_once_and_are_0_without_a_piece() -> None:
    asked: list[None] = []

    def pieces() -> dict[int, str]:
        asked.append(None)
        return {3: "▁the", 5: "<0x0A>"}

    widths = PieceWidths(pieces)
    assert asked == []
    assert widths.of([3, 4, 5, 99]) == [3, 0, 1, 0]
    assert widths.of([]) == []
    assert len(asked) == 1
