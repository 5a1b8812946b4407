"""Options and best hypotheses of the searches in a grid's slots, as arrays.

Owns how requests become numbers and which finished hypotheses are kept. Which sentence is in which
slot, what every step did and which searches are over is `ledger`. No tensor.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from model.config import SearchConfig
from model.decode.backends.cuda.newcomers import distinct_searches
from model.decode.backends.cuda.search import Report
from model.decode.scoring import bound_line, num_required, stopping_rule
from model.phrases import MAX_PHRASES
from model.request import DecodeRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOptions:
    """Options of a step, for all running sentences together.

    Attributes:
        num_candidates: The most continuations that a sentence considers.
        with_sources: A sentence has an alignment.
        with_sampling: A sentence is drawn.
        num_groups: The most groups of beams that a sentence has; 0: there is no sentence.
        no_repeat_ngram: The longest that comes in no hypothesis of a sentence twice; 0: all may.
        source_length: Of the longest source.
        with_suppressed: A sentence has tokens that it may not choose.
        num_phrase_tokens: The most that the phrases of a sentence have together; 0: there are none.
    """

    num_candidates: int
    with_sources: bool
    with_sampling: bool
    num_groups: int
    no_repeat_ngram: int
    source_length: int
    with_suppressed: bool
    num_phrase_tokens: int


class Searches:
    """Numbers of the searches, (S,) each; of an empty slot zeros, but for what only a sentence has.

    Attributes:
        prefix_lengths: Tokens that are fed before any is chosen.
        beam_sizes: K of each sentence.
        group_sizes: Beams of each of its groups; K where there are none.
        num_required: Finished hypotheses of each group without which no rule stops.
        is_first: The search is over once that many are finished.
        penalties: α.
        bound_lines: (2, S), see `bound_line`.
        ends_at: The position behind the cap.
        options: (8, S) int64, the fields of `StepOptions`.
    """

    def __init__(self, num_slots: int) -> None:
        self.prefix_lengths = np.ones(num_slots, dtype=np.int64)
        self.beam_sizes = np.ones(num_slots, dtype=np.int64)
        self.group_sizes = np.ones(num_slots, dtype=np.int64)
        self.num_required = np.ones(num_slots, dtype=np.int64)
        self.is_first = np.zeros(num_slots, dtype=np.bool_)
        self.penalties = np.zeros(num_slots)
        self.bound_lines = np.zeros((2, num_slots))
        self.ends_at = np.zeros(num_slots, dtype=np.int64)
        self.options = np.zeros((8, num_slots), dtype=np.int64)

    def write(self, slots: NDArray[np.int64], requests: Sequence[DecodeRequest]) -> None:
        """Write the options of sentences that join, in (N,) slots."""
        searches, kinds = distinct_searches(requests)
        numbers = np.array([_numbers(search) for search in searches], dtype=np.float64).T
        numbers = numbers[:, kinds]
        prefix_lengths = np.array([len(request.prefix_ids) for request in requests])
        self.prefix_lengths[slots] = prefix_lengths
        self.beam_sizes[slots] = numbers[0]
        self.num_required[slots] = numbers[1]
        self.is_first[slots] = numbers[2]
        self.penalties[slots] = numbers[3]
        self.bound_lines[:, slots] = numbers[4:6]
        self.ends_at[slots] = prefix_lengths + numbers[6] - 1
        self.group_sizes[slots] = numbers[0] // numbers[10]
        self.options[:5, slots] = numbers[7:]
        self.options[5:, slots] = np.array([_own_options(request) for request in requests]).T

    def step_options(self) -> StepOptions:
        """The options of a step that serves all of them."""
        most = self.options.max(axis=1).tolist()
        return StepOptions(
            num_candidates=most[0],
            with_sources=bool(most[1]),
            with_sampling=bool(most[2]),
            num_groups=most[3],
            no_repeat_ngram=most[4],
            source_length=most[5],
            with_suppressed=bool(most[6]),
            num_phrase_tokens=most[7],
        )

    def has_phrases(self, slots: NDArray[np.int64]) -> NDArray[np.bool_]:
        """(N,), whether a sentence has phrases that its translation has to contain."""
        has_phrases: NDArray[np.bool_] = self.options[7, slots] > 0
        return has_phrases

    def are_groups(self, slots: NDArray[np.int64], width: int) -> NDArray[np.bool_]:
        """(N, width), the numbers of groups that sentences have."""
        num_groups = self.beam_sizes[slots] // self.group_sizes[slots]
        are_groups: NDArray[np.bool_] = np.arange(width) < num_groups[:, None]
        return are_groups

    def forget(self, slots: NDArray[np.int64]) -> None:
        """Clear (N,) slots: no options, no steps left."""
        self.ends_at[slots] = 0
        self.options[:, slots] = 0


def _numbers(search: SearchConfig) -> tuple[float, ...]:
    return (
        search.beam_size,
        num_required(search),
        stopping_rule(search) == "first",
        search.length_penalty,
        *bound_line(search),
        search.max_length,
        search.candidates,
        search.with_alignment,
        search.sampling is not None,
        search.num_groups,
        search.no_repeat_ngram,
    )


def _own_options(request: DecodeRequest) -> tuple[int, bool, int]:
    phrases = request.phrases
    num_tokens = sum(len(path) for phrase in phrases for path in phrase) if phrases else 0
    return len(request.source_ids), bool(request.suppressed_ids), num_tokens


class Ends:
    """The best finished hypotheses of each slot as leaves of its tree, (S, K) each, best first.

    Those of a group of beams stand where its beams do, as many as it has beams.

    Attributes:
        scores: s / n^α; −inf where there is none.
        num_missed: Phrases that it misses, which goes before the score.
        positions: Of the step that ended it.
        rows: The row that it extends.
        log_probs: What EOS contributed.
    """

    def __init__(self, num_slots: int, width: int) -> None:
        self._leaves = np.zeros((num_slots, width, 5))  # so that all of it is sorted at once
        self._leaves[..., 0] = -np.inf
        self.scores, self.num_missed, self.positions, self.rows, self.log_probs = (
            self._leaves[..., column] for column in range(5)
        )

    def add(
        self,
        slots: NDArray[np.int64],
        scores: NDArray[np.float64],
        num_missed: NDArray[np.int64],
        *,
        positions: NDArray[np.int64],
        report: Report,
        beam_sizes: NDArray[np.int64],
        group_sizes: NDArray[np.int64] | None = None,
    ) -> NDArray[np.float64]:
        """Keep those among the best K of their sentences, or groups; of equals what came first.

        Fewer missed phrases go before a better score.

        Args:
            slots: (N,) whose candidates ended.
            scores: (N, K) of the best candidates, −inf where one did not end.
            num_missed: (N, K).
            positions: (N,) of the step.
            report: The step's.
            beam_sizes: (N,).
            group_sizes: (N,); None where no sentence's beams are divided.

        Returns:
            (N, K) scores that are kept.
        """
        width = scores.shape[1]
        leaves = np.empty((len(slots), 2 * width, 5))
        leaves[:, :width] = self._leaves[slots]
        leaves[:, width:, 0] = scores
        leaves[:, width:, 1] = num_missed
        leaves[:, width:, 2] = positions[:, None]
        leaves[:, width:, 3] = report.end_rows[slots, :width]
        leaves[:, width:, 4] = report.end_log_probs[slots, :width]
        every = leaves[..., 0]
        nothing_last = np.where(every == -np.inf, MAX_PHRASES + 1, leaves[..., 1])
        if group_sizes is None:
            order = np.lexsort((-every, nothing_last), axis=1)[:, :width]
        else:
            order = _order_in_groups(-every, nothing_last, group_sizes[:, None])
        kept = leaves[np.arange(len(slots))[:, None], order]
        kept[np.arange(width) >= beam_sizes[:, None], 0] = -np.inf
        self._leaves[slots] = kept
        return kept[..., 0]


def _order_in_groups(
    losses: NDArray[np.float64], num_missed: NDArray[np.float64], group_sizes: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Of (N, 2·K) leaves, those before and new ones, what stands in K places: (N, K)."""
    width = losses.shape[1] // 2
    places = np.arange(width)
    groups = places // group_sizes  # (N, K)
    order = np.lexsort((losses, num_missed, np.tile(groups, 2)), axis=1)
    # Behind twice as many leaves of each group before it; what is in no group is not looked at.
    ranks = np.minimum(places + groups * group_sizes, 2 * width - 1)
    return np.take_along_axis(order, ranks, axis=1)
