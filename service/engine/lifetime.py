"""Lifetime of the engine process: it ends with its front, not by signals to the process group.

Service managers send SIGTERM to every process of a server at once. Then the front drains, and for
that it needs its engine, which leaves when it is told to or when its socket closes. A front that is
killed takes its engine along, even one that is stopped and reads no socket. Where memory runs out,
an engine that still loads ends before one that serves. Imports no torch: all of this holds before
that is loaded, and for signals from the engine's first instruction.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_FIRST_TO_END = "1000"
"""The highest value of /proc/PID/oom_score_adj; anybody may raise it, and put it back."""
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


@contextmanager
def ended_first(process_id: int) -> Iterator[None]:
    """Block in which the system, when it runs out of memory, ends a child before any other process.

    So an engine that is still loading goes, and not one that serves. Where the system has no such
    thing, or refuses, nothing is changed.

    Args:
        process_id: Of the child.
    """
    file = Path(f"/proc/{process_id}/oom_score_adj")
    try:
        before = file.read_text(encoding="ascii")
        file.write_text(_FIRST_TO_END, encoding="ascii")
    except OSError:
        yield
        return
    try:
        yield
    finally:
        with suppress(OSError):  # it has left
            file.write_text(before, encoding="ascii")


def killed_hint(status: int | None) -> str:
    """What the end of a process suggests, for a message; nothing where it left by itself."""
    is_killed = status == -signal.SIGKILL
    return ", as one does that the system ends for want of memory" if is_killed else ""


def end_with_parent(front_id: int) -> bool:
    """Have the system kill this process when the front's main thread, which started it, ends.

    Linux alone can; elsewhere a closed socket has to do.

    Returns:
        Whether the front is still there: it may have ended before this was asked for.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    return os.getppid() == front_id
