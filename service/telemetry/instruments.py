"""Instruments whose use costs little: counters and histograms as `prometheus_client` has them.

Owns how a series is found by its labels and how an observation finds its bucket. The library
compares an observation with one bound after another, and some histograms here have a hundred; and
it takes a lock to find a series. Everything else, and what `/metrics` says, is the library's.
"""

from bisect import bisect_left
from typing import Self

import prometheus_client


class Counter(prometheus_client.Counter):
    """Counter of which a known series is found in one look."""

    def labels(self, *labelvalues: object, **labelkwargs: object) -> Self:
        """The series of some values of the labels, made if there is none."""
        known: Self | None = self._metrics.get(labelvalues)  # type: ignore[assignment,arg-type]
        return super().labels(*labelvalues, **labelkwargs) if known is None else known

    def inc(self, amount: float = 1, exemplar: dict[str, str] | None = None) -> None:
        """Count an amount."""
        if exemplar is not None or amount < 0 or not hasattr(self, "_value"):
            super().inc(amount, exemplar)
        else:
            self._value.inc(amount)


class Histogram(prometheus_client.Histogram):
    """Histogram whose observations find their bucket by bisection."""

    def labels(self, *labelvalues: object, **labelkwargs: object) -> Self:
        """The series of some values of the labels, made if there is none."""
        known: Self | None = self._metrics.get(labelvalues)  # type: ignore[assignment,arg-type]
        return super().labels(*labelvalues, **labelkwargs) if known is None else known

    def observe(self, amount: float, exemplar: dict[str, str] | None = None) -> None:
        """Count an amount, in the first bucket that has it."""
        if exemplar is not None:
            super().observe(amount, exemplar)
            return
        self._sum.inc(amount)
        self._buckets[bisect_left(self._upper_bounds, amount)].inc(1)
