"""The protocol under a real server with a small application, spoken to over raw sockets."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest
import uvicorn
import uvloop
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from service.protocol import MAX_HEADERS, WireLimits, protocol_factory
from service.server import listen

LIMIT = 2000
PATIENCE = 30.0
LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


class App:
    """Answers at once, after the body, when it is released, or at length."""

    def __init__(self) -> None:
        self.release = asyncio.Event()
        self.num_requests = 0
        self.num_waiting_bytes: Callable[[], int] = lambda: 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.num_requests += 1
        request = Request(scope, receive)
        reply: Response = PlainTextResponse(f"fine {scope['path']}")
        if scope["path"] == "/read":
            reply = PlainTextResponse(f"read {len(await request.body())}")
        elif scope["path"] == "/wait":
            await self.release.wait()
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


async def _until(condition: Callable[[], object]) -> None:
    """Wait for what the server tells nobody."""
    while not condition():  # noqa: ASYNC110
        await asyncio.sleep(0.01)


async def _large() -> AsyncIterator[bytes]:
    for _ in range(256):
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
        await _until(lambda: not self.server.server_state.connections)


@asynccontextmanager
async def _serving(**limits: float) -> AsyncIterator[Served]:
    wire = {"max_header_bytes": LIMIT, "header_timeout_seconds": PATIENCE, "max_connections": 50}
    app = App()
    refused: Counter[str] = Counter()
    config = uvicorn.Config(
        app,
        http=protocol_factory(
            WireLimits(**wire | limits),  # type: ignore[arg-type]
            lambda reason: refused.update([reason]),
        ),
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    app.num_waiting_bytes = lambda: sum(
        connection.transport.get_write_buffer_size()
        for connection in server.server_state.connections
    )
    listener = listen("127.0.0.1", 0)
    serving = asyncio.create_task(server._serve([listener]))
    await _until(lambda: server.started)
    try:
        yield Served(port=listener.getsockname()[1], app=app, server=server, refused=refused)
    finally:
        server.should_exit = True
        await serving


Scenario = Callable[[Served], Awaitable[None]]


@pytest.fixture(params=LOOPS)
def run(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Runs a scenario against a server with the given limits, on either event loop."""

    def run_it(scenario: Scenario, **limits: float) -> None:
        async def main() -> None:
            async with asyncio.timeout(60), _serving(**limits) as served:
                await scenario(served)

        with asyncio.Runner(loop_factory=LOOPS[request.param]) as runner:
            runner.run(main())

    return run_it


def _get(path: str = "/", *headers: bytes) -> bytes:
    return b"\r\n".join([f"GET {path} HTTP/1.1".encode(), b"host: a", *headers, b"", b""])


CLOSE = b"connection: close"


def _problem(answer: bytes) -> tuple[int, str]:
    """Status and code of one refusal; it has the headers of every answer."""
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"\r\nx-content-type-options: nosniff" in head
    assert b"\r\nconnection: close" in head
    assert f"content-length: {len(body)}".encode() in head
    content = json.loads(body)
    assert set(content) == {"error", "code", "value", "limit"}
    return int(head.split()[1]), content["code"]


TOO_LARGE = (431, "headers_too_large")


def test_a_head_up_to_the_limit_is_served(run: Callable[..., None]) -> None:
    async def scenario(served: Served) -> None:
        small = len("/") + len("hosta") + 4 + len("connectionclose") + 4 + len("x") + 4
        for extra, is_served in ((0, True), (1, False)):
            value = b"v" * (LIMIT - small + extra)
            answer = await served.exchange(_get("/", CLOSE, b"x: " + value))
            assert answer.startswith(b"HTTP/1.1 200 OK") == is_served
            if not is_served:
                assert _problem(answer) == TOO_LARGE

    run(scenario)


