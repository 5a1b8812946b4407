import asyncio
import gzip
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode
from prometheus_client import CollectorRegistry

from service.app import create_app
from service.front import Front
from service.settings import Settings
from service.telemetry.metrics import Metrics
from service.telemetry.spans import MAX_SEGMENTS, Spans
from support.running_server import running_server

TRACE_ID = "0af7651916cd43dd8448eb211c80319c"
PARENT_ID = "b7ad6b7169203331"
SENTENCE = "The cat sees the river."

Ask = Callable[[httpx.AsyncClient], Coroutine[Any, Any, None]]


def _traceparent(*, is_sampled: bool) -> dict[str, str]:
    return {"traceparent": f"00-{TRACE_ID}-{PARENT_ID}-0{int(is_sampled)}"}


@pytest.fixture(scope="module")
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture(scope="module")
def spans_of(
    served_checkpoint: Path, exporter: InMemorySpanExporter
) -> Iterator[Callable[[Ask], list[ReadableSpan]]]:
    """Asks an application with a real engine; the spans that come of it, oldest first."""
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    settings = Settings(checkpoint=served_checkpoint, num_threads=1, device="cpu")
    with asyncio.Runner() as runner:
        ready = asyncio.Event()
        spans = Spans(provider)
        front = Front(
            settings,
            Metrics(CollectorRegistry()),
            on_ready=lambda _: ready.set(),
            on_finished=spans.segments_finished,
        )
        app = create_app(front=front, spans=spans)
        lifespan = app.router.lifespan_context(app)

        async def start() -> None:
            await lifespan.__aenter__()
            await ready.wait()

        async def ask(question: Ask) -> None:
            transport = httpx.ASGITransport(app=app)
            async with httpx.AsyncClient(transport=transport, base_url="http://a") as client:
                await question(client)

        def spans_of(question: Ask) -> list[ReadableSpan]:
            exporter.clear()
            runner.run(ask(question))
            return sorted(exporter.get_finished_spans(), key=lambda span: span.start_time or 0)

        runner.run(start())
        yield spans_of
        runner.run(lifespan.__aexit__(None, None, None))


def _named(spans: list[ReadableSpan], name: str) -> list[ReadableSpan]:
    return [span for span in spans if span.name == name]


def _nanoseconds(span: ReadableSpan) -> tuple[int, int]:
    assert span.start_time is not None
    assert span.end_time is not None
    return span.start_time, span.end_time


async def _translate_two(client: httpx.AsyncClient) -> None:
    body = {"q": [SENTENCE, "A dog runs."], "source": "en", "target": "zh"}
    headers = _traceparent(is_sampled=True) | {"x-request-id": "mine"}
    reply = await client.post("/translate", json=body, headers=headers)
    assert reply.status_code == 200


def test_a_requests_span_continues_the_clients_trace_and_counts(spans_of) -> None:
    [request] = _named(spans_of(_translate_two), "POST /translate")
    assert request.kind is SpanKind.SERVER
    assert f"{request.context.trace_id:032x}" == TRACE_ID
    assert f"{request.parent.span_id:016x}" == PARENT_ID
    assert dict(request.attributes) == {
        "http.request.method": "POST",
        "http.route": "/translate",
        "http.response.status_code": 200,
        "dragoman.request_id": "mine",
        "dragoman.pair": "en>zh-Hans",
        "dragoman.checkpoint": "tiny",
        "dragoman.priority": "interactive",
        "dragoman.texts": 2,
        "dragoman.characters": len(SENTENCE) + len("A dog runs."),
        "dragoman.segments": 2,
    }


def test_the_log_line_of_a_traced_request_names_its_trace(
    spans_of, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "dragoman.request")
    [request] = _named(spans_of(_translate_two), "POST /translate")
    [line] = [record.__dict__["fields"] for record in caplog.records]
    assert line["trace_id"] == TRACE_ID == f"{request.context.trace_id:032x}"
    assert line["request_id"] == request.attributes["dragoman.request_id"]


