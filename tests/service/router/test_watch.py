"""What a watch finds, by what groups answer."""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from service.errors import draining
from service.http.replies import error_content
from service.models.requests.detection import LanguageDetection
from service.router.connection import Asked
from service.router.directory import GroupState
from service.router.groups import ConnectError, Group, LostError, SilentError
from service.router.members import FRESH_SECONDS, Members
from service.router.pool import Answer
from service.router.watch import Watch

LIST = {
    "models": [
        {"name": "m", "state": "loaded", "pairs": [{"source": "de", "target": "en"}]},
    ]
}
A, B, C = "192.0.2.1", "192.0.2.2", "192.0.2.3"
SIX = "2001:db8::1"
LEAVES = json.dumps(error_content(draining().problem)).encode()
SILENT = SilentError("silent for 2.5 seconds")
WELL = (200, b"{}")


class _Server:
    """A server that answers `/readyz` by a script, the last of which holds."""

    def __init__(self) -> None:
        self.script: list[tuple[int, bytes] | Exception] = [WELL]
        self.listed: Mapping[str, object] = LIST
        self.targets: list[bytes] = []
        self.given_up: list[str] = []
        self.num_waiting = 0
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def ask(self, asked: Asked) -> Answer:
        self.targets.append(asked.target)
        await self.may_answer.wait()
        if asked.target == b"/v1/models":
            return Answer(200, (), beginning=json.dumps(self.listed).encode())
        answer = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if isinstance(answer, Exception):
            raise answer
        return Answer(answer[0], (), beginning=answer[1])

    def give_up(self, reason: str) -> None:
        self.given_up.append(reason)

    def close(self) -> None:
        pass


class _Group:
    """A group and its servers, of which each poll looks up the name anew, and a watch over it."""

    def __init__(self, *addresses: str) -> None:
        self.found: Sequence[str] = addresses
        self.servers: dict[str, _Server] = {}
        self.now = 0.0
        group = Group(name="west", host="pods", port=9)
        self.members = Members(
            group, seconds=1.0, keep_seconds=60.0, resolve=self._resolve, clock=lambda: self.now
        )
        metrics: Any = SimpleNamespace(group_is=lambda _name, *, is_up: None)
        self.watch = Watch(
            {"west": self.members},
            pivot=None,
            detection=LanguageDetection("off", thread=None),
            metrics=metrics,
        )

    async def _resolve(self, _host: str, _port: int) -> Sequence[str]:
        return self.found

    async def poll(self) -> GroupState:
        self.now += FRESH_SECONDS
        await self.members.look()
        for member in self.members.all:
            server = self.servers.setdefault(member.address, _Server())
            member.pool = member.asker = cast(Any, server)
        await self.watch.poll("west")
        return self.state

    @property
    def state(self) -> GroupState:
        return self.watch.directory.groups[0]

    def standing(self, address: str) -> int:
        [found] = [one for one in self.members.all if one.address == address]
        return found.state.standing


def _run(scenario: Callable[[Watch, _Server], Awaitable[None]]) -> None:
    """A group of one server."""

    async def run(group: _Group) -> None:
        await scenario(group.watch, group.servers[A])

    _run_group(run, A)


def _run_group(scenario: Callable[[_Group], Awaitable[None]], *addresses: str) -> None:
    async def run() -> None:
        group = _Group(*addresses)
        await group.poll()
        assert group.state.is_up
        await scenario(group)

    asyncio.run(run())


def _state(watch: Watch) -> GroupState:
    return watch.directory.groups[0]


def test_a_group_that_drains_is_not_up_though_it_still_lists_its_models() -> None:
    async def scenario(watch: Watch, west: _Server) -> None:
        west.script = [(503, LEAVES)]
        await watch.poll("west")
        state = _state(watch)
        assert (state.is_up, state.is_answering) == (False, True)
        assert state.problem == "the server is shutting down"
        assert state.offers, "what it has is still known"
        west.script = [WELL]
        await watch.poll("west")
        assert _state(watch).is_up

    _run(scenario)


def test_a_group_behind_what_knows_no_readiness_is_asked_for_its_models() -> None:
    async def scenario(watch: Watch, west: _Server) -> None:
        west.script = [(404, b"")]
        await watch.poll("west")
        assert _state(watch).is_up

    _run(scenario)


def test_one_silence_is_asked_once_more_and_a_second_one_is_away() -> None:
    async def scenario(watch: Watch, west: _Server) -> None:
        west.script = [SILENT, WELL]
        await watch.poll("west")
        assert _state(watch).is_up
        west.script = [SILENT]
        west.targets.clear()
        await watch.poll("west")
        assert west.targets == [b"/readyz"] * 2
        state = _state(watch)
        assert (state.is_answering, state.problem) == (False, "silent for 5 seconds")

    _run(scenario)


def test_what_waits_is_given_up_when_a_group_stays_silent_and_not_before() -> None:
    async def scenario(watch: Watch, west: _Server) -> None:
        west.script = [SILENT]
        await watch.poll("west")
        assert not west.given_up, "it may go on"
        west.script = [WELL]
        await watch.poll("west")
        west.script = [SILENT]
        await watch.poll("west")
        assert not west.given_up, "it went on"
        await watch.poll("west")
        assert west.given_up == ["it does not answer any more"]

    _run(scenario)


