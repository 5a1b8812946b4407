"""When a request is sent once more, against real sockets whose other end says what is scripted."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from service.bounds import MIN_IDLE_TIMEOUT_SECONDS
from service.errors import cut_off
from service.http.replies import error_content
from service.router.connection import Asked, BytesBody, Connection
from service.router.groups import ConnectError, LostError, RefusedError, SilentError
from service.router.pool import (
    CONNECT_SECONDS,
    MAX_AGE_SECONDS,
    MAX_IDLE_SECONDS,
    Pool,
    probe_silence,
)
from support.scripted_server import (
    GET,
    LEAVES,
    OK,
    POST,
    REFUSAL,
    ScriptedServer,
    answer_of,
    closed,
    refusal_of,
    run_bounded,
)


def _new_pool(
    port: int, *, seconds: float = 10.0, clock: Callable[[], float] = lambda: 0.0
) -> Pool:
    return Pool("127.0.0.1", port, seconds=seconds, clock=clock)


@asynccontextmanager
async def _pool(
    server: ScriptedServer, *, clock: Callable[[], float] = lambda: 0.0
) -> AsyncIterator[Pool]:
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    pool = _new_pool(port, clock=clock)
    try:
        yield pool
    finally:
        pool.close()
        await closed(listening, server.ends)


def test_no_connection_is_kept_as_long_as_any_server_keeps_it() -> None:
    assert MAX_IDLE_SECONDS + CONNECT_SECONDS <= MIN_IDLE_TIMEOUT_SECONDS


def test_a_connection_serves_one_request_after_another() -> None:
    async def main() -> None:
        server = ScriptedServer(OK, OK)
        async with _pool(server) as pool:
            assert await answer_of(pool) == (200, b"ok")
            assert await answer_of(pool) == (200, b"ok")
        assert server.num_connections == 1
        head = b"POST /x?y=1 HTTP/1.1\r\nhost: a\r\ncontent-length: 4\r\n\r\nbody"
        assert server.requests == [head, head]

    run_bounded(main())


def test_a_connection_that_was_closed_while_it_rested_is_not_used() -> None:
    async def main() -> None:
        server = ScriptedServer(OK.replace(b"\r\n\r\n", b"\r\nx: connection: close\r\n\r\n"), OK)
        async with _pool(server) as pool:
            await answer_of(pool)
            await server.closed.wait()
            await asyncio.sleep(0)  # its end is read
            while pool._idle and pool._idle[0].is_open:  # noqa: ASYNC110  # nothing tells
                await asyncio.sleep(0)
            assert await answer_of(pool) == (200, b"ok")
        assert server.num_connections == 2
        assert len(server.requests) == 2

    run_bounded(main())


@pytest.mark.parametrize("seconds", [MAX_IDLE_SECONDS, MAX_AGE_SECONDS])
def test_a_connection_that_rested_long_or_is_old_is_not_taken_again(seconds: float) -> None:
    async def main() -> None:
        now = 0.0
        server = ScriptedServer(OK, OK, OK)
        async with _pool(server, clock=lambda: now) as pool:
            await answer_of(pool)
            await answer_of(pool)
            assert server.num_connections == 1
            now = seconds * 1e6
            await answer_of(pool)
            assert server.num_connections == 2

    run_bounded(main())


def test_what_was_sent_and_not_answered_is_not_sent_again_unless_that_changes_nothing() -> None:
    async def main() -> None:
        server = ScriptedServer(OK, None, OK, None, OK)
        async with _pool(server) as pool:
            await answer_of(pool)
            with pytest.raises(LostError, match="closed the connection"):
                await pool.ask(POST)
            assert len(server.requests) == 2, "it may have been done"
            await answer_of(pool)
            assert await answer_of(pool, GET) == (200, b"ok")
        assert [one.split()[0] for one in server.requests] == [b"POST"] * 3 + [b"GET"] * 2

    run_bounded(main())


@pytest.mark.parametrize(
    "body", [LEAVES, b'{"message": "the server is shutting down"}'], ids=["ours", "DeepL's"]
)
def test_what_a_leaving_server_refuses_is_asked_once_more_on_another_connection(
    body: bytes,
) -> None:
    async def main() -> None:
        server = ScriptedServer(refusal_of(body), OK)
        async with _pool(server) as pool:
            assert await answer_of(pool) == (200, b"ok")
        assert server.num_connections == 2

    run_bounded(main())


@pytest.mark.parametrize(
    "body",
    [
        json.dumps(error_content(cut_off().problem)).encode(),
        json.dumps({"message": cut_off().problem.message}).encode(),
        LEAVES.replace(b'"draining"', b'"other"'),
        b"<p>the server is shutting down</p>",
        b'["the server is shutting down"]',
        b"[" * 50_000,
    ],
)
def test_what_was_cut_off_or_says_something_else_is_not_asked_again(body: bytes) -> None:
    async def main() -> None:
        server = ScriptedServer(refusal_of(body), OK)
        async with _pool(server) as pool:
            answer = await pool.ask(POST)
            assert (answer.status, await answer.read(max_bytes=100_000)) == (503, body)
        assert len(server.requests) == 1

    run_bounded(main())


def test_another_refusal_is_passed_on_as_it_is_and_a_second_one_too() -> None:
    async def main() -> None:
        full = b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 4\r\n\r\nfull"
        async with _pool(ScriptedServer(full)) as pool:
            assert await answer_of(pool) == (503, b"full")
        async with _pool(ScriptedServer(REFUSAL, REFUSAL)) as pool:
            assert await answer_of(pool) == (503, LEAVES)

    run_bounded(main())


def test_a_server_that_is_not_there_had_nothing_of_the_request() -> None:
    async def main() -> None:
        async with _pool(ScriptedServer()) as pool:
            port = pool._port
        gone = _new_pool(port)
        with pytest.raises(RefusedError, match="refused"):
            await gone.ask(POST)

    run_bounded(main())


def test_an_answer_that_breaks_off_is_lost_and_its_connection_with_it() -> None:
    async def main() -> None:
        half = (
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nx: connection: close\r\n\r\n2\r\nok"
        )
        async with _pool(ScriptedServer(half, OK)) as pool:
            answer = await pool.ask(GET)
            assert answer.status == 200
            with pytest.raises(LostError):
                await answer.read(max_bytes=1000)
            assert await answer_of(pool) == (200, b"ok")

    run_bounded(main())


def test_what_is_given_up_is_lost_at_once_and_not_sent_again() -> None:
    async def main() -> None:
        for asked in (POST, GET, replace(POST, is_patient=True)):
            server = ScriptedServer(OK, b"")
            async with _pool(server) as pool:
                await answer_of(pool)
                pool.give_up("nothing waits")
                waiting = asyncio.ensure_future(pool.ask(asked))
                while len(server.requests) < 2:  # noqa: ASYNC110  # nothing tells
                    await asyncio.sleep(0)
                pool.give_up("it does not answer")
                with pytest.raises(SilentError, match=r"^it does not answer$"):
                    await waiting
            assert (len(server.requests), server.num_connections) == (2, 1)

    run_bounded(main())


def test_an_answer_that_has_begun_is_not_given_up() -> None:
    async def main() -> None:
        begun = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n"
        server = ScriptedServer(begun)
        async with _pool(server) as pool:
            answer = await pool.ask(POST)
            pool.give_up("it does not answer")
            server.ends[0].write(b"0\r\n\r\n")
            assert await answer.read(max_bytes=100) == b"ok"

    run_bounded(main())


def test_a_connection_that_is_given_back_when_all_were_closed_is_closed_too() -> None:
    async def main() -> None:
        async with _pool(ScriptedServer(OK)) as pool:
            answer = await pool.ask(GET)
            pool.close()
            assert await answer.read(max_bytes=100) == b"ok"
            assert repr(pool) == "<Pool of 127.0.0.1: 0 idle>"

    run_bounded(main())


def test_a_connection_is_waited_for_as_long_as_is_asked() -> None:
    async def main() -> None:
        seconds = []

        async def connect(_address: str, _port: int, limit: float) -> Connection:
            seconds.append(limit)
            raise ConnectError("no connection")

        pool = Pool("192.0.2.1", 80, seconds=1.0, connect=connect)
        for asking in (pool.ask(GET), pool.ask(GET, connect_seconds=1.5)):
            with pytest.raises(ConnectError):
                await asking
        assert seconds == [CONNECT_SECONDS, 1.5]

    run_bounded(main())


def test_a_silent_server_and_one_that_speaks_no_http_are_lost() -> None:
    async def main() -> None:
        async with _pool(ScriptedServer(b"")) as pool:
            silent = _new_pool(pool._port, seconds=0.05)
            with pytest.raises(LostError, match=r"silent for 0\.05 seconds"):
                await silent.ask(POST)
            silent.close()
        async with _pool(ScriptedServer(b"220 mail ready\r\n")) as pool:
            with pytest.raises(LostError, match="no HTTP"):
                await pool.ask(POST)

    run_bounded(main())


def test_an_answer_that_may_take_long_is_waited_for_and_no_other() -> None:
    async def main() -> None:
        async with _pool(ScriptedServer(b"", OK)) as pool:
            hasty = _new_pool(pool._port, seconds=0.0)
            with pytest.raises(LostError, match="silent for 0 seconds"):
                await hasty.ask(GET)
            assert await answer_of(hasty, replace(POST, is_patient=True)) == (200, b"ok")
            hasty.close()

    run_bounded(main())


def test_a_server_that_vanishes_without_a_word_is_noticed_by_the_system() -> None:
    with socket.socket() as made:
        probe_silence(made)
        assert made.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        assert made.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 30


def test_a_vanished_server_is_lost_to_what_waits_without_a_limit() -> None:
    async def main() -> None:
        async with _pool(ScriptedServer(b"")) as pool:
            reader, writer = await asyncio.open_connection("127.0.0.1", pool._port)
            reader.set_exception(TimeoutError(110, "Connection timed out"))
            connection = Connection(reader, writer, opened_at=0.0)
            with pytest.raises(LostError, match="silent for too long"):
                await connection.ask(replace(POST, is_patient=True), seconds=None)
            connection.close()

    run_bounded(main())


def test_an_answer_that_comes_before_a_large_body_is_sent_is_the_answer() -> None:
    async def main() -> None:
        ends = []

        async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            ends.append(writer)
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 413 Too Large\r\ncontent-length: 2\r\n\r\nno")
            await writer.drain()

        listening = await asyncio.start_server(refuse, "127.0.0.1", 0)
        port = listening.sockets[0].getsockname()[1]
        pool = _new_pool(port)
        large = Asked(
            method=b"POST",
            target=b"/",
            headers=((b"host", b"a"),),
            body=BytesBody(data=bytes(64 * 2**20)),
        )
        assert await answer_of(pool, large) == (413, b"no")
        assert repr(pool) == "<Pool of 127.0.0.1: 0 idle>", "what is left of the body is no request"
        await closed(listening, ends)

    run_bounded(main())
