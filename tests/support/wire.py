"""A real server with a small application, spoken to over raw sockets."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import uvicorn
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from service.http.passing import PassOn
from service.http.protocol import WireLimits, protocol_factory
from service.http.replies import JsonReply
from service.listening import listen

LIMIT = 2000
LARGE = 2**24
PATIENCE = 30.0
CLOSE = b"connection: close"


class App:
    """Answers at once, after the body, when it is released, or at length."""

    def __init__(self) -> None:
        self.release = asyncio.Event()
        self.num_requests = 0
        self.num_gone = 0
        self.num_waiting_bytes: Callable[[], int] = lambda: 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.num_requests += 1
        request = Request(scope, receive)
        reply: Response = PlainTextResponse(f"fine {scope['path']}")
        if scope["path"] == "/read":
            reply = PlainTextResponse(f"read {len(await request.body())}")
        elif scope["path"] == "/headers":
            await request.body()
            reply = PlainTextResponse(" ".join(sorted(request.headers.keys())))
        elif scope["path"] == "/wait":
            await self.release.wait()
        elif scope["path"] == "/until-gone":
            while (await receive())["type"] != "http.disconnect":
                pass
            self.num_gone += 1
        elif scope["path"] == "/split/200":
            reply = JsonReply({})
            reply.raw_headers.append((b"x-given", b"this\r\ninjected: that"))
        elif scope["path"].startswith(("/whole/", "/parts/")):
            await request.body()
            reply = JsonReply({"path": "größer"}, int(scope["path"][-3:]), {"x-given": "this"})
            if scope["path"].startswith("/parts/"):
                await Response.__call__(reply, scope, receive, send)
                return
        elif scope["path"] == "/piece":
            reply = PlainTextResponse(b"x" * LARGE)
        elif scope["path"] == "/large":
            reply = StreamingResponse(_large())
        elif scope["path"] == "/full":
            reply = StreamingResponse(self._until_it_waits())
        await reply(scope, receive, send)

    async def _until_it_waits(self) -> AsyncIterator[bytes]:
        """As much as the kernel takes, and a little that stays in the server's own buffer."""
        while self.num_waiting_bytes() < 1000:
            yield b"x" * 1024
            await asyncio.sleep(0)


async def until(condition: Callable[[], object]) -> None:
    """Wait for what the server tells nobody."""
    while not condition():  # noqa: ASYNC110
        await asyncio.sleep(0.01)


async def _large() -> AsyncIterator[bytes]:
    for _ in range(LARGE // 65_536):
        yield b"x" * 65_536


@dataclass
class Served:
    port: int
    app: App
    server: uvicorn.Server
    refused: Counter[str]

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port)

    async def exchange(self, *parts: bytes) -> bytes:
        """Everything that comes back until the server closes."""
        reader, writer = await self.connect()
        for part in parts:
            writer.write(part)
            await asyncio.sleep(0)
        try:
            return await reader.read()
        except ConnectionResetError:
            return b""
        finally:
            writer.close()

    async def fling(self, parts: list[bytes]) -> bytes:
        """As `exchange`, but our half is closed when everything is sent."""
        reader, writer = await self.connect()
        try:
            for part in parts:
                writer.write(part)
                await asyncio.sleep(0.001)
            writer.write_eof()
            return await reader.read()
        except (OSError, RuntimeError):  # reset; uvloop says so by the latter
            return b""
        finally:
            writer.close()

    async def until_left(self) -> None:
        await until(lambda: not self.server.server_state.connections)


@asynccontextmanager
async def serving_app(
    pass_on: PassOn | None = None, *, idle_timeout_seconds: float = 5.0, **limits: float
) -> AsyncIterator[Served]:
    wire = {"max_header_bytes": LIMIT, "header_timeout_seconds": PATIENCE, "max_connections": 50}
    app = App()
    refused: Counter[str] = Counter()
    config = uvicorn.Config(
        app,
        http=protocol_factory(
            WireLimits(**wire | limits),  # type: ignore[arg-type]
            lambda reason: refused.update([reason]),
            pass_on,
        ),
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=idle_timeout_seconds,  # type: ignore[arg-type]  # any number
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    app.num_waiting_bytes = lambda: sum(
        connection.transport.get_write_buffer_size()
        for connection in server.server_state.connections
    )
    listener = listen("127.0.0.1", 0)
    serving = asyncio.create_task(server._serve([listener]))
    await until(lambda: server.started)
    try:
        yield Served(port=listener.getsockname()[1], app=app, server=server, refused=refused)
    finally:
        server.should_exit = True
        await serving


def get(path: str = "/", *headers: bytes) -> bytes:
    return b"\r\n".join([f"GET {path} HTTP/1.1".encode(), b"host: a", *headers, b"", b""])


def problem_of(answer: bytes) -> tuple[int, str]:
    """Status and code of one refusal; it has the headers of every answer."""
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"\r\nx-content-type-options: nosniff" in head
    assert b"\r\nconnection: close" in head
    assert f"content-length: {len(body)}".encode() in head
    content = json.loads(body)
    assert set(content) == {"error", "code", "value", "limit"}
    return int(head.split()[1]), content["code"]
