"""Capacity that two priority classes share, so that neither shuts the other out.

Owns the counting and the limits; what is counted (segments, requests) and what is answered where
there is no room is the owner's. Of the whole, each class leaves `reserved_share` to the other: when
one class has filled its part, that class is refused and the other is not.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from service.priority import PRIORITIES, Priority


class Excess(NamedTuple):
    """Excess over a capacity: places that would be taken, and their limit."""

    value: int
    limit: int


class Room:
    """Capacity in places that two classes share.

    Args:
        limit: Places in all.
        reserved_share: Of them, those that each class leaves to the other; in [0, 1).
    """

    def __init__(self, limit: int, *, reserved_share: float = 0.0) -> None:
        self.limit = limit
        self.class_limit = max(1, limit - int(limit * reserved_share))
        self._num: dict[Priority, int] = dict.fromkeys(PRIORITIES, 0)

    def __repr__(self) -> str:
        taken = " ".join(f"{name}={number}" for name, number in self._num.items())
        return f"<Room {taken} of {self.limit}>"

    @property
    def num(self) -> int:
        """Places taken."""
        return sum(self._num.values())

    def num_of(self, priority: Priority) -> int:
        """Places taken by a class."""
        return self._num[priority]

    def excess(
        self, number: int, priority: Priority | None, *, share: float = 1.0
    ) -> Excess | None:
        """What `number` more would pass; None if there is room for them.

        Args:
            number: How many.
            priority: Their class; None, where it is not known yet, asks for the whole alone.
            share: Of the limits, what may be taken.
        """
        taken = [] if priority is None else [(self._num[priority], self.class_limit)]
        taken.append((self.num, self.limit))
        for num, limit in taken:
            if num + number > math.ceil(share * limit):
                return Excess(num + number, math.ceil(share * limit))
        return None

    def take(self, number: int, priority: Priority) -> None:
        """Take places; whether there is room was asked before."""
        self._num[priority] += number

    @contextmanager
    def holding(self, number: int, priority: Priority) -> Iterator[None]:
        """Take places until they are left."""
        self.take(number, priority)
        try:
            yield
        finally:
            self.leave(number, priority)

    def leave(self, number: int, priority: Priority) -> None:
        """Give places back."""
        self._num[priority] -= number
