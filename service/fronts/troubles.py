"""Errors that cross from the owner to a front, and are there what they were.

Owns which errors do, and that any other one is a fault of ours, which says nothing of itself.
"""

from model.errors import DragomanError, InputError
from service.engine.errors import (
    EngineClosedError,
    EngineUnavailableError,
    QueueFullError,
    SegmentFailedError,
)
from service.errors import Problem, RequestError, scalar
from service.fronts.messages import Trouble


def trouble_of(error: BaseException) -> Trouble:
    """An error as a message."""
    match error:
        case RequestError(problem=problem):
            return Trouble(
                kind="request",
                message=problem.message,
                status=problem.status,
                code=problem.code,
                value=problem.value,
                limit=problem.limit,
                retry_after_seconds=problem.retry_after_seconds,
            )
        case QueueFullError():
            return Trouble(
                kind="queue_full",
                message=str(error),
                value=error.value,
                limit=error.limit,
                retry_after_seconds=error.retry_after_seconds,
            )
        case EngineUnavailableError():
            kind = "closed" if isinstance(error, EngineClosedError) else "unavailable"
            return Trouble(kind=kind, message=str(error))
        case SegmentFailedError():
            return Trouble(kind="failed", message=str(error), code=error.code)
        case InputError():
            value, limit = scalar(error.value), scalar(error.limit)
            return Trouble(kind="input", message=str(error), value=value, limit=limit)
        case _:
            return Trouble(kind="internal", message=type(error).__name__)


def error_of(trouble: Trouble) -> Exception:
    """The error that a message was made of."""
    match trouble:
        case Trouble(kind="request"):
            return RequestError(
                Problem(
                    status=trouble.status,
                    code=trouble.code,
                    message=trouble.message,
                    value=trouble.value,
                    limit=trouble.limit,
                    retry_after_seconds=trouble.retry_after_seconds,
                )
            )
        case Trouble(kind="queue_full", value=int(value), limit=int(limit)):
            seconds = trouble.retry_after_seconds or 1.0
            return QueueFullError(value=value, limit=limit, retry_after_seconds=seconds)
        case Trouble(kind="closed" | "unavailable" as kind, message=message):
            return EngineClosedError() if kind == "closed" else EngineUnavailableError(message)
        case Trouble(kind="failed"):
            return SegmentFailedError(code=trouble.code, message=trouble.message)
        case Trouble(kind="input"):
            return InputError(trouble.message, value=trouble.value, limit=trouble.limit)
        case _:
            return DragomanError(f"unexpected {trouble.message} in the owner")
