"""Clients on loopback: closed loops, and a load that is offered whether it is answered or not.

Owns the bare HTTP/1.1 client (the load generator shares its cores with the server) and what it
notes of every request. Judges nothing.
"""

import asyncio
import json
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from itertools import count, cycle

from prometheus_client.parser import text_string_to_metric_families

REPLY_SECONDS = 60.0
NO_REPLY = 0
"""The status of a connection that was refused, reset or closed without an answer."""
HUNG = -1
"""The status of a request that was not answered within `REPLY_SECONDS`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One request and its end.

    Attributes:
        text: What was to be translated.
        status: Of the answer, `NO_REPLY` or `HUNG`.
        code: The error's code, if it was one.
        translation: What came back.
        retry_after: The header's value.
        seconds: From when it was sent, or was due, to its last byte.
        ended: When that was.
    """

    text: str
    status: int
    code: str = ""
    translation: str = ""
    retry_after: str = ""
    seconds: float = 0.0
    ended: float = 0.0


class Client:
    """One connection that is kept alive."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def translate(self, text: str, *, due: float | None = None) -> Reply:
        """Send one sentence; every end it may have is a reply."""
        body = json.dumps({"q": text, "source": "en", "target": "zh"}).encode()
        head = "POST /translate HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n"
        started = time.perf_counter() if due is None else due
        values: dict[str, str] = {}
        try:
            async with asyncio.timeout(REPLY_SECONDS):
                request = f"{head}content-length: {len(body)}\r\n\r\n".encode() + body
                status, headers, content = await self._exchange(request)
            values = json.loads(content)
        except TimeoutError:
            status, headers = HUNG, ""
            self.close()
        except (OSError, EOFError):
            status, headers = NO_REPLY, ""
            self.close()
        ended = time.perf_counter()
        return Reply(
            text=text,
            status=status,
            code=values.get("code", ""),
            translation=values.get("translatedText", ""),
            retry_after=_header(headers, "retry-after"),
            seconds=ended - started,
            ended=ended,
        )

    async def answer(self, text: str) -> str:
        """A translation that has to come.

        Raises:
            RuntimeError: It did not, or there is nothing in it: nothing could be compared with it.
        """
        reply = await self.translate(text)
        if reply.status != 200 or not reply.translation:
            raise RuntimeError(f"a right answer was expected, and {reply} came")
        return reply.translation

    async def get(self, path: str) -> tuple[int, str]:
        """Status and body of a GET; `NO_REPLY` when there is none."""
        try:
            async with asyncio.timeout(REPLY_SECONDS):
                status, _, content = await self._exchange(
                    f"GET {path} HTTP/1.1\r\nhost: a\r\n\r\n".encode()
                )
        except (OSError, EOFError):
            self.close()
            return NO_REPLY, ""
        return status, content.decode()

    async def post(self, path: str, values: dict[str, object], *, key: str | None = None) -> int:
        """Status of a POST of JSON; `NO_REPLY` when there is none, however long it takes."""
        return await self._post(path, "application/json", json.dumps(values).encode(), key)

    async def post_form(self, path: str, form: bytes) -> int:
        """Status of a POST of a form; as `post`."""
        return await self._post(path, "application/x-www-form-urlencoded", form, None)

    async def _post(self, path: str, media_type: str, body: bytes, key: str | None) -> int:
        head = f"POST {path} HTTP/1.1\r\nhost: a\r\ncontent-type: {media_type}\r\n"
        if key is not None:
            head += f"authorization: Bearer {key}\r\n"
        try:
            status, _, _ = await self._exchange(
                f"{head}content-length: {len(body)}\r\n\r\n".encode() + body
            )
        except (OSError, EOFError):
            self.close()
            return NO_REPLY
        return status

    async def metrics(self) -> dict[str, float]:
        """The samples without labels, and sums over pairs, by name without `dragoman_`."""
        _, text = await self.get("/metrics")
        found: dict[str, float] = {}
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                if sample.labels.keys() <= {"pair", "checkpoint"}:
                    name = sample.name.removeprefix("dragoman_")
                    found[name] = found.get(name, 0.0) + sample.value
        return found

    def close(self) -> None:
        """Close the connection."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None

    async def _exchange(self, data: bytes) -> tuple[int, str, bytes]:
        if self._streams is not None and self._streams[0].at_eof():
            self.close()  # the server has ended it: it was idle for longer than it may be
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
        reader, writer = self._streams
        writer.write(data)
        await writer.drain()
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        content = await reader.readexactly(int(_header(head, "content-length")))
        if _header(head, "connection") == "close":
            self.close()
        return int(head.split(" ", 2)[1]), head, content


