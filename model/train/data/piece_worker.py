"""SentencePiece's training as a program of its own, which `model.train.data.piece_training` starts.

Reads options as a line of JSON and then lines of text, UTF-8, from standard input, and writes the
model to standard output; or, with exit status `REFUSED`, SentencePiece's error message. Imports
nothing of this package, so that it can be run as a file.
"""

import contextlib
import ctypes
import io
import json
import signal
import sys
from collections.abc import Iterator

import sentencepiece

REFUSED = 3
_PR_SET_PDEATHSIG = 1


def main() -> int:
    """Train once; the exit status."""
    for number in (signal.SIGINT, signal.SIGTERM):  # for the parent process, which ends this one
        signal.signal(number, signal.SIG_IGN)
    with contextlib.suppress(AttributeError):  # Linux alone: end with the parent process
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    options = json.loads(sys.stdin.buffer.readline())
    output = io.BytesIO()
    status = 0
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=_lines(), model_writer=output, **options
        )
    except OSError as error:
        output, status = io.BytesIO((error.strerror or str(error)).encode()), REFUSED
    except RuntimeError as error:
        output, status = io.BytesIO(str(error).encode()), REFUSED
    sys.stdout.buffer.write(output.getvalue())
    sys.stdout.buffer.flush()
    return status


def _lines() -> Iterator[str]:
    for line in sys.stdin.buffer:
        yield line.removesuffix(b"\n").decode("utf-8")


if __name__ == "__main__":
    sys.exit(main())
