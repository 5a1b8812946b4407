"""The protocol under a real server with a small application, spoken to over raw sockets."""

import asyncio
import contextlib
from collections.abc import Callable

import pytest
import uvloop
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.http.protocol import MAX_HEADERS, BoundedProtocol
from support.wire import CLOSE, LARGE, LIMIT, Served, get, problem_of, serving_app, until

TOO_LARGE = (431, "headers_too_large")
CHUNKED = b"POST /read HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n"


def test_a_head_up_to_the_limit_is_served(run: Callable[..., None]) -> None:
    async def scenario(served: Served) -> None:
        small = len("/") + len("hosta") + 4 + len("connectionclose") + 4 + len("x") + 4
        for extra, is_served in ((0, True), (1, False)):
            value = b"v" * (LIMIT - small + extra)
            answer = await served.exchange(get("/", CLOSE, b"x: " + value))
            assert answer.startswith(b"HTTP/1.1 200 OK") == is_served
            if not is_served:
                assert problem_of(answer) == TOO_LARGE

    run(scenario)


@pytest.mark.parametrize(
    "parts",
    [
        [get("/" + "p" * LIMIT)],
        [b"GET /" + b"p" * (LIMIT * 2)],
        [b"GET / HTTP/1.1\r\nhost: a\r\nx: " + b"v" * (LIMIT * 2)],
        [b"GET / HTTP/1.1\r\n", b"n" * (LIMIT * 2)],
        [get("/", *[b"a: b"] * MAX_HEADERS)],
        [b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 100_000],
        [b"GET / HTTP/1.1\r\nx: "] + [b"v" * 1000] * 100,
        [CHUNKED + b"0\r\nx: " + b"v" * 300_000],
        [CHUNKED + b"0\r\n", b"x: v\r\n" * 3000],
    ],
)
def test_a_longer_head_or_trailer_is_refused_and_told_so(
    run: Callable[..., None], parts: list[bytes]
) -> None:
    async def scenario(served: Served) -> None:
        assert problem_of(await served.exchange(*parts)) == TOO_LARGE
        assert (await served.exchange(get("/", CLOSE))).startswith(b"HTTP/1.1 200")

    run(scenario, leave_seconds=0.5)


def test_a_head_that_comes_slowly_is_given_up(run: Callable[..., None]) -> None:
    async def scenario(served: Served) -> None:
        reader, writer = await served.connect()
        answer = asyncio.create_task(reader.read())
        for byte in get("/" + "p" * 1500):
            writer.write(bytes([byte]))
            await asyncio.wait((answer,), timeout=0.02)
            if answer.done():
                break
        assert problem_of(await answer) == (408, "header_timeout")
        writer.close()

    run(scenario, header_timeout_seconds=0.3)


def test_empty_lines_do_not_keep_a_connection(run: Callable[..., None]) -> None:
    async def scenario(served: Served) -> None:
        reader, writer = await served.connect()
        answer = asyncio.create_task(reader.read())
        while not answer.done():
            writer.write(b"\r\n")
            await asyncio.wait((answer,), timeout=0.02)
        assert problem_of(answer.result()) == (408, "header_timeout")
        writer.close()

    run(scenario, header_timeout_seconds=0.3)


def test_a_silent_connection_is_closed_without_a_word(run: Callable[..., None]) -> None:
    async def scenario(served: Served) -> None:
        assert await served.exchange() == b""

    run(scenario, header_timeout_seconds=0.2)


def test_the_second_request_of_a_connection_has_the_same_time(run: Callable[..., None]) -> None:
    async def scenario(served: Served) -> None:
        reader, writer = await served.connect()
        writer.write(get())
        await reader.readuntil(b"fine /")
        writer.write(b"GET / HT")
        assert problem_of(await reader.read()) == (408, "header_timeout")
        writer.close()

    run(scenario, header_timeout_seconds=0.3)


def test_an_answer_may_take_longer_than_a_head(run: Callable[..., None]) -> None:
    async def scenario(served: Served) -> None:
        asyncio.get_running_loop().call_later(0.6, served.app.release.set)
        assert (await served.exchange(get("/wait", CLOSE))).endswith(b"fine /wait")

    run(scenario, header_timeout_seconds=0.2)


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


