"""Deployment: the checkpoints of one load, with their text pipelines and the engines that run them.

Owns what has to change together. A deployment is replaced as a whole
(`service.models.deployments.rollout`); a request keeps the one that it began with.
"""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import asdict
from types import MappingProxyType
from typing import Protocol, Self

from model.errors import ConfigError
from model.system.cache_folder import cache_root
from service.engine.client.client import EngineClient
from service.engine.client.pool.pool import Pool, Sharing
from service.engine.client.pool.replica import Keeping, Replica
from service.engine.client.pool.siblings import Siblings, StartEngine
from service.engine.client.segment_room import SegmentRoom
from service.engine.client.submission import OnWritten, SegmentBatch, SegmentJob
from service.engine.client.supervisor import RestartBudget
from service.engine.errors import EngineStartError
from service.engine.messages import Configure, EngineCounters, Ready
from service.models.checkpoints.discovery import Checkpoints, TextCheckpoint
from service.models.translating.segment_cache import SegmentCache
from service.models.translating.segment_search import LookedUp, SegmentsFinished
from service.models.translating.translator import OnlineTranslator
from service.placement import Placement, default_fill_rows
from service.priority import Priority
from service.settings import Settings
from service.telemetry.metrics import Metrics

_HEARTBEATS_PER_HANG = 8
_SILENT_HEARTBEATS = 3
"""Without a word of a replica before it gets nothing new."""
_LOGGER = logging.getLogger("dragoman")


class InFlight:
    """Number of requests in flight, and a wait until there is none."""

    def __init__(self) -> None:
        self.num = 0
        self._is_idle = asyncio.Event()
        self._is_idle.set()

    @contextmanager
    def one_more(self) -> Iterator[None]:
        """Count a request until it is left."""
        self.enter()
        try:
            yield
        finally:
            self.leave()

    def enter(self) -> None:
        """Count one more."""
        self.num += 1
        self._is_idle.clear()

    def leave(self) -> None:
        """Count one less."""
        self.num -= 1
        if self.num == 0:
            self._is_idle.set()

    async def wait_idle(self) -> None:
        """Return once there is none."""
        await self._is_idle.wait()


class Engines(Protocol):
    """Engines of one deployment: a `Pool`, or those of another process."""

    @property
    def replicas(self) -> Sequence[Replica]:
        """By their places; none where another process has them."""

    @property
    def num_ready(self) -> int:
        """Replicas that accept segments."""

    @property
    def is_ready(self) -> bool:
        """Whether segments are accepted."""

    @property
    def is_exhausted(self) -> bool:
        """Whether all engines are lost and no other one will be started."""

    @property
    def ready(self) -> Ready:
        """The Ready message of the latest engine in the first place."""

    @property
    def num_pending(self) -> int:
        """Segments accepted and not answered."""

    @property
    def counters(self) -> EngineCounters:
        """The totals of all engines so far, and the gauges of those that are there."""

    @property
    def max_request_segments(self) -> int:
        """How many segments may be of one class, and so of one request."""

    def check_open(
        self, priority: Priority | None = None, *, checkpoint: int | None = None
    ) -> None:
        """Return if there is room for a request whose segments are not known yet."""

    def submit(
        self, jobs: Sequence[SegmentJob], *, client: int = 0, on_written: OnWritten | None = None
    ) -> SegmentBatch:
        """Accept all of a client's `jobs`, or none; never waits."""

    def retire(self) -> None:
        """Finish what is pending, and start no further engine."""

    async def close(self) -> None:
        """End the engines; pending segments fail."""


