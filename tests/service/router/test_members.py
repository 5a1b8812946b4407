"""Which servers a name has, whose turn it is, and when one is forgotten."""

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, Sequence

import pytest

from service.router.directory import NOT_ASKED, ServerState
from service.router.groups import ConnectError, Group, RefusedError
from service.router.members import FRESH_SECONDS, LOOKUP_SECONDS, Member, Members, resolve

A, B, C = "192.0.2.1", "192.0.2.2", "192.0.2.3"
NO_NAME = socket.gaierror(socket.EAI_NONAME, "Name or service not known")
UP = ServerState(problem="")
UNREADY = ServerState(problem="the server is shutting down", is_unready=True)
KEEP_SECONDS = 3600.0


class _Name:
    """A name whose addresses change, with a clock that stands still until it is put forward."""

    def __init__(self, *addresses: str) -> None:
        self.found: Sequence[str] | Exception = addresses
        self.now = 0.0
        self.num_looks = 0
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.members = Members(
            Group(name="a", host="pods", port=8000),
            seconds=10.0,
            keep_seconds=KEEP_SECONDS,
            resolve=self._resolve,
            clock=lambda: self.now,
        )

    async def _resolve(self, host: str, port: int) -> Sequence[str]:
        assert (host, port) == ("pods", 8000)
        self.num_looks += 1
        await self.may_answer.wait()
        if isinstance(self.found, Exception):
            raise self.found
        return self.found

    async def becomes(self, *addresses: str) -> None:
        self.found = addresses
        self.now += FRESH_SECONDS
        await self.members.look()

    def one(self, address: str) -> Member:
        return next(one for one in self.members.all if one.address == address)

    def are(self, state: ServerState, *addresses: str) -> None:
        for address in addresses:
            self.members.note(self.one(address), state)

    @property
    def named(self) -> list[str]:
        return _addresses(self.members.named)

    @property
    def turns(self) -> list[list[str]]:
        return [_addresses(self.members.in_turn()) for _ in range(6)]


def _addresses(members: Sequence[Member]) -> list[str]:
    return [one.address for one in members]


def _run(scenario: Callable[[_Name], Awaitable[None]], *addresses: str) -> None:
    async def run() -> None:
        name = _Name(*addresses)
        await name.members.look()
        await scenario(name)

    asyncio.run(run())


def test_each_server_that_is_up_comes_first_in_turn_whatever_order_the_name_has() -> None:
    async def scenario(name: _Name) -> None:
        name.are(UP, A, B, C)
        assert name.turns[:3] == [[B, C, A], [C, A, B], [A, B, C]]
        name.are(ServerState(problem="gone"), B)
        turns = name.turns
        assert sorted(turns) == [[A, C]] * 3 + [[C, A]] * 3, "nobody has another one's part"

    _run(scenario, C, A, B)


def test_those_that_answer_come_before_any_and_where_none_does_all_are_asked() -> None:
    async def scenario(name: _Name) -> None:
        assert {tuple(sorted(one)) for one in name.turns} == {(A, B, C)}
        name.are(UNREADY, B)
        assert name.turns == [[B]] * 6
        name.are(UP, C)
        assert name.turns == [[C, B]] * 6
        name.are(ServerState(problem="gone"), A, B, C)
        assert {tuple(sorted(one)) for one in name.turns} == {(A, B, C)}

    _run(scenario, A, B, C)


def test_what_has_an_id_is_looked_for_in_turns_of_its_own() -> None:
    async def scenario(name: _Name) -> None:
        name.are(UP, A, B)
        turns = []
        for _ in range(4):
            name.members.that_may_have()
            turns.append(name.members.in_turn()[0].address)
        assert sorted(turns) == [A, A, B, B]
        firsts = [name.members.that_may_have()[0].address for _ in range(4)]
        assert sorted(firsts) == [A, A, B, B]

    _run(scenario, A, B)


def test_an_address_is_its_own_server_and_is_never_looked_up() -> None:
    async def main() -> None:
        async def refuse(_host: str, _port: int) -> Sequence[str]:
            raise AssertionError("an address is no name")

        for host in ("127.0.0.1", "::1"):
            group = Group(name="a", host=host, port=80)
            members = Members(group, seconds=1.0, keep_seconds=1.0, resolve=refuse)
            await members.look()
            assert _addresses(members.named) == _addresses(members.in_turn()) == [host]
            assert members.connect_seconds == 3.0

    asyncio.run(main())


def test_a_name_is_looked_up_once_for_those_who_come_at_once_or_just_after() -> None:
    async def scenario(name: _Name) -> None:
        assert name.members.connect_seconds == 1.5, "there is another one to go to"
        await asyncio.gather(*(name.members.look() for _ in range(3)))
        assert name.num_looks == 1
        name.now = FRESH_SECONDS
        await asyncio.gather(*(name.members.look() for _ in range(3)))
        assert name.num_looks == 2

    _run(scenario, A, B)


