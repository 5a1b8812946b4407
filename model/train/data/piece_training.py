"""The training of SentencePiece in a process of its own.

It goes on for minutes without asking anybody, in C++. Beside this process it can be stopped at any
moment, and if the system ends it, for want of memory say, that is an error here and no end. Owns
that process. Does not own what the options are.
"""

import json
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress

from model.errors import TrainingError
from model.train.data import piece_worker
from model.train.stopping import ShouldStop, leave_if, until_stopped

_POLL_SECONDS = 0.2


def train_pieces(
    options: Mapping[str, object], lines: Iterable[str], should_stop: ShouldStop
) -> bytes:
    """A SentencePiece model file.

    Args:
        options: Of SentencePiece's trainer, all but where its lines come from and go to; numbers,
            strings and lists of them.
        lines: Text without line feeds.
        should_stop: Asked while lines are handed over, and five times a second from then on.

    Raises:
        StoppedError: `should_stop` said so.
        TrainingError: SentencePiece refuses the text or the options, in its own words; or the
            process was ended.
    """
    command = [sys.executable, "-P", piece_worker.__file__]
    worker = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: S603
    try:
        with suppress(BrokenPipeError):  # it has left already, and says why
            _hand_over(worker, options, until_stopped(lines, should_stop))
        output = _wait(worker, should_stop)
    finally:
        worker.kill()
        worker.wait()
        for pipe in (worker.stdin, worker.stdout):
            assert pipe is not None
            with suppress(BrokenPipeError):  # of lines that nobody reads
                pipe.close()
    if worker.returncode == 0:
        return output
    leave_if(should_stop)  # a signal to all processes may have met the worker while it started
    if worker.returncode == piece_worker.REFUSED:
        raise TrainingError(output.decode())
    raise TrainingError(f"SentencePiece's process was ended by {_end(worker.returncode)}")


def _hand_over(
    worker: "subprocess.Popen[bytes]", options: Mapping[str, object], lines: Iterable[str]
) -> None:
    assert worker.stdin is not None
    worker.stdin.write(json.dumps(options).encode() + b"\n")
    for line in lines:
        worker.stdin.write(line.encode("utf-8") + b"\n")


def _wait(worker: "subprocess.Popen[bytes]", should_stop: ShouldStop) -> bytes:
    while True:
        try:
            output, _ = worker.communicate(timeout=_POLL_SECONDS)
        except subprocess.TimeoutExpired:
            leave_if(should_stop)
        else:
            return output


def _end(status: int) -> str:
    if status > 0:
        return f"an error (status {status})"
    name = signal.Signals(-status).name
    return f"{name}: was there too little memory?" if -status == signal.SIGKILL else name
