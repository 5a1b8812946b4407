"""Bodies that are still arriving, and their end when the server leaves.

Owns the time that one body has. A request whose body is not there yet is not accepted, so that a
drain refuses it at once and does not wait for it.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from service.errors import draining


class Arrivals:
    """Bodies that are being read."""

    def __init__(self) -> None:
        self._timeouts: set[asyncio.Timeout] = set()
        self._is_over = False

    def __repr__(self) -> str:
        return f"Arrivals({len(self._timeouts)}{', over' if self._is_over else ''})"

    @property
    def is_over(self) -> bool:
        """Whether the server leaves."""
        return self._is_over

    @asynccontextmanager
    async def within(self, seconds: float) -> AsyncIterator[None]:
        """Time limit for one body to arrive.

        Raises:
            TimeoutError: It took longer.
            RequestError: A 503: the server leaves.
        """
        if self._is_over:
            raise draining()
        try:
            async with asyncio.timeout(seconds) as timeout:
                self._timeouts.add(timeout)
                try:
                    yield
                finally:
                    self._timeouts.discard(timeout)
        except TimeoutError:
            if self._is_over:
                raise draining() from None
            raise

    def end(self) -> None:
        """Refuse those that are still arriving, and all that would begin to."""
        self._is_over = True
        now = asyncio.get_running_loop().time()
        for timeout in self._timeouts:
            if not timeout.expired():
                timeout.reschedule(now)
