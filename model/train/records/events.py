"""TensorBoard events of a run, written while it trains.

Owns the event file in the run's folder, which is made anew from the journal whenever the run
begins or resumes, so that it never shows updates that a resume has dropped. Needs the
extra `train`.
"""

from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Self

from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.record_writer import RecordWriter

from model.train.records.journal import JournalEntry, scalars

EVENTS_FOLDER = "tensorboard"
"""Where, in a run's folder, the events are: `tensorboard --logdir` takes it or any parent."""

_VERSION = "brain.Event:2"  # content of every file's first event


class EventWriter:
    """Writer of journal entries as TensorBoard events, each at once; a context manager.

    TensorBoard's own writer has a thread, which reports what it cannot write when it likes.

    Args:
        folder: Of the run.
        entries: Those before.
        time: Now, in seconds since 1970.

    Raises:
        OSError: The file cannot be written; so does every method.
    """

    def __init__(self, folder: Path, entries: Iterable[JournalEntry], *, time: float) -> None:
        directory = folder / EVENTS_FOLDER
        directory.mkdir(parents=True, exist_ok=True)
        for old in directory.glob("events.out.tfevents.*"):
            old.unlink()
        path = directory / f"events.out.tfevents.{time:017.6f}.dragoman"
        self._file = RecordWriter(path.open("wb"))
        self._add(Event(wall_time=time, step=0, file_version=_VERSION))
        # A TensorBoard that has been watching drops what it read from the files before.
        began = SessionLog(status=SessionLog.START)
        self._add(Event(wall_time=time, step=0, session_log=began))
        for entry in entries:
            self.write(entry)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._file.close()

    def write(self, entry: JournalEntry) -> None:
        """Add an entry's figures at its update."""
        values = [Summary.Value(tag=tag, simple_value=value) for tag, value in scalars(entry)]
        if values:
            summary = Summary(value=values)
            self._add(Event(wall_time=entry.time, step=entry.update, summary=summary))

    def _add(self, event: Event) -> None:
        self._file.write(event.SerializeToString())
        self._file.flush()
