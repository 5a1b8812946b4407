"""Lifetime of the engine process: it ends with its front, not by signals to the process group.

Service managers send SIGTERM to every process of a server at once. Then the front drains, and for
that it needs its engine, which leaves when it is told to or when its socket closes. A front that is
killed takes its engine along, even one that is stopped and reads no socket. Imports no torch: all
of this holds before that is loaded, and for signals from the engine's first instruction.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_PR_SET_PDEATHSIG = 1
_FOR_THE_FRONT = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)


@contextmanager
def signals_held_back() -> Iterator[None]:
    """Block of the front's code in which a started process gets none of the front's signals.

    They wait, blocked, until the new process has said that it ignores them; the front gets its own
    when it leaves.
    """
    previous = signal.pthread_sigmask(signal.SIG_BLOCK, _FOR_THE_FRONT)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, previous)


def leave_signals_to_the_front() -> None:
    """Ignore the signals that the front handles: SIGHUP, SIGINT, SIGTERM."""
    for number in _FOR_THE_FRONT:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _FOR_THE_FRONT)


def end_with_parent(front_id: int) -> bool:
    """Have the system kill this process when the front's main thread, which started it, ends.

    Linux alone can; elsewhere a closed socket has to do.

    Returns:
        Whether the front is still there: it may have ended before this was asked for.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    return os.getppid() == front_id
