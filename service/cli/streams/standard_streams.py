"""Standard input, output and error: closed, full, in another encoding, or no longer read."""

import io
import os
import sys

_STREAMS = ("stdin", "stdout", "stderr")


def open_streams() -> list[str]:
    """Make the standard streams ones that a command can work with.

    Closed ones become /dev/null: else the next file that is opened would get their number, and
    with it what a library prints. Text goes out as UTF-8 whatever the locale says, as it comes in;
    of names that are no text, the bytes.

    Returns:
        Names of those that were closed.
    """
    closed = [name for name in _STREAMS if getattr(sys, name) is None]
    for name in closed:
        number = _STREAMS.index(name)
        _to_nowhere(number)
        mode = "w" if number else "r"
        setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", closefd=False))
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="surrogateescape")
    return closed


def close_output() -> None:
    """Discard what is still to be printed.

    What stays in Python's buffer would be tried, and fail, once more when the process ends.
    """
    _to_nowhere(sys.stdout.fileno())


def _to_nowhere(number: int) -> None:
    nowhere = os.open(os.devnull, os.O_RDWR)
    if nowhere != number:
        os.dup2(nowhere, number)
        os.close(nowhere)
