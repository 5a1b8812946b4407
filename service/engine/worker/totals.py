"""Totals that the engine counts, and the counters that it reports.

Owns the totals; the gauges are passed in by the lane, which holds the queue and the session.
"""

from bisect import bisect_left

from msgspec.structs import asdict

from service.engine.messages import ROWS_BUCKETS, EngineCounters, EngineTotals


class Totals(EngineTotals, kw_only=True):
    """Totals that are counted here, each of the name and meaning that it is reported with."""

    def count_admission(
        self, source_lengths: list[int], *, num_encoded_tokens: int, seconds: float
    ) -> None:
        """An encoder batch of these lengths, in tokens, took `seconds`.

        Args:
            source_lengths: Without padding.
            num_encoded_tokens: What the network has run over: with padding, where there is any.
            seconds: Of the whole batch.
        """
        self.num_admissions += 1
        self.num_admitted += len(source_lengths)
        self.admit_seconds += seconds
        self.num_source_tokens += sum(source_lengths)
        self.num_padded_source_tokens += num_encoded_tokens

    def count_step(self, num_rows: int, *, seconds: float) -> None:
        """A step over `num_rows` rows took `seconds`."""
        self.num_steps += 1
        self.step_seconds += seconds
        self.num_row_steps += num_rows
        place = bisect_left(ROWS_BUCKETS, num_rows)
        counts = self.rows_per_step
        self.rows_per_step = (*counts[:place], counts[place] + 1, *counts[place + 1 :])

    def counters(
        self,
        *,
        num_waiting: int,
        num_waiting_bulk: int,
        num_rows: int,
        num_slots: int,
        max_rows: int,
        max_slots: int,
    ) -> EngineCounters:
        """The totals with these gauges."""
        return EngineCounters(
            **asdict(self),
            num_waiting=num_waiting,
            num_waiting_bulk=num_waiting_bulk,
            num_running=num_slots,
            num_rows=num_rows,
            num_slots=num_slots,
            max_rows=max_rows,
            max_slots=max_slots,
        )
