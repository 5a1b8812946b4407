"""Loads on demand that meet each other, reloads and cancellations, without engines."""

import asyncio
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from prometheus_client import CollectorRegistry

from model.config import LengthLimits
from service.errors import RequestError, unavailable
from service.models.checkpoints import residency
from service.models.checkpoints.discovery import TextCheckpoint
from service.models.deployments.deployment import Deployment, InFlight
from service.models.deployments.holding import Held
from service.models.deployments.on_demand import OnDemandLoader
from service.models.deployments.registry import Routes
from service.models.routes.routing import Offer
from service.telemetry.residency_metrics import ResidencyMetrics
from support.tiny_checkpoint import EN_ZH

LIMITS = LengthLimits(max_source_length=8, max_target_length=8)
SIZE = 100


@dataclass(frozen=True, slots=True, eq=False)
class Loaded:
    """What routes and loads see of a deployment."""

    checkpoints: tuple[SimpleNamespace, ...]
    on_demand: tuple[SimpleNamespace, ...] = ()
    faulty: tuple[()] = ()
    unloaded: tuple[()] = ()
    left_out: frozenset[str] = frozenset()
    in_flight: InFlight = field(default_factory=InFlight)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(one.manifest.name for one in self.checkpoints)


def _checkpoint(name: str) -> SimpleNamespace:
    return SimpleNamespace(
        directory=Path("/models", name),
        manifest=SimpleNamespace(name=name, limits=LIMITS),
        offer=Offer(name=name, pairs=(EN_ZH,)),
        entry=SimpleNamespace(name=name, num_weight_bytes=SIZE),
    )


class Memory:
    """A loader over some sleeping checkpoints of one size, and what it has done.

    A load takes until its name is let in, where it is held; a deployment leaves once nothing is in
    flight there.
    """

    def __init__(self, *names: str, num_fitting: int = 1) -> None:
        self.names = names
        self.routes = Routes()
        self.opened: list[str] = []
        self.served: list[tuple[str, ...]] = []
        self.deployments: list[Deployment] = []
        self.held: dict[str, asyncio.Future[None]] = {}
        self.retiring: set[asyncio.Task[None]] = set()
        self.loader = OnDemandLoader(
            self.routes,
            budget=num_fitting * SIZE,
            open_one=self._open,
            retire=self._retire,
            metrics=ResidencyMetrics(CollectorRegistry()),
            clock=time.monotonic,
        )
        self.reload()

    def reload(self) -> None:
        """Serve the same checkpoints, all of them asleep again."""
        on_demand = tuple(_checkpoint(name) for name in self.names)
        for old in self.routes.take(cast("Deployment", Loaded((), on_demand))):
            self._retire(old)

    def hold(self, name: str) -> asyncio.Future[None]:
        """Have loads of a checkpoint take until the result is set."""
        self.held[name] = asyncio.get_running_loop().create_future()
        return self.held[name]

    async def _open(self, checkpoint: TextCheckpoint) -> Deployment:
        name = checkpoint.manifest.name
        self.opened.append(name)
        await asyncio.sleep(0)
        if name in self.held:
            await asyncio.shield(self.held[name])
        self.deployments.append(cast("Deployment", Loaded((cast("SimpleNamespace", checkpoint),))))
        return self.deployments[-1]

    def _retire(self, deployment: Deployment) -> asyncio.Task[None]:
        task = asyncio.create_task(deployment.in_flight.wait_idle())
        self.retiring.add(task)
        return task

    async def request(self, *names: str) -> None:
        """What a request does that goes through some checkpoints: it has all of them at once."""
        with Held() as held:
            await self.loader.load_all(names, held)
            await asyncio.sleep(0)  # another load may go on before a request resumes
            found = [held.find(name) for name in names]
            assert all(one is not None and one.in_flight.num for one in found)
            self.served.append(names)

    def check_idle(self) -> None:
        """Nothing is held: what was loaded can leave."""
        assert not self.loader._queue
        assert not any(one.in_flight.num for one in self.deployments)


@pytest.fixture(autouse=True)
def engines_are_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(residency, "ENGINE_BYTES", 0)


async def _settled() -> None:
    """Return after what can be done now has been done."""
    for _ in range(20):
        await asyncio.sleep(0)


@pytest.mark.parametrize("num_turns", range(6))
def test_a_request_that_comes_when_a_load_ends_in_a_reload_begins_another(num_turns: int) -> None:
    async def scenario() -> None:
        memory = Memory("x")
        held = memory.hold("x")
        first = asyncio.create_task(memory.request("x"))
        await _settled()
        memory.reload()
        held.set_result(None)
        for _ in range(num_turns):
            await asyncio.sleep(0)
        async with asyncio.timeout(5):
            await asyncio.gather(first, memory.request("x"))
        assert memory.opened == ["x", "x"]
        assert memory.routes.find("x") is not None

    asyncio.run(scenario())


