"""Connections that go from one server to another in the middle of what is said on them."""

import asyncio
import os
import resource
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from subprocess import PIPE

import pytest

from service.http.passing import Receiver, Sender, channel
from service.listening import protocol_of
from support.wire import CLOSE, Served, get, serving_app, until

HEAD = b"POST /read HTTP/1.1\r\nhost: a\r\n"


class _Keeps:
    """Keeps the paths under /wait and /own, and passes the others on."""

    def __init__(self, channel: socket.socket) -> None:
        self._sender = Sender(channel, asyncio.get_running_loop())
        self.num_passed = 0
        self.is_full = False

    def keeps(self, method: bytes, url: bytes) -> bool:
        return method == b"GET" and url.startswith((b"/own", b"/wait", b"/large"))

    def take(self, connection: socket.socket, data: bytes) -> bool:
        if self.is_full or not self._sender.send(connection, data):
            return False
        self.num_passed += 1
        return True

    def close(self) -> None:
        self._sender.close()


@asynccontextmanager
async def _two_servers() -> AsyncIterator[tuple[Served, Served, _Keeps]]:
    """One that clients connect to, and the other one."""
    sending, receiving = channel()
    keeps = _Keeps(sending)
    async with serving_app(keeps) as first, serving_app() as second:
        loop = asyncio.get_running_loop()
        taken: set[asyncio.Task[object]] = set()

        def take(connection: socket.socket, data: bytes) -> None:
            made = protocol_of(second.server).received_before(data)
            taken.add(loop.create_task(loop.connect_accepted_socket(lambda: made, connection)))

        receiver = Receiver(receiving, loop, take)
        try:
            yield first, second, keeps
        finally:
            receiver.close()
            keeps.close()


def _run(scenario: Callable[[Served, Served, _Keeps], Awaitable[None]]) -> None:
    async def run() -> None:
        async with _two_servers() as servers:
            await scenario(*servers)

    asyncio.run(run())


def _num_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_a_connection_goes_on_where_the_next_request_is_answered() -> None:
    async def scenario(first: Served, second: Served, keeps: _Keeps) -> None:
        reader, writer = await first.connect()
        writer.write(get("/own"))
        assert b"fine /own" in await reader.readuntil(b"fine /own")
        writer.write(HEAD + b"content-length: 4\r\n\r\nab")
        await until(lambda: second.app.num_requests)
        writer.write(b"cd" + get("/own/two", CLOSE))
        answers = await reader.read()
        writer.close()
        assert answers.count(b"HTTP/1.1 200") == 2
        assert b"read 4" in answers
        assert answers.endswith(b"fine /own/two")  # whoever has the connection keeps it
        assert (first.app.num_requests, second.app.num_requests, keeps.num_passed) == (1, 2, 1)
        await first.until_left()

    _run(scenario)


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_whatever_way_requests_are_cut_all_are_answered_in_order(size: int) -> None:
    async def scenario(first: Served, second: Served, _: _Keeps) -> None:
        body = b"4\r\nab\r\n\r\n0\r\n\r\n"  # a chunk that looks like the end of a head
        requests = [
            get("/own/1"),
            HEAD + b"transfer-encoding: chunked\r\n\r\n" + body,
            get("/2"),
            get("/own/3", CLOSE),
        ]
        data = b"".join(requests)
        parts = [data[start : start + size] for start in range(0, len(data), size)]
        answers = await first.exchange(*parts)
        assert answers.count(b"HTTP/1.1 200") == len(requests)
        places = [answers.index(word) for word in (b"/own/1", b"read 4", b"fine /2", b"/own/3")]
        assert places == sorted(places)
        assert (first.app.num_requests, second.app.num_requests) == (1, 3)

    _run(scenario)


