"""SentencePiece in a process of its own: that it can be stopped, and what its end is."""

import io
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import sentencepiece

from model.errors import DataError, TrainingError
from model.train.data import piece_worker
from model.train.data.piece_training import train_pieces
from model.train.stopping import StoppedError, never
from support.tiny_checkpoint import generated_pairs

OPTIONS = {"vocab_size": 60, "model_type": "bpe", "num_threads": 1, "minloglevel": 2}
LINES = [source for source, _ in generated_pairs(50)]


def test_the_model_is_the_one_that_is_trained_here() -> None:
    output = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(LINES), model_writer=output, **OPTIONS
    )
    assert train_pieces(OPTIONS, LINES, never) == output.getvalue()


def test_lines_end_at_line_feeds_alone() -> None:
    lines = [f"{line}\r{line}\x0b{line}\u2028{line}\x85" for line in LINES]
    output = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=output, **OPTIONS
    )
    assert train_pieces(OPTIONS, lines, never) == output.getvalue()


def test_what_sentencepiece_refuses_is_in_its_own_words() -> None:
    with pytest.raises(TrainingError, match="Vocabulary size too high"):
        train_pieces(OPTIONS | {"vocab_size": 100_000}, LINES, never)


def test_an_error_of_the_lines_stays_what_it_is() -> None:
    def lines() -> object:
        yield from LINES
        raise DataError("the text is damaged")

    with pytest.raises(DataError, match="the text is damaged"):
        train_pieces(OPTIONS, lines(), never)  # type: ignore[arg-type]


def worker(folder: Path, monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    """Have another program be started in its place."""
    path = folder / "worker.py"
    path.write_text(f"import os, sys, time\nprint(os.getpid(), file=open('pid', 'w'))\n{code}\n")
    monkeypatch.chdir(folder)
    monkeypatch.setattr(piece_worker, "__file__", str(path))


def test_training_that_takes_for_ever_can_be_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker(tmp_path, monkeypatch, "sys.stdin.read()\ntime.sleep(600)")
    pid = tmp_path / "pid"
    with pytest.raises(StoppedError):  # long before the worker ends or pytest gives up
        train_pieces(OPTIONS, LINES, lambda: pid.exists() and bool(pid.read_text().strip()))
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


def test_a_signal_to_all_processes_is_the_starters_alone() -> None:
    others = _children()

    def lines() -> Iterator[str]:
        yield from LINES[:20]
        (child,) = _children() - others
        while not _ignores(child, signal.SIGTERM):
            pass
        os.kill(child, signal.SIGTERM)
        yield from LINES[20:]

    assert train_pieces(OPTIONS, lines(), never)


def _children() -> set[int]:
    path = Path(f"/proc/self/task/{threading.get_native_id()}/children")
    return {int(child) for child in path.read_text().split()}


def _ignores(process_id: int, number: signal.Signals) -> bool:
    status = Path(f"/proc/{process_id}/status").read_text()
    ignored = next(line for line in status.splitlines() if line.startswith("SigIgn:"))
    return bool(int(ignored.split()[1], 16) >> (number - 1) & 1)


def test_a_worker_that_a_signal_to_all_processes_has_ended_is_a_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker(tmp_path, monkeypatch, f"os.kill(os.getpid(), {signal.SIGTERM})")
    pid = tmp_path / "pid"

    def should_stop() -> bool:
        """The signal is seen here once the worker is gone."""
        return pid.exists() and pid.read_text() != "" and not _runs(int(pid.read_text()))

    with pytest.raises(StoppedError):
        train_pieces(OPTIONS, LINES, should_stop)


def _runs(process_id: int) -> bool:
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (f"os.kill(os.getpid(), {signal.SIGKILL})", "ended by SIGKILL: was there too little"),
        (f"os.kill(os.getpid(), {signal.SIGSEGV})", "ended by SIGSEGV$"),
        ("sys.exit(7)", r"ended by an error \(status 7\)"),
    ],
)
def test_the_end_of_the_process_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, message: str
) -> None:
    worker(tmp_path, monkeypatch, code)
    with pytest.raises(TrainingError, match=message):
        train_pieces(OPTIONS, LINES * 20_000, never)  # more than a pipe holds
