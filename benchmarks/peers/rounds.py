"""Order and number of rounds, and the figure that stands for many runs; pure, given a clock.

Owns the order within a round, the time budget, medians and percentiles.
"""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

Item = TypeVar("Item")


def rotated(items: Sequence[Item], round_number: int) -> list[Item]:
    """The items, another one first in every round: nobody always follows the same rival."""
    start = round_number % len(items) if items else 0
    return [*items[start:], *items[:start]]


def turns(compared: Sequence[Item], others: Sequence[Item], round_number: int) -> list[Item]:
    """Everybody's turns in a round: who is compared goes one right after the other.

    Another one of them is first in every round, and every second round the others are.
    """
    parts = [rotated(compared, round_number), rotated(others, round_number)]
    first, second = rotated(parts, round_number // 2)
    return [*first, *second]


def median(values: Sequence[float]) -> float:
    """Of one or more values."""
    return float(statistics.median(values))


def percentile(values: Sequence[float], share: int) -> float | None:
    """The value that `share` percent do not exceed, between neighbours linear; None of nothing."""
    if len(values) < 2:
        return float(values[0]) if values else None
    return float(statistics.quantiles(values, n=100, method="inclusive")[share - 1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Time that may be used up.

    Attributes:
        clock: Seconds, monotonic.
        deadline: When it is over, by that clock.
    """

    clock: Callable[[], float]
    deadline: float

    @classmethod
    def of(cls, seconds: float, clock: Callable[[], float]) -> "Budget":
        """So much from now on."""
        return cls(clock=clock, deadline=clock() + seconds)

    def part(self, share: float) -> "Budget":
        """A share of what is left."""
        now = self.clock()
        return Budget(clock=self.clock, deadline=now + share * max(self.deadline - now, 0.0))

    def allows(self, seconds: float) -> bool:
        """Whether so much more would still be within."""
        return self.clock() + seconds <= self.deadline
