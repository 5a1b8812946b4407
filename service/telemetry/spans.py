"""Spans of a trace: one for a request, one for each segment, with the parts of its time.

Owns names, attributes and times of the spans; needs the extra `otel`. Attributes are counts,
lengths, words from closed lists and the request id: never text, addresses or keys. There is no
global provider, so two servers in one process share nothing.

A request's span continues the client's W3C `traceparent`. A segment's three children, *queue*,
*encode* and *decode*, were measured in the engine, and are made when its answer is there.
"""

import asyncio
import time
from collections.abc import Callable, Collection, Sequence
from threading import Thread

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, SpanKind, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from opentelemetry.util.types import AttributeValue
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.engine.client.submission import SegmentJob
from service.engine.messages import Finished
from service.telemetry.request_context import NO_ANSWER, PROBES, attach_trace_id, context_in
from service.telemetry.route_names import RouteNames
from service.version import distribution_version

MAX_SEGMENTS = 32
"""Of one request, so many segments have spans of their own; all of them are counted."""

_METHODS = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"})
_CLOSE_SECONDS = 5.0
_NANOSECONDS = 1_000_000_000


def otlp_spans() -> "Spans":
    """Spans that are sent to a collector by OTLP over HTTP, as the OTEL_… variables say."""
    about = {"service.name": "dragoman", "service.version": distribution_version()}
    resource = Resource(about).merge(OTELResourceDetector().detect())
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return Spans(provider)


class Spans:
    """Factory of the spans of one server.

    Args:
        provider: Where finished spans go; closed by `close`.
        clock: The monotonic seconds that the engine measures in too.
        wall_clock: Nanoseconds since 1970.
    """

    def __init__(
        self,
        provider: TracerProvider,
        *,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], int] = time.time_ns,
    ) -> None:
        self._provider = provider
        self._tracer = provider.get_tracer("dragoman", distribution_version())
        self._propagator = TraceContextTextMapPropagator()
        self._clock = clock
        self._wall_clock = wall_clock

    def wrap(self, app: Starlette, *, routes: Collection[str]) -> None:
        """Trace the requests of `app`, outside of its other middleware."""
        app.add_middleware(TracedEdge, spans=self, routes=routes)

    def start_request(self, scope: Scope, *, route: str) -> Span:
        """The span of a request that has arrived; the caller ends it."""
        method = scope["method"] if scope["method"] in _METHODS else "_OTHER"
        return self._tracer.start_span(
            f"{'HTTP' if method == '_OTHER' else method} {route}",
            context=self._propagator.extract(Headers(scope=scope)),
            kind=SpanKind.SERVER,
            attributes={"http.request.method": method, "http.route": route},
        )

    def segments_finished(self, jobs: Sequence[SegmentJob], finished: Sequence[Finished]) -> None:
        """Make the spans of a request's segments, under the span that is current."""
        if not trace.get_current_span().is_recording():
            return
        zero = self._wall_clock() - round(self._clock() * _NANOSECONDS)
        for index, (job, answer) in enumerate(zip(jobs[:MAX_SEGMENTS], finished, strict=False)):
            self._add_segment(index, job, answer, zero=zero)

    def _add_segment(self, index: int, job: SegmentJob, answer: Finished, *, zero: int) -> None:
        timings = answer.timings
        arrived = timings.arrived_at_seconds
        admitted = arrived + timings.queue_seconds
        encoded = admitted + timings.encode_seconds
        ended = admitted + timings.decode_seconds
        lengths: dict[str, AttributeValue] = {"dragoman.source_tokens": len(job.request.source_ids)}
        steps: dict[str, AttributeValue] = {
            "dragoman.beam_size": job.request.search.beam_size,
            "dragoman.steps": timings.num_steps,
            "dragoman.target_tokens": len(answer.hypotheses[0].token_log_probs),
        }

        def add(
            name: str,
            begin: float,
            end: float,
            attributes: dict[str, AttributeValue],
            parent: Span | None = None,
        ) -> Span:
            span = self._tracer.start_span(
                name,
                context=None if parent is None else trace.set_span_in_context(parent),
                attributes=attributes,
                start_time=zero + round(begin * _NANOSECONDS),
            )
            span.end(zero + round(end * _NANOSECONDS))
            return span

        segment = add("segment", arrived, ended, {"dragoman.segment": index})
        add("queue", arrived, admitted, {"dragoman.priority": timings.priority}, segment)
        add("encode", admitted, encoded, lengths, segment)
        add("decode", encoded, ended, steps, segment)

    async def close(self) -> None:
        """Send what is left, for a few seconds at most, even to a collector that is gone."""
        closing = Thread(target=self._provider.shutdown, name="spans", daemon=True)
        closing.start()
        await asyncio.to_thread(closing.join, _CLOSE_SECONDS)


class TracedEdge:
    """Middleware outside of the edge: a span for every request but the probes.

    Args:
        app: What answers.
        spans: What makes the span.
        routes: The paths there are; any other is "unmatched".
    """

    def __init__(self, app: ASGIApp, *, spans: Spans, routes: Collection[str]) -> None:
        self._app = app
        self._spans = spans
        self._routes = RouteNames(routes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http" or scope["path"] in PROBES:
            await self._app(scope, receive, send)
            return
        route = self._routes.of(scope["path"])
        status = NO_ANSWER

        async def send_and_note(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        span = self._spans.start_request(scope, route=route)
        attach_trace_id(scope, trace.format_trace_id(span.get_span_context().trace_id))
        try:
            with trace.use_span(span, record_exception=False, set_status_on_exception=False):
                await self._app(scope, receive, send_and_note)
        finally:
            span.set_attributes(_result(scope, status))
            if status >= 500:
                span.set_status(StatusCode.ERROR)
            span.end()


def _result(scope: Scope, status: int) -> dict[str, AttributeValue]:
    """How a request ended, and what it was about in numbers."""
    context = context_in(scope)
    values = {
        "error.type": context.code,
        "dragoman.request_id": context.request_id,
        "dragoman.pair": context.served.pair if context.served else None,
        "dragoman.checkpoint": context.served.checkpoint if context.served else None,
        "dragoman.priority": context.priority,
        "dragoman.texts": context.num_texts,
        "dragoman.characters": context.num_characters,
        "dragoman.segments": context.num_segments,
    }
    return {"http.response.status_code": status} | {
        name: value for name, value in values.items() if value is not None
    }