def _header(head: str, name: str) -> str:
    return head.partition(f"\r\n{name}:")[2].partition("\r\n")[0].strip()


@dataclass(slots=True, kw_only=True)
class Traffic:
    """Everything that some clients were answered.

    Attributes:
        replies: In the order of their ends.
        wall_seconds: How long requests were sent.
        ended: When the last one was sent.
    """

    replies: list[Reply] = field(default_factory=list)
    wall_seconds: float = 0.0
    ended: float = 0.0

    @property
    def statuses(self) -> Counter[int]:
        """Requests by status."""
        return Counter(reply.status for reply in self.replies)

    @property
    def answered_per_second(self) -> float:
        """Translations a second, of those that came while requests were sent."""
        in_time = sum(one.status == 200 and one.ended <= self.ended for one in self.replies)
        return in_time / max(self.wall_seconds, 1e-9)

    def seconds_of(self, status: int) -> list[float]:
        """How long the requests with this status took."""
        return [reply.seconds for reply in self.replies if reply.status == status]


async def closed_loop(
    port: int,
    texts: Sequence[str],
    *,
    num_clients: int,
    is_over: Callable[[], bool],
    pause_seconds: float = 0.05,
) -> Traffic:
    """Each client sends its next text when the last one is answered, until it is over.

    After anything but a translation a client pauses: a refusal costs the server nothing, and a
    client that comes back at once would only measure itself.
    """
    traffic = Traffic()
    supply = cycle(texts)
    started = time.perf_counter()

    async def work() -> None:
        client = Client(port)
        while not is_over():
            reply = await client.translate(next(supply))
            traffic.replies.append(reply)
            if reply.status != 200:
                await asyncio.sleep(pause_seconds)
        client.close()

    async with asyncio.TaskGroup() as group:
        for _ in range(num_clients):
            group.create_task(work())
    traffic.ended = time.perf_counter()
    traffic.wall_seconds = traffic.ended - started
    return traffic


def for_seconds(seconds: float) -> Callable[[], bool]:
    """An end that comes by itself."""
    deadline = time.perf_counter() + seconds
    return lambda: time.perf_counter() >= deadline


async def offered(
    port: int, texts: Sequence[str], *, rate: float, seconds: float, count_from_due: bool = True
) -> Traffic:
    """Requests at fixed times, `rate` a second, on as many connections as that takes.

    Args:
        port: Of the server.
        texts: Taken in turn.
        rate: Requests a second.
        seconds: How long.
        count_from_due: Latency counts from when a request was due; otherwise from when it was
            sent, which tells the server's time from the generator's own.
    """
    traffic = Traffic()
    supply = cycle(texts)
    idle: list[Client] = []
    started = time.perf_counter()

    async def send(due: float) -> None:
        client = idle.pop() if idle else Client(port)
        reply = await client.translate(next(supply), due=due if count_from_due else None)
        traffic.replies.append(reply)
        idle.append(client)

    async with asyncio.TaskGroup() as group:
        for number in count():
            due = started + number / rate
            if due - started >= seconds:
                break
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            group.create_task(send(due))
        traffic.ended = time.perf_counter()
        traffic.wall_seconds = traffic.ended - started
    for client in idle:
        client.close()
    return traffic


async def wait_for(has_come: Callable[[], Awaitable[bool]]) -> float:
    """Ask again and again until it is so; the seconds it took, at most `REPLY_SECONDS`.

    Raises:
        TimeoutError: It was not.
    """
    started = time.perf_counter()
    async with asyncio.timeout(REPLY_SECONDS):
        while not await has_come():  # noqa: ASYNC110  # it is another process that changes
            await asyncio.sleep(0.01)
    return time.perf_counter() - started


async def wait_until(client: Client, path: str, status: int) -> float:
    """Seconds until `path` is answered with `status`.

    Raises:
        TimeoutError: It was not, within `REPLY_SECONDS`.
    """

    async def is_so() -> bool:
        return (await client.get(path))[0] == status

    return await wait_for(is_so)


async def wait_idle(client: Client) -> float:
    """Seconds until nothing of any request is left.

    Raises:
        TimeoutError: Something was, after `REPLY_SECONDS`.
    """
    names = ("pending_segments", "queued_segments", "running_segments", "slots_in_use")

    async def is_idle() -> bool:
        found = await client.metrics()
        in_progress = found["requests_in_progress"] - 1  # this one
        return not in_progress and not any(found[name] for name in names)

    return await wait_for(is_idle)