def test_a_request_behind_one_in_work_is_passed_on_after_its_answer() -> None:
    async def scenario(first: Served, second: Served, keeps: _Keeps) -> None:
        reader, writer = await first.connect()
        writer.write(get("/wait") + get("/later") + get("/last", CLOSE))
        await until(lambda: first.app.num_requests)
        assert not keeps.num_passed
        first.app.release.set()
        answers = await reader.read()
        writer.close()
        assert [word in answers for word in (b"/wait", b"/later", b"/last")] == [True] * 3
        assert (first.app.num_requests, second.app.num_requests) == (1, 2)

    _run(scenario)


def test_a_client_that_sends_no_more_has_its_answer_from_the_other_one() -> None:
    async def scenario(first: Served, second: Served, _: _Keeps) -> None:
        answers = await first.fling([get("/own"), get("/other")])
        assert b"fine /own" in answers
        assert b"fine /other" in answers
        assert second.app.num_requests == 1

    _run(scenario)


def test_an_answer_that_is_not_read_yet_is_whole_before_the_connection_goes_on() -> None:
    async def scenario(first: Served, second: Served, keeps: _Keeps) -> None:
        reader, writer = await first.connect()
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(get("/large") + get("/other", CLOSE))
        await until(lambda: first.app.num_requests)
        assert not keeps.num_passed
        writer.transport.resume_reading()  # type: ignore[attr-defined]
        answers = await reader.read()
        writer.close()
        large, _, other = answers.rpartition(b"HTTP/1.1 200")
        assert large.count(b"x") >= 256 * 65_536
        assert other.endswith(b"fine /other")
        assert second.app.num_requests == 1

    _run(scenario)


def test_a_wrong_head_is_refused_where_it_came() -> None:
    async def scenario(first: Served, second: Served, keeps: _Keeps) -> None:
        answers = await first.exchange(b"GET /other HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n")
        assert b"HTTP/1.1 400" in answers
        assert (second.app.num_requests, keeps.num_passed) == (0, 0)

    _run(scenario)


def test_no_descriptor_is_left_behind() -> None:
    async def scenario(first: Served, second: Served, _: _Keeps) -> None:
        before = _num_files()
        for _ in range(20):
            assert b"fine /other" in await first.exchange(get("/other", CLOSE))
        await first.until_left()
        await second.until_left()
        await until(lambda: _num_files() <= before)

    _run(scenario)


def test_what_finds_no_room_is_sent_later_and_in_order() -> None:
    async def scenario() -> None:
        sending, receiving = channel()
        sending.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
        loop = asyncio.get_running_loop()
        sender = Sender(sending, loop, max_waiting=200)
        own, other = socket.socketpair()
        for number in range(200):
            assert sender.send(own, str(number).encode())
        assert "waiting=0" not in repr(sender)
        came: list[bytes] = []

        def take(connection: socket.socket, data: bytes) -> None:
            connection.close()
            came.append(data)

        receiver = Receiver(receiving, loop, take)
        await until(lambda: len(came) == 200)
        assert came == [str(number).encode() for number in range(200)]
        receiver.close()
        sender.close()
        own.close()
        other.close()

    asyncio.run(scenario())


def test_so_many_connections_wait_and_no_more() -> None:
    async def scenario() -> None:
        sending, receiving = channel()
        loop = asyncio.get_running_loop()
        sender = Sender(sending, loop, max_waiting=3)
        own, other = socket.socketpair()
        num_sent = 0
        while sender.send(own, b""):
            num_sent += 1
        assert "waiting=3" in repr(sender)
        before = _num_files()
        assert not sender.send(own, b"")
        assert _num_files() == before
        taken: list[socket.socket] = []
        receiver = Receiver(receiving, loop, lambda connection, _: taken.append(connection))
        await until(lambda: len(taken) == num_sent)
        assert sender.send(own, b""), "there is room again"
        await until(lambda: len(taken) == num_sent + 1)
        for one in (*taken, own, other):
            one.close()
        receiver.close()
        sender.close()

    asyncio.run(scenario())


