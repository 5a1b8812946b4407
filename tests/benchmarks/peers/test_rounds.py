import random
import statistics

import pytest

from benchmarks.peers.offline import Entry, taking_part_in
from benchmarks.peers.rivals import all_specs
from benchmarks.peers.rounds import Budget, median, percentile, rotated, turns


def test_everybody_is_first_equally_often_and_nobody_is_lost() -> None:
    rounds = [rotated(["a", "b", "c"], number) for number in range(6)]
    assert [order[0] for order in rounds] == ["a", "b", "c"] * 2
    assert all(sorted(order) == ["a", "b", "c"] for order in rounds)
    assert rotated([], 3) == []


def test_who_is_compared_goes_one_after_the_other_and_everybody_is_first() -> None:
    rounds = ["".join(turns("ab", "xyz", number)) for number in range(4)]
    assert rounds == ["abxyz", "bayzx", "zxyab", "xyzba"]
    assert turns("ab", "", 1) == ["b", "a"]


def test_percentiles_are_those_of_the_statistics_module() -> None:
    rng = random.Random(1)
    values = [rng.random() for _ in range(37)]
    assert percentile(values, 50) == pytest.approx(statistics.median(values))
    assert percentile([1.0, 2.0, 3.0], 99) == pytest.approx(2.98)
    assert percentile(range(101), 95) == pytest.approx(95.0)


def test_percentiles_of_one_value_and_of_none() -> None:
    assert percentile([4.0], 99) == 4.0
    assert percentile([], 99) is None


def test_one_slow_round_of_three_does_not_count() -> None:
    assert median([1.0, 9.0, 1.1]) == 1.1


def test_a_budget_is_over_at_its_deadline_and_parts_share_what_is_left() -> None:
    now = [100.0]
    budget = Budget.of(60.0, lambda: now[0])
    assert budget.allows(60.0)
    assert not budget.allows(60.1)
    now[0] = 140.0
    half = budget.part(0.5)
    assert half.allows(10.0)
    assert not half.allows(10.1)
    now[0] = 170.0
    assert not budget.part(1.0).allows(0.1)


def test_those_that_are_compared_have_their_rounds_whatever_they_cost() -> None:
    ours, other, *_ = all_specs(1)
    entries = [
        Entry(name="ours", spec=ours, candidates=(), max_rounds=5, min_rounds=3),
        Entry(name="quick run", spec=ours, candidates=(), max_rounds=1, min_rounds=3),
        Entry(name="slow", spec=other, candidates=(), max_rounds=2),
    ]

    def names(number: int, *, is_affordable: bool) -> list[str]:
        found = taking_part_in(number, entries, is_affordable=is_affordable)
        return [entry.name for entry in found]

    assert names(0, is_affordable=False) == ["ours", "quick run", "slow"]
    assert names(1, is_affordable=True) == ["ours", "slow"]
    assert names(1, is_affordable=False) == names(2, is_affordable=False) == ["ours"]
    assert names(3, is_affordable=True) == ["ours"]
    assert names(3, is_affordable=False) == []
