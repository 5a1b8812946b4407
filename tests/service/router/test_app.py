"""Probes of a router."""

import asyncio
import json
from typing import Any

import httpx

from service.models.routes.routing import RoutingTable
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
