"""Probes of a router, and what it says while it leaves."""

import asyncio
import json
from contextlib import suppress
from typing import Any

import httpx
import pytest
from starlette.routing import Route

from service.models.routes.routing import RoutingTable
from service.router.app import build_app
from service.router.directory import Directory, GroupState
from service.router.groups import Group
from service.router.process import Router
from service.settings import Settings


def test_a_router_that_drains_is_alive_and_not_ready() -> None:
    async def scenario() -> None:
        group = Group(name="west", host="127.0.0.1", port=9)
        router = Router(Settings(detection="off"), [group], announce=lambda _: None)
        states = (GroupState(name="west", has_answered=True),)
        router._watch.directory = Directory(groups=states, table=RoutingTable([]))
        transport = httpx.ASGITransport(app=router._uvicorn.config.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://a") as client:

            async def ask(path: str) -> tuple[int, dict[str, Any]]:
                reply = await client.get(path)
                assert ("retry-after" in reply.headers) == (reply.status_code == 503)
                return reply.status_code, json.loads(reply.text)

            for path in ("/readyz", "/health", "/v1/health"):
                status, told = await ask(path)
                assert (status, told["status"]) == (200, "ok")
            await router._leave()
            for path in ("/readyz", "/health", "/v1/health"):
                status, told = await ask(path)
                assert (status, told["code"]) == (503, "draining")
            assert await ask("/livez") == (200, {"status": "ok"})

    asyncio.run(scenario())


def test_a_method_or_a_path_that_there_is_not_is_refused_in_the_shape_of_every_error() -> None:
    async def ask(method: str, path: str) -> tuple[int, dict[str, Any]]:
        sent: list[Any] = []

        async def receive() -> Any:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        group = Group(name="west", host="127.0.0.1", port=9)
        router = Router(Settings(detection="off"), [group], announce=lambda _: None)
        scope = {"type": "http", "method": method, "path": path, "raw_path": path.encode()}
        scope |= {"query_string": b"", "headers": [], "client": None}
        await router._uvicorn.config.app(scope, receive, send)
        return sent[0]["status"], json.loads(sent[1]["body"])

    for method, path, status, code in (
        ("TRACE", "/", 405, "method_not_allowed"),
        ("TRACE", "/livez", 405, "method_not_allowed"),
        ("OPTIONS", "*", 404, "not_found"),
    ):
        found, told = asyncio.run(ask(method, path))
        assert (found, told.get("code")) == (status, code)
        assert told.keys() == {"error", "code", "value", "limit"}
    found, told = asyncio.run(ask("TRACE", "/v2/translate"))
    assert (found, told.keys()) == (405, {"message"})


CUT_OFF = "the server left before this was finished"
DRAINING = "the server is shutting down"


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("/translate", {"error", "code", "value", "limit"}),
        ("/translate_file", {"error", "code", "value", "limit"}),
        ("/v1/translate", {"error", "code", "value", "limit"}),
        ("/v2/translate", {"message"}),
        ("/v2/document", {"message"}),
        ("/v3/glossaries", {"message"}),
    ],
)
def test_a_router_that_leaves_says_so_in_the_shape_of_the_contract(
    path: str, names: set[str]
) -> None:
    async def scenario() -> None:
        router = Router(
            Settings(detection="off", grace_seconds=0.01),
            [Group(name="west", host="127.0.0.1", port=9)],
            announce=lambda _: None,
        )
        states = (GroupState(name="west", has_answered=True),)
        router._watch.directory = Directory(groups=states, table=RoutingTable([]))
        asked, last = asyncio.Event(), asyncio.Event()

        async def hang(*_: object, **__: object) -> Any:
            asked.set()
            await last.wait()

        async def ask() -> httpx.Response:
            transport = httpx.ASGITransport(app=router._uvicorn.config.app)
            async with httpx.AsyncClient(transport=transport, base_url="http://a") as client:
                return await client.request("POST", path, content=b"{}")

        routes = [Route(path, hang, methods=["POST"])]
        router._uvicorn.config.app._app = router._counted(build_app(routes))
        begun = asyncio.ensure_future(ask())
        await asked.wait()
        await router._leave()
        replies = {DRAINING: await ask()}
        begun.cancel()  # as uvicorn does when the time is over
        with suppress(asyncio.CancelledError):
            replies[CUT_OFF] = await begun
        for message, reply in replies.items():
            told = reply.json()
            assert (reply.status_code, set(told)) == (503, names)
            assert told.get("message", told.get("error")) == message
            assert (reply.headers["retry-after"], reply.headers["connection"]) == ("5", "close")
        assert set(replies) == {DRAINING, CUT_OFF}

    asyncio.run(scenario())
