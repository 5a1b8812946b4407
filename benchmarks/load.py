"""Closed-loop clients: each sends its next sentence when the last one is answered.

A bare HTTP/1.1 client over asyncio streams, because the load generator shares its cores with
the server it measures. Loopback only.
"""

import asyncio
import json
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import cycle, islice
from urllib.parse import urlsplit

REPLY_SECONDS = 120.0


@dataclass(slots=True, kw_only=True)
class Level:
    """What one number of clients saw.

    Attributes:
        latencies_seconds: Of every answered request.
        statuses: Answers by status; 0 is a connection that failed.
        wall_seconds: From the first request to the last answer.
        num_characters: Characters of all translations.
    """

    num_clients: int
    latencies_seconds: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    wall_seconds: float = 0.0
    num_characters: int = 0


class Client:
    """One connection that is kept alive; its texts go from English to `target`, to `path`."""

    def __init__(self, url: str, *, target: str = "zh", path: str = "/translate") -> None:
        parts = urlsplit(url)
        if parts.hostname not in ("127.0.0.1", "::1", "localhost") or parts.port is None:
            raise ValueError(f"{url} is not a loopback address with a port")
        self.host = parts.hostname
        self.target = target
        self._port = parts.port
        self._path = path
        self._text_name = "texts" if path.startswith("/v1/") else "q"
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def translate(self, text: str) -> tuple[int, str]:
        """Status and translation of one sentence; of `/v1/` the whole reply."""
        body = json.dumps({self._text_name: text, "source": "en", "target": self.target}).encode()
        head = (
            f"POST {self._path} HTTP/1.1\r\nhost: {self.host}\r\n"
            f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        )
        status, content = await self.exchange(head.encode() + body)
        return status, json.loads(content).get("translatedText", content.decode())

    async def get(self, path: str) -> str:
        """Body of a GET."""
        _, content = await self.exchange(
            f"GET {path} HTTP/1.1\r\nhost: {self.host}\r\n\r\n".encode()
        )
        return content.decode()

    async def close(self) -> None:
        """Close the connection."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None

    async def opened(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """The connection, opened if it is not."""
        if self._streams is None:
            self._streams = await asyncio.open_connection(self.host, self._port)
        return self._streams

    async def exchange(self, data: bytes) -> tuple[int, bytes]:
        """Status and body of the answer to a whole request."""
        _, writer = await self.opened()
        writer.write(data)
        await writer.drain()
        return await self.reply()

    async def reply(self) -> tuple[int, bytes]:
        """Status and body of the next answer."""
        reader, _ = await self.opened()
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        _, found, rest = head.partition(b"content-length:")
        length = int(rest.split(b"\r\n", 1)[0]) if found else 0
        return int(head.split(b" ", 2)[1]), await reader.readexactly(length)


async def run_level(
    url: str,
    texts: Sequence[str],
    *,
    num_clients: int,
    seconds: float,
    max_requests: int,
    path: str = "/translate",
) -> Level:
    """Let `num_clients` work until the time is over or the requests are used up."""
    level = Level(num_clients=num_clients)
    supply = islice(cycle(texts), max_requests)
    started = time.perf_counter()
    deadline = started + seconds
    async with asyncio.TaskGroup() as group:
        for _ in range(num_clients):
            group.create_task(_work(Client(url, path=path), supply, level, deadline))
    level.wall_seconds = time.perf_counter() - started
    return level


async def _work(client: Client, supply: Iterator[str], level: Level, deadline: float) -> None:
    for text in supply:
        started = time.perf_counter()
        if started >= deadline:
            break
        try:
            async with asyncio.timeout(REPLY_SECONDS):
                status, translation = await client.translate(text)
        except (OSError, EOFError, TimeoutError):
            level.statuses[0] += 1
            await client.close()
            continue
        level.statuses[status] += 1
        level.latencies_seconds.append(time.perf_counter() - started)
        level.num_characters += len(translation)
    await client.close()
