"""Finished hypotheses: which are kept, when a sentence is over, in which order they come."""

import math

from model.config import SearchConfig
from model.decode.finished import FinishedHypotheses, taken_in_turn
from model.request import Hypothesis


def hypothesis_of(score: float, *token_ids: int) -> Hypothesis:
    return Hypothesis(
        token_ids=token_ids or (5,),
        score=score,
        token_log_probs=(),
        is_truncated=False,
        alignment=None,
    )


def test_as_many_hypotheses_as_beams_are_kept_best_first_however_few_are_asked_for() -> None:
    search = SearchConfig(beam_size=3, num_hypotheses=1, stopping="heuristic", length_penalty=0.0)
    finished = FinishedHypotheses(search)
    for score in (-3.0, -1.0, -2.0):
        assert finished.can_keep(score, beam=0)
        finished.keep(hypothesis_of(score), beam=0)
    assert not finished.is_over([-2.9], 4)
    finished.keep(hypothesis_of(-0.5), beam=2)
    assert len(finished) == 3
    assert finished.is_over([-2.9], 4)
    assert [kept.score for kept in finished.best()] == [-0.5]


def test_only_what_is_better_than_the_worst_of_a_full_beam_can_be_kept() -> None:
    finished = FinishedHypotheses(SearchConfig(beam_size=2))
    assert finished.can_keep(-math.inf, beam=0)
    finished.keep(hypothesis_of(-1.0), beam=0)
    assert finished.can_keep(-9.0, beam=1)
    finished.keep(hypothesis_of(-2.0), beam=1)
    assert [finished.can_keep(score, beam=0) for score in (-2.5, -2.0, -1.5)] == [
        False,
        False,
        True,
    ]


def test_a_group_that_is_over_keeps_nothing_more_and_waits_for_the_others() -> None:
    search = SearchConfig(
        beam_size=4, num_hypotheses=2, length_penalty=0.0, num_groups=2, diversity_penalty=1.0
    )
    finished = FinishedHypotheses(search)
    finished.keep(hypothesis_of(-1.0, 5), beam=1)
    assert not finished.is_over([-2.0, -2.0], 3)
    assert [finished.can_keep(-0.5, beam=beam) for beam in range(4)] == [False, False, True, True]
    finished.keep(hypothesis_of(-0.5, 6), beam=0)
    finished.keep(hypothesis_of(-3.0, 7), beam=2)
    assert finished.is_over([-9.0, -4.0], 4)
    assert [kept.score for kept in finished.best()] == [-1.0, -3.0]


def test_hypotheses_come_in_turn_best_group_first_and_none_twice() -> None:
    groups = [
        [hypothesis_of(-2.0, 1), hypothesis_of(-2.5, 2)],
        [hypothesis_of(-1.0, 3), hypothesis_of(-4.0, 4)],
        [hypothesis_of(-1.5, 3)],
    ]
    assert [one.token_ids for one in taken_in_turn(groups, 9)] == [(3,), (1,), (2,), (4,)]
    assert [one.score for one in taken_in_turn(groups, 2)] == [-1.0, -2.0]
    assert [one.score for one in taken_in_turn(groups[:1], 1)] == [-2.0]
