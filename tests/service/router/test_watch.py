"""What a watch finds, by what groups answer."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

from service.errors import draining
from service.http.replies import error_content
from service.models.requests.detection import LanguageDetection
from service.router.connection import Asked
from service.router.directory import GroupState
from service.router.groups import ConnectError, Group, LostError, SilentError
from service.router.pool import Answer
from service.router.watch import Watch

LIST = {
    "models": [
        {"name": "m", "state": "loaded", "pairs": [{"source": "de", "target": "en"}]},
    ]
}
LEAVES = json.dumps(error_content(draining().problem)).encode()
SILENT = SilentError("silent for 2.5 seconds")
WELL = (200, b"{}")


class _Group:
    """A group that answers `/readyz` by a script, the last of which holds."""

    def __init__(self) -> None:
        self.script: list[tuple[int, bytes] | Exception] = [WELL]
        self.targets: list[bytes] = []
        self.given_up: list[str] = []
        self.num_closed = 0
        self.members = SimpleNamespace(are_several=False, silent=[])

    async def ask(self, asked: Asked) -> Answer:
        self.targets.append(asked.target)
        if asked.target == b"/v1/models":
            return Answer(200, (), beginning=json.dumps(LIST).encode())
        answer = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if isinstance(answer, Exception):
            raise answer
        return Answer(answer[0], (), beginning=answer[1])

    def give_up(self, reason: str, *, address: str | None = None) -> None:
        self.given_up.append(reason if address is None else address)

    def close(self) -> None:
        self.num_closed += 1


class _Metrics:
    def group_is(self, group: str, *, is_up: bool) -> None:
        pass


def _run(scenario: Callable[[Watch, _Group], Awaitable[None]]) -> None:
    async def run() -> None:
        west = _Group()
        pools: Any = {"west": west}
        metrics: Any = _Metrics()
        watch = Watch(
            [Group(name="west", host="127.0.0.1", port=9)],
            pools,
            pivot=None,
            detection=LanguageDetection("off", thread=None),
            metrics=metrics,
        )
        watch._askers = pools
        await watch.poll("west")
        assert _state(watch).is_up
        await scenario(watch, west)

    asyncio.run(run())


def _state(watch: Watch) -> GroupState:
    return watch.directory.groups[0]


def test_a_group_that_drains_is_not_up_though_it_still_lists_its_models() -> None:
    async def scenario(watch: Watch, west: _Group) -> None:
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
    async def scenario(watch: Watch, west: _Group) -> None:
        west.script = [(404, b"")]
        await watch.poll("west")
        assert _state(watch).is_up

    _run(scenario)


def test_each_poll_is_of_another_connection_and_so_of_another_server() -> None:
    async def scenario(watch: Watch, west: _Group) -> None:
        before = west.num_closed
        await watch.poll("west")
        west.script = [SILENT]
        await watch.poll("west")
        assert west.num_closed == before + 2

    _run(scenario)


def test_one_silence_is_asked_once_more_and_a_second_one_is_away() -> None:
    async def scenario(watch: Watch, west: _Group) -> None:
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
    async def scenario(watch: Watch, west: _Group) -> None:
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


def test_what_waits_in_one_server_that_stays_silent_is_given_up_while_others_answer() -> None:
    async def scenario(watch: Watch, west: _Group) -> None:
        west.members = SimpleNamespace(are_several=True, silent=["192.0.2.1"])
        await watch.poll("west")
        assert west.given_up == ["192.0.2.1"]
        assert _state(watch).is_up

    _run(scenario)


def test_what_waits_is_not_given_up_where_only_new_connections_fail() -> None:
    async def scenario(watch: Watch, west: _Group) -> None:
        for error in (ConnectError("refused"), LostError("it closed the connection")):
            west.script = [error]
            for _ in range(5):
                await watch.poll("west")
            state = _state(watch)
            assert (state.is_answering, state.problem) == (False, str(error))
        assert not west.given_up, "a server that leaves may still answer what it has"

    _run(scenario)


def test_a_request_that_did_not_reach_a_group_has_it_polled_now() -> None:
    async def scenario(watch: Watch, west: _Group) -> None:
        watching = asyncio.create_task(watch.run())
        num_polls = len(west.targets)
        while len(west.targets) < num_polls + 2:  # noqa: ASYNC110  # nothing tells
            await asyncio.sleep(0)
        watch.mark_unreachable("west", "refused")
        assert not _state(watch).is_answering
        async with asyncio.timeout(1.0):  # less than between two polls
            while not _state(watch).is_up:  # noqa: ASYNC110  # same
                await asyncio.sleep(0)
        watching.cancel()
        await asyncio.wait([watching])

    _run(scenario)
