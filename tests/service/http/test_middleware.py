import asyncio
import logging

import httpx
import pytest
from prometheus_client import CollectorRegistry
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from service.engine.errors import SegmentFailedError
from service.http.middleware import Edge, log_failure
from service.labels import Served
from service.telemetry.metrics import Metrics
from service.telemetry.request_context import RequestContext, attach_trace_id, context_in

NO_PAIR = {"pair": "none", "checkpoint": "none"}


async def _fine(scope: Scope, receive: Receive, send: Send) -> None:
    await PlainTextResponse("fine")(scope, receive, send)


async def _broken(scope: Scope, receive: Receive, send: Send) -> None:
    raise ValueError("what the user wrote")


async def _broken_late(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    raise ValueError("what the user wrote")


async def _left(scope: Scope, receive: Receive, send: Send) -> None:
    raise asyncio.CancelledError


def _edge(
    app: ASGIApp,
    registry: CollectorRegistry,
    metrics: Metrics | None = None,
    *,
    is_leaving: bool = False,
) -> Edge:
    return Edge(
        app,
        metrics=metrics or Metrics(registry),
        routes=["/known", "/livez"],
        clock=iter([10.0, 10.25] * 9).__next__,
        new_request_id=lambda: "made",
        is_leaving=lambda: is_leaving,
    )


def _get(edge: ASGIApp, path: str, **headers: str) -> httpx.Response:
    async def scenario() -> httpx.Response:
        transport = httpx.ASGITransport(app=edge, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://a") as client:
            return await client.get(path, headers=headers)

    return asyncio.run(scenario())


def _fields(caplog: pytest.LogCaptureFixture, event: str) -> dict[str, object]:
    (record,) = [record for record in caplog.records if record.getMessage() == event]
    fields: dict[str, object] = record.__dict__["fields"]
    return fields


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


def test_a_request_is_counted_timed_and_logged_with_its_id(
    registry: CollectorRegistry, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "dragoman")
    reply = _get(_edge(_fine, registry), "/known?q=secret", **{"x-request-id": "mine"})
    assert reply.headers["x-request-id"] == "mine"
    assert _fields(caplog, "request") == {
        "request_id": "mine",
        "method": "GET",
        "route": "/known",
        "status": 200,
        "seconds": 0.25,
    }
    route = {"route": "/known"}
    assert registry.get_sample_value("dragoman_request_seconds_sum", route) == 0.25


def test_a_request_without_an_id_is_given_one(registry: CollectorRegistry) -> None:
    assert _get(_edge(_fine, registry), "/known").headers["x-request-id"] == "made"


def test_an_unexpected_error_is_a_plain_500_that_is_logged_without_its_message(
    registry: CollectorRegistry, caplog: pytest.LogCaptureFixture
) -> None:
    reply = _get(_edge(_broken, registry), "/known")
    assert reply.status_code == 500
    assert reply.json() == {
        "error": "internal error",
        "code": "internal",
        "value": None,
        "limit": None,
    }
    assert reply.headers["x-request-id"] == "made"
    assert reply.headers["x-content-type-options"] == "nosniff"
    assert _fields(caplog, "unexpected_error") == {"request_id": "made"}
    assert _fields(caplog, "request")["code"] == "internal"
    labels = NO_PAIR | {"route": "/known", "status": "500"}
    assert registry.get_sample_value("dragoman_requests_total", labels) == 1


def test_a_segment_that_failed_is_logged_with_its_reason_and_the_request(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log_failure(
        RequestContext(request_id="made"),
        SegmentFailedError(code="engine_error", message="segment 3: no score"),
    )
    expected = {"request_id": "made", "reason": "segment 3: no score"}
    assert _fields(caplog, "translation_failed") == expected


def test_an_error_after_the_answer_began_sends_no_second_one(
    registry: CollectorRegistry, caplog: pytest.LogCaptureFixture
) -> None:
    sent = []

    async def send(message: object) -> None:
        sent.append(message)

    async def receive() -> dict[str, object]:
        return {"type": "http.disconnect"}

    scope = {"type": "http", "path": "/known", "method": "GET", "headers": []}
    asyncio.run(_edge(_broken_late, registry)(scope, receive, send))
    assert len(sent) == 1
    assert _fields(caplog, "unexpected_error") == {"request_id": "made"}


def test_a_cancelled_request_is_counted_as_one_whose_client_left(
    registry: CollectorRegistry,
) -> None:
    scope = {"type": "http", "path": "/known", "method": "GET", "headers": []}

    async def scenario() -> None:
        await _edge(_left, registry)(scope, asyncio.Future, asyncio.Future)

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(scenario())
    labels = NO_PAIR | {"route": "/known", "status": "499"}
    assert registry.get_sample_value("dragoman_requests_total", labels) == 1
    assert registry.get_sample_value("dragoman_requests_in_progress") == 0


def test_a_probe_that_says_yes_is_logged_only_for_debugging(
    registry: CollectorRegistry, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "dragoman")
    _get(_edge(_fine, registry), "/livez")
    assert caplog.records == []


def test_a_translation_is_logged_and_counted_with_its_pair_its_checkpoint_and_its_trace(
    registry: CollectorRegistry, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "dragoman")
    served = Served(pair="en>de", checkpoint="small")

    async def translated(scope: Scope, receive: Receive, send: Send) -> None:
        context_in(scope).served = served
        await _fine(scope, receive, send)

    metrics = Metrics(registry)
    metrics.pairs_loaded([served])
    edge = _edge(translated, registry, metrics)

    async def traced(scope: Scope, receive: Receive, send: Send) -> None:
        attach_trace_id(scope, "0af7651916cd43dd8448eb211c80319c")
        await edge(scope, receive, send)

    _get(traced, "/known")
    line = _fields(caplog, "request")
    assert (line["pair"], line["checkpoint"]) == ("en>de", "small")
    assert line["trace_id"] == "0af7651916cd43dd8448eb211c80319c"
    labels = {"route": "/known", "status": "200", "pair": "en>de", "checkpoint": "small"}
    assert registry.get_sample_value("dragoman_requests_total", labels) == 1


def test_while_the_server_leaves_every_answer_is_the_last_of_its_connection(
    registry: CollectorRegistry,
) -> None:
    assert _get(_edge(_fine, registry, is_leaving=True), "/known").headers["connection"] == "close"
    assert "connection" not in _get(_edge(_fine, CollectorRegistry()), "/known").headers


def test_a_request_that_the_servers_leaving_cuts_off_gets_a_503(
    registry: CollectorRegistry, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "dragoman.request")
    reply = _get(_edge(_left, registry, is_leaving=True), "/known")
    assert (reply.status_code, reply.json()["code"]) == (503, "cut_off")
    assert reply.headers["connection"] == "close"
    assert int(reply.headers["retry-after"]) > 0
    assert _fields(caplog, "request")["code"] == "cut_off"
