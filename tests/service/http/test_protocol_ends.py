"""Clients that close their half, and what the end of an answer leaves unread."""

import asyncio
import json
from collections.abc import Callable

import pytest

from support.wire import CLOSE, Served, get, problem_of, until

PROBE = b"HTTP/1.1 100 Continue\r\n\r\n"


async def _half_closed(
    served: Served, data: bytes
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await served.connect()
    writer.write(data)
    writer.write_eof()
    return reader, writer


def test_a_client_that_has_closed_its_half_is_answered(run: Callable[..., None]) -> None:
    async def scenario(served: Served) -> None:
        for data, ends in (
            (get("/one"), [b"fine /one"]),
            (get("/one") * 30 + get("/two"), [b"fine /one"] * 30 + [b"fine /two"]),
            (get("/one").replace(b"1.1", b"1.0"), [b"fine /one"]),
            (b"POST /read HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\nab", [b"read 2"]),
        ):
            reader, writer = await _half_closed(served, data)
            answers = (await reader.read()).replace(PROBE, b"").split(b"HTTP/1.1 200 OK\r\n")[1:]
            assert [answer.rpartition(b"\r\n\r\n")[2] for answer in answers] == ends
            writer.close()
        await served.until_left()

    run(scenario)


@pytest.mark.parametrize("version", [b"1.1", b"1.0"])
def test_it_is_answered_when_that_takes_a_while(run: Callable[..., None], version: bytes) -> None:
    async def scenario(served: Served) -> None:
        reader, writer = await _half_closed(served, get("/wait").replace(b"1.1", version))
        await until(lambda: served.app.num_requests == 1)
        asyncio.get_running_loop().call_later(0.5, served.app.release.set)
        answer = await reader.read()
        assert answer.startswith(PROBE) == (version == b"1.1")
        assert answer.endswith(b"fine /wait")
        writer.close()

    run(scenario)


@pytest.mark.parametrize("version", [b"1.1", b"1.0"])
def test_a_client_that_has_gone_altogether_is_not_waited_for(
    run: Callable[..., None], version: bytes
) -> None:
    async def scenario(served: Served) -> None:
        _, writer = await served.connect()
        writer.write(get("/until-gone").replace(b"1.1", version))
        await until(lambda: served.app.num_requests == 1)
        writer.close()
        await until(lambda: served.app.num_gone == 1)
        await served.until_left()

    run(scenario, leave_seconds=0.3)


def test_a_request_that_ends_too_early_is_no_request(run: Callable[..., None]) -> None:
    async def scenario(served: Served) -> None:
        for data in (b"", b"GET / HTT", get("/read", b"content-length: 9") + b"abc"):
            reader, writer = await _half_closed(served, data)
            answer = await reader.read()
            assert answer == b"" or problem_of(answer) == (400, "invalid_http")
            writer.close()
        await served.until_left()

    run(scenario)


@pytest.mark.parametrize("headers", [(CLOSE,), ()])
def test_an_answer_before_the_end_of_a_body_reaches_its_client(
    run: Callable[..., None], headers: tuple[bytes, ...]
) -> None:
    async def scenario(served: Served) -> None:
        reader, writer = await served.connect()
        head = get("/one", b"content-length: 4000000", *headers).replace(b"GET", b"POST", 1)
        writer.write(head + b"x" * 100_000)
        await reader.readuntil(b"fine /one")
        writer.write(b"x" * 2_000_000)  # a socket that is closed would reset the connection
        await writer.drain()
        assert await reader.read() == b""
        writer.close()
        await served.until_left()

    run(scenario, leave_seconds=0.5)


def test_http_1_0_gets_no_interim_answer(run: Callable[..., None]) -> None:
    async def scenario(served: Served) -> None:
        post = get("/read", b"expect: 100-continue", b"content-length: 2", CLOSE)
        post = post.replace(b"GET", b"POST", 1)
        for request, has_interim in ((post, True), (post.replace(b"1.1", b"1.0"), False)):
            answer = await served.exchange(request, b"ab")
            assert answer.startswith(PROBE) == has_interim
            assert answer.endswith(b"read 2")

    run(scenario)


@pytest.mark.parametrize(
    "request_line", [b"GET / HTTP/0.9\r\n", b"GET /\r\n", b"GET / HTTP/2.0\r\n"]
)
def test_another_version_is_refused(run: Callable[..., None], request_line: bytes) -> None:
    async def scenario(served: Served) -> None:
        answer = await served.exchange(request_line + b"host: a\r\n\r\n")
        assert problem_of(answer) == (400, "invalid_http")
        assert served.app.num_requests == 0

    run(scenario, leave_seconds=0.5)


@pytest.mark.parametrize(
    "headers",
    [
        b"",
        b"host: a\r\nhost: a\r\n",
        b"host: a b\r\n",
        b"host: a\r\ntransfer-encoding: gzip, chunked\r\n",
    ],
)
def test_a_head_that_two_readers_would_read_differently_is_refused(
    run: Callable[..., None], headers: bytes
) -> None:
    async def scenario(served: Served) -> None:
        answer = await served.exchange(b"POST / HTTP/1.1\r\n" + headers + b"\r\n0\r\n\r\n")
        assert problem_of(answer) == (400, "invalid_http")
        # What is wrong with the second request leaves the first its answer.
        answer = await served.exchange(get("/one") + b"POST / HTTP/1.1\r\n" + headers + b"\r\n")
        assert answer.count(b"HTTP/1.1 ") == 1
        assert answer.endswith(b"fine /one")
        assert served.app.num_requests == 1

    run(scenario, leave_seconds=0.5)


def test_a_length_that_no_number_holds_is_too_long(run: Callable[..., None]) -> None:
    async def scenario(served: Served) -> None:
        for digits in (b"9" * 20, b"9" * 300):
            answer = await served.exchange(get("/read", b"content-length: " + digits))
            assert problem_of(answer) == (413, "too_long")
            assert json.loads(answer.rpartition(b"\r\n\r\n")[2])["limit"] == 2**64 - 1

    run(scenario, leave_seconds=0.5)


def test_a_connection_that_has_just_been_accepted_is_answered_by_a_server_that_leaves(
    run: Callable[..., None],
) -> None:
    async def scenario(served: Served) -> None:
        reader, writer = await served.connect()
        idle_reader, idle_writer = await served.connect()
        connections = served.server.server_state.connections
        await until(lambda: len(connections) == 2)
        for connection in tuple(connections):
            connection.shutdown()
        writer.write(get("/", CLOSE))
        assert (await reader.read()).startswith(b"HTTP/1.1 200 ")
        assert await idle_reader.read() == b""
        writer.close()
        idle_writer.close()
        await served.until_left()

    run(scenario)
