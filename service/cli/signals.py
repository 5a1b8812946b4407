"""Signals during a command that has no handlers of its own.

SIGTERM ends it as an error would, so that what it has begun to write is removed, and so does
SIGHUP, of a terminal that is closed. A server takes that as a reload; one that has nothing to
reload yet is not ended by it. Ctrl-C is Python's own
`KeyboardInterrupt`, but not while libraries are imported: some of them swallow it.
"""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

INTERRUPTED = 128 + signal.SIGINT


@contextmanager
def ending_on(*numbers: signal.Signals) -> Iterator[None]:
    """These signals are a `SystemExit` inside the block.

    A hangup that is ignored stays so: `nohup` asks for that.
    """
    ending = [
        number
        for number in numbers
        if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN
    ]
    previous = {number: signal.signal(number, _exit) for number in ending}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


@contextmanager
def outliving_hangups() -> Iterator[None]:
    """SIGHUP does nothing inside the block, until it has a handler there.

    It is handled and not ignored, as programs that are started would ignore it too.
    """
    previous = signal.signal(signal.SIGHUP, lambda *_: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, previous)


@contextmanager
def leaving_at_once() -> Iterator[None]:
    """Ctrl-C ends the process inside the block, in which nothing is begun yet.

    Where it is ignored, as in the background of a shell, it stays so.
    """
    previous = signal.getsignal(signal.SIGINT)
    if previous is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)


def _exit(number: int, _frame: object) -> NoReturn:
    sys.exit(128 + number)
