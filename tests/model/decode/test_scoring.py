"""The four stopping rules by hand."""

import math

import numpy as np
import pytest

from model.config import SearchConfig
from model.decode.scoring import (
    bound_length,
    bound_line,
    hypothesis_score,
    num_required,
    running_bound,
    running_bounds,
    stop_threshold,
)


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


def test_a_bound_is_the_score_that_the_best_running_hypothesis_would_have() -> None:
    search = SearchConfig(beam_size=4, stopping="exact", length_penalty=0.5, max_length=16)
    assert running_bound(search, -8.0, 3) == -8.0 / 16**0.5
    assert running_bound(search, -math.inf, 3) == -math.inf
    flat = SearchConfig(beam_size=4, stopping="exact", length_penalty=-1.0, max_length=16)
    assert running_bound(flat, -8.0, 3) == -8.0 * 4


@pytest.mark.parametrize("rule", ["exact", "first", "heuristic", "bound"])
def test_bounds_of_many_sentences_are_those_of_each(rule: str) -> None:
    searches = [
        SearchConfig(
            beam_size=beam_size,
            stopping=rule,  # type: ignore[arg-type]
            length_penalty=penalty,
            max_length=max_length,
        )
        for beam_size in (1, 3)
        for penalty in (-1.5, 0.0, 0.6, 1.0)
        for max_length in (9, 50)
    ]
    best = np.linspace(-30.0, -0.1, len(searches))
    for num_generated in (1, 2, 7):
        found = running_bounds(
            best,
            np.full(len(searches), num_generated),
            lines=np.array([bound_line(search) for search in searches], dtype=np.float64).T,
            penalties=np.array([search.length_penalty for search in searches]),
        )
        each = [
            running_bound(search, one, num_generated)
            for search, one in zip(searches, best.tolist(), strict=True)
        ]
        assert found.tolist() == pytest.approx(each, rel=1e-15)


def test_bounds_before_the_first_token_are_finite() -> None:
    found = running_bounds(
        np.array([-1.0]), np.array([-2]), lines=np.array([[0.0], [1.0]]), penalties=np.array([-1.0])
    )
    assert np.isfinite(found).all()
