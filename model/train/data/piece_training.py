"""The training of SentencePiece in a process of its own.

It takes minutes of C++ that cannot be interrupted. As another process it can be stopped at any
moment, and if the system ends it, for lack of host memory for example, this process gets an error
and goes on. Owns that process. Does not own the options.
"""

import json
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress

from model.errors import TrainingError
from model.train.data import piece_worker
from model.train.stopping import ShouldStop, raise_if_stopped, until_stopped

_POLL_SECONDS = 0.2


def train_pieces(
    options: Mapping[str, object], lines: Iterable[str], should_stop: ShouldStop
) -> bytes:
    """A SentencePiece model file.

    Args:
        options: Of SentencePiece's trainer, all but where its lines come from and go to; numbers,
            strings and lists of them.
        lines: Text without line feeds.
        should_stop: Checked while lines are written, and five times a second from then on.

    Raises:
        StoppedError: `should_stop` returned true.
        TrainingError: SentencePiece refuses the text or the options, in its own words; or the
            process was ended.
    """
    command = [sys.executable, "-P", piece_worker.__file__]
    worker = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: S603
    try:
        with suppress(BrokenPipeError):  # it has ended already, and its output has the reason
            _hand_over(worker, options, until_stopped(lines, should_stop))
        output = _wait(worker, should_stop)
    finally:
        worker.kill()
        worker.wait()
        for pipe in (worker.stdin, worker.stdout):
            assert pipe is not None
            with suppress(BrokenPipeError):  # the worker has ended and reads no more lines
                pipe.close()
    if worker.returncode == 0:
        return output
    raise_if_stopped(should_stop)  # it may have got a signal sent to all processes
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
            raise_if_stopped(should_stop)
        else:
            return output


def _end(status: int) -> str:
    if status > 0:
        return f"an error (status {status})"
    name = signal.Signals(-status).name
    return f"{name}: was there too little memory?" if -status == signal.SIGKILL else name
