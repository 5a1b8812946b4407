"""Context of a request: the facts of its log line, metrics and span, never its text."""

from dataclasses import dataclass

from starlette.requests import Request
from starlette.types import Scope

from service.errors import Problem
from service.labels import Served
from service.priority import Priority

PROBES = frozenset({"/health", "/livez", "/readyz", "/metrics"})
"""Paths that are asked every few seconds: an answer as hoped for is worth neither line nor span."""

NO_ANSWER = 499
"""The status in metrics and logs of a request whose client left before its answer."""

_KEY = "dragoman.context"
_TRACE_KEY = "dragoman.trace_id"


@dataclass(slots=True, kw_only=True)
class RequestContext:
    """Context of one request: filled in by the handlers, written by the edge.

    Attributes:
        request_id: From X-Request-ID, or made.
        is_head: Only the head of the answer was asked for.
        code: The error's code, if it was one.
        late_status: Of an error that came after the answer had begun; None if there was none.
        num_texts: Texts of a translation request.
        num_characters: Characters of its texts.
        num_segments: Segments they became.
        priority: The class they waited in.
        served: The pair and the checkpoint, once they are known.
        key_name: Of the API key that was used; never the key.
        trace_id: Of the trace that the request belongs to; None where nothing is traced.
        over_limit: Why it is refused unless a key comes with its body; None if it is not.
    """

    request_id: str
    is_head: bool = False
    code: str | None = None
    late_status: int | None = None
    num_texts: int | None = None
    num_characters: int | None = None
    num_segments: int | None = None
    priority: Priority | None = None
    served: Served | None = None
    key_name: str | None = None
    trace_id: str | None = None
    over_limit: Problem | None = None


def attach_context(scope: Scope, context: RequestContext) -> None:
    """Keep `context` with the request."""
    scope[_KEY] = context


def context_of(request: Request) -> RequestContext:
    """The context that the edge attached."""
    return context_in(request.scope)


def context_in(scope: Scope) -> RequestContext:
    """The same, where there is no request."""
    context = scope[_KEY]
    assert isinstance(context, RequestContext)
    return context


def attach_trace_id(scope: Scope, trace_id: str) -> None:
    """Keep the trace that a request belongs to, for the context that will be attached."""
    scope[_TRACE_KEY] = trace_id


def trace_id_in(scope: Scope) -> str | None:
    """The trace that a request belongs to; None where nothing is traced."""
    trace_id = scope.get(_TRACE_KEY)
    return trace_id if isinstance(trace_id, str) else None
