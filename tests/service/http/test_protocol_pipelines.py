"""Requests that come before their predecessors are answered."""

import asyncio
from collections.abc import Callable

import pytest

from service.http.backlog import MAX_BACKLOG_BYTES, MAX_QUEUED
from service.http.protocol import BoundedProtocol
from support.wire import CLOSE, Served, get, until

MIB = 1024 * 1024
READ_BYTES = 256 * 1024


def _connection(served: Served) -> BoundedProtocol:
    [connection] = served.server.server_state.connections
    assert isinstance(connection, BoundedProtocol)
    return connection


async def _flood(served: Served, *first: bytes) -> asyncio.StreamWriter:
    """A connection on which 4 MiB of requests were written at once, and nothing is read."""
    _, writer = await served.connect()
    writer.transport.pause_reading()  # type: ignore[attr-defined]
    writer.write(b"".join(first) + get() * (4 * MIB // len(get())))
    await until(lambda: served.server.server_state.connections)
    return writer


def test_only_a_few_requests_are_parsed_before_their_turn(run: Callable[..., None]) -> None:
    async def scenario(served: Served) -> None:
        writer = await _flood(served, get("/wait"))
        connection = _connection(served)
        await until(lambda: connection.flow.is_held)
        assert len(connection.pipeline) == MAX_QUEUED
        assert len(connection._backlog) <= MAX_BACKLOG_BYTES + READ_BYTES
        served.app.release.set()
        await until(lambda: served.app.num_requests > 1000)  # it goes on when it is answered
        assert len(connection.pipeline) <= MAX_QUEUED
        assert len(connection._backlog) <= MAX_BACKLOG_BYTES + READ_BYTES
        writer.close()
        await served.until_left()

    run(scenario, write_seconds=1.0)


def test_a_body_that_ends_among_pipelined_requests_ends_where_it_should(
    run: Callable[..., None],
) -> None:
    head = b"POST /read HTTP/1.1\r\nhost: a\r\n"
    requests = [
        head + b"content-length: 8\r\n\r\na\r\n\r\nb\r\n",
        get("/one"),
        head + b"transfer-encoding: chunked\r\n\r\n4\r\n\r\n\r\n\r\n0\r\n\r\n",
        *[get("/two")] * 20,
        head + b"content-length: 0\r\n\r\n",
        get("/last", CLOSE),
    ]
    data = b"".join(requests)

    async def scenario(served: Served) -> None:
        for size in (len(data), 3, 1):
            answers = await served.exchange(
                *(data[start : start + size] for start in range(0, len(data), size))
            )
            bodies = [answer.rpartition(b"\r\n\r\n")[2] for answer in answers.split(b"HTTP/1.1 ")]
            expected = [b"read 8", b"fine /one", b"read 4", *[b"fine /two"] * 20]
            assert bodies[1:] == [*expected, b"read 0", b"fine /last"]

    run(scenario)


def test_hundreds_of_pipelined_requests_are_all_answered(run: Callable[..., None]) -> None:
    async def scenario(served: Served) -> None:
        answer = await served.exchange(get() * 500 + get("/last", CLOSE))
        assert answer.count(b"HTTP/1.1 200 OK") == 501
        assert answer.endswith(b"fine /last")

    run(scenario)


def test_a_flood_leaves_others_their_turn(run: Callable[..., None]) -> None:
    async def scenario(served: Served) -> None:
        writers = [await _flood(served, get("/wait")) for _ in range(3)]
        assert (await served.exchange(get("/other", CLOSE))).endswith(b"fine /other")
        served.app.release.set()
        assert (await served.exchange(get("/other", CLOSE))).endswith(b"fine /other")
        for writer in writers:
            writer.transport.abort()

    run(scenario, write_seconds=1.0)


def test_a_flood_of_pieces_is_parsed_in_turns(run: Callable[..., None]) -> None:
    async def scenario(served: Served) -> None:
        body = b"\r\n" * 40_000
        head = f"POST /read HTTP/1.1\r\nhost: a\r\ncontent-length: {len(body)}\r\n\r\n".encode()
        answer = await served.exchange(head + body + get("/last", CLOSE))
        assert b"read 80000" in answer
        assert answer.endswith(b"fine /last")

    run(scenario)


@pytest.mark.parametrize("is_flood", [False, True])
def test_a_client_that_is_reset_while_it_is_not_read_frees_its_request(
    run: Callable[..., None], is_flood: bool
) -> None:
    async def scenario(served: Served) -> None:
        if is_flood:
            writer = await _flood(served, get("/until-gone"))
            await until(lambda: _connection(served).flow.is_held)
        else:
            _, writer = await served.connect()
            writer.write(get("/until-gone") + get() * 3)
            await until(lambda: served.app.num_requests == 1)
        writer.transport.abort()
        await until(lambda: served.app.num_gone == 1)
        await served.until_left()

    run(scenario)


def test_the_rest_after_an_answer_has_the_time_of_a_head(run: Callable[..., None]) -> None:
    async def scenario(served: Served) -> None:
        reader, writer = await served.connect()
        writer.write(get("/wait") + get() * 50 + b"GET / HT")
        await until(lambda: served.app.num_requests == 1)
        served.app.release.set()
        assert (await reader.read()).endswith(b'"limit":0.3}')
        assert served.refused == {"header_timeout": 1}
        writer.close()

    run(scenario, header_timeout_seconds=0.3)
