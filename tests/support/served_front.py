"""A front with a real engine and an application over it, in this process and without sockets."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

import httpx
from fastapi import FastAPI, Request
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from model.arithmetic import ComputeType
from model.config import StoppingRule
from service.api.operations import admin, models
from service.app import create_app
from service.front import Front
from service.phase import Phase
from service.settings import Settings
from service.telemetry.metrics import Metrics

QUERY = {"q": "The cat sees the river.", "source": "en", "target": "zh"}
BACK = {"q": "我的朋友等待一封信。", "source": "zh", "target": "en"}


def _allow(_request: Request) -> None:
    """Everybody is an administrator."""


class Served:
    """A front that is ready, and an application over it with an open administration."""

    def __init__(
        self,
        checkpoint: Path,
        *,
        max_pending_segments: int = 1024,
        max_requests: int = 512,
        compute_type: ComputeType = "auto",
        max_restarts: int = 5,
        watch: bool = False,
        memory_budget: int | None = None,
        pinned: tuple[str, ...] = (),
        preferred: tuple[str, ...] = (),
        load_seconds: float = 300.0,
        stopping: StoppingRule = "exact",
        segment_cache: int = 0,
        replicas: int | Literal["auto"] = 1,
        hang_seconds: float = 30.0,
    ) -> None:
        settings = Settings(
            checkpoint=checkpoint,
            device="cpu",
            compute_type=compute_type,
            max_restarts=max_restarts,
            watch=watch,
            memory_budget=memory_budget,
            pinned=pinned,
            preferred=preferred,
            load_seconds=load_seconds,
            stopping=stopping,
            num_threads=1,
            detection="compact",
            segment_cache=segment_cache,
            replicas=replicas,
            hang_seconds=hang_seconds,
            log_level="error",
            max_pending_segments=max_pending_segments,
            max_requests=max_requests,
        )
        self._is_ready = asyncio.Event()
        self.front = Front(
            settings,
            Metrics(CollectorRegistry()),
            on_ready=lambda _: self._is_ready.set(),
        )
        self.metrics = self.front.metrics
        self.app: FastAPI = create_app(front=self.front)
        self.app.include_router(admin.build_router(self.front, check_admin=_allow), prefix="/open")
        self.app.include_router(models.build_router(self.front, check_admin=_allow), prefix="/open")

    @asynccontextmanager
    async def client(self) -> AsyncIterator[httpx.AsyncClient]:
        transport = httpx.ASGITransport(app=self.app)
        async with (
            self.app.router.lifespan_context(self.app),
            httpx.AsyncClient(transport=transport, base_url="http://a", timeout=60) as client,
        ):
            await self._is_ready.wait()
            yield client

    @staticmethod
    async def translate(client: httpx.AsyncClient, query: dict[str, str] = QUERY) -> str:
        reply = await client.post("/translate", json=query)
        assert reply.status_code == 200
        return str(reply.json()["translatedText"])

    async def lose_engine(self) -> None:
        """Kill the engine, and wait until there is another one or none will come."""
        replica = self.front._served.pool.replicas[0]
        assert replica.process_id is not None
        os.kill(replica.process_id, signal.SIGKILL)
        await replica.supervisor.engine.wait_lost()
        while self.front.phase is Phase.RESTARTING:  # noqa: ASYNC110  # there is no event
            await asyncio.sleep(0.01)

    def sample(self, name: str, **labels: str) -> float:
        """A number of /metrics."""
        for family in text_string_to_metric_families(self.metrics.render().decode()):
            for sample in family.samples:
                if sample.name == f"dragoman_{name}" and labels.items() <= sample.labels.items():
                    return sample.value
        raise AssertionError(f"there is no {name}")
