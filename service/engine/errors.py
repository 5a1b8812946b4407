"""Errors between the front and its engine.

Owns the error types of the engine and what they carry. Their HTTP status codes are
`service.errors`; a job that could never fit is a `model.errors.InputError`.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from model.errors import DragomanError


class EngineError(DragomanError):
    """Base of every error of the engine."""


class ProtocolError(EngineError):
    """A frame is too large, cannot be read or comes out of turn."""


class FrontGoneError(EngineError):
    """The front has closed its end of the socket."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortage:
    """Memory that a checkpoint takes at least, and what there was; None if that is not known."""

    needed_bytes: int
    free_bytes: int | None


class CheckpointsError(EngineError):
    """Checkpoints cannot be served; without them the others could be.

    Attributes:
        at_fault: Their places in the configuration, each with its reason.
        shortages: Of those for which there is no memory.
    """

    def __init__(
        self, at_fault: Mapping[int, str], *, shortages: Mapping[int, Shortage] | None = None
    ) -> None:
        self.at_fault = dict(at_fault)
        self.shortages = dict(shortages or {})
        super().__init__("; ".join(dict.fromkeys(at_fault.values())))


class EngineStartError(EngineError):
    """The engine did not become ready.

    Attributes:
        at_fault: Places of checkpoints without which it might have, each with its reason.
        shortages: Of those among them for which there is no memory.
    """

    def __init__(
        self,
        message: str,
        *,
        at_fault: Mapping[int, str] | None = None,
        shortages: Mapping[int, Shortage] | None = None,
    ) -> None:
        self.at_fault = dict(at_fault or {})
        self.shortages = dict(shortages or {})
        super().__init__(message)


class EngineUnavailableError(EngineError):
    """The engine has ended, or takes no more work."""


class EngineClosedError(EngineUnavailableError):
    """The engine was closed with its server before the work was done."""

    def __init__(self) -> None:
        super().__init__("the engine was closed")


class QueueFullError(EngineError):
    """The segments would pass the limit of what may be pending.

    Attributes:
        value: Segments that would have been pending.
        limit: Segments that may be pending.
        retry_after_seconds: When there should be room, from recent throughput; 1 to 30.
    """

    def __init__(self, *, value: int, limit: int, retry_after_seconds: float) -> None:
        self.value = value
        self.limit = limit
        self.retry_after_seconds = retry_after_seconds
        super().__init__(f"{value} segments would be pending; the limit is {limit}")


class SegmentFailedError(EngineError):
    """The engine could not translate a segment.

    Attributes:
        code: Why, as a constant ("engine_error").
    """

    def __init__(self, *, code: str, message: str) -> None:
        self.code = code
        super().__init__(message)