class Deployment:
    """Checkpoints as they were at one load, and the engines that run them.

    Nothing of it changes but the count of its requests and the processes behind the pool.

    Args:
        checkpoints: What was found.
        pool: Of engines that have loaded the usable ones in this order.
        text_thread: Where texts are prepared and finished.
        on_finished: Called with the segments of every request that were translated.
        left_out: Names of checkpoints that are not served.
        cache: Segments that were translated before; None where none are kept.
        on_looked_up: Called with how many of a request's segments were there, and were not.

    Attributes:
        checkpoints: Those that are served.
        faulty: Those that cannot be.
        unloaded: Those that could be and are left out.
        on_demand: Those that are loaded when they are asked for.
        left_out: Names of checkpoints that are not served.
        names: Of the checkpoints that are.
        pool: Of the engines.
        in_flight: Its requests.
    """

    def __init__(
        self,
        checkpoints: Checkpoints,
        pool: Engines,
        *,
        text_thread: Executor,
        on_finished: SegmentsFinished | None = None,
        left_out: frozenset[str] = frozenset(),
        cache: SegmentCache | None = None,
        on_looked_up: LookedUp = lambda _hits, _misses: None,
    ) -> None:
        self.checkpoints = checkpoints.usable
        self.faulty = checkpoints.faulty
        self.unloaded = checkpoints.unloaded
        self.on_demand = checkpoints.on_demand
        self.left_out = left_out
        self.names = tuple(one.manifest.name for one in self.checkpoints)
        self.pool = pool
        self.in_flight = InFlight()
        bulk_turn = asyncio.Semaphore(1)
        self._translators = MappingProxyType(
            {
                checkpoint.manifest.name: OnlineTranslator(
                    pipeline=checkpoint.pipeline,
                    limits=checkpoint.manifest.limits,
                    engine=pool,
                    checkpoint=number,
                    checkpoint_name=checkpoint.manifest.name,
                    text_thread=text_thread,
                    bulk_turn=bulk_turn,
                    on_finished=on_finished,
                    cache=cache,
                    fingerprint=checkpoint.fingerprint,
                    on_looked_up=on_looked_up,
                )
                for number, checkpoint in enumerate(self.checkpoints)
            }
        )

    @classmethod
    async def open(
        cls,
        settings: Settings,
        checkpoints: Checkpoints,
        *,
        metrics: Metrics,
        text_thread: Executor,
        clock: Callable[[], float],
        on_finished: SegmentsFinished | None = None,
        on_given_up: Callable[[], None] = lambda: None,
        on_outdated: Callable[[], Awaitable[bool]] | None = None,
        left_out: frozenset[str] = frozenset(),
        cache: SegmentCache | None = None,
        placements: Sequence[Placement],
        is_beside: bool = False,
    ) -> Self:
        """Start engines with checkpoints.

        A first one that finds some at fault is started again without them.

        Args:
            settings: Of the server.
            checkpoints: What was found.
            metrics: Where engines and segments are measured.
            text_thread: Where texts are prepared and finished.
            clock: Seconds, monotonic.
            on_finished: As of the class.
            on_given_up: Called when the last engine is lost and none will be started again.
            on_outdated: Called when an engine does not find the checkpoints that the first one
                had; whether something else has taken this deployment's place.
            left_out: As of the class.
            cache: As of the class.
            placements: Where the engines run, one each.
            is_beside: Another deployment serves meanwhile. Then engines start one by one, and all
                of them before this returns; else it returns with the first, and the others come.

        Raises:
            ConfigError: There is none that can be served.
            EngineStartError: An engine that is waited for did not become ready; no process is
                left behind.
        """

        async def start_pool(checkpoints: Checkpoints) -> Pool:
            return await Pool.start(
                _starts(settings, checkpoints.usable, placements, metrics, clock),
                room=SegmentRoom(
                    settings.max_pending_segments,
                    reserved_share=settings.reserved_share,
                    num_checkpoints=len(checkpoints.usable),
                    clock=clock,
                ),
                keeping=_keeping(settings, metrics, clock, on_outdated),
                sharing=_sharing(settings, placements, metrics),
                on_given_up=on_given_up,
            )

        while True:
            try:
                pool = await start_pool(checkpoints)
                break
            except EngineStartError as error:
                if not error.at_fault:
                    raise
                checkpoints = checkpoints.without(error.at_fault, error.shortages)
        if len(placements) > 1:
            fields = {"replicas": [asdict(placement) for placement in placements]}
            _LOGGER.info("replicas_placed", extra={"fields": fields})
        await _fill(pool, is_beside=is_beside)
        return cls(
            checkpoints,
            pool,
            text_thread=text_thread,
            on_finished=on_finished,
            left_out=left_out,
            cache=cache,
            on_looked_up=metrics.segments.looked_up,
        )

    def __repr__(self) -> str:
        return f"<Deployment {', '.join(self.names)}: {self.in_flight.num} requests>"

    def translator(self, name: str) -> OnlineTranslator:
        """The translator of one of the checkpoints, by its name."""
        return self._translators[name]

    def check_open(self, name: str, priority: Priority | None) -> None:
        """Return if there is room for a request to one of the checkpoints.

        Raises:
            QueueFullError: Too much is pending now.
        """
        self.pool.check_open(priority, checkpoint=self.names.index(name))

    async def retire(self) -> None:
        """Wait for the requests that began here, then end the engines."""
        self.pool.retire()
        await self.in_flight.wait_idle()
        await self.pool.close()


