"""Processes of a measurement: what they say, and that they end, each waited for a limited time.

Owns lines that are read from a process, the address in a server's first line, and its end. A
process that hangs is an error of the measurement, and never its end.
"""

import os
import re
import select
import subprocess
import time
from typing import IO

START_SECONDS = 300.0
"""For a server to say where it listens, its weights read and packed."""
STOP_SECONDS = 60.0
_CHUNK = 1 << 16


class Lines:
    """Lines that a process says.

    Args:
        stream: A pipe that nobody else reads.
    """

    def __init__(self, stream: IO[str] | IO[bytes]) -> None:
        self._descriptor = stream.fileno()
        self._found = bytearray()

    def next(self, seconds: float) -> str:
        """The next line with its end; what there is of it, or nothing, once the pipe is closed.

        Args:
            seconds: That it may take.

        Raises:
            TimeoutError: There was no whole line within this time.
        """
        deadline = time.monotonic() + seconds
        while b"\n" not in self._found:
            left = max(0.0, deadline - time.monotonic())
            if not select.select([self._descriptor], [], [], left)[0]:
                raise TimeoutError(f"no line within {seconds:g} s")
            if not (chunk := os.read(self._descriptor, _CHUNK)):
                break
            self._found += chunk
        line, end, rest = self._found.partition(b"\n")
        self._found = rest
        return (line + end).decode()


def address_of(process: "subprocess.Popen[str]", seconds: float = START_SECONDS) -> str | None:
    """The address in a server's first line; None where it says none, or nothing for so long."""
    assert process.stdout is not None
    try:
        found = re.search(r"http://\S+", Lines(process.stdout).next(seconds))
    except TimeoutError:
        return None
    return found[0] if found else None


def end(
    process: "subprocess.Popen[str] | subprocess.Popen[bytes]", seconds: float = STOP_SECONDS
) -> None:
    """Ask a process to end, and insist if it has not after so long."""
    process.terminate()
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
