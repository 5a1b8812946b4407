"""Structured logs: one event a line, on standard error, as JSON or as a line for people.

Owns both formats. An event is a constant name plus fields; users' text is never a field, and the
message of an exception is left out because it may quote one: its type and frames are kept. What
other libraries log in sentences is the event `note` with its text.
"""

import json
import logging
import sys
import traceback
from collections.abc import Mapping
from datetime import UTC, datetime
from types import TracebackType
from typing import TextIO

_ExceptionInfo = (
    tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]
)


_ENCODER = json.JSONEncoder(default=str)
_FOREIGN = "note"


class JsonFormatter(logging.Formatter):
    """One event as one line of JSON.

    Its name is the message; fields are passed as `extra={"fields": {…}}`, so that none can shadow
    the log's own names.
    """

    def format(self, record: logging.LogRecord) -> str:
        """The line, without its newline."""
        event, fields = _event(record)
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": event,
            "logger": record.name,
        }
        line.update(fields)
        if record.exc_info:
            line.update(_exception_fields(record.exc_info))
        return _ENCODER.encode(line)


class LineFormatter(logging.Formatter):
    """One event as one line for people: what it begins with, its name, its fields.

    Args:
        prefix: The beginning, in the form of `logging.Formatter`.
    """

    def __init__(self, prefix: str) -> None:
        super().__init__(f"{prefix}%(message)s", datefmt="%H:%M:%S")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  # logging's own name
        """The line without what is told of an exception, and without its newline."""
        event, fields = _event(record)
        if event == _FOREIGN:
            return super().formatMessage(record)
        told = [f"{name}={_shown(value)}" for name, value in fields.items()]
        named = logging.makeLogRecord({**record.__dict__, "message": " ".join([event, *told])})
        return super().formatMessage(named)


def _event(record: logging.LogRecord) -> tuple[str, Mapping[str, object]]:
    """The name and the fields of an event."""
    message = record.getMessage()
    fields = getattr(record, "fields", None)
    known = fields if isinstance(fields, Mapping) else {}
    if message.isidentifier():
        return message, known
    return _FOREIGN, {"text": message, **known}


def _shown(value: object) -> str:
    """A value for people: in quotation marks where it would not be one word."""
    text = str(value)
    return text if text and not set(text) & set(' "\n') else json.dumps(text, ensure_ascii=False)


def _exception_fields(info: _ExceptionInfo) -> dict[str, object]:
    kind, _, trace = info
    frames = traceback.extract_tb(trace)
    return {
        "exception": "" if kind is None else f"{kind.__module__}.{kind.__qualname__}",
        "frames": [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames],
    }


def configure_last_resort() -> None:
    """Write warnings, where no log is configured, as lines for people: those of a command."""
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(LineFormatter("dragoman: "))


def configure_logging(level: str, *, stream: TextIO | None = None) -> None:
    """Write every event of `level` and above to `stream` (standard error) as JSON.

    Uvicorn's progress reports are left out: the server says itself where it listens. So is what
    the form parser says of a form it cannot read: it quotes it, and the client is told.
    """
    handler = logging.StreamHandler(sys.stderr if stream is None else stream)
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(handlers=[handler], level=level.upper(), force=True)
    # What no line says is not found out for it (logging's own how-to, "Optimization").
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    logging._srcfile = None  # noqa: SLF001  # the name by which that page turns off looking for callers
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
    logging.getLogger("python_multipart").setLevel(logging.CRITICAL + 1)
