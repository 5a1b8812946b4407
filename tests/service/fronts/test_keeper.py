"""Which deployments fronts are told to serve, by fronts that answer a script over real sockets."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest
from prometheus_client import CollectorRegistry

from service.fronts.child import FrontChild
from service.fronts.keeper import Fronts
from service.fronts.messages import (
    Deploy,
    FrontMessage,
    OwnerMessage,
    Prepared,
    Serve,
    Serving,
    front_messages,
    owner_messages,
)
from service.fronts.stream import PeerGoneError, Stream
from service.http import passing
from service.models.deployments.deployment import Deployment
from service.settings import Settings
from service.telemetry.metrics import Metrics
from support.warm_engines import warm_engine

NUM_FRONTS = 2


class _Front:
    """A front without a process, which can read everything or nothing, at once or when it may.

    Attributes:
        told: Deployments that it was told to serve, each with what is kept beside it.
        may_read: It reads what it is told to read.
        can_read: Whether it can.
        num_failed: How often it could not.
    """

    exit_status = 0

    def __init__(self) -> None:
        self.told: list[tuple[int, tuple[int, ...]]] = []
        self.may_read = asyncio.Event()
        self.may_read.set()
        self.can_read = True
        self.num_failed = 0
        self._read: set[int] = set()
        self._served: set[int] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> FrontChild:
        """Have it answer its owner, for whom it is a process."""
        own, other = socket.socketpair()
        self._sending, self.passed = passing.channel()
        self.stream: Stream[FrontMessage] = await Stream.over(own, front_messages())
        self._link = await Stream.over(other, owner_messages())
        self._start(self._answer())
        return cast("FrontChild", self)

    def lose(self) -> None:
        """End it."""
        self._link.abort()
        self._sending.close()

    async def reap(self) -> None:
        self.stream.abort()

    def kill(self) -> None:
        self.lose()

    def _start(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self) -> None:
        try:
            while True:
                for message in await self._link.receive():
                    self._take(message)
        except PeerGoneError:
            return

    def _take(self, message: OwnerMessage) -> None:
        match message:
            case Deploy(generation=number):
                self._start(self._read_one(number))
            case Serve(generation=number, kept=kept):
                self.told.append((number, kept))
                is_serving = number in self._read and self._served.issuperset(kept)
                self._served |= {number} if is_serving else set()
                self._link.send(Serving(generation=number, is_serving=is_serving))

    async def _read_one(self, number: int) -> None:
        await self.may_read.wait()
        if self.can_read:
            self._read.add(number)
        else:
            self.num_failed += 1
        self._link.send(Prepared(generation=number, is_read=self.can_read))


class _Owner:
    """Fronts of an owner, and what it deploys."""

    def __init__(self) -> None:
        self.metrics = Metrics(CollectorRegistry())
        settings = Settings(fronts=NUM_FRONTS, restart_window_seconds=0.001)
        self.fronts = Fronts(settings, self.metrics)
        self.made: list[_Front] = []

    async def spawn(self, _listener: socket.socket) -> FrontChild:
        self.made.append(_Front())
        return await self.made[-1].start()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        common: Any = SimpleNamespace(keys=SimpleNamespace(held=None))
        with socket.socket() as listener:
            async with self.fronts.running(
                common,
                listener,
                on_connection=lambda _connection, _data: None,
                on_given_up=lambda _error: None,
            ):
                await self.until(lambda: len(self.fronts._handles) == NUM_FRONTS)
                yield
            for front in self.made:
                front.lose()

    async def reload(self, deployment: Deployment, *kept: Deployment) -> None:
        await self.fronts.prepare(deployment)
        await self.fronts.switch(deployment, kept)

    async def until(self, is_so: Callable[[], object]) -> None:
        while not is_so():  # noqa: ASYNC110  # nothing tells
            await asyncio.sleep(0.01)

    @property
    def num_serving(self) -> int:
        return sum(handle.is_serving for handle in self.fronts._handles.values())


def _deployment() -> Deployment:
    """What a front is told of one; its checkpoints are the fronts' matter."""
    pool = SimpleNamespace(ready=warm_engine(), max_request_segments=8)
    made = Deployment.__new__(Deployment)
    made.__dict__.update(checkpoints=(), unloaded=(), faulty=(), left_out=frozenset(), pool=pool)
    return made


def _run(monkeypatch: pytest.MonkeyPatch, scenario: Callable[[_Owner], Awaitable[None]]) -> None:
    async def run() -> None:
        owner = _Owner()
        monkeypatch.setattr(FrontChild, "spawn", owner.spawn)
        async with owner.running():
            await scenario(owner)

    asyncio.run(run())


def test_a_front_that_began_while_an_earlier_deployment_is_kept_serves_when_it_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario(owner: _Owner) -> None:
        first, second, third, fourth = (_deployment() for _ in range(4))
        await owner.fronts.began(first)
        await owner.reload(second, first)
        assert owner.num_serving == 2
        old, victim = owner.made
        victim.lose()
        await owner.until(lambda: len(owner.made) == 3 and owner.made[2].told)
        new = owner.made[2]
        assert owner.num_serving == 1
        await owner.reload(third, first)
        assert owner.num_serving == 1
        await owner.reload(fourth)
        assert owner.num_serving == 2
        assert old.told == [(1, ()), (2, (1,)), (3, (1,)), (4, ())]
        assert new.told == [(2, (1,)), (3, (1,)), (4, ())]

    _run(monkeypatch, scenario)


def test_a_front_that_reads_slowly_serves_when_it_has_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("service.fronts.keeper._FOLLOW_SECONDS", 0.05)

    async def scenario(owner: _Owner) -> None:
        first, second = _deployment(), _deployment()
        await owner.fronts.began(first)
        slow = owner.made[1]
        slow.may_read.clear()
        await owner.reload(second, first)
        assert owner.num_serving == 1
        slow.may_read.set()
        await owner.until(lambda: owner.num_serving == 2)
        assert slow.told == [(1, ()), (2, (1,)), (2, (1,))]

    _run(monkeypatch, scenario)


@pytest.mark.parametrize("num_failures", [1, 3])
def test_a_front_that_cannot_read_a_deployment_is_asked_again_after_a_while(
    monkeypatch: pytest.MonkeyPatch, num_failures: int
) -> None:
    monkeypatch.setattr("service.fronts.keeper._AGAIN_SECONDS", 0.05)

    async def scenario(owner: _Owner) -> None:
        first, second, third = (_deployment() for _ in range(3))
        failing = owner.made[1]
        failing.can_read = False
        async with asyncio.timeout(10):
            await owner.fronts.began(first)
            assert owner.num_serving == 1
            await owner.until(lambda: failing.num_failed >= num_failures)
            failing.can_read = True
            await owner.until(lambda: owner.num_serving == 2)
            failing.can_read = False
            await owner.reload(second, first)
            assert owner.num_serving == 1
            failing.can_read = True
            await owner.until(lambda: owner.num_serving == 2)
        assert failing.told == [(1, ()), (2, (1,)), (2, (1,))]
        assert owner.made[0].told.count((2, (1,))) == 1, "who could read it is asked nothing"
        await owner.reload(third)
        assert owner.num_serving == 2

    _run(monkeypatch, scenario)
