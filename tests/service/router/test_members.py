"""Which servers a name has, in which order they are asked, and which are passed over."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence

import pytest

from service.router.groups import ConnectError, Group
from service.router.members import (
    KEPT_SECONDS,
    LEFT_SECONDS,
    RETRY_SECONDS,
    Members,
    resolve,
)

A, B, C = "192.0.2.1", "192.0.2.2", "192.0.2.3"
NO_NAME = socket.gaierror(socket.EAI_NONAME, "Name or service not known")


class _Name:
    """A name whose addresses change, with a clock that stands still until it is put forward."""

    def __init__(self, *addresses: str) -> None:
        self.found: Sequence[str] | Exception = addresses
        self.now = 0.0
        self.num_looks = 0
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        group = Group(name="a", host="pods", port=8000)
        self.members = Members(group, resolve=self._resolve, clock=lambda: self.now)

    async def _resolve(self, host: str, port: int) -> Sequence[str]:
        assert (host, port) == ("pods", 8000)
        self.num_looks += 1
        await self.may_answer.wait()
        if isinstance(self.found, Exception):
            raise self.found
        return self.found

    async def becomes(self, *addresses: str, seconds: float = 0.0) -> None:
        self.found = addresses
        self.now += seconds
        await self.members.all()


def _run(scenario: Callable[[_Name], Awaitable[None]], *addresses: str) -> None:
    async def run() -> None:
        await scenario(_Name(*addresses))

    asyncio.run(run())


async def _all(name: _Name) -> list[tuple[str, bool, bool]]:
    found = await name.members.all()
    return [(one.address, one.is_named, one.is_doubtful) for one in found]


def test_each_server_comes_first_in_turn_whatever_order_the_name_has() -> None:
    async def scenario(name: _Name) -> None:
        assert [await name.members.in_turn() for _ in range(4)] == [
            [A, B, C],
            [B, C, A],
            [C, A, B],
            [A, B, C],
        ]
        assert name.members.are_several

    _run(scenario, C, A, B)


def test_an_address_is_its_own_server_and_is_never_looked_up() -> None:
    async def main() -> None:
        async def refuse(_host: str, _port: int) -> Sequence[str]:
            raise AssertionError("an address is no name")

        for host in ("127.0.0.1", "::1"):
            members = Members(Group(name="a", host=host, port=80), resolve=refuse)
            assert await members.in_turn() == [host]
            assert [one.address for one in await members.all()] == [host]
            assert not members.are_several

    asyncio.run(main())


def test_a_name_is_looked_up_once_for_a_while_and_nobody_waits_where_it_is_known() -> None:
    async def scenario(name: _Name) -> None:
        await asyncio.gather(*(name.members.in_turn() for _ in range(3)))
        assert name.num_looks == 1
        name.found = (A, B)
        name.now = KEPT_SECONDS - 0.1
        assert await name.members.in_turn() == [A]
        assert name.num_looks == 1
        name.now = KEPT_SECONDS
        name.may_answer.clear()
        assert await name.members.in_turn() == [A], "the look goes on beside"
        name.may_answer.set()
        assert {one.address for one in await name.members.all()} == {A, B}
        assert name.num_looks == 2

    _run(scenario, A)


def test_what_has_an_id_is_looked_for_in_servers_that_have_just_come() -> None:
    async def scenario(name: _Name) -> None:
        await name.members.in_turn()
        name.found = (A, B)
        assert [address for address, *_ in await _all(name)] == [A, B]

    _run(scenario, A)


@pytest.mark.parametrize("failure", [NO_NAME, UnicodeError("label too long"), ()])
def test_the_last_known_are_kept_while_the_name_cannot_be_looked_up(
    failure: Exception | Sequence[str],
) -> None:
    async def scenario(name: _Name) -> None:
        await name.members.in_turn()
        name.found = failure
        name.now = 100.0
        assert await _all(name) == [(A, True, False), (B, True, False)]
        assert name.num_looks == 2

    _run(scenario, A, B)


def test_a_name_without_an_address_is_told_in_the_systems_words_and_looked_up_again() -> None:
    async def scenario(name: _Name) -> None:
        name.found = NO_NAME
        for _ in range(2):
            with pytest.raises(ConnectError, match="Name or service not known"):
                await name.members.in_turn()
        assert name.num_looks == 1
        name.found, name.now = (A,), KEPT_SECONDS
        assert await name.members.in_turn() == [A]
        name.found = UnicodeError("label too long")

    _run(scenario)


def test_a_name_that_is_none_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(name: _Name) -> None:
        name.found = UnicodeError("label too long")
        with pytest.raises(ConnectError, match="'pods' is no name of a host"):
            await name.members.all()
        monkeypatch.setattr("service.router.members.LOOKUP_SECONDS", 0.01)
        name.may_answer.clear()
        with pytest.raises(ConnectError, match="no name of a host"):
            await name.members.all()

    _run(scenario)


def test_a_server_that_failed_comes_last_until_it_answers() -> None:
    async def scenario(name: _Name) -> None:
        await name.members.in_turn()
        name.members.note_lost(A)
        assert await name.members.in_turn() == [B, A]
        assert await name.members.in_turn() == [B, A]
        assert await _all(name) == [(B, True, False), (A, True, True)]
        assert (name.members.is_well(A), name.members.is_well(B)) == (False, True)
        name.members.note_well(A)
        assert name.members.is_well(A)
        assert sorted([await name.members.in_turn() for _ in range(2)]) == [[A, B], [B, A]]

    _run(scenario, A, B)


def test_the_watch_alone_asks_a_server_that_failed_again_and_not_at_once() -> None:
    async def scenario(name: _Name) -> None:
        await name.members.in_turn()
        name.members.note_lost(A)
        assert (await name.members.in_turn(retries=True))[0] == B
        name.now = RETRY_SECONDS
        assert (await name.members.in_turn())[0] == B
        assert await name.members.in_turn(retries=True) == [A, B]
        name.members.note_lost(A)
        assert await name.members.in_turn(retries=True) == [B, A]

    _run(scenario, A, B)


def test_a_server_that_stays_silent_is_given_up_and_one_that_is_not_there_is_not() -> None:
    async def scenario(name: _Name) -> None:
        await name.members.in_turn()
        for _ in range(3):
            assert name.members.silent == []
            name.members.note_silent(A)
            name.members.note_lost(B)
        assert name.members.silent == [A]
        name.members.note_well(A)
        assert name.members.silent == []

    _run(scenario, A, B)


def test_where_all_failed_all_are_asked() -> None:
    async def scenario(name: _Name) -> None:
        await name.members.in_turn()
        for address in (A, B):
            name.members.note_lost(address)
        assert sorted(await name.members.in_turn()) == [A, B]
        assert await _all(name) == [(A, True, True), (B, True, True)]

    _run(scenario, A, B)


def test_addresses_of_the_other_family_are_the_same_servers() -> None:
    async def scenario(name: _Name) -> None:
        assert await name.members.in_turn() == [A, "::1"]
        assert await _all(name) == [(A, True, False)]
        name.members.note_lost(A)
        assert await name.members.in_turn() == ["::1", A]
        assert await _all(name) == [("::1", True, False)], "it listens on that one alone"

    _run(scenario, "::1", A)


def test_a_server_that_left_its_name_is_asked_for_what_it_has_for_a_while() -> None:
    async def scenario(name: _Name) -> None:
        await name.members.in_turn()
        await name.becomes(B, C)
        assert await name.members.in_turn() == [C, B]
        assert not name.members.is_well(A)
        assert await _all(name) == [(B, True, False), (C, True, False), (A, False, True)]
        await name.becomes(C, seconds=1.0)
        name.members.note_lost(B)
        assert await _all(name) == [(C, True, False), (A, False, True)], "B is no more"
        await name.becomes(A, C)
        assert await _all(name) == [(A, True, False), (C, True, False)], "A is back"
        await name.becomes(C)
        name.now += LEFT_SECONDS
        assert await _all(name) == [(C, True, False)]

    _run(scenario, A, B)


def test_the_system_resolves_a_name_to_each_address_once() -> None:
    found = asyncio.run(resolve("localhost", 80))
    assert set(found) <= {"127.0.0.1", "::1"}
    assert len(found) == len(set(found)) > 0
