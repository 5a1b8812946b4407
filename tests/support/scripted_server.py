"""A server that answers by a list of scripts, and what is asked of it in tests of connections."""

import asyncio
import json
from collections.abc import Awaitable
from contextlib import suppress

from service.errors import draining
from service.http.replies import error_content
from service.router.connection import Asked, BytesBody
from service.router.pool import Pool

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
LEAVES = json.dumps(error_content(draining().problem)).encode()


def refusal_of(body: bytes) -> bytes:
    """A 503 with this body, after which the server closes the connection."""
    return (
        b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\ncontent-length: %d\r\n\r\n%s"
        % (len(body), body)
    )


REFUSAL = refusal_of(LEAVES)
GET = Asked(method=b"GET", target=b"/", headers=((b"host", b"a"),), body=BytesBody())
POST = Asked(
    method=b"POST", target=b"/x?y=1", headers=((b"host", b"a"),), body=BytesBody(data=b"body")
)


async def _request(reader: asyncio.StreamReader) -> bytes:
    """One request's head and body, as far as these tests send any."""
    head = await reader.readuntil(b"\r\n\r\n")
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b": ")
        if name == b"content-length":
            head += await reader.readexactly(int(value))
    return head


class ScriptedServer:
    """A server that answers its requests, over all connections, by a list of scripts."""

    def __init__(self, *answers: bytes | None) -> None:
        self.answers = list(answers)
        self.requests: list[bytes] = []
        self.num_connections = 0
        self.closed = asyncio.Event()
        self.ends: list[asyncio.StreamWriter] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.num_connections += 1
        self.ends.append(writer)
        try:
            while True:
                self.requests.append(await _request(reader))
                answer = self.answers.pop(0)
                if answer is None:
                    return
                writer.write(answer)
                await writer.drain()
                if b"connection: close" in answer:
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()
            self.closed.set()


async def closed(listening: asyncio.Server, ends: list[asyncio.StreamWriter]) -> None:
    """Close a server with its connections; sockets of both ends are closed a turn later."""
    listening.close()
    for writer in ends:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
    for _ in range(3):
        await asyncio.sleep(0)


async def answer_of(pool: Pool, asked: Asked = POST) -> tuple[int, bytes]:
    """Status and body of a group's answer."""
    answer = await pool.ask(asked)
    return answer.status, await answer.read(max_bytes=1000)


def run_bounded(work: Awaitable[None]) -> None:
    """Run a scenario, for half a minute at most."""

    async def bounded() -> None:
        async with asyncio.timeout(30):
            await work

    asyncio.run(bounded())
