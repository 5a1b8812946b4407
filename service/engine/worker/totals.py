"""Totals that the engine counts, and the counters that it reports.

Owns the totals; the gauges are passed in by the lane, which holds the queue and the session.
"""

from bisect import bisect_left

from service.engine.messages import ROWS_BUCKETS, Snapshot


class Totals:
    """Counts since the start; none of them ever goes down."""

    def __init__(self) -> None:
        self.num_received = 0
        self.num_finished = 0
        self.num_cancelled = 0
        self.num_failed = 0
        self.num_target_tokens = 0
        self.num_steps = 0
        self._num_admitted = 0
        self._num_admissions = 0
        self._admit_seconds = 0.0
        self._num_source_tokens = 0
        self._num_padded_source_tokens = 0
        self._step_seconds = 0.0
        self._num_row_steps = 0
        self._rows_per_step = [0] * (len(ROWS_BUCKETS) + 1)

    def count_admission(
        self, source_lengths: list[int], *, num_encoded_tokens: int, seconds: float
    ) -> None:
        """An encoder batch of these lengths, in tokens, took `seconds`.

        Args:
            source_lengths: Without padding.
            num_encoded_tokens: What the network has run over: with padding, where there is any.
            seconds: Of the whole batch.
        """
        self._num_admissions += 1
        self._num_admitted += len(source_lengths)
        self._admit_seconds += seconds
        self._num_source_tokens += sum(source_lengths)
        self._num_padded_source_tokens += num_encoded_tokens

    def count_step(self, num_rows: int, *, seconds: float) -> None:
        """A step over `num_rows` rows took `seconds`."""
        self.num_steps += 1
        self._step_seconds += seconds
        self._num_row_steps += num_rows
        self._rows_per_step[bisect_left(ROWS_BUCKETS, num_rows)] += 1

    def snapshot(
        self,
        *,
        num_waiting: int,
        num_waiting_bulk: int,
        num_rows: int,
        num_slots: int,
        max_rows: int,
        max_slots: int,
    ) -> Snapshot:
        """The totals with these gauges."""
        return Snapshot(
            num_received=self.num_received,
            num_admitted=self._num_admitted,
            num_finished=self.num_finished,
            num_cancelled=self.num_cancelled,
            num_failed=self.num_failed,
            num_admissions=self._num_admissions,
            admit_seconds=self._admit_seconds,
            num_steps=self.num_steps,
            step_seconds=self._step_seconds,
            num_row_steps=self._num_row_steps,
            rows_per_step=tuple(self._rows_per_step),
            num_source_tokens=self._num_source_tokens,
            num_padded_source_tokens=self._num_padded_source_tokens,
            num_target_tokens=self.num_target_tokens,
            num_waiting=num_waiting,
            num_waiting_bulk=num_waiting_bulk,
            num_running=num_slots,
            num_rows=num_rows,
            num_slots=num_slots,
            max_rows=max_rows,
            max_slots=max_slots,
        )