def test_two_that_do_not_fit_together_are_each_loaded_once_and_used_in_turn() -> None:
    async def scenario() -> None:
        memory = Memory("x", "y")
        async with asyncio.timeout(5):
            await asyncio.gather(*[memory.request(name) for name in ("x", "y", "x", "y")])
        assert memory.opened == ["x", "y"]
        assert memory.served == [("x",), ("x",), ("y",), ("y",)]
        memory.check_idle()

    asyncio.run(scenario())


def test_who_asks_first_is_served_first_however_many_ask_for_others() -> None:
    async def scenario() -> None:
        memory = Memory("x", "y", "z")
        async with asyncio.timeout(5):
            asking = [asyncio.create_task(memory.request(name)) for name in "xyzzxyzx"]
            await asyncio.gather(*asking)
        assert memory.opened == ["x", "y", "z"]
        assert [name for (name,) in memory.served] == ["x"] * 3 + ["y"] * 2 + ["z"] * 3
        memory.check_idle()

    asyncio.run(scenario())


def test_requests_for_two_each_hold_no_half_that_another_waits_for() -> None:
    async def scenario() -> None:
        memory = Memory("a", "b", "c", "d", num_fitting=2)
        ways = [("a", "b"), ("c", "d"), ("b", "c"), ("a",)]
        async with asyncio.timeout(5):
            await asyncio.gather(*[memory.request(*names) for names in ways])
        assert memory.served == [("a", "b"), ("a",), ("c", "d"), ("b", "c")]
        assert memory.opened == ["a", "b", "c", "d", "b"]
        memory.check_idle()

    asyncio.run(scenario())


@pytest.mark.parametrize("num_turns", range(12))
def test_a_request_that_is_cancelled_at_any_time_holds_nothing(num_turns: int) -> None:
    async def scenario() -> None:
        memory = Memory("x", "y")
        cancelled = asyncio.create_task(memory.request("x"))
        others = [asyncio.create_task(memory.request(name)) for name in ("x", "y")]
        for _ in range(num_turns):
            await asyncio.sleep(0)
        cancelled.cancel()
        async with asyncio.timeout(5):
            await asyncio.gather(cancelled, *others, return_exceptions=True)
            await memory.request("x")
        assert memory.served[-3:] == [("x",), ("y",), ("x",)]
        memory.check_idle()

    asyncio.run(scenario())


def test_a_load_goes_on_without_its_waiters_and_evicts_nothing_that_is_used() -> None:
    async def scenario() -> None:
        memory = Memory("x", "y")
        held = memory.hold("x")
        waiting = asyncio.create_task(memory.request("x"))
        await _settled()
        waiting.cancel()
        other = asyncio.create_task(memory.request("y"))
        held.set_result(None)
        async with asyncio.timeout(5):
            await other
        assert (memory.opened, memory.served) == (["x", "y"], [("y",)])
        memory.check_idle()

    asyncio.run(scenario())


def test_a_load_that_fails_fails_for_those_that_wait_for_it_alone() -> None:
    async def scenario() -> None:
        memory = Memory("x", "y", num_fitting=2)
        held = memory.hold("x")
        tasks = [asyncio.create_task(memory.request(*names)) for names in ("x", "x", "y", "xy")]
        await _settled()
        held.set_exception(unavailable("it is damaged", code="load_failed"))
        async with asyncio.timeout(5):
            answers = await asyncio.gather(*tasks, return_exceptions=True)
        codes = [one.problem.code if isinstance(one, RequestError) else one for one in answers]
        assert codes == ["load_failed", "load_failed", None, "load_failed"]
        memory.check_idle()

    asyncio.run(scenario())


def test_what_fits_never_is_refused_in_its_turn_and_stops_nobody() -> None:
    async def scenario() -> None:
        memory = Memory("x", "y", num_fitting=1)
        tasks = [asyncio.create_task(memory.request(*names)) for names in ("xy", "x", "y")]
        async with asyncio.timeout(5):
            answers = await asyncio.gather(*tasks, return_exceptions=True)
        codes = [one.problem.code if isinstance(one, RequestError) else one for one in answers]
        assert codes == ["no_memory", None, None]
        memory.check_idle()

    asyncio.run(scenario())


def test_a_reload_before_a_request_resumes_takes_nothing_away_from_it() -> None:
    async def scenario() -> None:
        memory = Memory("x")
        with Held() as held:
            await memory.loader.load_all(["x"], held)
            memory.reload()
            await _settled()
            assert memory.routes.find("x") is None
            [retiring] = [task for task in memory.retiring if not task.done()]
        await asyncio.wait_for(retiring, 5)
        memory.check_idle()

    asyncio.run(scenario())


def test_leaving_ends_all_waits() -> None:
    async def scenario() -> None:
        memory = Memory("x", "y")
        memory.hold("x")
        tasks = [asyncio.create_task(memory.request(name)) for name in "xy"]
        await _settled()
        await memory.loader.close()
        answers = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(one, asyncio.CancelledError) for one in answers)
        memory.check_idle()

    asyncio.run(scenario())