def _packed_folder(settings: Settings) -> str | None:
    """The folder of packed weights; None where none are kept, or where there is no home for it."""
    if settings.packed_bytes == 0:
        return None
    try:
        return str(cache_root(os.environ) / "packed")
    except ConfigError as error:
        _LOGGER.info("packed_weights_not_kept", extra={"fields": {"reason": str(error)}})
        return None


async def _fill(pool: Pool, *, is_beside: bool) -> None:
    """Start all engines but the first; see `Deployment.open`."""
    if not is_beside:
        pool.fill()
        return
    try:
        await pool.fill_one_by_one()
    except BaseException:
        await pool.close()
        raise


def _starts(
    settings: Settings,
    checkpoints: Sequence[TextCheckpoint],
    placements: Sequence[Placement],
    metrics: Metrics,
    clock: Callable[[], float],
) -> list[StartEngine]:
    """What starts an engine in each place."""

    def start(configure: Configure) -> StartEngine:
        async def start_engine(siblings: Siblings) -> EngineClient:
            return await EngineClient.start(
                configure,
                room=siblings.room,
                start_timeout_seconds=settings.start_timeout_seconds,
                hang_seconds=settings.hang_seconds,
                observer=metrics.segments,
                numbers=siblings.numbers,
                on_orphaned=siblings.on_orphaned,
                clock=clock,
            )

        return start_engine

    return [start(_configuration(settings, checkpoints, placement)) for placement in placements]


def _keeping(
    settings: Settings,
    metrics: Metrics,
    clock: Callable[[], float],
    on_outdated: Callable[[], Awaitable[bool]] | None,
) -> Keeping:
    return Keeping(
        make_budget=lambda: RestartBudget(
            max_restarts=settings.max_restarts, window_seconds=settings.restart_window_seconds
        ),
        on_lost=metrics.engine_restarted,
        on_outdated=on_outdated,
        clock=clock,
    )


def _sharing(settings: Settings, placements: Sequence[Placement], metrics: Metrics) -> Sharing:
    fill_rows = settings.fill_rows
    return Sharing(
        fill_rows=default_fill_rows(placements) if fill_rows is None else fill_rows,
        silent_seconds=_SILENT_HEARTBEATS * _heartbeat_seconds(settings),
        on_moved=metrics.segments.moved,
    )


def _heartbeat_seconds(settings: Settings) -> float:
    return min(1.0, settings.hang_seconds / _HEARTBEATS_PER_HANG)


def _configuration(
    settings: Settings, checkpoints: Sequence[TextCheckpoint], placement: Placement
) -> Configure:
    return Configure(
        checkpoint_paths=tuple(str(checkpoint.directory) for checkpoint in checkpoints),
        fingerprints=tuple(checkpoint.fingerprint for checkpoint in checkpoints),
        num_threads=placement.num_threads,
        processors=placement.processors,
        visible_device=placement.visible_device,
        device=settings.device,
        compute_type=settings.compute_type,
        shortlist=settings.shortlist,
        packed_folder=_packed_folder(settings),
        packed_bytes=settings.packed_bytes,
        max_rows=settings.max_rows,
        max_slots=settings.max_slots,
        admit_token_budget=settings.admit_token_budget,
        reserved_share=settings.reserved_share,
        beam_size=settings.beam_size,
        heartbeat_seconds=_heartbeat_seconds(settings),
        log_level=settings.log_level,
    )
