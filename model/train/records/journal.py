"""The journal of a run: its events and measurements, one JSON line an entry.

Owns `metrics.jsonl`: its format, and that it survives a kill and a resume. Curves, TensorBoard
events and the report are made of it and can be made again. Does not own what is measured.
"""

import json
import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Literal, Self, get_args

from model.errors import TrainingError
from model.train.files import unwritable, write_whole

_LOGGER = logging.getLogger("dragoman.train")

JOURNAL_FILE = "metrics.jsonl"

Event = Literal["start", "progress", "evaluation", "score", "error"]
"""A process begins or resumes a run; losses and speed of some updates; dev scores of one corpus;
final scores of one corpus; the error that ended the process."""

Value = str | float | None
"""What a field may hold; integers are floats without a fraction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalEntry:
    """One event of a run.

    Attributes:
        event: What happened.
        update: Updates done by then.
        time: Seconds since 1970, UTC.
        fields: What is known of it; numbers that are not finite are None.
    """

    event: Event
    update: int
    time: float
    fields: Mapping[str, Value]

    def number(self, name: str) -> float | None:
        """A field that holds a number, or None."""
        value = self.fields.get(name)
        return value if isinstance(value, int | float) else None

    def text(self, name: str) -> str:
        """A field that holds words, or nothing."""
        value = self.fields.get(name)
        return value if isinstance(value, str) else ""


class Journal:
    """The journal of one run, open for writing; a context manager.

    A line is written at once and in one piece. On opening, what a resumed run will do again is
    dropped: entries beyond the update it resumes from, final scores, and a line that was cut
    short when its process was killed, with everything behind it.

    Args:
        folder: Of the run.
        update: Where the run begins or is resumed.
        is_resumed: The run is resumed; otherwise the journal of another run is dropped.

    Raises:
        TrainingError: The file cannot be read or written.
    """

    def __init__(self, folder: Path, *, update: int, is_resumed: bool) -> None:
        self._path = folder / JOURNAL_FILE
        kept = read_journal(folder) if is_resumed else []
        self._entries = [
            entry for entry in kept if entry.update <= update and entry.event != "score"
        ]
        write_whole(self._path, "".join(map(_line, self._entries)).encode())
        try:
            self._file = self._path.open("a", encoding="utf-8", newline="\n")
        except OSError as error:
            raise unwritable(self._path, error) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._file.close()

    @property
    def entries(self) -> Sequence[JournalEntry]:
        """All entries so far, in order."""
        return self._entries

    def append(
        self, event: Event, *, update: int, time: float, fields: Mapping[str, Value]
    ) -> JournalEntry:
        """Append an entry for an event.

        Raises:
            TrainingError: The file cannot be written.
        """
        entry = JournalEntry(event=event, update=update, time=time, fields=finite(fields))
        try:
            self._file.write(_line(entry))
            self._file.flush()
        except OSError as error:
            raise unwritable(self._path, error) from error
        self._entries.append(entry)
        return entry


def read_journal(folder: Path) -> list[JournalEntry]:
    """Entries of a run's journal, none if there is no journal.

    A damaged line and what follows it are left out, with a warning.

    Raises:
        TrainingError: The file is there and cannot be read.
    """
    path = folder / JOURNAL_FILE
    try:
        lines = path.read_bytes().splitlines(keepends=True)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise TrainingError(f"{path}: {error.strerror or error}") from error
    entries = []
    for number, line in enumerate(lines, start=1):
        entry = _parse(line)
        if entry is None:
            fields = {
                "path": str(path),
                "line": number,
                "reason": "it is no whole entry; it is left out, with what follows",
            }
            _LOGGER.warning("journal_damaged", extra={"fields": fields})
            break
        entries.append(entry)
    return entries


def scalars(entry: JournalEntry) -> Iterator[tuple[str, float]]:
    """Points of the curves in an entry: ("loss/train", 3.2) and so on, panel and line.

    Training losses are smoothed as the optimiser sees them, dev losses are not; perplexity, e to
    the loss, is given for these alone.
    """
    if entry.event == "progress":
        line = "train"
        names = ("loss", "learning_rate", "gradient_norm", "tokens_per_second")
    elif entry.event == "evaluation":
        line = entry.text("corpus")
        names = ("loss", "perplexity", "bleu", "chrf")
    else:
        return
    for name in names:
        value = entry.number(name)
        if value is not None:
            yield f"{name}/{line}", value


def finite(fields: Mapping[str, Value]) -> dict[str, Value]:
    """The fields with None for numbers that are not finite, which JSON does not have."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in fields.items()
    }


def perplexity(loss: float) -> float:
    """E to a loss in nats; infinite where a float cannot hold it."""
    try:
        return math.exp(loss)
    except OverflowError:
        return math.inf


def _line(entry: JournalEntry) -> str:
    head = {"event": entry.event, "update": entry.update, "time": entry.time}
    return json.dumps({**head, **entry.fields}, ensure_ascii=False, allow_nan=False) + "\n"


def _parse(line: bytes) -> JournalEntry | None:
    try:
        found = json.loads(line)
    except ValueError:
        return None
    if not line.endswith(b"\n") or not isinstance(found, dict):
        return None
    event, update, time = (found.pop(name, None) for name in ("event", "update", "time"))
    if event not in get_args(Event) or type(update) is not int or not isinstance(time, float):
        return None
    if not all(value is None or isinstance(value, str | float | int) for value in found.values()):
        return None
    return JournalEntry(event=event, update=update, time=time, fields=found)
