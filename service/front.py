"""Lifecycle of the front: booting, ready, restarting its engine, draining; or failed, or given up.

Owns the phase, the refusals that come of it, and the order in which things start and stop. Requests
that are in work are `service.models.deployments.requests_in_flight`; deployments and how one
replaces another are `service.models.deployments.rollout`; HTTP is `service.app`, signals and
sockets are `service.server`.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial

from model.config import LengthLimits
from model.errors import DragomanError
from service.engine.errors import EngineUnavailableError
from service.engine.messages import LoadedCheckpoint, Ready
from service.errors import unavailable
from service.http.arrivals import Arrivals
from service.labels import PIVOT, SEVERAL, Served, served_by
from service.models.checkpoints.catalogue import ModelEntry
from service.models.checkpoints.watch import FolderWatch, keep_watching
from service.models.deployments.deploying import Deploying, Followers
from service.models.deployments.deployment import Deployment
from service.models.deployments.registry import Fault, Routes
from service.models.deployments.requests_in_flight import Claim, RequestsInFlight, replaced
from service.models.deployments.rollout import Rollout
from service.models.requests.detection import LanguageDetection
from service.models.requests.markup import PageWork
from service.models.routes.routing import Route, RoutingTable
from service.models.translating.segment_search import SegmentsFinished
from service.phase import REFUSALS, Phase
from service.placement import place_replicas
from service.settings import Settings
from service.telemetry.lag import probe_loop_lag
from service.telemetry.metrics import Metrics
from service.timeouts import expire

_LOGGER = logging.getLogger("dragoman")


class Front:
    """State that the handlers share: phase, deployments, requests in work.

    Args:
        settings: Of the server.
        metrics: Where the front and its engine are measured.
        clock: Seconds, monotonic.
        on_ready: Called once, when the engine is warm.
        on_failed: Called once instead, when it cannot start; and when it is given up later, if
            `settings.exit_when_lost`.
        on_finished: Called with the segments of every request that were translated.
        followers: Processes that serve what this one does; None where there are none.
        follow: Makes, of the front, the deployments of another process that it translates with;
            None starts engines.
        claim: Where other processes have requests too, what counts all of them.

    Raises:
        ConfigError: There are more replicas than processors or devices.

    Attributes:
        settings: Of the server.
        metrics: Where the front and its engine are measured.
        text_thread: One thread for everything that is done to text.
        strangers_thread: One thread for large bodies of callers without a key, for large pages,
            and for large replies, so that no other text waits behind them.
        detection: What tells the languages of texts.
        pages: What reads and writes texts with tags.
        arrivals: The bodies that are still arriving.
        in_flight: The requests for translation that are in work, and the room for more.
    """

    def __init__(
        self,
        settings: Settings,
        metrics: Metrics,
        *,
        clock: Callable[[], float] = time.monotonic,
        on_ready: Callable[[Ready], None] | None = None,
        on_failed: Callable[[DragomanError], None] | None = None,
        on_finished: SegmentsFinished | None = None,
        followers: Followers | None = None,
        follow: Callable[["Front"], Deploying] | None = None,
        claim: Claim | None = None,
    ) -> None:
        self.settings = settings
        self.metrics = metrics
        self.text_thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="text")
        self.strangers_thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="strangers")
        self.arrivals = Arrivals()
        self.detection = LanguageDetection(settings.detection, thread=self.text_thread)
        self.pages = PageWork(self.text_thread, self.strangers_thread, settings)
        self._clock = clock
        self._on_ready = on_ready
        self._on_failed = on_failed
        self._phase = Phase.BOOTING
        self._grace: asyncio.Timeout | None = None
        self._watch: FolderWatch | None = None
        self._rollout: Deploying = (
            self._own_rollout(on_finished, followers) if follow is None else follow(self)
        )
        self.in_flight = RequestsInFlight(
            self._rollout, settings, check_ready=self.check_ready, claim=claim
        )
        metrics.watch_requests(lambda: self.in_flight.num, limit=settings.max_requests)

    def _own_rollout(
        self, on_finished: SegmentsFinished | None, followers: Followers | None
    ) -> Rollout:
        settings = self.settings
        return Rollout(
            settings,
            self.metrics,
            placements=place_replicas(
                settings.replicas,
                device=settings.device,
                num_threads=settings.num_threads,
                num_fronts=settings.fronts,
            ),
            text_thread=self.text_thread,
            clock=self._clock,
            on_finished=on_finished,
            on_given_up=self._given_up,
            may_replace=lambda: self._phase is Phase.READY,
            on_found=self.detection.read_statistics,
            followers=followers,
        )

    def __repr__(self) -> str:
        return f"Front({self.phase.value}, {self.in_flight.num} requests in flight)"

    @property
    def phase(self) -> Phase:
        """Phase of the front; while it serves, that of its engine."""
        if self._phase is not Phase.READY:
            return self._phase
        pool = self._served.pool
        if pool.is_ready:
            return Phase.READY
        return Phase.LOST if pool.is_exhausted else Phase.RESTARTING

    @property
    def _served(self) -> Deployment:
        if self._routes.latest is None:
            raise unavailable(REFUSALS[self._phase], code=self._phase.value)
        return self._routes.latest

    @property
    def _routes(self) -> Routes:
        return self._rollout.routes

    @property
    def table(self) -> RoutingTable:
        """What is served, by languages and by names.

        Raises:
            RequestError: A 503: it is not known yet.
        """
        self._served  # noqa: B018  # or it raises
        return self._routes.table

    @property
    def loaded(self) -> list[LoadedCheckpoint]:
        """Every checkpoint that is served, as its engine has described it."""
        return self._routes.loaded

    @property
    def models(self) -> tuple[ModelEntry, ...]:
        """The public description of every checkpoint that is served or unloaded.

        Raises:
            RequestError: A 503: it is not known yet.
        """
        self._served  # noqa: B018  # or it raises
        return self._routes.entries

    @property
    def deployments(self) -> list[Deployment]:
        """All deployments that serve, the latest last."""
        return self._routes.deployments

    @property
    def replicas(self) -> tuple[int, int]:
        """How many engines of the latest deployment accept segments, and how many there are to be.

        Raises:
            RequestError: A 503: it is not known yet.
        """
        pool = self._served.pool
        return pool.num_ready, len(pool.replicas)

    @property
    def faults(self) -> list[Fault]:
        """The checkpoints that could not be loaded as they are on the disk."""
        return self._routes.faults

    def limits(self, route: Route) -> LengthLimits:
        """Lengths that the last checkpoint of a route was trained for.

        Raises:
            RequestError: A 503: it is not served any more.
        """
        limits = self._routes.limits(route.hops[-1].checkpoint)
        if limits is None:
            raise replaced()
        return limits

    def served(self, *routes: Route) -> Served | None:
        """The labels of a request whose texts take these routes; None where all stay as they are.

        Of a route with two hops they are those of its ends.
        """
        different = [route for route in routes if route.hops]
        if len(different) > 1:
            different = list(dict.fromkeys(different))
        if len(different) != 1:
            return SEVERAL if different else None
        (route,) = different
        if route.pivot is None:
            hop = route.hops[0]
            return served_by(hop.pair, hop.checkpoint)
        return Served(pair=f"{route.source}>{route.target}", checkpoint=PIVOT)

    def check_ready(self) -> None:
        """Return if a translation would be accepted now.

        Raises:
            RequestError: A 503 that says why not.
        """
        phase = self.phase
        if phase is not Phase.READY:
            raise unavailable(REFUSALS[phase], code=phase.value)

    def check_live(self) -> None:
        """Return unless only a restart can help.

        Raises:
            RequestError: A 503 that says why.
        """
        phase = self.phase
        if phase in (Phase.FAILED, Phase.LOST):
            raise unavailable(REFUSALS[phase], code=phase.value)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Start in the background; leaving stops everything and waits for it."""
        tasks = [
            asyncio.create_task(self._boot_and_watch(), name="boot"),
            asyncio.create_task(
                probe_loop_lag(self.metrics.loop_woke_late, clock=self._clock), name="lag probe"
            ),
        ]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._rollout.stop_retiring()
            await self._rollout.close()
            for thread in (self.text_thread, self.strangers_thread):
                thread.shutdown(cancel_futures=True)

    async def drain(self) -> bool:
        """Refuse new work and wait for what was accepted, at most the grace time.

        What still arrives was not accepted, so it is refused now.

        Returns:
            Whether all of it was answered; the rest gets a 503.
        """
        self._phase = Phase.DRAINING
        self.arrivals.end()
        self._rollout.abandon()
        self.in_flight.abandon_loads()
        try:
            async with asyncio.timeout(self.settings.grace_seconds) as self._grace:
                await self.in_flight.wait_idle()
        except TimeoutError:
            await self._rollout.close()
            return False
        finally:
            self._grace = None
        return True

    def hurry(self) -> None:
        """End the grace time of a drain now."""
        if self._grace is not None:
            expire(self._grace)

    async def reload(self, *, is_patient: bool = False) -> None:
        """Load the checkpoints anew beside those that are served, then serve the new ones.

        Args:
            is_patient: Whether to wait for a reload that is running, which may have begun before
                the last change, instead of being refused. One that waits is enough for all.

        Raises:
            RequestError: As of `Rollout.reload`; a 503 when there is nothing to replace.
        """
        if is_patient and not await self._rollout.wait_turn():
            return
        self._check_replaceable()
        watch = self._watch
        take = None if watch is None else partial(asyncio.to_thread, watch.take)
        await self._rollout.reload(before=take)

    async def set_loaded(self, name: str, *, is_loaded: bool) -> None:
        """Load or unload one of the checkpoints, by a reload.

        Raises:
            RequestError: As of `Rollout.set_loaded`; a 503 when there is nothing to replace.
        """
        self._check_replaceable()
        await self._rollout.set_loaded(name, is_loaded=is_loaded)

    def _check_replaceable(self) -> None:
        if self._phase is not Phase.READY:
            raise unavailable(REFUSALS[self._phase], code=self._phase.value)

    async def _boot_and_watch(self) -> None:
        """Start; then reload when the folder changes, if that is wanted, until cancelled."""
        if self.settings.watch:
            self._watch = await asyncio.to_thread(FolderWatch, self.settings.checkpoint)
        await self._boot()
        if self._watch is not None:
            await keep_watching(self._watch, self.reload)

    async def _boot(self) -> None:
        try:
            await self._begin(await self._rollout.open())
        except DragomanError as error:
            self._fail(error)
        except Exception as error:
            _LOGGER.exception("start_failed")
            self._fail(DragomanError(f"unexpected {type(error).__name__} at start"))

    async def _begin(self, deployment: Deployment) -> None:
        """Serve the first deployment, unless the server drains already."""
        await self._rollout.begin(deployment)
        if self._phase is Phase.BOOTING:
            self._phase = Phase.READY
            self.metrics.became_ready()
            if self._on_ready is not None:
                self._on_ready(deployment.pool.ready)

    def _given_up(self) -> None:
        """Report an engine that is lost for good."""
        if self.settings.exit_when_lost and self._on_failed is not None:
            self._on_failed(EngineUnavailableError("the translation engine was lost too often"))

    def _fail(self, error: DragomanError) -> None:
        if self._phase is Phase.DRAINING:  # the engine is not needed any more
            return
        self._phase = Phase.FAILED
        _LOGGER.error("start_failed", extra={"fields": {"reason": str(error)}})
        if self._on_failed is not None:
            self._on_failed(error)