@pytest.mark.parametrize(
    "parts",
    [
        [_get("/" + "p" * LIMIT)],
        [b"GET /" + b"p" * (LIMIT * 2)],
        [b"GET / HTTP/1.1\r\nx: " + b"v" * (LIMIT * 2)],
        [b"GET / HTTP/1.1\r\n", b"n" * (LIMIT * 2)],
        [_get("/", *[b"a: b"] * MAX_HEADERS)],
        [b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 100_000],
        [b"GET / HTTP/1.1\r\nx: "] + [b"v" * 1000] * 100,
        [b"POST /read HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n0\r\nx: " + b"v" * 300_000],
        [b"POST /read HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n", b"x: v\r\n" * 3000],
    ],
)
def test_a_longer_head_or_trailer_is_refused_and_told_so(
    run: Callable[..., None], parts: list[bytes]
) -> None:
    async def scenario(served: Served) -> None:
        assert _problem(await served.exchange(*parts)) == TOO_LARGE
        assert (await served.exchange(_get("/", CLOSE))).startswith(b"HTTP/1.1 200")

    run(scenario, leave_seconds=0.5)


def test_a_head_that_comes_slowly_is_given_up(run: Callable[..., None]) -> None:
    async def scenario(served: Served) -> None:
        reader, writer = await served.connect()
        answer = asyncio.create_task(reader.read())
        for byte in _get("/" + "p" * 1500):
            writer.write(bytes([byte]))
            await asyncio.wait((answer,), timeout=0.02)
            if answer.done():
                break
        assert _problem(await answer) == (408, "header_timeout")
        writer.close()

    run(scenario, header_timeout_seconds=0.3)


def test_empty_lines_do_not_keep_a_connection(run: Callable[..., None]) -> None:
    async def scenario(served: Served) -> None:
        reader, writer = await served.connect()
        answer = asyncio.create_task(reader.read())
        while not answer.done():
            writer.write(b"\r\n")
            await asyncio.wait((answer,), timeout=0.02)
        assert _problem(answer.result()) == (408, "header_timeout")
        writer.close()

    run(scenario, header_timeout_seconds=0.3)


def test_a_silent_connection_is_closed_without_a_word(run: Callable[..., None]) -> None:
    async def scenario(served: Served) -> None:
        assert await served.exchange() == b""

    run(scenario, header_timeout_seconds=0.2)


def test_the_second_request_of_a_connection_has_the_same_time(run: Callable[..., None]) -> None:
    async def scenario(served: Served) -> None:
        reader, writer = await served.connect()
        writer.write(_get())
        await reader.readuntil(b"fine /")
        writer.write(b"GET / HT")
        assert _problem(await reader.read()) == (408, "header_timeout")
        writer.close()

    run(scenario, header_timeout_seconds=0.3)


def test_an_answer_may_take_longer_than_a_head(run: Callable[..., None]) -> None:
    async def scenario(served: Served) -> None:
        asyncio.get_running_loop().call_later(0.6, served.app.release.set)
        assert (await served.exchange(_get("/wait", CLOSE))).endswith(b"fine /wait")

    run(scenario, header_timeout_seconds=0.2)


def test_connections_beyond_the_limit_are_refused_while_all_have_a_request(
    run: Callable[..., None],
) -> None:
    async def scenario(served: Served) -> None:
        held = [await served.connect() for _ in range(3)]
        for _, writer in held:
            writer.write(_get("/wait"))
        await _until(lambda: served.app.num_requests == 3)
        answer = await served.exchange()
        assert _problem(answer) == (503, "too_many_connections")
        assert b"\r\nretry-after: 5" in answer
        assert served.refused == {"too_many_connections": 1}
        served.app.release.set()
        for reader, _ in held:
            await reader.readuntil(b"fine /wait")
        assert (await served.exchange(_get("/", CLOSE))).startswith(b"HTTP/1.1 200")
        for _, writer in held:
            writer.close()

    run(scenario, max_connections=3)


