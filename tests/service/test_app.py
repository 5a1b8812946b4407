import asyncio
import logging
from collections.abc import Iterable, Iterator
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI
from prometheus_client import CollectorRegistry
from pydantic import SecretStr
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute, Route

from model.errors import DragomanError
from service.app import create_app
from service.engine.errors import ProtocolError, SegmentFailedError
from service.front import Front
from service.http.middleware import Edge
from service.settings import Settings
from service.telemetry.metrics import Metrics

CUT_OFF = "the server left before this was finished"


@pytest.fixture
def app(tmp_path: Path) -> FastAPI:
    return create_app(Settings(checkpoint=tmp_path / "none"), new_request_id=lambda: "made")


def _get(app: FastAPI, path: str) -> httpx.Response:
    async def scenario() -> httpx.Response:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://a") as client:
            return await client.get(path)

    return asyncio.run(scenario())


def _paths(routes: Iterable[BaseRoute]) -> Iterator[str]:
    """Of all routes, those of routers within routers too."""
    for route in routes:
        if isinstance(route, Route):
            yield route.path
        else:
            yield from _paths(vars(route)["original_router"].routes)


def test_an_app_that_was_never_started_is_alive_and_says_it_is_not_ready(app: FastAPI) -> None:
    assert _get(app, "/livez").status_code == 200
    reply = _get(app, "/readyz")
    assert (reply.status_code, reply.json()["code"]) == (503, "booting")
    assert (reply.headers["retry-after"], reply.headers["x-request-id"]) == ("5", "made")


def test_every_route_has_a_name_in_metrics_and_logs(app: FastAPI) -> None:
    edge = next(one for one in app.user_middleware if one.cls is Edge)
    paths = set(_paths(app.routes))
    assert {"/v2/glossaries/{glossary_id}/entries", "/livez"} <= paths
    assert paths <= set(edge.kwargs["routes"])


def test_nothing_of_fastapi_stands_around_the_edge(app: FastAPI) -> None:
    assert isinstance(app.build_middleware_stack(), Edge)


def test_two_apps_share_nothing(tmp_path: Path) -> None:
    apps = [create_app(Settings(checkpoint=tmp_path)) for _ in range(2)]
    _get(apps[0], "/livez")
    first, second = (_get(app, "/metrics").text for app in apps)
    assert 'route="/livez"' in first
    assert 'route="/livez"' not in second


def test_a_redis_that_is_lost_is_told_from_the_first_request_that_counts(tmp_path: Path) -> None:
    nobody = SecretStr("redis://127.0.0.1:9")
    app = create_app(Settings(checkpoint=tmp_path, redis_url=nobody))
    assert "\ndragoman_redis_lost 0.0\n" in _get(app, "/metrics").text
    assert asyncio.run(app.state.shared.limiter.spend("requests", "a", limit=1)) is None
    assert "\ndragoman_redis_lost 1.0\n" in _get(app, "/metrics").text


def test_a_start_that_fails_is_reported_once_and_the_app_says_so(tmp_path: Path) -> None:
    errors: list[DragomanError] = []

    async def scenario() -> httpx.Response:
        failed = asyncio.Event()

        def on_failed(error: DragomanError) -> None:
            errors.append(error)
            failed.set()

        metrics = Metrics(CollectorRegistry())
        front = Front(Settings(checkpoint=tmp_path / "none"), metrics, on_failed=on_failed)
        app = create_app(front=front)
        transport = httpx.ASGITransport(app=app)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url="http://a") as client,
        ):
            await failed.wait()
            return await client.get("/livez")

    reply = asyncio.run(scenario())
    assert (reply.status_code, reply.json()["code"]) == (503, "failed")
    [error] = errors
    assert str(error).startswith(f"there is no checkpoint directory {tmp_path / 'none'};")


