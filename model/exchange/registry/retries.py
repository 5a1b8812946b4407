"""Retries of downloads: which failures are tried again, and when.

Owns the statuses that pass, the waits between tries, and how often in a row nothing may be gained.
Time is passed in. What is tried is the caller's.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from model.errors import RegistryError, UnreachableError
from model.exchange.registry.transport import Reply

T = TypeVar("T")

_FIRST_WAIT_SECONDS = 1.0
_LONGEST_WAIT_SECONDS = 30.0
_LONGEST_ASKED_SECONDS = 120.0
_PASSING = {408, 425, 429, 500, 502, 503, 504}
_MEANINGS = {
    401: "needs a token: set HF_TOKEN, or the name is wrong",
    403: "is not open to this token, or to none: accept its terms on its page and set HF_TOKEN",
    404: "is not there",
    410: "is not there any more",
    429: "has too many requests",
    500: "has an error of its own",
    502: "is not to be had at the moment",
    503: "is not to be had at the moment",
    504: "is not to be had at the moment",
}


class PassingError(UnreachableError):
    """A failure that may be over soon.

    Attributes:
        wait_seconds: What the server asks to wait; None if it does not say.
    """

    def __init__(self, place: str, problem: str, wait_seconds: float | None = None) -> None:
        self.wait_seconds = wait_seconds
        super().__init__(place, problem)


@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """Tries of one thing.

    Attributes:
        max_tries: Tries in a row that gain nothing.
        sleep: Waits for seconds.
    """

    max_tries: int = 5
    sleep: Callable[[float], None] = time.sleep

    def run(self, attempt: Callable[[], T], gained: Callable[[], int] = lambda: 0) -> T:
        """The result of the first try that succeeds.

        Args:
            attempt: One try.
            gained: How far the tries have come; further than before, and counting begins anew.

        Raises:
            RegistryError: What the last try said; or one that no other try would change.
        """
        failures, furthest = 0, gained()
        while True:
            try:
                return attempt()
            except UnreachableError as error:
                if gained() > furthest:
                    failures, furthest = 0, gained()
                failures += 1
                wait = _wait(error, failures)
                if failures >= self.max_tries or wait is None:
                    raise
            self.sleep(wait)


def check_status(reply: Reply, place: str) -> None:
    """Refuse an answer that is none, and close it.

    Raises:
        PassingError: It may be another one soon.
        RegistryError: It will not.
    """
    if reply.status in {200, 206}:
        return
    reply.close()
    problem = f"{_MEANINGS.get(reply.status, 'is refused')} (status {reply.status})"
    if reply.status in _PASSING:
        raise PassingError(place, problem, _retry_after(reply.headers.get("Retry-After")))
    raise RegistryError(place, problem)


def _retry_after(value: str | None) -> float | None:
    """Seconds of a Retry-After; a date, which needs two clocks that agree, is not looked at."""
    is_seconds = value is not None and value.strip().isascii() and value.strip().isdigit()
    return float(value[:9]) if value is not None and is_seconds else None


def _wait(error: UnreachableError, failures: int) -> float | None:
    """Seconds until the next try; None where the server wants more than is waited."""
    own = min(_FIRST_WAIT_SECONDS * 2.0 ** (failures - 1), _LONGEST_WAIT_SECONDS)
    asked = error.wait_seconds if isinstance(error, PassingError) else None
    if asked is None:
        return own
    return max(asked, own) if asked <= _LONGEST_ASKED_SECONDS else None
