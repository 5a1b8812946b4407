"""Bodies that are still arriving, and their end when the server leaves.

Owns the time that one body has; one that is there already, as most are, needs none. A request whose
body is not there yet is not accepted, so that a drain refuses it at once and does not wait for it.
"""

import asyncio
from types import TracebackType

from starlette.types import Scope

from service.errors import draining

_KEY = "dragoman.has_arrived"


def note_arrived(scope: Scope) -> None:
    """Note that the whole body of a request is there."""
    scope[_KEY] = True


def has_arrived(scope: Scope) -> bool:
    """Whether it was noted that the whole body of a request is there."""
    return _KEY in scope


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

    def check_open(self) -> None:
        """Return unless the server leaves.

        Raises:
            RequestError: A 503: it does.
        """
        if self._is_over:
            raise draining()

    def within(self, seconds: float) -> "_Arrival":
        """Time limit for one body to arrive.

        Raises:
            TimeoutError: It took longer.
            RequestError: A 503: the server leaves.
        """
        return _Arrival(self, self._timeouts, seconds)

    def end(self) -> None:
        """Refuse those that are still arriving, and all that would begin to."""
        self._is_over = True
        now = asyncio.get_running_loop().time()
        for timeout in self._timeouts:
            if not timeout.expired():
                timeout.reschedule(now)


class _Arrival:
    """The time of one body; every request has one, so it is no generator's context manager."""

    def __init__(self, arrivals: Arrivals, timeouts: set[asyncio.Timeout], seconds: float) -> None:
        self._arrivals = arrivals
        self._timeouts = timeouts
        self._timeout = asyncio.timeout(seconds)

    async def __aenter__(self) -> None:
        """Begin, unless the server leaves."""
        self._arrivals.check_open()
        await self._timeout.__aenter__()
        self._timeouts.add(self._timeout)

    async def __aexit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End; a time that was cut off because the server leaves is a 503."""
        self._timeouts.discard(self._timeout)
        try:
            await self._timeout.__aexit__(error_type, error, traceback)
        except TimeoutError:
            if self._arrivals.is_over:
                raise draining() from None
            raise