def test_a_look_that_hangs_is_waited_for_once_and_is_taken_when_it_ends() -> None:
    async def scenario(name: _Name) -> None:
        loop = asyncio.get_running_loop()
        name.now, name.found = 10.0, (A, B)
        name.may_answer.clear()
        started = loop.time()
        await name.members.look()
        assert loop.time() - started >= LOOKUP_SECONDS - 0.1
        name.now += LOOKUP_SECONDS
        for _ in range(3):
            await name.members.look()
        assert loop.time() - started < 2 * LOOKUP_SECONDS
        assert (name.num_looks, name.named) == (2, [A])
        name.may_answer.set()
        while name.named != [A, B]:  # noqa: ASYNC110  # nothing tells
            await asyncio.sleep(0)

    _run(scenario, A)


@pytest.mark.parametrize("failure", [NO_NAME, UnicodeError("label too long"), ()])
def test_the_last_known_are_kept_while_the_name_cannot_be_looked_up(
    failure: Exception | Sequence[str],
) -> None:
    async def scenario(name: _Name) -> None:
        name.found = failure
        name.now = 100.0
        await name.members.look()
        assert (name.num_looks, name.named) == (2, [A, B])

    _run(scenario, A, B)


def test_why_a_name_has_no_address_is_told_and_it_is_looked_up_again() -> None:
    async def scenario(name: _Name) -> None:
        assert name.named == [] == name.members.in_turn()
        for failure, words in (
            (UnicodeError("label too long"), "'pods' is no name of a host"),
            (NO_NAME, "Name or service not known"),
        ):
            name.found = failure
            name.now += FRESH_SECONDS
            await name.members.look()
            assert name.members.problem == words
        await name.becomes(A)
        assert name.named == [A]
        assert name.one(A).state.problem == NOT_ASKED

    _run(scenario)


def test_addresses_of_the_other_family_are_the_same_servers() -> None:
    async def scenario(name: _Name) -> None:
        assert name.named == [A]
        name.are(ServerState(problem="gone"), A)
        assert name.named == [A]
        name.are(UP, "::1")
        assert name.named == ["::1"], "it listens on that one alone"
        name.are(UP, A)
        assert name.named == [A]

    _run(scenario, "::1", A)


def test_a_server_that_left_its_name_is_asked_for_what_it_has_and_for_nothing_else() -> None:
    async def scenario(name: _Name) -> None:
        name.are(UP, A, B)
        await name.becomes(B, C)
        name.are(UP, C)
        assert {one[0] for one in name.turns} == {B, C}
        assert _addresses(name.members.that_may_have())[-1] == A
        assert name.one(A).state == UP
        await name.becomes(A, C)
        assert name.named == [A, C]
        assert _addresses(name.members.that_may_have())[-1] == B

    _run(scenario, A, B)


@pytest.mark.parametrize("error", [RefusedError("refused"), ConnectError("no connection")])
def test_a_server_that_left_is_no_more_when_it_is_not_reached(error: ConnectError) -> None:
    async def scenario(name: _Name) -> None:
        await name.becomes(B)
        for member in name.members.all:
            name.members.note_unreached(member, error)
        assert _addresses(name.members.all) == [B]
        assert name.one(B).state.is_mute is not isinstance(error, RefusedError)

    _run(scenario, A, B)


def test_a_server_that_left_is_kept_as_long_as_it_may_have_something_or_something_waits() -> None:
    async def scenario(name: _Name) -> None:
        await name.becomes(B)
        name.now += KEEP_SECONDS - 0.1
        name.members.forget_old()
        assert _addresses(name.members.all) == [A, B]
        name.now += 0.1
        waiting = name.one(A).pool._waiting
        waiting.add(None)  # type: ignore[arg-type]  # any request
        name.members.forget_old()
        assert _addresses(name.members.all) == [A, B]
        waiting.clear()
        name.members.forget_old()
        assert _addresses(name.members.all) == [B]

    _run(scenario, A, B)


def test_one_of_several_that_goes_and_comes_back_is_told(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(name: _Name) -> None:
        name.are(UP, A)
        name.are(UNREADY, A, B)
        assert not caplog.messages
        for _ in range(2):
            name.are(ServerState(problem="gone"), A)
        assert caplog.messages == ["member_unreachable"]
        name.are(UNREADY, A)
        assert caplog.messages == ["member_unreachable", "member_reached"]
        await name.becomes(B)
        name.are(ServerState(problem="gone"), A, B)
        assert len(caplog.messages) == 2, "that one has left; of a single one the watch says it"

    with caplog.at_level(logging.INFO, "dragoman.router"):
        _run(scenario, A, B)


def test_the_system_resolves_a_name_to_each_address_once() -> None:
    found = asyncio.run(resolve("localhost", 80))
    assert set(found) <= {"127.0.0.1", "::1"}
    assert len(found) == len(set(found)) > 0


def test_a_server_that_left_and_breaks_off_is_no_more_once_nothing_waits_in_it() -> None:
    async def scenario(name: _Name) -> None:
        await name.becomes(B)
        name.are(ServerState(problem="silent", is_mute=True), A)
        waiting = name.one(A).pool._waiting
        waiting.add(None)  # type: ignore[arg-type]  # any request
        name.are(ServerState(problem="it closed the connection"), A, B)
        assert _addresses(name.members.all) == [A, B]
        waiting.clear()
        name.are(ServerState(problem="it closed the connection"), A, B)
        assert _addresses(name.members.all) == [B]

    _run(scenario, A, B)
