import errno
import logging
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from model.errors import TrainingError
from model.train.records.events import EventWriter
from model.train.records.journal import read_journal
from model.train.records.recorder import RunRecorder
from support.logged import events_of


class Minutes:
    """A clock that goes up by half a minute whenever it is read."""

    def __init__(self) -> None:
        self._now: Iterator[int] = iter(range(0, 30_000_000, 30))

    def __call__(self) -> float:
        return float(next(self._now))


def test_journal_events_and_curves_are_written_while_a_run_goes_on(tmp_path: Path) -> None:
    with RunRecorder(tmp_path, update=0, is_resumed=False, clock=Minutes()) as recorder:
        recorder.note("progress", update=1, fields={"loss": 2.0})
        assert len(read_journal(tmp_path)) == 1
        assert len(list((tmp_path / "tensorboard").iterdir())) == 1
        recorder.draw_if_due()
        assert (tmp_path / "curves.png").exists()


def test_curves_are_drawn_once_a_minute_at_most(tmp_path: Path) -> None:
    with RunRecorder(tmp_path, update=0, is_resumed=False, clock=lambda: 7.0) as recorder:
        recorder.note("progress", update=1, fields={"loss": 2.0})
        recorder.draw_if_due()
        assert not (tmp_path / "curves.png").exists()
        assert recorder.draw()
        assert (tmp_path / "curves.png").exists()


def test_without_the_extra_a_run_is_recorded_and_what_is_missing_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("model.train.records.events", "model.train.records.curves"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    for name in ("tensorboard", "tensorboard.compat.proto.event_pb2", "matplotlib.axes"):
        monkeypatch.setitem(sys.modules, name, None)  # an import of it fails
    with (
        caplog.at_level(logging.WARNING),
        RunRecorder(tmp_path, update=0, is_resumed=False, clock=Minutes()) as recorder,
    ):
        recorder.note("progress", update=1, fields={"loss": 2.0})
        recorder.draw_if_due()
        assert not recorder.draw()
    assert [path.name for path in tmp_path.iterdir()] == ["metrics.jsonl"]
    [(event, fields)] = events_of(caplog)
    assert event == "packages_missing"
    assert fields["missing"] == "tensorboard (live events), matplotlib (curves.png)"
    assert "pip install -e '.[train]'" in str(fields["reason"])


def test_a_picture_that_cannot_be_written_does_not_end_a_run(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "curves.partial").mkdir()
    (tmp_path / "tensorboard").write_text("", encoding="utf-8")
    with (
        caplog.at_level(logging.WARNING),
        RunRecorder(tmp_path, update=0, is_resumed=False, clock=Minutes()) as recorder,
    ):
        recorder.note("progress", update=1, fields={"loss": 2.0})
        assert not recorder.draw()
    assert len(read_journal(tmp_path)) == 1
    assert [event for event, _ in events_of(caplog)] == ["tensorboard_off", "curves_not_drawn"]


def test_events_that_cannot_be_written_are_warned_of_once_and_do_not_end_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with RunRecorder(tmp_path, update=0, is_resumed=False, clock=Minutes()) as recorder:
        monkeypatch.setattr(EventWriter, "write", full)
        for update in (1, 2, 3):
            recorder.note("progress", update=update, fields={"loss": 2.0})
    assert len(read_journal(tmp_path)) == 3
    assert events_of(caplog) == [("tensorboard_ended", {"reason": "No space left on device"})]


def test_events_that_cannot_be_closed_do_not_end_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    leave = EventWriter.__exit__

    def full(*arguments: Any) -> None:
        leave(*arguments)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(EventWriter, "__exit__", full)
    with RunRecorder(tmp_path, update=0, is_resumed=False, clock=Minutes()) as recorder:
        recorder.note("progress", update=1, fields={"loss": 2.0})
    assert events_of(caplog) == [("tensorboard_cut_short", {"reason": "No space left on device"})]


@contextmanager
def full_disk() -> Iterator[None]:
    """The system lets no file become larger than some bytes, pytest's own report among them."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_a_journal_that_cannot_be_written_ends_a_run_with_one_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(
        sys.modules, "model.train.records.events", None
    )  # so that the journal fails first

    def record() -> None:
        with RunRecorder(tmp_path, update=0, is_resumed=False, clock=Minutes()) as recorder:
            recorder.note("progress", update=1, fields={"loss": 2.0})
            with full_disk():
                recorder.note("progress", update=2, fields={"text": "x" * 100})

    with pytest.raises(TrainingError, match=r"metrics\.jsonl: cannot be written: File too large"):
        record()
