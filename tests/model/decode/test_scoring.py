"""The four stopping rules by hand."""

import math

import pytest

from model.config import SearchConfig
from model.decode.scoring import bound_length, hypothesis_score, num_required, stop_threshold


@pytest.mark.parametrize(("alpha", "expected"), [(1.0, -1.5), (0.0, -6.0), (0.5, -3.0)])
def test_the_score_counts_the_end_of_sentence(alpha: float, expected: float) -> None:
    assert hypothesis_score(-6.0, 4, alpha) == pytest.approx(expected)


def test_the_exact_rule_waits_for_as_many_as_were_asked_for() -> None:
    search = SearchConfig(beam_size=4, num_hypotheses=2, stopping="exact")
    assert num_required(search) == 2
    assert stop_threshold(search, [-0.5]) == -math.inf
    assert stop_threshold(search, [-0.5, -0.75, -2.0]) == -0.75


@pytest.mark.parametrize("rule", ["heuristic", "bound"])
def test_the_other_bounds_wait_for_a_full_beam_and_its_worst(rule: str) -> None:
    search = SearchConfig(beam_size=3, stopping=rule)  # type: ignore[arg-type]
    assert stop_threshold(search, [-0.5, -0.6]) == -math.inf
    assert stop_threshold(search, [-0.5, -0.6, -0.9]) == -0.9


def test_the_first_rule_stops_when_the_beam_is_full() -> None:
    search = SearchConfig(beam_size=2, stopping="first")
    assert stop_threshold(search, [-0.5]) == -math.inf
    assert stop_threshold(search, [-0.5, -9.0]) == math.inf


def test_greedy_search_stops_at_its_first_end_whatever_was_asked() -> None:
    search = SearchConfig(beam_size=1, stopping="exact")
    assert stop_threshold(search, [-9.0]) == math.inf


@pytest.mark.parametrize(
    ("rule", "alpha", "expected"),
    [
        ("exact", 1.0, 50),
        ("exact", 0.0, 6),
        ("exact", -1.0, 6),
        ("bound", 1.0, 50),
        ("bound", -1.0, 5),
        ("heuristic", 1.0, 5),
    ],
)
def test_bounds_are_taken_at_the_most_flattering_length(
    rule: str, alpha: float, expected: int
) -> None:
    search = SearchConfig(
        beam_size=4,
        stopping=rule,  # type: ignore[arg-type]
        length_penalty=alpha,
        max_length=50,
    )
    assert bound_length(search, 5) == expected
