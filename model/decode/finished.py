"""Finished hypotheses of one sentence, by groups of beams, and when its search is over.

Owns which of them are kept and in which order they are returned. Where the beams are not divided
there is one group. Scores, bounds and rules are `model.decode.scoring`; a grid keeps its leaves in
arrays (`backends.cuda.searches`), the kernels theirs in `native/src/search.cpp`.
"""

import math
from bisect import insort
from collections.abc import Sequence
from itertools import zip_longest

from model.config import SearchConfig
from model.decode.scoring import running_bound, stop_threshold
from model.request import Hypothesis


class FinishedHypotheses:
    """Kept hypotheses of a sentence: of each group, the best as many as it has beams."""

    def __init__(self, search: SearchConfig) -> None:
        """None is finished yet."""
        self._search = search
        self._groups: list[list[Hypothesis]] = [[] for _ in range(search.num_groups)]
        self._thresholds = [-math.inf] * search.num_groups
        self._are_over = [False] * search.num_groups

    def __len__(self) -> int:
        return sum(map(len, self._groups))

    def keep(self, hypothesis: Hypothesis, *, beam: int) -> None:
        """Add what a beam has become, if it is among the best of its group."""
        group = beam // self._search.group_size
        if not self._can_keep(group, hypothesis.score):
            return
        own = self._groups[group]
        insort(own, hypothesis, key=lambda kept: (kept.num_missed, -kept.score))
        del own[self._search.group_size :]
        self._thresholds[group] = stop_threshold(self._search, [kept.score for kept in own])

    def can_keep(self, score: float, *, beam: int) -> bool:
        """Whether `keep` might keep a hypothesis of this score; it has met all phrases, or none."""
        return self._can_keep(beam // self._search.group_size, score)

    def _can_keep(self, group: int, score: float) -> bool:
        if self._are_over[group]:
            return False  # it runs on only until the others are over
        own = self._groups[group]
        is_full = len(own) >= self._search.group_size
        return not is_full or score > own[-1].score or own[-1].num_missed > 0

    def is_over(self, best: Sequence[float], num_generated: int) -> bool:
        """Whether running hypotheses cannot matter any more, in any group.

        Args:
            best: Of each group, the best sum of log probabilities among its running hypotheses.
            num_generated: Tokens that each of them has, at least 1.
        """
        for group, threshold in enumerate(self._thresholds):
            if running_bound(self._search, best[group], num_generated) <= threshold:
                self._are_over[group] = True
        return all(self._are_over)

    def best(self) -> tuple[Hypothesis, ...]:
        """Those that were asked for."""
        return taken_in_turn(self._groups, self._search.num_hypotheses)


def taken_in_turn(groups: Sequence[Sequence[Hypothesis]], num: int) -> tuple[Hypothesis, ...]:
    """The best of each group, the best of these first; then the second of each; none twice.

    Args:
        groups: Hypotheses of each, best first.
        num: How many there are to be at the most.
    """
    if len(groups) == 1:
        return tuple(groups[0][:num])
    taken: dict[tuple[int, ...], Hypothesis] = {}
    for turn in zip_longest(*groups):
        found = [hypothesis for hypothesis in turn if hypothesis is not None]
        for hypothesis in sorted(found, key=lambda one: -one.score):
            taken.setdefault(hypothesis.token_ids, hypothesis)
    return tuple(taken.values())[:num]