async def half_answered(served: Served) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection whose request was answered with two bytes of its body still to come."""
    reader, writer = await served.connect()
    writer.write(b"POST /one HTTP/1.1\r\nhost: a\r\ncontent-length: 4\r\n\r\nab")
    await reader.readuntil(b"fine /one")
    return reader, writer


def test_a_body_that_ends_after_its_answer_leaves_the_connection_usable(
    run: Callable[..., None],
) -> None:
    async def scenario(served: Served) -> None:
        reader, writer = await half_answered(served)
        writer.write(b"cd")
        await asyncio.sleep(0.5)  # longer than the rest of a body may take
        writer.write(get("/two", CLOSE))
        assert (await reader.read()).endswith(b"fine /two")
        writer.close()

    run(scenario, leave_seconds=0.25)


def test_a_body_that_ends_together_with_the_next_request_ends_its_time(
    run: Callable[..., None],
) -> None:
    async def scenario(served: Served) -> None:
        reader, writer = await half_answered(served)
        writer.write(b"cd" + get("/wait", CLOSE))
        [connection] = served.server.server_state.connections
        assert isinstance(connection, BoundedProtocol)
        await until(lambda: connection.scope["path"] == "/wait")
        assert not connection._leave_timer
        served.app.release.set()
        assert (await reader.read()).endswith(b"fine /wait")
        writer.close()

    run(scenario)


def test_a_client_that_reads_nothing_is_left(run: Callable[..., None]) -> None:
    async def scenario(served: Served) -> None:
        _, writer = await served.connect()
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(get("/large"))
        await until(lambda: served.server.server_state.connections)
        await served.until_left()
        writer.close()

    run(scenario, write_seconds=0.3)


@pytest.mark.parametrize("headers", [(), (CLOSE,), (CLOSE, b"content-length: 9")])
def test_a_client_that_reads_slowly_gets_all_of_its_answer(
    run: Callable[..., None], headers: tuple[bytes, ...]
) -> None:
    async def scenario(served: Served) -> None:
        reader, writer = await served.connect()
        writer.write(get("/piece", *headers))
        await reader.readuntil(b"\r\n\r\n")
        for _ in range(16):
            await reader.readexactly(LARGE // 16)
            await asyncio.sleep(0.1)
        writer.close()
        await served.until_left()

    run(scenario, write_seconds=0.5)


def test_a_client_that_reads_next_to_nothing_is_left(run: Callable[..., None]) -> None:
    async def scenario(served: Served) -> None:
        reader, writer = await served.connect()
        writer.write(get("/piece"))
        await reader.readexactly(1)
        while served.server.server_state.connections:
            with contextlib.suppress(ConnectionError):
                await reader.read(1024)
            await asyncio.sleep(0.02)
        writer.close()

    run(scenario, write_seconds=0.3)


def test_a_client_whose_reading_is_told_in_steps_is_left_when_none_comes_any_more(
    run: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    told = [9_000_000] * 4 + [8_500_000] * 4 + [8_000_000] * 5
    looks: list[int] = []

    def num_unread(_transport: asyncio.Transport) -> int:
        looks.append(told[min(len(looks), len(told) - 1)])
        return looks[-1]

    monkeypatch.setattr("service.http.endings.num_unread_bytes", num_unread)

    async def scenario(served: Served) -> None:
        _, writer = await served.connect()
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(get("/piece"))
        await until(lambda: looks)
        await served.until_left()
        assert looks == told
        writer.close()

    run(scenario, write_seconds=0.2)


def test_a_client_that_never_takes_its_last_bytes_is_left(run: Callable[..., None]) -> None:
    async def scenario(served: Served) -> None:
        _, writer = await served.connect()
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(get("/full", CLOSE))
        await until(lambda: served.app.num_waiting_bytes() >= 1000)
        await served.until_left()
        writer.close()

    run(scenario, write_seconds=0.5)


def test_a_refused_client_that_does_not_leave_is_left(run: Callable[..., None]) -> None:
    async def scenario(served: Served) -> None:
        reader, writer = await served.connect()
        writer.write(b"NONSENSE\r\n\r\n")
        assert problem_of(await reader.read()) == (400, "invalid_http")
        await served.until_left()
        writer.close()

    run(scenario, leave_seconds=0.3)


def test_pipelined_requests_are_answered_in_order(run: Callable[..., None]) -> None:
    async def scenario(served: Served) -> None:
        post = b"POST /read HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\n\r\nabc"
        answer = await served.exchange(get("/one") + post + get("/two", CLOSE))
        found = [answer.index(text) for text in (b"fine /one", b"read 3", b"fine /two")]
        assert found == sorted(found)

    run(scenario)


def test_a_pipelined_body_has_its_own_time(run: Callable[..., None]) -> None:
    async def scenario(served: Served) -> None:
        reader, writer = await served.connect()
        head = b"POST /read HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: 3\r\n\r\n"
        writer.write(get("/wait") + head)
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
        writer.write(get("/wait") + b"NONSENSE\r\n\r\n")
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
            get()[:-2],
            get("/wait"),
            b"POST /read HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\n",
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
        *(get("/", b"x: y"), get("/read", b"content-length: 2") + b"ab"),
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
        context = serving_app(header_timeout_seconds=0.05, leave_seconds=0.05, write_seconds=0.5)
        served: Served = loop.run_until_complete(context.__aenter__())
        try:
            send()
            assert b"200 OK" in loop.run_until_complete(served.exchange(get("/", CLOSE)))
            loop.run_until_complete(asyncio.wait_for(served.until_left(), 20))
        finally:
            loop.run_until_complete(context.__aexit__(None, None, None))


OFFER = (b"connection: Upgrade, HTTP2-Settings", b"upgrade: h2c", b"http2-settings: AAEAAEAA")
POSTS = {
    "length": (b"content-length: 5", b"ab\r\nc"),
    "chunks": (b"transfer-encoding: chunked", b"3\r\nab\r\r\n2\r\n\nc\r\n0\r\n\r\n"),
}


def post(path: str, *headers: bytes) -> bytes:
    return get(path, *headers).replace(b"GET", b"POST", 1)


@pytest.mark.parametrize("kind", POSTS)
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_an_offer_of_another_protocol_is_ignored_and_the_body_is_read(
    run: Callable[..., None], kind: str, size: int
) -> None:
    framing, body = POSTS[kind]
    requests = post("/read", *OFFER, framing) + body + get("/next", *OFFER) + get("/last", CLOSE)

    async def scenario(served: Served) -> None:
        parts = [requests[start : start + size] for start in range(0, len(requests), size)]
        answers = await served.exchange(*parts)
        assert answers.count(b"HTTP/1.1 200 OK") == 3
        places = [answers.index(text) for text in (b"read 5", b"fine /next", b"fine /last")]
        assert places == sorted(places)
        assert served.app.num_requests == 3
        assert not served.refused

    run(scenario)


def test_what_is_wrong_with_a_request_that_offers_another_protocol_is_refused_all_the_same(
    run: Callable[..., None],
) -> None:
    async def scenario(served: Served) -> None:
        for request in (
            post("/read", *OFFER, b"content-length: 5", b"transfer-encoding: chunked"),
            post("/read", *OFFER, b"transfer-encoding: chunked, gzip"),
            b"CONNECT a:80 HTTP/1.1\r\nhost: a\r\n\r\n",
        ):
            assert problem_of(await served.exchange(request, b"0\r\n\r\n")) == (400, "invalid_http")
        assert (
            problem_of(await served.exchange(get("/", *OFFER, b"x: " + b"v" * LIMIT))) == TOO_LARGE
        )
        assert served.app.num_requests == 0

    run(scenario, leave_seconds=0.5)


def test_a_trailer_never_passes_for_a_header(run: Callable[..., None]) -> None:
    head = post("/headers", CLOSE, b"transfer-encoding: chunked")

    async def scenario(served: Served) -> None:
        answer = await served.exchange(
            head + b"1\r\na\r\n0\r\nx-forwarded-for: 203.0.113.1\r\n\r\n"
        )
        assert answer.endswith(b"connection host transfer-encoding")

    run(scenario)
