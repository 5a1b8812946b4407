"""Which servers of a group a pool connects to, and which is next where one begins nothing."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from service.router.connection import Connection
from service.router.groups import ConnectError, Group, SilentError
from service.router.members import Members
from service.router.pool import CONNECT_SECONDS, Pool, open_connection
from support.scripted_server import (
    GET,
    LEAVES,
    OK,
    POST,
    ScriptedServer,
    answer_of,
    closed,
    refusal_of,
    run_bounded,
)


class _Servers:
    """Servers by address, which answer or are not there, and who was tried."""

    def __init__(self, **scripts: ScriptedServer | None) -> None:
        self.scripts = scripts
        self.tried: list[str] = []
        self.seconds: list[float] = []
        self._listening: dict[str, asyncio.Server] = {}

    async def resolve(self, _host: str, _port: int) -> list[str]:
        return list(self.scripts)

    async def connect(self, address: str, _port: int, seconds: float) -> Connection:
        self.tried.append(address)
        self.seconds.append(seconds)
        script = self.scripts[address]
        if script is None:
            raise ConnectError("refused")
        if address not in self._listening:
            self._listening[address] = await asyncio.start_server(script.serve, "127.0.0.1", 0)
        port = self._listening[address].sockets[0].getsockname()[1]
        connection = await open_connection("127.0.0.1", port, seconds)
        connection.address = address
        return connection

    @asynccontextmanager
    async def pool(self, *, seconds: float = 10.0, is_watch: bool = False) -> AsyncIterator[Pool]:
        group = Group(name="a", host="pods", port=8000)
        members = Members(group, resolve=self.resolve, clock=lambda: 0.0)
        pool = Pool(
            group,
            members,
            seconds=seconds,
            is_watch=is_watch,
            clock=lambda: 0.0,
            connect=self.connect,
        )
        try:
            yield pool
        finally:
            pool.close()
            for address, listening in self._listening.items():
                script = self.scripts[address]
                await closed(listening, script.ends if script else [])


def test_new_connections_are_those_of_one_server_after_another() -> None:
    async def main() -> None:
        servers = _Servers(a=ScriptedServer(OK, OK), b=ScriptedServer(OK, OK))
        async with servers.pool() as pool:
            for _ in range(4):
                assert await answer_of(pool) == (200, b"ok")
                pool.close()
        assert servers.tried == ["a", "b", "a", "b"]

    run_bounded(main())


def test_the_next_server_is_tried_where_one_is_not_reached_and_that_one_comes_last_then() -> None:
    async def main() -> None:
        servers = _Servers(a=None, b=ScriptedServer(OK, OK), c=None)
        async with servers.pool() as pool:
            assert await answer_of(pool) == (200, b"ok")
            assert servers.tried == ["a", "b"]
            assert servers.seconds == [CONNECT_SECONDS / 3, CONNECT_SECONDS / 2]
            pool.close()
            assert await answer_of(pool) == (200, b"ok")
            assert servers.tried == ["a", "b", "b"]
        many = _Servers(**dict.fromkeys("abcdefgh"), z=ScriptedServer(OK))
        async with many.pool() as pool:
            assert await answer_of(pool) == (200, b"ok")
            assert min(many.seconds) == 1.0
        nobody = _Servers(a=None, b=None)
        async with nobody.pool() as pool:
            with pytest.raises(ConnectError, match="refused"):
                await pool.ask(POST)
            assert nobody.tried == ["a", "b"]

    run_bounded(main())


@pytest.mark.parametrize("code", ["draining", "booting", "restarting", "too_many_connections"])
def test_what_one_server_has_not_begun_is_asked_of_the_next_one(code: str) -> None:
    refusal = refusal_of(LEAVES.replace(b'"draining"', b'"%s"' % code.encode()))

    async def main() -> None:
        servers = _Servers(a=ScriptedServer(refusal), b=ScriptedServer(OK))
        async with servers.pool() as pool:
            assert await answer_of(pool) == (200, b"ok")
        servers = _Servers(a=ScriptedServer(refusal), b=None)
        async with servers.pool() as pool:
            assert (await answer_of(pool))[0] == 503, "its own word, as the other has none"
        servers = _Servers(a=ScriptedServer(refusal, refusal), b=ScriptedServer(OK))
        async with servers.pool() as pool:
            assert (await pool.ask(POST, address="a")).status == 503
        assert set(servers.tried) == {"a"}

    run_bounded(main())


def test_one_server_is_asked_on_connections_of_its_own() -> None:
    async def main() -> None:
        servers = _Servers(a=ScriptedServer(OK, OK), b=ScriptedServer(OK, OK))
        async with servers.pool() as pool:
            for address in ("a", "b", "a", "b"):
                answer = await pool.ask(POST, address=address)
                assert await answer.read(max_bytes=100) == b"ok"
        assert servers.tried == ["a", "b"]

    run_bounded(main())


def test_a_kept_connection_of_a_server_that_failed_or_left_is_not_taken() -> None:
    async def main() -> None:
        servers = _Servers(a=ScriptedServer(OK), b=ScriptedServer(OK, OK))
        async with servers.pool() as pool:
            await answer_of(pool)
            pool.members.note_lost("a")
            await answer_of(pool)
            assert servers.tried == ["a", "b"]
            del servers.scripts["a"]
            await pool.members.all()
            await answer_of(pool)
            assert servers.tried == ["a", "b"]
            servers.scripts["a"] = ScriptedServer()

    run_bounded(main())


def test_a_server_that_is_silent_to_the_watch_has_failed_and_to_others_is_slow() -> None:
    async def main() -> None:
        for is_watch in (True, False):
            servers = _Servers(a=ScriptedServer(b""), b=ScriptedServer(OK))
            async with servers.pool(seconds=0.05, is_watch=is_watch) as pool:
                with pytest.raises(SilentError):
                    await pool.ask(GET)
                assert pool.members.is_well("a") is not is_watch

    run_bounded(main())
