"""Which hypotheses of a beam stand beside the best one."""

from dataclasses import dataclass

from model.text.drafts.diversity import differing


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    token_ids: tuple[int, ...]
    score: float
    is_truncated: bool = False
    alignment: tuple[int, ...] | None = None


BEST = Output(token_ids=(1, 2, 3, 4), score=-0.1)
NEAR = Output(token_ids=(1, 2, 3, 5), score=-0.2)
NEARER = Output(token_ids=(1, 2, 3, 4, 6), score=-0.3)
FAR = Output(token_ids=(7, 8, 9), score=-0.9)
FOUND = (BEST, NEAR, NEARER, FAR)


def test_without_diversity_the_order_is_that_of_the_scores() -> None:
    assert differing(FOUND, 3, 0.0) == (BEST, NEAR, NEARER)


def test_what_shares_least_with_all_that_was_chosen_comes_next() -> None:
    assert differing(FOUND, 2, 1.0) == (BEST, FAR)
    assert differing(FOUND, 3, 1.0) == (BEST, FAR, NEAR)


def test_between_them_likelihood_and_difference_are_weighed() -> None:
    unlikely = Output(token_ids=(7, 8, 9), score=-9.0)
    assert differing((BEST, NEAR, unlikely), 2, 0.3) == (BEST, NEAR)
    assert differing((BEST, NEAR, FAR), 2, 0.6) == (BEST, FAR)


def test_there_are_no_more_than_were_found_and_none_twice() -> None:
    assert sorted(differing(FOUND, 9, 0.5), key=lambda one: -one.score) == list(FOUND)
    empty = Output(token_ids=(), score=-0.1)
    assert differing((empty, empty), 2, 0.5) == (empty, empty)
