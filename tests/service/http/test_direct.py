import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest
from fastapi import APIRouter, Depends, FastAPI, Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.types import ASGIApp

from model.errors import InputError
from service.http.direct import DirectRoute, DirectRoutes, endpoints_of


def _unwanted() -> None:
    raise AssertionError("a dependency that only documents was called")


async def _half() -> AsyncIterator[bytes]:
    yield b"half"
    raise InputError("too late", value=1, limit=0)


async def _on_error(request: Request, error: Exception) -> Response:
    return PlainTextResponse(f"{request.url.path}: {error}", 400)


@pytest.fixture(scope="module")
def app() -> FastAPI:
    application, router = FastAPI(), APIRouter()
    documented = APIRouter(prefix="/v1", route_class=DirectRoute)

    @documented.post("/echo", dependencies=[Depends(_unwanted)], summary="Echo")
    async def echo(request: Request) -> Response:
        return PlainTextResponse(await request.body())

    @documented.post("/refuse")
    async def refuse(request: Request) -> Response:
        raise InputError("no", value=len(request.headers), limit=0)

    @documented.post("/half")
    async def half(request: Request) -> Response:
        return StreamingResponse(_half(), headers={"x-path": request.url.path})

    @router.post("/other")
    async def other(request: Request) -> str:
        return request.method

    for one in (documented, router):
        application.include_router(one)
    endpoints = endpoints_of([*documented.routes, *router.routes])
    assert set(endpoints) == {("POST", f"/v1/{name}") for name in ("echo", "refuse", "half")}
    application.add_middleware(DirectRoutes, endpoints=endpoints, on_error=_on_error)
    return application


def _ask(app: ASGIApp, method: str, path: str, *, root_path: str = "") -> httpx.Response:
    async def scenario() -> httpx.Response:
        transport = httpx.ASGITransport(app=app, root_path=root_path)
        async with httpx.AsyncClient(transport=transport, base_url="http://a") as client:
            return await client.request(method, path, content=b"text")

    return asyncio.run(scenario())


def test_an_endpoint_is_called_without_its_dependencies(app: FastAPI) -> None:
    assert _ask(app, "POST", "/v1/echo").text == "text"


def test_a_direct_route_is_documented_like_any_other(app: FastAPI) -> None:
    assert app.openapi()["paths"]["/v1/echo"]["post"]["summary"] == "Echo"


def test_an_error_of_ours_has_its_answer(app: FastAPI) -> None:
    reply = _ask(app, "POST", "/v1/refuse")
    assert (reply.status_code, reply.text) == (400, "/v1/refuse: no")


def test_an_error_after_the_answer_has_begun_is_passed_on(app: FastAPI) -> None:
    with pytest.raises(InputError, match="too late"):
        _ask(app, "POST", "/v1/half")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("POST", "/other", 200), ("GET", "/v1/echo", 405), ("POST", "/v1/echo/", 307)],
)
def test_everything_else_is_answered_as_before(
    app: FastAPI, method: str, path: str, status: int
) -> None:
    assert _ask(app, method, path).status_code == status


def test_below_a_root_path_routes_are_found_as_before(app: FastAPI) -> None:
    with pytest.raises(AssertionError, match="documents"):  # FastAPI calls dependencies
        _ask(app, "POST", "/below/v1/echo", root_path="/below")