@pytest.mark.parametrize(
    ("error", "event", "fields"),
    [
        (
            SegmentFailedError(code="engine_error", message="segment 3: no finite score"),
            "translation_failed",
            {"reason": "segment 3: no finite score"},
        ),
        (ProtocolError("a frame is too large"), "unexpected_error", {}),
        (HTTPException(500), "unexpected_error", {}),
        (ZeroDivisionError(), "unexpected_error", {}),
    ],
)
def test_every_500_has_its_reason_in_the_log_beside_the_request(
    app: FastAPI,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
    event: str,
    fields: dict[str, str],
) -> None:
    @app.get("/broken")
    async def broken() -> None:
        raise error

    assert _get(app, "/broken").status_code == 500
    [record] = [one for one in caplog.records if one.getMessage() == event]
    assert record.levelno == logging.ERROR
    assert vars(record)["fields"] == {"request_id": "made"} | fields
    if not fields:
        assert record.exc_info
        assert record.exc_info[1] is error


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("/v2/broken", {"message": CUT_OFF}),
        ("/broken", {"error": CUT_OFF, "code": "cut_off", "value": None, "limit": None}),
    ],
)
def test_what_the_servers_leaving_cuts_off_is_told_in_the_shape_of_the_contract(
    tmp_path: Path, path: str, told: dict[str, object]
) -> None:
    settings = Settings(checkpoint=tmp_path / "none")
    front = Front(settings, Metrics(CollectorRegistry()))
    app = create_app(front=front)

    @app.get(path)
    async def cut_off() -> None:
        front.arrivals.end()
        raise asyncio.CancelledError

    reply = _get(app, path)
    assert (reply.status_code, reply.json()) == (503, told)
    assert (reply.headers["retry-after"], reply.headers["connection"]) == ("5", "close")


def _send(app: FastAPI, method: str, path: str, **headers: str) -> httpx.Response:
    async def scenario() -> httpx.Response:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://a") as client:
            return await client.request(method, path, headers=headers)

    return asyncio.run(scenario())


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v2/none", 404),
        ("POST", "/v3/style_rules", 404),
        ("PUT", "/v2/translate", 405),
        ("DELETE", "/v2/translate", 405),
    ],
)
def test_what_is_not_there_is_told_in_the_shape_of_the_contract(
    app: FastAPI, method: str, path: str, status: int
) -> None:
    reply = _send(app, method, path)
    assert (reply.status_code, set(reply.json())) == (status, {"message"})
    own = _send(app, method, path.replace("/v2/", "/v1/").replace("/v3/", "/v1/"))
    assert (own.status_code, set(own.json())) == (status, {"error", "code", "value", "limit"})
    assert reply.json()["message"] == own.json()["error"].replace("/v1/", path[:4])
    assert ("allow" in reply.headers) is (status == 405)


_PREFLIGHT = {
    "origin": "https://page.example",
    "access-control-request-method": "POST",
    "access-control-request-headers": "authorization,content-type",
}


def test_no_page_of_another_origin_may_call_it_unless_it_is_named(tmp_path: Path) -> None:
    reply = _send(create_app(Settings(checkpoint=tmp_path)), "OPTIONS", "/translate", **_PREFLIGHT)
    assert reply.status_code == 405
    assert not [name for name in reply.headers if name.startswith("access-control")]
    settings = Settings(checkpoint=tmp_path, cors_origins="https://other.example")  # type: ignore[arg-type]
    reply = _send(create_app(settings), "OPTIONS", "/translate", **_PREFLIGHT)
    assert reply.status_code == 400
    assert "access-control-allow-origin" not in reply.headers


def test_a_named_origin_may_call_it_without_cookies(tmp_path: Path) -> None:
    for origins in ("https://other.example, https://page.example", "*"):
        app = create_app(Settings(checkpoint=tmp_path, cors_origins=origins))  # type: ignore[arg-type]
        reply = _send(app, "OPTIONS", "/translate", **_PREFLIGHT)
        assert reply.status_code == 200
        allowed = {"*", "https://page.example"}
        assert reply.headers["access-control-allow-origin"] in allowed
        assert "authorization" in reply.headers["access-control-allow-headers"].lower()
        assert "x-request-id" in reply.headers
        reply = _send(app, "GET", "/livez", origin="https://page.example")
        assert reply.headers["access-control-allow-origin"] in allowed
        assert "access-control-allow-credentials" not in reply.headers


def test_every_answer_has_the_headers_that_protect_a_browser(app: FastAPI) -> None:
    for method, path in (
        ("GET", "/livez"),
        ("GET", "/docs"),
        ("POST", "/translate"),
        ("GET", "/nowhere"),
        ("DELETE", "/translate"),
    ):
        headers = _send(app, method, path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] == "no-store"
        assert headers["content-security-policy"].startswith("default-src 'none';")
        assert "server" not in headers
