"""Outcome of a scenario: figures, and the targets that were missed.

Owns the shape that all scenarios share.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(slots=True, kw_only=True)
class Outcome:
    """Of one scenario.

    Attributes:
        figures: What was measured.
        missed: One sentence for every promise that was not kept.
    """

    figures: dict[str, object] = field(default_factory=dict)
    missed: list[str] = field(default_factory=list)

    def expect(self, *, holds: bool, otherwise: str) -> None:
        """Note a promise that was not kept."""
        if not holds:
            self.missed.append(otherwise)


def quantile(values: Sequence[float], share: float) -> float:
    """A quantile, NaN of nothing; it is one of the values."""
    if not values:
        return float("nan")
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def spread(values: Sequence[float]) -> dict[str, float]:
    """Middle and end of some seconds, rounded for a file."""
    if not values:
        return {}
    return {
        "median": round(statistics.median(values), 4),
        "p99": round(quantile(values, 0.99), 4),
        "max": round(max(values), 4),
    }
