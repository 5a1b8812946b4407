"""Stopping of long work: preparation of text, scoring of dev text, the end of a run.

Owns the check, how often it is made, and the exception. Does not own signals, which are the
command's, nor the stop between two updates (`model.train.loop.trainer`).
"""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")

ShouldStop = Callable[[], bool]
"""Whether to stop; once true, it stays true."""

LINES_AT_ONCE = 10_000
"""Lines between two checks: less than a second of any work on them."""


class StoppedError(Exception):
    """Work was stopped on request, and nothing is left half done.

    Not a `DragomanError`: nothing is wrong, and no key's place is added to it.
    """


def never() -> bool:
    """The check of work that cannot be stopped: always false."""
    return False


def raise_if_stopped(should_stop: ShouldStop) -> None:
    """Check once.

    Raises:
        StoppedError: `should_stop` returned true.
    """
    if should_stop():
        raise StoppedError


def until_stopped(lines: Iterable[T], should_stop: ShouldStop) -> Iterator[T]:
    """The same lines, with a check before the first one and then every `LINES_AT_ONCE`.

    Raises:
        StoppedError: `should_stop` returned true.
    """
    for number, line in enumerate(lines):
        if number % LINES_AT_ONCE == 0:
            raise_if_stopped(should_stop)
        yield line