def test_who_has_waited_longest_for_a_request_makes_room(run: Callable[..., None]) -> None:
    async def scenario(served: Served) -> None:
        busy = await served.connect()
        busy[1].write(_get("/wait"))
        await _until(lambda: served.app.num_requests == 1)
        silent = await served.connect()
        await asyncio.sleep(0.02)  # a loop's clock may be coarse
        partial = await served.connect()
        partial[1].write(b"GET / HTTP/1.1\r\n")
        await asyncio.sleep(0.02)
        kept = await served.connect()
        kept[1].write(_get())
        await kept[0].readuntil(b"fine /")
        # Each newcomer takes the place of the oldest of those; the busy one keeps its own.
        assert (await served.exchange(_get("/", CLOSE))).startswith(b"HTTP/1.1 200")
        assert await silent[0].read() == b""
        newcomers = [await served.connect() for _ in range(2)]
        assert _problem(await partial[0].read()) == (503, "too_many_connections")
        assert served.refused == {"displaced": 2}
        served.app.release.set()
        await busy[0].readuntil(b"fine /wait")
        kept[1].write(_get())
        await kept[0].readuntil(b"fine /")
        for _, writer in (busy, silent, partial, kept, *newcomers):
            writer.close()

    run(scenario, max_connections=4)


def test_silent_connections_shut_nobody_out(run: Callable[..., None]) -> None:
    async def scenario(served: Served) -> None:
        held = [await served.connect() for _ in range(40)]
        for _ in range(3):
            assert (await served.exchange(_get("/", CLOSE))).startswith(b"HTTP/1.1 200")
        for _, writer in held:
            writer.close()

    run(scenario, max_connections=10)


