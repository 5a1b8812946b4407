"""State of a grid on the host: where sentences are, what steps did, which searches are over.

Owns the history of all rows, finished hypotheses and the end of each search, in arrays: a step
costs the host a few operations however many sentences run, and what ends in a step is traced back
at once. No tensor.

History is a ring of steps, not of positions: everybody takes part in every step, so position p of a
sentence is p steps after its first, and a step is written as it came, without an index.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from model.decode.backends.cuda.search import Report
from model.decode.backends.cuda.searches import Ends, Searches, StepOptions
from model.decode.finished import taken_in_turn
from model.decode.scoring import running_bounds
from model.phrases import num_missed
from model.request import DecodeRequest, Hypothesis

EMPTY = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Launched:
    """Sentences of a step, and the positions that they had.

    Attributes:
        step: Its number.
        slot_ids: (S,) int64, the session's name of the sentence in each slot, or `EMPTY`.
        positions: (S,) int64, tokens each had been fed before.
    """

    step: int
    slot_ids: NDArray[np.int64]
    positions: NDArray[np.int64]


class Ledger:
    """Sentences by slot."""

    def __init__(self, *, num_slots: int, num_columns: int, width: int) -> None:
        """An empty grid of S slots, T columns and K rows."""
        history = (num_columns, num_slots, width)
        self._tokens = np.zeros(history, dtype=np.int32)
        self._parents = np.zeros(history, dtype=np.int32)
        self._sources = np.zeros(history, dtype=np.int32)
        self._log_probs = np.zeros(history, dtype=np.float64)
        self._num_launched = 0
        self._num_read = 0  # steps are read in their order
        self._slot_ids = np.full(num_slots, EMPTY, dtype=np.int64)
        self._positions = np.zeros(num_slots, dtype=np.int64)
        self._starts = np.zeros(num_slots, dtype=np.int64)  # the step that is position 0
        self._thresholds = np.zeros((num_slots, width))  # by group; infinite: over, or none
        self._is_poisoned = np.zeros(num_slots, dtype=np.bool_)
        self._searches = Searches(num_slots)
        self._ends = Ends(num_slots, width)
        self._options: StepOptions | None = None
        self._slots: dict[int, int] = {}
        self._requests: dict[int, DecodeRequest] = {}

    @property
    def is_idle(self) -> bool:
        """No sentence is running."""
        return not self._slots

    @property
    def running(self) -> list[DecodeRequest]:
        """What runs."""
        return list(self._requests.values())

    def num_covered(self) -> int:
        """Slots from the first to the last that is in use."""
        return int(np.flatnonzero(self._slot_ids != EMPTY)[-1]) + 1

    def has_steps_left(self) -> bool:
        """Whether a sentence has not yet been launched up to its cap."""
        return bool((self._positions < self._searches.ends_at).any())

    def last_cap(self) -> int:
        """Position behind the caps of all sentences."""
        return int(self._searches.ends_at.max())

    def longest_past(self) -> int:
        """Positions of the longest past that still counts, the next one included.

        Reading is a step late, so one that is past its cap may be launched once more.
        """
        return int(np.minimum(self._positions, self._searches.ends_at - 1).max()) + 1

    def options(self) -> StepOptions:
        """Options of a step of all running sentences; they change when one joins or leaves."""
        if self._options is None:
            self._options = self._searches.step_options()
        return self._options

    def next_slots(self, num_sentences: int) -> NDArray[np.int64]:
        """The lowest free slots, (N,)."""
        return np.flatnonzero(self._slot_ids == EMPTY)[:num_sentences]

    def add(self, slot_ids: Sequence[int], requests: Sequence[DecodeRequest]) -> NDArray[np.int64]:
        """Give sentences the lowest free slots: (N,)."""
        slots = self.next_slots(len(requests))
        self._slot_ids[slots] = slot_ids
        self._positions[slots] = 0
        self._starts[slots] = self._num_launched
        self._is_poisoned[slots] = False
        self._ends.scores[slots] = -np.inf
        self._searches.write(slots, requests)
        are_groups = self._searches.are_groups(slots, self._thresholds.shape[1])
        self._thresholds[slots] = np.where(are_groups, -np.inf, np.inf)
        self._options = None
        self._slots.update(zip(slot_ids, slots.tolist(), strict=True))
        self._requests.update(zip(slot_ids, requests, strict=True))
        return slots

    def remove(self, slot_ids: Sequence[int]) -> NDArray[np.int64]:
        """Forget sentences and return their slots, (N,)."""
        slots = np.array([self._slots.pop(slot_id) for slot_id in slot_ids], dtype=np.int64)
        for slot_id in slot_ids:
            del self._requests[slot_id]
        self._slot_ids[slots] = EMPTY
        self._positions[slots] = 0
        self._searches.forget(slots)
        self._options = None
        return slots

    def launch(self, num_slots: int) -> Launched:
        """Note of a launched step: all sentences of the first slots take part in it."""
        launched = Launched(
            step=self._num_launched,
            slot_ids=self._slot_ids[:num_slots].copy(),
            positions=self._positions[:num_slots].copy(),
        )
        self._positions[:num_slots] += launched.slot_ids != EMPTY
        self._num_launched += 1
        return launched

    def read(self, report: Report, launched: Launched) -> list[int]:
        """Record a step.

        Args:
            report: What it did; of slots that have changed hands since, nothing counts.
            launched: The sentences that took part.

        Returns:
            Ids of the sentences whose running hypotheses cannot enter the result any more.
        """
        num_slots = len(launched.slot_ids)
        self._num_read = launched.step + 1
        step = launched.step % len(self._tokens)
        self._tokens[step, :num_slots] = report.tokens
        self._parents[step, :num_slots] = report.parents
        self._sources[step, :num_slots] = report.sources
        self._log_probs[step, :num_slots] = report.log_probs
        is_there = launched.slot_ids != EMPTY
        is_there &= launched.slot_ids == self._slot_ids[:num_slots]
        width = self._tokens.shape[2]  # what ranks lower is never an end
        ended = report.ends[:, :width] & is_there[:, None]
        if report.best.shape[1] == 1:
            first_score = report.end_scores[:, 0]  # what is none ranks first
        else:
            first_score = report.end_scores[:, :width].sum(axis=1)
            ended &= ~self._is_column_over(num_slots)
        self._is_poisoned[:num_slots] |= is_there & np.isnan(first_score)
        if ended.any():
            self._end(report, launched, ended)
        over = self._over if report.best.shape[1] == 1 else self._over_in_groups
        return over(report, launched, is_there)

    def _is_column_over(self, num_slots: int) -> NDArray[np.bool_]:
        """(S, K), where the group of the first K candidates is over and runs on for the others."""
        width = self._thresholds.shape[1]
        group = np.arange(width) // self._searches.group_sizes[:num_slots, None]
        thresholds = np.take_along_axis(self._thresholds[:num_slots], group, axis=1)
        is_over: NDArray[np.bool_] = thresholds == np.inf
        return is_over

    def _end(self, report: Report, launched: Launched, ended: NDArray[np.bool_]) -> None:
        """Keep ended candidates, (S, K), among their sentence's best, and raise its threshold."""
        each = np.flatnonzero(ended) // ended.shape[1]  # NumPy is slow to reduce so short an axis
        is_next = np.ones(len(each), dtype=np.bool_)
        np.not_equal(each[1:], each[:-1], out=is_next[1:])
        slots = each[is_next]
        searches, positions = self._searches, launched.positions[slots]
        lengths = (positions - searches.prefix_lengths[slots] + 2).astype(np.float64)
        sums = report.end_scores[slots, : ended.shape[1]].astype(np.float64)
        scores = sums / (lengths ** searches.penalties[slots])[:, None]
        kept = self._ends.add(
            slots,
            np.where(ended[slots], scores, -np.inf),
            self._missed(slots, positions, report, ended[slots]),
            positions=positions,
            report=report,
            beam_sizes=searches.beam_sizes[slots],
            group_sizes=None if report.best.shape[1] == 1 else searches.group_sizes[slots],
        )
        if report.best.shape[1] > 1:
            self._raise_in_groups(slots, kept)
            return
        required = searches.num_required[slots]
        last = kept[np.arange(len(slots)), required - 1]
        is_enough = searches.is_first[slots] & (last > -np.inf)
        self._thresholds[slots, 0] = np.where(is_enough, np.inf, last)

    def _raise_in_groups(self, slots: NDArray[np.int64], kept: NDArray[np.float64]) -> None:
        """The threshold of each group, from the scores (N, K) of its kept hypotheses."""
        searches, width = self._searches, kept.shape[1]
        sizes, required = searches.group_sizes[slots, None], searches.num_required[slots, None]
        places = np.minimum(np.arange(width) * sizes + required - 1, width - 1)
        last = np.take_along_axis(kept, places, axis=1)
        is_enough = searches.is_first[slots, None] & (last > -np.inf)
        before = self._thresholds[slots]
        after = np.where(is_enough, np.inf, last)
        self._thresholds[slots] = np.where(before == np.inf, np.inf, after)

    def _missed(
        self,
        slots: NDArray[np.int64],
        positions: NDArray[np.int64],
        report: Report,
        ended: NDArray[np.bool_],
    ) -> NDArray[np.int64]:
        """Phrases that each of (N, K) that ended misses: none, unless it had to end at the cap."""
        missed = np.zeros(ended.shape, dtype=np.int64)
        is_at_cap = positions == self._searches.ends_at[slots] - 1
        may_miss = is_at_cap & self._searches.has_phrases(slots)
        if not may_miss.any():
            return missed
        sentences, ranks = np.nonzero(ended & may_miss[:, None])
        leaves = slots[sentences]
        rows = report.end_rows[leaves, ranks].astype(np.int64)
        nodes, counts = self._paths(leaves, positions[sentences], rows)
        names, tokens = self._slot_ids[leaves].tolist(), self._tokens.reshape(-1)[nodes].tolist()
        missed[sentences, ranks] = [
            num_missed(self._requests[name].phrases, own[len(own) - count :])
            for name, own, count in zip(names, tokens, counts, strict=True)
        ]
        return missed

    def _over(self, report: Report, launched: Launched, is_there: NDArray[np.bool_]) -> list[int]:
        """Sentences whose running hypotheses cannot enter the result any more."""
        num_slots = len(launched.slot_ids)
        has_end = self._thresholds[:num_slots, 0] > -np.inf
        best = report.best[:, 0]
        slots = np.flatnonzero(is_there & (has_end | (best == -np.inf)))
        searches = self._searches
        num_generated = launched.positions[slots] - searches.prefix_lengths[slots] + 2  # with this
        bounds = running_bounds(
            best[slots].astype(np.float64),
            num_generated,
            lines=searches.bound_lines[:, slots],
            penalties=searches.penalties[slots],
        )
        is_over = (num_generated >= 1) & (bounds <= self._thresholds[slots, 0])
        over: list[int] = launched.slot_ids[slots[is_over]].tolist()
        return over

    def _over_in_groups(
        self, report: Report, launched: Launched, is_there: NDArray[np.bool_]
    ) -> list[int]:
        """`_over` where beams are divided into groups: sentences that are over in every group."""
        num_groups = report.best.shape[1]
        slots = np.flatnonzero(is_there)
        searches = self._searches
        num_generated = (launched.positions[slots] - searches.prefix_lengths[slots] + 2)[:, None]
        bounds = running_bounds(
            report.best[slots].astype(np.float64),
            num_generated,
            lines=searches.bound_lines[:, slots, None],
            penalties=searches.penalties[slots, None],
        )
        thresholds = self._thresholds[slots]
        is_over = (num_generated >= 1) & (bounds <= thresholds[:, :num_groups])
        thresholds[:, :num_groups][is_over] = np.inf
        self._thresholds[slots] = thresholds
        over: list[int] = launched.slot_ids[slots[thresholds.min(axis=1) == np.inf]].tolist()
        return over

    def poisoned(self, slot_ids: Sequence[int]) -> list[bool]:
        """Whether a number of each sentence was none (NaN)."""
        found: list[bool] = self._is_poisoned[[self._slots[name] for name in slot_ids]].tolist()
        return found

    def hypotheses(self, slot_ids: Sequence[int]) -> list[tuple[Hypothesis, ...]]:
        """The requested number of finished hypotheses of each sentence, best first."""
        requests = [self._requests[name] for name in slot_ids]
        slots = np.array([self._slots[name] for name in slot_ids], dtype=np.int64)
        searches = [request.search for request in requests]
        wanted = np.array(
            [s.num_hypotheses if s.num_groups == 1 else s.beam_size for s in searches]
        )
        scores = self._ends.scores[slots]
        is_wanted = (np.arange(scores.shape[1]) < wanted[:, None]) & (scores > -np.inf)
        sentences, ranks = np.nonzero(is_wanted)
        owners = sentences.tolist()
        traced = self._traced([requests[owner] for owner in owners], slots[sentences], ranks)
        if len(owners) == len(searches) and wanted.max() == 1:  # most requests ask for one
            return [(hypothesis,) for hypothesis in traced]
        found: list[list[list[Hypothesis]]] = [[[] for _ in range(s.num_groups)] for s in searches]
        for owner, rank, hypothesis in zip(owners, ranks.tolist(), traced, strict=True):
            found[owner][rank // searches[owner].group_size].append(hypothesis)
        return [
            taken_in_turn(groups, search.num_hypotheses)
            for groups, search in zip(found, searches, strict=True)
        ]

    def _traced(
        self, requests: Sequence[DecodeRequest], slots: NDArray[np.int64], ranks: NDArray[np.int64]
    ) -> Iterator[Hypothesis]:
        """The hypotheses that end in N leaves, each traced to its prefix."""
        ends = self._ends
        rows = ends.rows[slots, ranks].astype(np.int64)
        nodes, counts = self._paths(slots, ends.positions[slots, ranks].astype(np.int64), rows)
        tokens = self._tokens.reshape(-1)[nodes].tolist()
        log_probs = self._log_probs.reshape(-1)[nodes].tolist()
        sources = None
        if any(request.search.with_alignment for request in requests):
            sources = self._sources.reshape(-1)[nodes].tolist()
        scores = ends.scores[slots, ranks].tolist()
        last = ends.log_probs[slots, ranks].tolist()
        for leaf, (request, count) in enumerate(zip(requests, counts, strict=True)):
            search, first = request.search, nodes.shape[1] - count
            token_ids = tuple(tokens[leaf][first:])
            yield Hypothesis(
                token_ids=token_ids,
                score=scores[leaf],
                token_log_probs=(*log_probs[leaf][first:], last[leaf]),
                is_truncated=count == search.max_length - 1,
                alignment=tuple(sources[leaf][first:])
                if sources and search.with_alignment
                else None,
                num_missed=num_missed(request.phrases, token_ids) if request.phrases else 0,
            )

    def _paths(
        self, slots: NDArray[np.int64], positions: NDArray[np.int64], rows: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], list[int]]:
        """Places in the history, (N, T), of what leads to N leaves, and how many each has.

        Args:
            slots: (N,) of the leaves.
            positions: (N,) of the steps that ended them.
            rows: (N,) that they extend.

        Returns:
            Each path stands at the end of its line; what is before it is unused.
        """
        counts = (positions - self._searches.prefix_lengths[slots] + 1).tolist()
        num_steps, num_slots, width = self._tokens.shape
        back = np.arange(max(counts, default=0))[:, None]
        steps = self._starts[slots] + positions - 1 - back  # (T, N)
        nodes = (steps % num_steps * num_slots + slots) * width
        parents = self._parents.reshape(-1)
        for node in nodes:  # from the last token to the first
            node += rows  # noqa: PLW2901  # in place
            rows = parents[node]
        return nodes[::-1].T, counts

    def written(self, slot_id: int) -> list[int]:
        """Tokens behind the prefix of a sentence with one row, as far as was read."""
        slot = self._slots[slot_id]
        first = int(self._searches.prefix_lengths[slot]) - 1
        num_tokens = self._num_read - int(self._starts[slot]) - first
        steps = int(self._starts[slot]) + first + np.arange(max(0, num_tokens))
        tokens: list[int] = self._tokens[steps % len(self._tokens), slot, 0].tolist()
        return tokens

    def check_integrity(self) -> None:
        """Assert that slots and sentences agree, and that no past is longer than the ring."""
        slots = np.flatnonzero(self._slot_ids != EMPTY).tolist()
        assert {int(self._slot_ids[slot]): slot for slot in slots} == self._slots
        assert self._slots.keys() == self._requests.keys()
        assert int(self._positions.max(initial=0)) <= len(self._tokens)