def test_what_waits_is_not_given_up_where_only_new_connections_fail() -> None:
    async def scenario(watch: Watch, west: _Server) -> None:
        for error in (ConnectError("refused"), LostError("it closed the connection")):
            west.script = [error]
            for _ in range(5):
                await watch.poll("west")
            state = _state(watch)
            assert (state.is_answering, state.problem) == (False, str(error))
        assert not west.given_up, "a server that leaves may still answer what it has"

    _run(scenario)


def test_a_request_that_did_not_reach_a_group_has_it_polled_now() -> None:
    async def scenario(watch: Watch, west: _Server) -> None:
        watching = asyncio.create_task(watch.run())
        num_polls = len(west.targets)
        while len(west.targets) < num_polls + 2:  # noqa: ASYNC110  # nothing tells
            await asyncio.sleep(0)
        [member] = watch.members["west"].all
        watch.note_unreached(member, ConnectError("refused"))
        assert not _state(watch).is_answering
        async with asyncio.timeout(1.0):  # less than between two polls
            while not _state(watch).is_up:  # noqa: ASYNC110  # same
                await asyncio.sleep(0)
        watching.cancel()
        await asyncio.wait([watching])

    _run(scenario)


@pytest.mark.parametrize(
    "answer",
    [SILENT, ConnectError("refused"), LostError("it closed the connection"), (500, b"")],
    ids=["silent", "not reached", "lost", "faulty"],
)
def test_a_server_that_is_not_well_costs_its_own_turn_and_nothing_else(
    answer: tuple[int, bytes] | Exception,
) -> None:
    async def scenario(group: _Group) -> None:
        for bad in (A, B):
            server = group.servers[bad]
            server.script = [answer]
            if not isinstance(answer, Exception):
                server.listed = {}
            for _ in range(2):
                assert (await group.poll()).is_up
                assert (group.standing(bad) > 0, group.standing(C)) == (True, 0)
        assert group.members.in_turn()[0].address == C

    _run_group(scenario, A, B, C)


def test_a_group_is_unready_where_one_says_so_and_away_where_all_are() -> None:
    async def scenario(group: _Group) -> None:
        group.servers[A].script = [ConnectError("refused")]
        group.servers[B].script = [(503, LEAVES)]
        state = await group.poll()
        assert (state.is_answering, state.problem) == (True, "the server is shutting down")
        group.servers[B].script = [SILENT]
        state = await group.poll()
        assert (state.is_answering, state.problem) == (False, "refused")

    _run_group(scenario, A, B)


def test_a_silent_server_is_waited_for_alone_and_what_waits_in_it_ends() -> None:
    async def scenario(group: _Group) -> None:
        group.servers[A].may_answer.clear()
        hanging = asyncio.create_task(group.poll())
        while not group.servers[A].targets[2:]:  # noqa: ASYNC110  # nothing tells
            await asyncio.sleep(0)
        num_polls = len(group.servers[B].targets)
        await group.poll()
        assert len(group.servers[B].targets) > num_polls
        assert len(group.servers[A].targets) == 3, "it is still being asked"
        group.servers[A].may_answer.set()
        await hanging
        group.servers[A].script = [SILENT]
        group.found = (B,)
        await group.poll()
        assert not group.servers[A].given_up
        await group.poll()
        assert group.servers[A].given_up == ["it does not answer any more"]
        assert group.servers[B].given_up == []
        group.servers[A].script = [ConnectError("refused")]
        await group.poll()
        assert [one.address for one in group.members.all] == [B]

    _run_group(scenario, A, B)


def test_what_a_group_translates_is_learnt_once_and_is_that_of_a_server_that_is_up(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def with_state(state: str, **more: object) -> Mapping[str, object]:
        return {"models": [{**LIST["models"][0], "state": state, **more}]}

    async def scenario(group: _Group) -> None:
        assert caplog.messages.count("group_learnt") == 1
        group.servers[B].listed = with_state("asleep", compute_type="int8")
        offers = (await group.poll()).offers
        group.servers[A].script = [ConnectError("refused")]
        assert (await group.poll()).offers is offers
        assert caplog.messages.count("group_learnt") == 1
        group.servers[A].script = [WELL]
        group.servers[A].listed = with_state("loaded", name="n")
        assert (await group.poll()).offers is offers, "the other one still has it"
        group.servers[B].script = [(503, LEAVES)]
        assert [one.name for one in (await group.poll()).offers] == ["n"]

    with caplog.at_level(logging.INFO, "dragoman.router"):
        _run_group(scenario, A, B)


def test_a_group_whose_first_family_does_not_answer_is_up_with_what_the_other_translates() -> None:
    async def main() -> None:
        group = _Group(A, SIX)
        await group.members.look()
        for address, script in ((A, [ConnectError("refused")]), (SIX, [WELL])):
            group.servers[address] = _Server()
            group.servers[address].script = script
        state = await group.poll()
        assert (state.is_up, [one.name for one in state.offers]) == (True, ["m"])
        assert state.table.names == ("m",)
        assert [one.address for one in group.members.in_turn()] == [SIX]

    asyncio.run(main())


def test_a_name_without_an_address_is_told() -> None:
    async def main() -> None:
        group = _Group()
        state = await group.poll()
        assert (state.is_answering, state.problem) == (False, "no address of pods within 1 seconds")

    asyncio.run(main())