@contextmanager
def _files_to_spare(number: int) -> Iterator[None]:
    """As many files as this process may open, at least one, and no more."""
    free = [os.dup(0) for _ in range(number)]
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for one in free:
        os.close(one)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(free) + 1, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_where_no_file_can_be_opened_nothing_is_passed_on_and_nothing_left_behind() -> None:
    async def scenario() -> None:
        sending, receiving = channel()
        sender = Sender(sending, asyncio.get_running_loop())
        own, other = socket.socketpair()
        before = _num_files()
        with _files_to_spare(1):  # the file of what was read, and none for the connection
            assert not sender.send(own, b"data")
        assert _num_files() == before
        with _files_to_spare(2):
            assert sender.send(own, b"data")
        sender.close()
        for one in (own, other, receiving):
            one.close()

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "head", [get("/other"), HEAD + b"content-length: 4\r\n\r\n", get("/own") + get("/other")]
)
def test_what_there_is_no_room_for_is_refused_and_its_connection_closed(head: bytes) -> None:
    async def scenario(first: Served, second: Served, keeps: _Keeps) -> None:
        keeps.is_full = True
        reader, writer = await first.connect()
        writer.write(head)
        async with asyncio.timeout(10):
            answers = await reader.read()
        assert answers.count(b"fine /own") == head.count(b"/own")
        _, _, last = answers.rpartition(b"HTTP/1.1 ")
        assert last.startswith(b"503 ")
        assert b"too_many_connections" in last
        assert b"retry-after: 5" in last.lower()
        writer.write(b"body")
        writer.close()
        await first.until_left()
        assert first.refused == {"too_many_connections": 1}
        keeps.is_full = False
        assert b"fine /other" in await first.exchange(get("/other", CLOSE))
        assert second.app.num_requests == 1

    _run(scenario)


def test_what_waits_behind_an_answer_is_refused_after_it_where_there_is_no_room() -> None:
    async def scenario(first: Served, second: Served, keeps: _Keeps) -> None:
        keeps.is_full = True
        reader, writer = await first.connect()
        writer.write(get("/wait") + get("/later") + get("/own"))
        await until(lambda: first.app.num_requests)
        first.app.release.set()
        async with asyncio.timeout(10):
            answers = await reader.read()
        writer.close()
        assert answers.startswith(b"HTTP/1.1 200")
        assert answers.index(b"fine /wait") < answers.index(b"HTTP/1.1 503")
        assert answers.count(b"HTTP/1.1") == 2
        await first.until_left()
        assert (first.app.num_requests, second.app.num_requests) == (1, 0)

    _run(scenario)


def test_a_child_of_the_receiver_has_no_connection_of_it() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        sending, receiving = channel()
        sender = Sender(sending, loop)
        client, served = socket.socketpair()
        client.setblocking(False)
        with served:
            sender.send(served, b"")
        taken: asyncio.Future[socket.socket] = loop.create_future()
        receiver = Receiver(receiving, loop, lambda connection, _: taken.set_result(connection))
        connection = await taken
        # As uvloop starts one: it closes nothing.
        child = await asyncio.create_subprocess_exec("cat", stdin=PIPE, close_fds=False)
        connection.close()
        try:
            async with asyncio.timeout(5):
                assert await loop.sock_recv(client, 1) == b"", "it ends when it is closed here"
        finally:
            await child.communicate(b"")
        client.close()
        receiver.close()
        sender.close()

    asyncio.run(scenario())


def test_what_was_sent_before_the_receiver_closes_is_taken() -> None:
    async def scenario() -> list[bytes]:
        loop, taken = asyncio.get_running_loop(), list[bytes]()

        def take(connection: socket.socket, data: bytes) -> None:
            connection.close()
            taken.append(data)

        sending, receiving = channel()
        receiver, sender = Receiver(receiving, loop, take), Sender(sending, loop)
        for data in (b"one", b"other"):
            with socket.socket() as connection:
                sender.send(connection, data)
        sender.close()
        receiver.close()
        return taken

    assert asyncio.run(scenario()) == [b"one", b"other"]
