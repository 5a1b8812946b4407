"""Capacity that priority classes and owners share, so that none of them shuts the others out.

Owns the counting and the limits; what is counted (segments, requests), whose it is (a checkpoint's)
and what is answered where there is no room is the caller's. Of the whole, each class leaves
`reserved_share` to the other: when one class has filled its part, that class is refused and the
other is not. Likewise each owner leaves `reserved_share` of what the others have not taken: one
that floods has three quarters at a share of a quarter, two have three sevenths each, and there is
always room for one more (dynamic thresholds: Choudhury, Hahne 1998).
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, NamedTuple

from service.priority import PRIORITIES, Priority

Owner = str | int | None
"""The owner of the places; None where there is no other to share with."""


class Excess(NamedTuple):
    """Excess over a capacity: places that would be taken, their limit, and what has that limit."""

    value: int
    limit: int
    of: Literal["class", "owner", "whole"] = "whole"


class Room:
    """Capacity in places that two classes, and any number of owners, share.

    Args:
        limit: Places in all.
        reserved_share: Of them, those that each class leaves to the other, and each owner to the
            others; in [0, 1).

    Attributes:
        limit: Places in all.
        class_limit: Of them, those that a class may have.
        num: Places taken.
    """

    def __init__(self, limit: int, *, reserved_share: float = 0.0) -> None:
        self.limit = limit
        self._reserved_share = reserved_share
        self.class_limit = self._part(limit)
        self._free_for_all = self._part(max(1, limit // 2)) if limit > 1 else 0
        self.num = 0
        self._num: dict[Priority, int] = dict.fromkeys(PRIORITIES, 0)
        self._by_owner: dict[Owner, int] = {}

    def __repr__(self) -> str:
        taken = " ".join(f"{name}={number}" for name, number in self._num.items())
        return f"<Room {taken} of {self.limit}>"

    def excess(
        self,
        number: int,
        priority: Priority | None,
        *,
        owner: Owner = None,
        share: float = 1.0,
    ) -> Excess | None:
        """What `number` more would pass; None if there is room for them.

        Args:
            number: How many.
            priority: Their class; None, where it is not known yet, asks for the whole alone.
            owner: Whose they are.
            share: Of the limits, what may be taken.
        """
        if self.num + number <= share * self._free_for_all:
            return None  # no class and no owner can have come to its part
        if priority is not None and self.class_limit < self.limit:
            value, limit = self._num[priority] + number, math.ceil(share * self.class_limit)
            if value > limit:
                return Excess(value, limit, "class")
        if owner is not None:
            own = self._by_owner.get(owner, 0)
            part = self._part(self.limit - self.num + own)
            if part < self.limit and own + number > math.ceil(share * part):
                return Excess(own + number, math.ceil(share * part), "owner")
        value, limit = self.num + number, math.ceil(share * self.limit)
        return Excess(value, limit) if value > limit else None

    def take(self, number: int, priority: Priority, *, owner: Owner = None) -> None:
        """Take places; the caller has checked that there is room."""
        self.num += number
        self._num[priority] += number
        self._by_owner[owner] = self._by_owner.get(owner, 0) + number

    @contextmanager
    def holding(self, number: int, priority: Priority, *, owner: Owner = None) -> Iterator[None]:
        """Take places until they are left."""
        self.take(number, priority, owner=owner)
        try:
            yield
        finally:
            self.leave(number, priority, owner=owner)

    def leave(self, number: int, priority: Priority, *, owner: Owner = None) -> None:
        """Give places back."""
        self.num -= number
        self._num[priority] -= number
        self._by_owner[owner] -= number
        if not self._by_owner[owner]:
            del self._by_owner[owner]

    def _part(self, limit: int) -> int:
        return max(1, limit - int(limit * self._reserved_share))
