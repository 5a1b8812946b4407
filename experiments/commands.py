"""What the scripts beside it share: `dragoman` commands, side by side, and errors in one line.

Owns the processes that a script starts, and that each may end well. Does not own what they do.
"""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from model.errors import DragomanError

DRAGOMAN = (sys.executable, "-m", "service.cli.main")
STOPPED = 130
"""The status of a script that Ctrl-C or SIGTERM ended, and of a training."""


def run_all(commands: Sequence[Sequence[str]], *, program: Sequence[str] = DRAGOMAN) -> None:
    """Run commands side by side; when one fails, or the script is stopped, so are the others.

    A command that is stopped has all the time it needs: a training saves its state.

    Args:
        commands: The words after the program's name.
        program: What they are given to.

    Raises:
        SystemExit: One failed, and the message names it; or the script was stopped (130).
    """
    running: list[subprocess.Popen[bytes]] = []
    with _sigterm_interrupts():
        try:
            for words in commands:
                command = [*program, *words]
                running.append(subprocess.Popen(command))  # noqa: S603  # our own
            while any(process.poll() is None for process in running):
                _check(running, commands)
                time.sleep(0.2)
            _check(running, commands)
        except KeyboardInterrupt:
            raise SystemExit(STOPPED) from None
        finally:
            for process in running:
                process.terminate()  # nothing, where it has ended
            for process in running:
                process.wait()


def _check(running: Sequence["subprocess.Popen[bytes]"], commands: Sequence[Sequence[str]]) -> None:
    for process, words in zip(running, commands, strict=True):
        if status := process.poll():
            raise SystemExit(f"dragoman {' '.join(words)}: exit status {status}")


@contextmanager
def _sigterm_interrupts() -> Iterator[None]:
    """SIGTERM does what Ctrl-C does; by itself it would leave the commands running alone."""
    previous = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


@contextmanager
def one_line_errors() -> Iterator[None]:
    """End the script with an error's message where the library foresaw it.

    Raises:
        SystemExit: With that message.
    """
    try:
        yield
    except DragomanError as error:
        raise SystemExit(str(error)) from error
