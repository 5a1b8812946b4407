"""Structured logs: one JSON object a line, on standard error.

Owns the format. A line is a constant event name plus fields; users' text is never a field, and
the message of an exception is left out because it may quote one: its type and frames are kept.
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


class JsonFormatter(logging.Formatter):
    """One log record as one line of JSON.

    Fields are passed as `extra={"fields": {…}}`, so that none can shadow a record's own names.
    """

    def format(self, record: logging.LogRecord) -> str:
        """The line, without its newline."""
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            "logger": record.name,
        }
        fields = getattr(record, "fields", None)
        if isinstance(fields, Mapping):
            line.update(fields)
        if record.exc_info:
            line.update(_exception_fields(record.exc_info))
        return _ENCODER.encode(line)


def _exception_fields(info: _ExceptionInfo) -> dict[str, object]:
    kind, _, trace = info
    frames = traceback.extract_tb(trace)
    return {
        "exception": "" if kind is None else f"{kind.__module__}.{kind.__qualname__}",
        "frames": [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames],
    }


def configure_logging(level: str, *, stream: TextIO | None = None) -> None:
    """Write every record of `level` and above to `stream` (standard error) as JSON.

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
