"""Counts of the last minutes in this process, in constant time and bounded memory.

Owns what is asked of counts, here or in Redis, under the names that `limits` has for it; that
library is imported with Redis alone, as it takes a tenth of a second. What counts here has the same
approximation as its storage in Redis: the window before this one counts by the part of it that the
last `expiry` seconds still cover. The library's own memory storage is not used because every hit
walks over every counter there is, on the event loop.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from math import floor
from typing import Protocol

MAX_COUNTERS = 100_000


class Windows(Protocol):
    """Sliding windows, wherever they are counted."""

    async def acquire_sliding_window_entry(
        self, key: str, limit: int, expiry: int, amount: int = 1
    ) -> bool:
        """Count `amount` hits if `limit` allows them all."""

    async def get_sliding_window(self, key: str, expiry: int) -> tuple[int, float, int, float]:
        """Hits and remaining seconds of the previous window, and of the current one."""


@dataclass(slots=True)
class _Counter:
    """Hits in window number `index` and in the one before."""

    index: int
    current: int = 0
    previous: int = 0

    def move_to(self, index: int) -> None:
        if index != self.index:
            self.previous = self.current if index == self.index + 1 else 0
            self.current = 0
            self.index = index


class LocalWindows:
    """Sliding windows in memory.

    When there are more than `max_counters`, those that were not used for longest are forgotten.

    Args:
        clock: Seconds, monotonic.
        max_counters: Most counters that are kept.
    """

    def __init__(self, clock: Callable[[], float], *, max_counters: int = MAX_COUNTERS) -> None:
        self._clock = clock
        self._max_counters = max_counters
        self._counters: OrderedDict[str, _Counter] = OrderedDict()

    def __len__(self) -> int:
        return len(self._counters)

    async def acquire_sliding_window_entry(
        self, key: str, limit: int, expiry: int, amount: int = 1
    ) -> bool:
        """Count `amount` hits if `limit` allows them all."""
        previous, previous_ttl, current, _ = await self.get_sliding_window(key, expiry)
        if floor(previous * previous_ttl / expiry) + current + amount > limit:
            return False
        self._counters[key].current += amount
        return True

    async def get_sliding_window(self, key: str, expiry: int) -> tuple[int, float, int, float]:
        """Hits and remaining seconds of the previous window, and of the current one.

        A window of `expiry` seconds weighs for as long again, so it remains for up to twice.
        """
        index, seconds_in = divmod(self._clock(), expiry)
        counter = self._counters.get(key)
        if counter is None:
            counter = self._counters[key] = _Counter(int(index))
            if len(self._counters) > self._max_counters:
                self._counters.popitem(last=False)
        self._counters.move_to_end(key)
        counter.move_to(int(index))
        seconds_left = expiry - seconds_in
        return counter.previous, seconds_left, counter.current, seconds_left + expiry
