"""What is known of a request when it ends: counts for the log line, never its text."""

from dataclasses import dataclass

from starlette.requests import Request
from starlette.types import Scope

from service.engine.scheduler import Priority

_KEY = "dragoman.record"


@dataclass(slots=True, kw_only=True)
class RequestRecord:
    """Filled in by the handlers, written by the edge.

    Attributes:
        request_id: From X-Request-ID, or made.
        code: The error's code, if it was one.
        num_texts: Texts of a translation request.
        num_characters: Characters of its texts.
        num_segments: Segments they became.
        priority: The class they waited in.
        key_name: Of the API key that was used; never the key.
    """

    request_id: str
    code: str | None = None
    num_texts: int | None = None
    num_characters: int | None = None
    num_segments: int | None = None
    priority: Priority | None = None
    key_name: str | None = None


def attach_record(scope: Scope, record: RequestRecord) -> None:
    """Keep `record` with the request."""
    scope[_KEY] = record


def record_of(request: Request) -> RequestRecord:
    """The record that the edge attached."""
    return record_in(request.scope)


def record_in(scope: Scope) -> RequestRecord:
    """The same, where there is no request."""
    record = scope[_KEY]
    assert isinstance(record, RequestRecord)
    return record
