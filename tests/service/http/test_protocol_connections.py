"""When all connections are taken: who is refused, and who makes room."""

import asyncio
from collections.abc import Callable

import pytest

from support.wire import CLOSE, Served, get, problem_of, until


def test_connections_beyond_the_limit_are_refused_while_all_have_a_request(
    run: Callable[..., None],
) -> None:
    async def scenario(served: Served) -> None:
        held = [await served.connect() for _ in range(3)]
        for _, writer in held:
            writer.write(get("/wait"))
        await until(lambda: served.app.num_requests == 3)
        answer = await served.exchange()
        assert problem_of(answer) == (503, "too_many_connections")
        assert b"\r\nretry-after: 5" in answer
        assert served.refused == {"too_many_connections": 1}
        served.app.release.set()
        for reader, _ in held:
            await reader.readuntil(b"fine /wait")
        assert (await served.exchange(get("/", CLOSE))).startswith(b"HTTP/1.1 200")
        for _, writer in held:
            writer.close()

    run(scenario, max_connections=3)


def test_who_has_waited_longest_for_a_request_makes_room(run: Callable[..., None]) -> None:
    async def scenario(served: Served) -> None:
        busy = await served.connect()
        busy[1].write(get("/wait"))
        await until(lambda: served.app.num_requests == 1)
        silent = await served.connect()
        await asyncio.sleep(0.02)  # a loop's clock may be coarse
        partial = await served.connect()
        partial[1].write(b"GET / HTTP/1.1\r\n")
        await asyncio.sleep(0.02)
        kept = await served.connect()
        kept[1].write(get())
        await kept[0].readuntil(b"fine /")
        # Each newcomer takes the place of the oldest of those; the busy one keeps its own.
        assert (await served.exchange(get("/", CLOSE))).startswith(b"HTTP/1.1 200")
        assert await silent[0].read() == b""
        newcomers = [await served.connect() for _ in range(2)]
        assert problem_of(await partial[0].read()) == (503, "too_many_connections")
        assert served.refused == {"displaced": 2}
        served.app.release.set()
        await busy[0].readuntil(b"fine /wait")
        kept[1].write(get())
        await kept[0].readuntil(b"fine /")
        for _, writer in (busy, silent, partial, kept, *newcomers):
            writer.close()

    run(scenario, max_connections=4)


@pytest.mark.parametrize("headers", [(), (CLOSE,)], ids=["kept", "closed"])
def test_an_answered_request_whose_body_never_ends_makes_room_before_anybody_who_waits(
    run: Callable[..., None], headers: tuple[bytes, ...]
) -> None:
    async def scenario(served: Served) -> None:
        silent = await served.connect()
        await until(lambda: served.server.server_state.connections)
        answered = [await served.connect() for _ in range(2)]
        for reader, writer in answered:
            writer.write(get("/", b"content-length: 9", *headers).replace(b"GET", b"POST") + b"abc")
            await reader.readuntil(b"fine /")
        newcomers = [await served.connect() for _ in range(2)]
        for reader, writer in newcomers:
            writer.write(get())
            assert (await reader.readuntil(b"fine /")).startswith(b"HTTP/1.1 200")
        assert [await reader.read() for reader, _ in answered] == [b"", b""]
        silent[1].write(get("/", CLOSE))
        assert (await silent[0].read()).startswith(b"HTTP/1.1 200")
        assert not served.refused
        for _, writer in (silent, *answered, *newcomers):
            writer.close()

    run(scenario, max_connections=3)


@pytest.mark.parametrize("headers", [(), (CLOSE,)], ids=["kept", "closed"])
def test_an_answer_that_is_still_read_is_cut_off_for_nobody(
    run: Callable[..., None], headers: tuple[bytes, ...]
) -> None:
    async def scenario(served: Served) -> None:
        reader, writer = await served.connect()
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(get("/full", b"content-length: 9", *headers).replace(b"GET", b"POST") + b"abc")
        await until(lambda: served.app.num_waiting_bytes() >= 1000)
        newcomer = await served.connect()
        await asyncio.sleep(0.05)
        writer.transport.resume_reading()  # type: ignore[attr-defined]
        assert (await reader.read()).endswith(b"\r\n0\r\n\r\n")
        for _, one in ((reader, writer), newcomer):
            one.close()

    run(scenario, max_connections=1)


def test_a_connection_without_a_next_request_is_closed_after_its_time_and_makes_room_before(
    run: Callable[..., None],
) -> None:
    async def left_alone(served: Served) -> None:
        reader, writer = await served.connect()
        for _ in range(2):
            writer.write(get())
            await reader.readuntil(b"fine /")
        assert await reader.read() == b""
        assert not served.refused
        writer.close()

    async def needed(served: Served) -> None:
        held = [await served.connect() for _ in range(2)]
        for reader, writer in held:
            writer.write(get())
            await reader.readuntil(b"fine /")
            await asyncio.sleep(0.02)  # a loop's clock may be coarse
        assert (await served.exchange(get("/", CLOSE))).startswith(b"HTTP/1.1 200")
        assert await held[0][0].read() == b""
        assert served.refused == {"displaced": 1}
        for _, writer in held:
            writer.close()

    run(left_alone, idle_timeout_seconds=1.0)
    run(needed, idle_timeout_seconds=86_400.0, max_connections=2)


def test_silent_connections_shut_nobody_out(run: Callable[..., None]) -> None:
    async def scenario(served: Served) -> None:
        held = [await served.connect() for _ in range(40)]
        for _ in range(3):
            assert (await served.exchange(get("/", CLOSE))).startswith(b"HTTP/1.1 200")
        for _, writer in held:
            writer.close()

    run(scenario, max_connections=10)


def test_a_client_that_leaves_frees_the_request_in_work_whatever_waits_behind_it(
    run: Callable[..., None],
) -> None:
    async def scenario(served: Served) -> None:
        _, writer = await served.connect()
        writer.write(get("/until-gone") + get("/wait") + get("/wait"))
        await until(lambda: served.app.num_requests == 1)
        writer.close()
        await until(lambda: served.app.num_gone == 1)
        assert served.app.num_requests == 1

    run(scenario)
