"""Standard input, output and error: closed, full, slow, in another encoding, or no longer read."""

import io
import os
import select
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_STREAMS = ("stdin", "stdout", "stderr")


def open_streams() -> list[str]:
    """Make the standard streams ones that a command can work with.

    Closed ones become /dev/null: else the next file that is opened would get their number, and
    with it what a library prints. Text goes out as UTF-8 whatever the locale says, as it comes in;
    of names that are no text, the bytes. All of it goes out, or an `OSError` says why not: the
    interpreter's own stream forgets the rest of a short write where nothing is buffered
    (PYTHONUNBUFFERED), and fails where a pipe that does not block is full.

    Returns:
        Names of those that were closed.
    """
    closed = [name for name in _STREAMS if getattr(sys, name) is None]
    for name in closed:
        number = _STREAMS.index(name)
        _to_nowhere(number)
        mode = "w" if number else "r"
        setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", closefd=False))
    if sys.stdout is sys.__stdout__ and isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout = _whole(sys.stdout)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="surrogateescape")
    return closed


class _Patient(io.FileIO):
    """A file that waits for room to write; what is short is the caller's to go on with."""

    def write(self, data: "ReadableBuffer", /) -> int:
        """Write at least one byte, waited for; the number of bytes written.

        Raises:
            OSError: There is no room and never will be, or nobody reads.
        """
        while (num_bytes := super().write(data)) is None:
            select.select([], [self], [])
        return num_bytes


def _whole(stream: io.TextIOWrapper) -> io.TextIOWrapper:
    """A stream to the same file that writes all it is given; every line at once if the old did."""
    stream.flush()
    is_unbuffered = isinstance(stream.buffer, io.RawIOBase)
    buffered = io.BufferedWriter(_Patient(stream.fileno(), "wb", closefd=False))
    is_by_line = stream.line_buffering or is_unbuffered
    return io.TextIOWrapper(buffered, stream.encoding, line_buffering=is_by_line)


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
