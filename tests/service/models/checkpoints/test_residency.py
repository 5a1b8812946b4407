import pytest

from service.models.checkpoints.residency import (
    ENGINE_BYTES,
    leaving,
    left_for_others,
    resident_at_start,
    unknown_names,
)

SIZES = {"a": 300, "b": 100, "c": 200}


@pytest.mark.parametrize(
    ("budget", "pinned", "expected"),
    [
        (None, (), "abc"),
        (None, ("a",), "abc"),
        (ENGINE_BYTES + 600, (), "abc"),
        (ENGINE_BYTES + 599, (), "b"),
        (ENGINE_BYTES + 599, ("a", "c"), "ac"),
        (ENGINE_BYTES + 599, ("gone",), "b"),
        (1, ("a",), "a"),
    ],
)
def test_all_are_loaded_where_they_fit_and_else_the_pinned_or_one(
    budget: int | None, pinned: tuple[str, ...], expected: str
) -> None:
    assert resident_at_start(SIZES, pinned=pinned, budget=budget) == frozenset(expected)


def test_what_is_left_is_never_below_nothing() -> None:
    assert left_for_others([100, 50], budget=ENGINE_BYTES + 200) == 50
    assert left_for_others([100], budget=7) == 0


@pytest.mark.parametrize(
    ("num_free", "kept", "expected"),
    [
        (200, (), []),
        (0, (), ["b"]),
        (100, (), ["b"]),
        (-ENGINE_BYTES, (), ["b", "c"]),
        (0, ("b",), ["c"]),
        (0, ("b", "c"), ["a"]),
        (0, ("a", "b", "c"), None),
    ],
)
def test_the_least_recently_used_leave_until_it_fits(
    num_free: int, kept: tuple[str, ...], expected: list[str] | None
) -> None:
    used = {"a": 3.0, "b": 1.0, "c": 2.0}
    budget = 3 * ENGINE_BYTES + 600 + ENGINE_BYTES + num_free
    assert leaving(200, SIZES, used=used, kept=kept, budget=budget) == expected


def test_one_that_was_never_used_leaves_first_and_nobody_leaves_in_vain() -> None:
    budget = 2 * ENGINE_BYTES + 400
    assert leaving(100, {"a": 300, "b": 300}, used={"a": 1.0}, kept=(), budget=budget) == ["b"]
    assert leaving(10**12, SIZES, used={}, kept=(), budget=ENGINE_BYTES) is None


def test_names_that_no_checkpoint_has_are_told_by_their_setting() -> None:
    named = {"pinned": ("a", "d"), "preferred": ("b",)}
    assert unknown_names(named, SIZES) == {"pinned": ["d"]}
    assert unknown_names(named, ()) == {"pinned": ["a", "d"], "preferred": ["b"]}
    assert unknown_names({"pinned": (), "preferred": ("c",)}, SIZES) == {}
