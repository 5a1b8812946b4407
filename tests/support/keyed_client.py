"""A server with keys, as an application without an engine: 503 "booting" means that it let in."""

import asyncio
import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
from fastapi import FastAPI

from service.access.keys import ApiKey
from service.app import create_app
from service.front import Front
from service.settings import Settings

ALICE, ADMIN, WRONG = (f"{name}-{'k' * 40}" for name in ("alice", "admin", "wrong"))
TEXT = {"q": "A cat.", "source": "en", "target": "zh"}
NATIVE = {"texts": "A cat.", "target": "zh"}
LET_IN = (503, "booting")


def key_line(name: str, key: str, **fields: int | bool) -> str:
    """The line of a keys file that a key has."""
    return ApiKey(name=name, sha256=sha256(key.encode()).digest(), **fields).line()  # type: ignore[arg-type]


class Client:
    """Sends to one application, each request from a given address."""

    def __init__(self, front: Front | None = None, **settings: object) -> None:
        self.app: FastAPI = create_app(
            Settings(checkpoint=Path("none"), **settings),  # type: ignore[arg-type]
            front=front,
            clock=lambda: 0.0,
        )

    def send(
        self,
        path: str = "/translate",
        *,
        method: str = "POST",
        key: str | None = None,
        address: str = "203.0.113.7",
        headers: Mapping[str, str] | None = None,
        **content: object,
    ) -> httpx.Response:
        async def scenario() -> httpx.Response:
            transport = httpx.ASGITransport(app=self.app, client=(address, 4711))
            given = dict(headers or {})
            if key is not None:
                given["authorization"] = f"Bearer {key}"
            async with httpx.AsyncClient(transport=transport, base_url="http://a") as client:
                return await client.request(method, path, headers=given, **content)  # type: ignore[arg-type]

        return asyncio.run(scenario())


def outcome(reply: httpx.Response) -> tuple[int, str]:
    """The status and the code of an answer that is an error."""
    return reply.status_code, reply.json()["code"]


def send_unread(app: FastAPI, **headers: str) -> tuple[int, dict[str, object]]:
    """Status and content of an answer that must come without a byte of the body."""
    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    async def receive() -> dict[str, object]:
        raise AssertionError("the body was asked for")

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/translate",
        "raw_path": b"/translate",
        "query_string": headers.pop("query", "").encode(),
        "headers": [(name.replace("_", "-").encode(), headers[name].encode()) for name in headers],
        "client": ("203.0.113.7", 4711),
    }
    asyncio.run(app(scope, receive, send))  # type: ignore[arg-type]
    return sent[0]["status"], json.loads(sent[1]["body"])
