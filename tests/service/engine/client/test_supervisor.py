import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from model.config import SearchConfig
from model.request import DecodeRequest
from service.engine.client.client import EngineClient, LossReason
from service.engine.client.segment_room import SegmentRoom
from service.engine.client.submission import SegmentJob
from service.engine.client.supervisor import RestartBudget, Supervisor
from service.engine.errors import EngineStartError, EngineUnavailableError

JOB = SegmentJob(
    request=DecodeRequest(
        source_ids=(10, 11, 1), prefix_ids=(0,), search=SearchConfig(max_length=5)
    )
)


def test_the_first_restart_is_at_once_and_every_further_one_waits_longer():
    budget = RestartBudget(max_restarts=7, window_seconds=100.0)
    delays = [budget.next_delay(now=float(second)) for second in range(8)]
    assert delays == [0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 10.0, None]


def test_restarts_of_long_ago_do_not_count():
    budget = RestartBudget(max_restarts=1, window_seconds=100.0)
    assert budget.next_delay(now=0.0) == 0.0
    assert budget.next_delay(now=99.0) is None
    assert budget.next_delay(now=100.0) == 0.0


def test_without_a_budget_nothing_is_restarted():
    assert RestartBudget(max_restarts=0, window_seconds=1.0).next_delay(now=0.0) is None


class Watched:
    """A supervisor of real engines, and what it has said of the lost ones."""

    def __init__(
        self,
        start: Callable[[], Awaitable[EngineClient]],
        max_restarts: int,
        window_seconds: float = 300.0,
    ) -> None:
        self.losses: list[LossReason] = []
        self.num_starts = 0
        self._start = start
        self._max_restarts = max_restarts
        self._window_seconds = window_seconds

    async def start_engine(self) -> EngineClient:
        self.num_starts += 1
        return await self._start()

    async def supervisor(self, **callbacks: Any) -> Supervisor:
        return await Supervisor.start(
            self.start_engine,
            budget=RestartBudget(
                max_restarts=self._max_restarts, window_seconds=self._window_seconds
            ),
            on_lost=self.losses.append,
            clock=asyncio.get_running_loop().time,
            **callbacks,
        )


@pytest.fixture
def watched(configure) -> Watched:
    async def start() -> EngineClient:
        return await EngineClient.start(configure, room=SegmentRoom(8), hang_seconds=1.0)

    return Watched(start, max_restarts=2)


async def translate(supervisor: Supervisor) -> tuple[int, ...]:
    with supervisor.submit([JOB]) as batch:
        [finished] = await batch.results()
    return finished.hypotheses[0].token_ids


def children() -> str:
    return Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text()


async def ready(supervisor: Supervisor) -> None:
    """pytest's timeout is the bound."""
    while not supervisor.is_ready:  # noqa: ASYNC110  # there is no event for it
        await asyncio.sleep(0.01)


@pytest.mark.parametrize(("number", "reason"), [(signal.SIGKILL, "exit"), (signal.SIGSTOP, "hang")])
def test_a_lost_engine_is_replaced_and_the_totals_go_on(watched, number, reason):
    async def scenario() -> None:
        async with await watched.supervisor() as supervisor:
            before = await translate(supervisor)
            assert supervisor.counters.num_finished == 1
            first = supervisor.process_id
            os.kill(first, signal.SIGSTOP)  # so that what follows is still pending at the end
            batch = supervisor.submit([JOB])
            os.kill(first, number)
            with pytest.raises(EngineUnavailableError):
                await batch.results()
            with pytest.raises(EngineUnavailableError):
                supervisor.submit([JOB])
            assert supervisor.process_id is None
            await ready(supervisor)
            assert supervisor.process_id != first
            assert await translate(supervisor) == before
            assert supervisor.counters.num_finished == 2
            assert supervisor.counters.max_rows == supervisor.ready.max_rows
            assert not supervisor.is_exhausted
        assert watched.losses == [reason]
        with pytest.raises(ProcessLookupError):
            os.kill(first, 0)

    with asyncio.Runner() as runner:
        runner.run(scenario())


def test_an_engine_that_cannot_be_started_again_is_given_up(configure, tmp_path: Path):
    async def start() -> EngineClient:
        if watched.num_starts > 1:
            raise EngineStartError("no")
        return await EngineClient.start(configure, room=SegmentRoom(8))

    watched = Watched(start, max_restarts=2)

    async def scenario() -> None:
        async with await watched.supervisor() as supervisor:
            os.kill(supervisor.process_id, signal.SIGKILL)
            while not supervisor.is_exhausted:  # noqa: ASYNC110  # there is no event for it
                await asyncio.sleep(0.01)
            assert not supervisor.is_ready
            assert watched.num_starts == 3

    with asyncio.Runner() as runner:
        runner.run(scenario())
    assert watched.losses == ["exit"]


def test_starts_that_fail_slowly_are_given_up_too(configure):
    """Each takes longer than the window, so none of them counts when the next one is made."""

    async def start() -> EngineClient:
        if watched.num_starts > 1:
            await asyncio.sleep(0.05)
            raise EngineStartError("no")
        return await EngineClient.start(configure, room=SegmentRoom(8))

    watched = Watched(start, max_restarts=3, window_seconds=0.01)

    async def scenario() -> None:
        async with await watched.supervisor() as supervisor:
            os.kill(supervisor.process_id, signal.SIGKILL)
            while not supervisor.is_exhausted:  # noqa: ASYNC110  # there is no event for it
                await asyncio.sleep(0.01)
        assert watched.num_starts == 1 + 3

    with asyncio.Runner() as runner:
        runner.run(scenario())


def test_a_retired_engine_is_not_replaced(watched):
    async def scenario() -> None:
        async with await watched.supervisor() as supervisor:
            supervisor.retire()
            assert await translate(supervisor)
            os.kill(supervisor.process_id, signal.SIGKILL)
            await supervisor._keeper

    with asyncio.Runner() as runner:
        runner.run(scenario())
    assert (watched.num_starts, watched.losses) == (1, [])


def test_one_that_is_retired_while_another_engine_starts_asks_for_nothing_more(configure):
    """A reload has taken its place meanwhile; that the files are others now is no news."""
    asked, may_fail = [], asyncio.Event()

    async def start() -> EngineClient:
        if watched.num_starts > 1:
            await may_fail.wait()
            raise EngineStartError("other files", at_fault={0: "it was replaced"})
        return await EngineClient.start(configure, room=SegmentRoom(8))

    async def outdated() -> bool:
        asked.append("outdated")
        return True

    watched = Watched(start, max_restarts=5)

    async def scenario() -> None:
        async with await watched.supervisor(
            on_outdated=outdated, on_given_up=lambda: asked.append("given up")
        ) as supervisor:
            os.kill(supervisor.process_id, signal.SIGKILL)
            while watched.num_starts < 2:  # noqa: ASYNC110  # there is no event for it
                await asyncio.sleep(0.01)
            supervisor.retire()
            may_fail.set()
            await supervisor._keeper
            assert not supervisor.is_exhausted

    with asyncio.Runner() as runner:
        runner.run(scenario())
    assert (watched.num_starts, asked) == (2, [])


def test_closing_while_another_engine_starts_leaves_no_process(watched):
    async def scenario() -> None:
        async with await watched.supervisor() as supervisor:
            os.kill(supervisor.process_id, signal.SIGKILL)
            while watched.num_starts < 2:  # noqa: ASYNC110  # there is no event for it
                await asyncio.sleep(0)

    before = children()
    with asyncio.Runner() as runner:
        runner.run(scenario())
    assert children() == before