def test_a_body_that_was_answered_already_must_end_soon(run: Callable[..., None]) -> None:
    async def scenario(served: Served) -> None:
        reader, writer = await served.connect()
        writer.write(b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1000000000\r\n\r\n")
        await reader.readuntil(b"fine /")
        rest = asyncio.create_task(reader.read())
        while not rest.done():
            writer.write(b"x")
            await asyncio.wait((rest,), timeout=0.02)
        assert rest.exception() is not None or rest.result() == b""
        writer.close()
        await served.until_left()

    run(scenario, leave_seconds=0.3)


def test_a_body_that_ends_after_its_answer_leaves_the_connection_usable(
    run: Callable[..., None],
) -> None:
    async def scenario(served: Served) -> None:
        reader, writer = await served.connect()
        writer.write(b"POST /one HTTP/1.1\r\nhost: a\r\ncontent-length: 4\r\n\r\nab")
        await reader.readuntil(b"fine /one")
        writer.write(b"cd")
        await asyncio.sleep(0.5)  # longer than the rest of a body may take
        writer.write(_get("/two", CLOSE))
        assert (await reader.read()).endswith(b"fine /two")
        writer.close()

    run(scenario, leave_seconds=0.25)


def test_a_client_that_reads_nothing_is_left(run: Callable[..., None]) -> None:
    async def scenario(served: Served) -> None:
        _, writer = await served.connect()
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(_get("/large"))
        await _until(lambda: served.server.server_state.connections)
        await served.until_left()
        writer.close()

    run(scenario, write_seconds=0.3)


def test_a_client_that_never_takes_its_last_bytes_is_left(run: Callable[..., None]) -> None:
    async def scenario(served: Served) -> None:
        _, writer = await served.connect()
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(_get("/full", CLOSE))
        await _until(lambda: served.app.num_waiting_bytes() >= 1000)
        await served.until_left()
        writer.close()

    run(scenario, write_seconds=0.5)


def test_a_refused_client_that_does_not_leave_is_left(run: Callable[..., None]) -> None:
    async def scenario(served: Served) -> None:
        reader, writer = await served.connect()
        writer.write(b"NONSENSE\r\n\r\n")
        assert _problem(await reader.read()) == (400, "invalid_http")
        await served.until_left()
        writer.close()

    run(scenario, leave_seconds=0.3)


def test_pipelined_requests_are_answered_in_order(run: Callable[..., None]) -> None:
    async def scenario(served: Served) -> None:
        post = b"POST /read HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\n\r\nabc"
        answer = await served.exchange(_get("/one") + post + _get("/two", CLOSE))
        found = [answer.index(text) for text in (b"fine /one", b"read 3", b"fine /two")]
        assert found == sorted(found)

    run(scenario)


def test_a_pipelined_body_has_its_own_time(run: Callable[..., None]) -> None:
    async def scenario(served: Served) -> None:
        reader, writer = await served.connect()
        head = b"POST /read HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: 3\r\n\r\n"
        writer.write(_get("/wait") + head)
        served.app.release.set()
        await reader.readuntil(b"fine /wait")
        await asyncio.sleep(0.5)  # longer than the rest of an answered body may take
        writer.write(b"abc")
        assert (await reader.read()).endswith(b"read 3")
        writer.close()

    run(scenario, leave_seconds=0.25)


def test_what_follows_a_good_request_spoils_the_connection_but_not_its_answer(
    run: Callable[..., None],
) -> None:
    async def scenario(served: Served) -> None:
        reader, writer = await served.connect()
        writer.write(_get("/wait") + b"NONSENSE\r\n\r\n")
        await asyncio.sleep(0.05)
        served.app.release.set()
        answer = await reader.read()
        assert answer.count(b"HTTP/1.1 ") == 1
        assert answer.endswith(b"fine /wait")
        writer.close()

    run(scenario)


def test_a_client_that_goes_before_its_request_is_whole_leaves_nothing(
    run: Callable[..., None],
) -> None:
    async def scenario(served: Served) -> None:
        for part in (
            b"",
            b"GET",
            _get()[:-2],
            _get("/wait"),
            b"POST /read HTTP/1.1\r\ncontent-length: 9\r\n\r\n",
        ):
            _, writer = await served.connect()
            writer.write(part)
            await writer.drain()
            writer.close()
        served.app.release.set()
        await served.until_left()

    run(scenario)


_FRAGMENTS = st.sampled_from(
    [
        *(b"GET ", b"POST ", b"/", b"/read", b" HTTP/1.1", b"\r\n", b"\n", b"\r", b"\r\n\r\n"),
        *(b"host: a\r\n", b"content-length: 3\r\n", b"content-length: 99\r\n", b"abc", b":"),
        *(
            b"transfer-encoding: chunked\r\n",
            b"3\r\nabc\r\n",
            b"0\r\n\r\n",
            b"0\r\n",
            b"ffffffffff",
        ),
        *(b"connection: close\r\n", b"connection: upgrade\r\nupgrade: websocket\r\n", b"\x00"),
        *(b"expect: 100-continue\r\n", b"v" * 700, b"x: " + b"v" * 700 + b"\r\n", b"\xff\xfe"),
        *(_get("/", b"x: y"), _get("/read", b"content-length: 2") + b"ab"),
    ]
) | st.binary(max_size=20)


def test_any_bytes_are_answered_with_http_and_the_server_goes_on() -> None:
    @settings(
        max_examples=150, deadline=None, database=None, suppress_health_check=list(HealthCheck)
    )
    @given(st.lists(_FRAGMENTS, max_size=12))
    def send(parts: list[bytes]) -> None:
        answer = loop.run_until_complete(asyncio.wait_for(served.fling(parts), 20))
        assert answer == b"" or answer.startswith(b"HTTP/1.1 ")

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        loop = runner.get_loop()
        context = _serving(header_timeout_seconds=0.05, leave_seconds=0.05, write_seconds=0.5)
        served: Served = loop.run_until_complete(context.__aenter__())
        try:
            send()
            assert b"200 OK" in loop.run_until_complete(served.exchange(_get("/", CLOSE)))
            loop.run_until_complete(asyncio.wait_for(served.until_left(), 20))
        finally:
            loop.run_until_complete(context.__aexit__(None, None, None))