def test_a_segments_time_is_its_wait_its_encoding_and_its_steps(spans_of) -> None:
    spans = spans_of(_translate_two)
    [request] = _named(spans, "POST /translate")
    segments = _named(spans, "segment")
    assert [span.attributes["dragoman.segment"] for span in segments] == [0, 1]
    for segment in segments:
        assert segment.parent.span_id == request.context.span_id
        [queue, encode, decode] = (
            next(
                span
                for span in _named(spans, name)
                if span.parent.span_id == segment.context.span_id
            )
            for name in ("queue", "encode", "decode")
        )
        edges = [_nanoseconds(span) for span in (queue, encode, decode)]
        flat = [moment for edge in edges for moment in edge]
        assert flat == sorted(flat)  # one after the other
        assert (flat[0], flat[-1]) == _nanoseconds(segment)
        assert flat[1] == flat[2]
        assert flat[3] == flat[4]
        assert edges[1][0] < edges[1][1]
        assert edges[2][0] < edges[2][1]
        began, ended = _nanoseconds(request)
        assert began <= flat[0]
        assert flat[-1] <= ended
        assert queue.attributes == {"dragoman.priority": "interactive"}
        assert encode.attributes["dragoman.source_tokens"] >= 3
        assert decode.attributes["dragoman.steps"] >= decode.attributes["dragoman.target_tokens"]
    assert len(spans) == 1 + 4 * len(segments)


def test_of_a_long_request_only_the_first_segments_have_spans(spans_of) -> None:
    async def ask(client: httpx.AsyncClient) -> None:
        texts = [SENTENCE] * (MAX_SEGMENTS + 3)
        body = {"texts": texts, "source": "en", "target": "zh-Hans", "priority": "bulk"}
        reply = await client.post("/v1/translate", json=body)
        assert reply.status_code == 200, reply.text

    spans = spans_of(ask)
    [request] = _named(spans, "POST /v1/translate")
    assert request.parent is None
    assert request.attributes["dragoman.segments"] == MAX_SEGMENTS + 3
    assert request.attributes["dragoman.priority"] == "bulk"
    assert len(_named(spans, "decode")) == MAX_SEGMENTS


def test_a_refused_request_has_its_code_and_no_segments(spans_of) -> None:
    async def ask(client: httpx.AsyncClient) -> None:
        await client.post("/translate", json={"q": SENTENCE, "source": "xx", "target": "zh"})
        await client.get(f"/{SENTENCE}")

    refused, unmatched = spans_of(ask)
    assert refused.attributes["http.response.status_code"] == 400
    assert refused.attributes["error.type"] == "unsupported_language"
    assert refused.status.status_code is StatusCode.UNSET  # the client's fault is no error of ours
    assert unmatched.name == "GET unmatched"


def test_what_a_client_leaves_unsampled_and_probes_have_no_spans(spans_of) -> None:
    async def ask(client: httpx.AsyncClient) -> None:
        body = {"q": SENTENCE, "source": "en", "target": "zh"}
        headers = _traceparent(is_sampled=False)
        assert (await client.post("/translate", json=body, headers=headers)).status_code == 200
        for path in ("/health", "/livez", "/readyz", "/metrics"):
            assert (await client.get(path)).status_code == 200

    assert spans_of(ask) == []


def test_no_span_says_what_was_written(spans_of) -> None:
    async def ask(client: httpx.AsyncClient) -> None:
        query = {"q": SENTENCE, "source": "en", "target": "zh", "api_key": "a-secret"}
        reply = await client.post("/translate", params=query)
        assert reply.status_code == 200
        await client.request("MAKEUP", "/translate", headers={"user-agent": "a-secret"})

    for span in spans_of(ask):
        text = span.to_json()
        assert not any(word in text for word in ("cat", "secret", "MAKEUP", "127.0.0.1"))


@contextmanager
def _collector() -> Iterator[tuple[str, list[ExportTraceServiceRequest]]]:
    """An OTLP collector that keeps what it is sent; its address."""
    received: list[ExportTraceServiceRequest] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            received.append(ExportTraceServiceRequest.FromString(body))
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *args: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listener:
        thread = threading.Thread(target=listener.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.server_address[1]}", received
        finally:
            listener.shutdown()
            thread.join()


def test_a_server_sends_its_spans_before_it_leaves(served_checkpoint: Path, tmp_path: Path) -> None:
    with _collector() as (address, received):
        with running_server(
            served_checkpoint,
            tmp_path / "log.jsonl",
            DRAGOMAN_TRACES="otlp",
            OTEL_EXPORTER_OTLP_ENDPOINT=address,
            OTEL_SERVICE_NAME="ours",
        ) as server:
            with server.client() as client:
                body = {"q": SENTENCE, "source": "en", "target": "zh"}
                assert client.post("/translate", json=body).status_code == 200
            server.process.terminate()
            assert server.wait() == 0
        [of_server] = [resource for message in received for resource in message.resource_spans]
        about = {pair.key: pair.value.string_value for pair in of_server.resource.attributes}
        names = [span.name for scope in of_server.scope_spans for span in scope.spans]
    assert about["service.name"] == "ours"
    assert sorted(names) == ["POST /translate", "decode", "encode", "queue", "segment"]
