"""TensorBoard events of a run, written while it trains.

Owns the event file in the run's folder, which is made anew from the journal whenever the run
begins or goes on, so that it never shows what a resume took back. Needs the extra `train`.
"""

from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Self

from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter

from model.train.journal import Record, scalars

EVENTS_FOLDER = "tensorboard"
"""Where, in a run's folder, the events are: `tensorboard --logdir` takes it or any parent."""

_FLUSH_SECONDS = 10


class EventWriter:
    """Writes records as events; a context manager.

    Args:
        folder: Of the run.
        records: What happened before.
        time: Now, in seconds since 1970.
    """

    def __init__(self, folder: Path, records: Iterable[Record], *, time: float) -> None:
        directory = folder / EVENTS_FOLDER
        for old in directory.glob("events.out.tfevents.*"):
            old.unlink()
        self._file = EventFileWriter(str(directory), flush_secs=_FLUSH_SECONDS)
        # A TensorBoard that has been watching drops what it read from the files before.
        began = SessionLog(status=SessionLog.START)
        self._file.add_event(Event(wall_time=time, step=0, session_log=began))
        for record in records:
            self.write(record)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._file.close()

    def write(self, record: Record) -> None:
        """Add a record's figures at its update."""
        values = [Summary.Value(tag=tag, simple_value=value) for tag, value in scalars(record)]
        if values:
            summary = Summary(value=values)
            self._file.add_event(Event(wall_time=record.time, step=record.update, summary=summary))
