"""What the host knows of a grid: who is where, what every step did, which searches are over.

Owns the history of all rows, finished hypotheses and the end of each search, in arrays: a step
costs the host a few operations however many sentences run, and Python is spent on what ends. No
tensor.
"""

from bisect import insort
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from model.decode.backends.cuda.search import Report
from model.decode.scoring import bound_line, hypothesis_score, running_bounds, stop_threshold
from model.phrases import num_missed
from model.request import DecodeRequest, Hypothesis

EMPTY = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Launched:
    """Who took part in a step, and where they stood.

    Attributes:
        slot_ids: (S,) int64, the session's name of the sentence in each slot, or `EMPTY`.
        positions: (S,) int64, tokens each had been fed before.
    """

    slot_ids: NDArray[np.int64]
    positions: NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class _End:
    """A finished hypothesis as a leaf of the sentence's tree, and the phrases that it misses."""

    score: float
    position: int
    row: int
    log_prob: float
    num_missed: int = 0


@dataclass(slots=True, kw_only=True)
class _Sentence:
    """A running sentence and the best ends of it, best first."""

    slot_id: int
    slot: int
    request: DecodeRequest
    ends: list[_End] = field(default_factory=list)


class Ledger:
    """Sentences by slot."""

    def __init__(self, *, num_slots: int, num_columns: int, width: int) -> None:
        """An empty grid of S slots, T columns and K rows."""
        history = (num_columns, num_slots, width)
        self._tokens = np.zeros(history, dtype=np.int32)
        self._parents = np.zeros(history, dtype=np.int32)
        self._sources = np.zeros(history, dtype=np.int32)
        self._log_probs = np.zeros(history, dtype=np.float64)
        self._slot_ids = np.full(num_slots, EMPTY, dtype=np.int64)
        self._positions = np.zeros(num_slots, dtype=np.int64)
        self._prefix_lengths = np.ones(num_slots, dtype=np.int64)
        self._thresholds = np.zeros(num_slots)
        self._penalties = np.zeros(num_slots)
        self._bound_lines = np.zeros((2, num_slots))
        self._ends_at = np.zeros(num_slots, dtype=np.int64)  # the position behind the cap
        self._is_poisoned = np.zeros(num_slots, dtype=np.bool_)
        self._sentences: dict[int, _Sentence] = {}

    @property
    def is_idle(self) -> bool:
        """No sentence is running."""
        return not self._sentences

    @property
    def running(self) -> list[DecodeRequest]:
        """What runs."""
        return [sentence.request for sentence in self._sentences.values()]

    def num_covered(self) -> int:
        """Slots from the first to the last that is in use."""
        return int(np.flatnonzero(self._slot_ids != EMPTY)[-1]) + 1

    def has_steps_left(self) -> bool:
        """Whether anybody has not yet been launched up to the cap."""
        is_used = self._slot_ids != EMPTY
        return bool((self._positions[is_used] < self._ends_at[is_used]).any())

    def longest_past(self) -> int:
        """Positions of the longest past, the next one included."""
        return int(self._positions[self._slot_ids != EMPTY].max()) + 1

    def add(self, slot_id: int, request: DecodeRequest) -> int:
        """Give a sentence the lowest free slot."""
        slot = int(np.flatnonzero(self._slot_ids == EMPTY)[0])
        self._slot_ids[slot] = slot_id
        self._positions[slot] = 0
        self._prefix_lengths[slot] = len(request.prefix_ids)
        self._thresholds[slot] = stop_threshold(request.search, [])
        self._penalties[slot] = request.search.length_penalty
        self._bound_lines[:, slot] = bound_line(request.search)
        self._ends_at[slot] = len(request.prefix_ids) + request.search.max_length - 1
        self._is_poisoned[slot] = False
        self._sentences[slot_id] = _Sentence(slot_id=slot_id, slot=slot, request=request)
        return slot

    def remove(self, slot_id: int) -> int:
        """Forget a sentence and return its slot."""
        slot = self._sentences.pop(slot_id).slot
        self._slot_ids[slot] = EMPTY
        return slot

    def launch(self, num_slots: int) -> Launched:
        """Everybody among the first slots takes part in a step."""
        launched = Launched(
            slot_ids=self._slot_ids[:num_slots].copy(),
            positions=self._positions[:num_slots].copy(),
        )
        self._positions[:num_slots] += self._slot_ids[:num_slots] != EMPTY
        return launched

    def read(self, report: Report, launched: Launched) -> list[int]:
        """Take note of a step.

        Args:
            report: What it did; of slots that have changed hands since, nothing counts.
            launched: Who took part.

        Returns:
            The sentences whose running hypotheses cannot matter any more, by id.
        """
        num_slots = len(launched.slot_ids)
        is_there = launched.slot_ids != EMPTY
        is_there &= launched.slot_ids == self._slot_ids[:num_slots]
        slots = np.flatnonzero(is_there)
        positions = launched.positions[slots]
        self._tokens[positions, slots] = report.tokens[slots]
        self._parents[positions, slots] = report.parents[slots]
        self._sources[positions, slots] = report.sources[slots]
        self._log_probs[positions, slots] = report.log_probs[slots]
        self._is_poisoned[slots] |= np.isnan(report.end_scores[slots, 0])  # NaN ranks first
        ended = np.nonzero(report.ends & is_there[:, None])
        for slot, position, score, row, log_prob in zip(
            ended[0].tolist(),
            launched.positions[ended[0]].tolist(),
            report.end_scores[ended].tolist(),
            report.end_rows[ended].tolist(),
            report.end_log_probs[ended].tolist(),
            strict=True,
        ):
            self._end(slot, position=position, score=score, row=row, log_prob=log_prob)
        num_generated = positions - self._prefix_lengths[slots] + 2  # after this step
        bounds = running_bounds(
            report.best[slots],
            num_generated,
            lines=self._bound_lines[:, slots],
            penalties=self._penalties[slots],
        )
        is_over = (num_generated >= 1) & (bounds <= self._thresholds[slots])
        return [int(slot_id) for slot_id in launched.slot_ids[slots[is_over]]]

    def _end(self, slot: int, *, position: int, score: float, row: int, log_prob: float) -> None:
        """Keep a hypothesis that ended, if it is among the sentence's K best.

        Args:
            slot: Where its sentence is.
            position: Of the step that ended it.
            score: Sum of log probabilities.
            row: The row it extends.
            log_prob: What EOS contributed.
        """
        sentence = self._sentences[int(self._slot_ids[slot])]
        search = sentence.request.search
        length = position - len(sentence.request.prefix_ids) + 2
        score = hypothesis_score(score, length, search.length_penalty)
        ends = sentence.ends
        is_full = len(ends) == search.beam_size
        if is_full and score <= ends[-1].score and not ends[-1].num_missed:
            return
        end = _End(score=score, position=position, row=row, log_prob=log_prob)
        if length == search.max_length and sentence.request.phrases:
            end = replace(end, num_missed=self._hypothesis(sentence, end).num_missed)
        insort(ends, end, key=lambda kept: (kept.num_missed, -kept.score))
        del ends[search.beam_size :]
        self._thresholds[slot] = stop_threshold(search, [kept.score for kept in ends])

    def is_poisoned(self, slot_id: int) -> bool:
        """Whether a number of the sentence was none (NaN)."""
        return bool(self._is_poisoned[self._sentences[slot_id].slot])

    def hypotheses(self, slot_id: int) -> tuple[Hypothesis, ...]:
        """The finished hypotheses that were asked for, best first."""
        sentence = self._sentences[slot_id]
        wanted = sentence.ends[: sentence.request.search.num_hypotheses]
        return tuple(self._hypothesis(sentence, end) for end in wanted)

    def _hypothesis(self, sentence: _Sentence, end: _End) -> Hypothesis:
        """Walk from a leaf back to the prefix."""
        slot, search = sentence.slot, sentence.request.search
        past = slice(len(sentence.request.prefix_ids) - 1, end.position)
        nodes = zip(
            self._tokens[past, slot].tolist(),
            self._log_probs[past, slot].tolist(),
            self._parents[past, slot].tolist(),
            self._sources[past, slot].tolist(),
            strict=True,
        )
        tokens, log_probs, sources = [], [end.log_prob], []
        row = end.row
        for of_tokens, of_log_probs, of_parents, of_sources in reversed(list(nodes)):
            tokens.append(of_tokens[row])
            log_probs.append(of_log_probs[row])
            row = of_parents[row]
            sources.append(of_sources[row])
        token_ids = tuple(reversed(tokens))
        return Hypothesis(
            token_ids=token_ids,
            score=end.score,
            token_log_probs=tuple(reversed(log_probs)),
            is_truncated=len(tokens) == search.max_length - 1,
            alignment=tuple(reversed(sources)) if search.with_alignment else None,
            num_missed=num_missed(sentence.request.phrases, token_ids),
        )

    def check_integrity(self) -> None:
        """Assert that slots and sentences agree."""
        used = {int(slot_id) for slot_id in self._slot_ids if slot_id != EMPTY}
        assert used == set(self._sentences)
        for sentence in self._sentences.values():
            assert self._slot_ids[sentence.slot] == sentence.slot_id
