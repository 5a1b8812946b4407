"""Loads on demand that meet each other, reloads and cancellations, without engines."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from prometheus_client import CollectorRegistry

from model.config import LengthLimits
from service.models.checkpoints import residency
from service.models.checkpoints.discovery import TextCheckpoint
from service.models.deployments.deployment import Deployment, InFlight
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
        return cast("Deployment", Loaded((cast("SimpleNamespace", checkpoint),)))

    def _retire(self, deployment: Deployment) -> asyncio.Task[None]:
        task = asyncio.create_task(deployment.in_flight.wait_idle())
        self.retiring.add(task)
        return task

    async def request(self, names: Sequence[str]) -> None:
        await self.loader.load_all(names)


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
        first = asyncio.create_task(memory.request(["x"]))
        await _settled()
        memory.reload()
        held.set_result(None)
        for _ in range(num_turns):
            await asyncio.sleep(0)
        async with asyncio.timeout(5):
            await asyncio.gather(first, memory.request(["x"]))
        assert memory.opened == ["x", "x"]
        assert memory.routes.find("x") is not None

    asyncio.run(scenario())
