"""Stopping in the middle of work that takes long: text is prepared, dev text scored, a run ended.

Owns the question, how often it is asked, and what is raised. Does not own signals, which are the
command's, nor the stop between two updates (`model.train.loop.trainer`).
"""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")

ShouldStop = Callable[[], bool]
"""Whether to stop; once it has said so it goes on saying so."""

LINES_AT_ONCE = 10_000
"""How many lines pass between two questions: less than a second of any work on them."""


class StoppedError(Exception):
    """Work was asked to stop and did, leaving nothing half done.

    Not a `DragomanError`: nothing is wrong, and nobody adds the place of a key to it.
    """


def never() -> bool:
    """Work that nobody can stop asks this."""
    return False


def leave_if(should_stop: ShouldStop) -> None:
    """Ask once.

    Raises:
        StoppedError: `should_stop` said so.
    """
    if should_stop():
        raise StoppedError


def until_stopped(lines: Iterable[T], should_stop: ShouldStop) -> Iterator[T]:
    """The same lines; asks before the first one and then every `LINES_AT_ONCE`.

    Raises:
        StoppedError: `should_stop` said so.
    """
    for number, line in enumerate(lines):
        if number % LINES_AT_ONCE == 0:
            leave_if(should_stop)
        yield line
