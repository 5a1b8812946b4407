"""Rollout of deployments: opens one, serves it in place of another, and ends the one that is left.

Owns the deployments that have an engine. Which of them translates which pair is
`service.models.deployments.registry`, what they count together
`service.models.deployments.figures`; what is told of them after a load
`service.models.deployments.reports`; whether there may be a reload now, and what the handlers are
refused with meanwhile, is `service.front`.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import asynccontextmanager
from functools import partial

from model.errors import DragomanError
from service.errors import RequestError, conflict, draining, no_such_model, reload_failed
from service.models.checkpoints.conversion import convert_packages
from service.models.checkpoints.discovery import Checkpoints, TextCheckpoint, load_checkpoints
from service.models.deployments.deploying import Followers
from service.models.deployments.deployment import Deployment
from service.models.deployments.figures import Figures
from service.models.deployments.holding import Held
from service.models.deployments.on_demand import OnDemandLoader
from service.models.deployments.registry import Routes
from service.models.deployments.reports import report_checkpoints
from service.models.translating.segment_cache import SegmentCache
from service.models.translating.segment_search import SegmentsFinished
from service.placement import Placement, one_engine
from service.settings import Settings
from service.telemetry.metrics import Metrics
from service.telemetry.residency_metrics import UnloadReason
from service.timeouts import expire

_LOGGER = logging.getLogger("dragoman")


class Rollout:
    """The deployments of one server.

    Args:
        settings: Of the server.
        metrics: Where loads and engines are measured.
        placements: Where the engines of the checkpoints that are loaded at the start run.
        text_thread: Where texts are prepared and finished.
        clock: Seconds, monotonic.
        on_finished: Called with the segments of every request that were translated.
        on_given_up: Called when the engines of the latest deployment are lost and none will be
            started again.
        may_replace: Whether a deployment whose files have changed may be replaced now.
        on_found: Called in a thread with the languages of a load, while its engine starts; it is
            ready when both are.
        followers: Processes that serve what this one does; None where there are none.

    Attributes:
        routes: Which deployment has which checkpoint.
        on_demand: What loads those that are loaded by their first request.
    """

    def __init__(
        self,
        settings: Settings,
        metrics: Metrics,
        *,
        placements: Sequence[Placement],
        text_thread: Executor,
        clock: Callable[[], float],
        on_finished: SegmentsFinished | None,
        on_given_up: Callable[[], None],
        may_replace: Callable[[], bool],
        on_found: Callable[[Collection[str]], None] = lambda _: None,
        followers: Followers | None = None,
    ) -> None:
        self._followers = followers
        self.routes = Routes(preferred=settings.preferred, pivot=settings.pivot_language)
        self._settings = settings
        self._metrics = metrics
        self._placements = placements
        self._text_thread = text_thread
        self._clock = clock
        self._on_finished = on_finished
        self._on_given_up = on_given_up
        self._may_replace = may_replace
        self._on_found = on_found
        self._cache = cache = segment_cache(settings)
        metrics.watch_cache(lambda: 0 if cache is None else cache.num_bytes)
        self._left_out: frozenset[str] = frozenset()
        self._retiring: dict[Deployment, asyncio.Task[None]] = {}
        self._opening: asyncio.Timeout | None = None
        self._replacing = asyncio.Lock()
        self._waiting = asyncio.Lock()  # held by the one that waits for its turn
        self.on_demand = OnDemandLoader(
            self.routes,
            budget=settings.memory_budget,
            num_replicas=len(placements),
            open_one=self._open_one,
            retire=self._start_retiring,
            metrics=metrics.residency,
            clock=clock,
        )
        self._figures = Figures(self.routes, self._retiring, budget=settings.memory_budget)
        self._figures.show(metrics, max_pending=settings.max_pending_segments)

    def __repr__(self) -> str:
        return f"<Rollout {self.routes!r} retiring={len(self._retiring)}>"

    @property
    def deployments(self) -> list[Deployment]:
        """Those that have an engine, the one that was loaded last at the end."""
        return [*self._retiring, *self.routes.deployments]

    @property
    def is_opening(self) -> bool:
        """A deployment is being opened that will take the place of another one."""
        return self._opening is not None

    async def open(self) -> Deployment:
        """A deployment of the checkpoints as they are now, which nothing is routed to yet.

        Packages among them are converted first.

        Raises:
            ConfigError: There is no checkpoint, or none that can be served.
            EngineStartError: The engine did not become ready; no process is left behind.
        """
        settings = self._settings
        unconverted = await convert_packages(settings.checkpoint)
        read = partial(load_checkpoints, left_out=self._left_out, unconverted=unconverted)
        found = await asyncio.to_thread(read, settings.checkpoint)
        reporting = asyncio.create_task(asyncio.to_thread(self._on_found, found.languages))
        try:
            deployment = await self._open_all(found)
        except BaseException:
            reporting.cancel()
            raise
        try:
            await reporting
        except BaseException:
            await deployment.pool.close()
            raise
        return deployment

    async def _open_all(self, found: Checkpoints) -> Deployment:
        """A deployment of the checkpoints that were found, as far as the budget goes."""
        settings = self._settings
        budget = self.on_demand.budget_beside(found, self._left_out)
        return await Deployment.open(
            settings,
            found.within(budget, settings.pinned, len(self._placements)),
            metrics=self._metrics,
            text_thread=self._text_thread,
            clock=self._clock,
            on_finished=self._on_finished,
            on_given_up=self._drop_lost,
            on_outdated=self._replace_outdated,
            left_out=self._left_out,
            cache=self._cache,
            placements=self._placements,
            is_beside=self.routes.latest is not None,
        )

    async def begin(self, deployment: Deployment) -> None:
        """Serve the first deployment, and return when the followers do."""
        self.routes.take(deployment)
        self._drop_lost()
        if self._followers is not None:
            await self._followers.began(deployment)
        self._metrics.loaded("checkpoints", is_complete=not deployment.faulty)
        self._report()

    async def reload(self, before: Callable[[], Awaitable[object]] | None = None) -> None:
        """Open another deployment beside those that serve, then serve it in their place.

        Requests that have begun end on the old engines, which leave after the last of them. Until
        then there are twice as many, and their memory; new ones start one by one. An old deployment
        that has the last good version of a checkpoint stays for it.

        Args:
            before: Waited for when the reload is not refused, before anything is read.

        Raises:
            RequestError: A 409 when a reload is running, or when none of the new checkpoints can
                be served; a 503 when the server leaves meanwhile. The old ones are served as
                before.
        """
        async with self._alone():
            if before is not None:
                await before()
            await self._replace()

    async def wait_turn(self) -> bool:
        """Return once nothing is being replaced; False at once if another one waits for that."""
        if self._waiting.locked():
            return False
        async with self._waiting, self._replacing:
            return True

    async def set_loaded(self, name: str, *, is_loaded: bool) -> None:
        """Serve a checkpoint that is unloaded, or unload one that is served, by a reload.

        It stays so through later reloads.

        Raises:
            RequestError: A 404 where there is no such checkpoint; a 409 where it is so already,
                or it is the only one that is loaded; and as of `reload`.
        """
        if is_loaded and self.routes.loadable(name) is not None:
            await self._load(name)
            return
        async with self._alone():
            self._check_change(name, is_loaded=is_loaded)
            before = self._left_out
            self._left_out = before - {name} if is_loaded else before | {name}
            try:
                await self._replace()
            except BaseException:
                self._left_out = before
                raise
        if is_loaded and name not in self.routes.table.names:
            reasons = "; ".join(fault.reason for fault in self.routes.faults)
            raise conflict(f"{name} cannot be loaded: {reasons}", code="load_failed")
        if is_loaded:
            await self._load(name)

    async def _load(self, name: str) -> None:
        """Load a checkpoint that is loaded on demand, for no request."""
        with Held() as held:
            await self.on_demand.load_all([name], held)

    def _check_change(self, name: str, *, is_loaded: bool) -> None:
        loaded = self.routes.table.names
        if name not in {entry.name for entry in self.routes.entries}:
            raise no_such_model(name)
        if (name in loaded) == is_loaded:
            state = "loaded" if is_loaded else "unloaded"
            raise conflict(f"{name} is {state} already", code=f"already_{state}")
        if not is_loaded and loaded == (name,):
            raise conflict(f"{name} is the only model that is loaded", code="last_model")

    @asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        """Keep others from replacing deployments until it is left.

        Raises:
            RequestError: A 409: one is being replaced.
        """
        if self._replacing.locked():
            raise conflict("the checkpoints are being reloaded already", code="reload_running")
        async with self._replacing:
            yield

    def abandon(self) -> None:
        """End a reload that is running; the old deployments are served as before."""
        if self._opening is not None:
            expire(self._opening)

    async def close(self) -> None:
        """End all engines; pending segments fail."""
        await self.on_demand.close()
        for deployment in self.deployments:
            await deployment.pool.close()

    async def stop_retiring(self) -> None:
        """Wait for no request of the deployments that are being retired."""
        tasks = list(self._retiring.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _replace_outdated(self) -> bool:
        """Serve what can be loaded now in place of an engine that does not find its files again.

        Returns:
            Whether that is anything.
        """
        latest = self.routes.latest
        async with self._replacing:
            if self.routes.latest is not latest:
                return True  # a reload that was running has done it
            if not self._may_replace():
                return False
            try:
                await self._replace()
            except RequestError:  # logged there
                return False
        return True

    async def _replace(self) -> None:
        try:
            async with asyncio.timeout(None) as self._opening:
                deployment = await self._open_next()
        except TimeoutError:
            raise draining() from None
        except DragomanError as error:
            self._metrics.reloaded("checkpoints", "failure")
            _LOGGER.error("reload_failed", extra={"fields": {"reason": str(error)}})  # noqa: TRY400  # it is foreseen
            raise reload_failed(str(error)) from error
        except Exception:
            self._metrics.reloaded("checkpoints", "failure")
            raise
        finally:
            self._opening = None
        on_demand = self.routes.loaded_on_demand
        replaced = self.routes.take(deployment)
        self._count_unloaded(on_demand, "reload")
        self._drop_lost()
        has_switched = asyncio.Event()
        for old in replaced:
            self._start_retiring(old, after=has_switched)  # it counts meanwhile
        try:
            if self._followers is not None:
                await self._followers.switch(deployment, self.routes.deployments[:-1])
        finally:
            has_switched.set()
        if self._cache is not None:
            self._cache.clear()
        self._metrics.reloaded("checkpoints", "partial" if deployment.faulty else "success")
        self._report()
        names = [checkpoint.name for checkpoint in self.routes.loaded]
        _LOGGER.info("reloaded", extra={"fields": {"checkpoints": names}})

    async def _open_next(self) -> Deployment:
        """A deployment that followers are prepared for; see `open`."""
        deployment = await self.open()
        if self._followers is not None:
            try:
                await self._followers.prepare(deployment)
            except BaseException:
                await deployment.pool.close()
                raise
        return deployment

    def _start_retiring(
        self, deployment: Deployment, after: asyncio.Event | None = None
    ) -> asyncio.Task[None]:
        """End a deployment after its last request, and after followers serve nothing with it."""
        task = asyncio.create_task(self._retire(deployment, after), name="retire")
        self._retiring[deployment] = task
        return task

    async def _open_one(self, checkpoint: TextCheckpoint) -> Deployment:
        """A deployment of one checkpoint on demand, which nothing is routed to yet."""
        return await Deployment.open(
            self._settings,
            Checkpoints(usable=(checkpoint,)),
            metrics=self._metrics,
            text_thread=self._text_thread,
            clock=self._clock,
            on_finished=self._on_finished,
            on_given_up=self._drop_lost,
            on_outdated=self._replace_outdated,
            cache=self._cache,
            placements=[one_engine(self._settings.num_threads, num_fronts=self._settings.fronts)],
        )

    def _drop_lost(self) -> None:
        """Serve nothing more with engines that are lost for good; report the latest ones.

        What cannot be loaded again is not served any more, be it the last good version.
        """
        on_demand = self.routes.loaded_on_demand
        for deployment in self.routes.deployments:
            if not deployment.pool.is_exhausted:
                continue
            if deployment is self.routes.latest:
                self._on_given_up()
            else:
                self.routes.remove(deployment)
                self._start_retiring(deployment)
        self._count_unloaded(on_demand, "lost")

    def _count_unloaded(self, before: Mapping[str, Deployment], reason: UnloadReason) -> None:
        """Count those of some that were loaded on demand and serve no more."""
        for name, old in before.items():
            if self.routes.find(name) is not old:
                self._metrics.residency.unloaded(name, reason)

    async def _retire(self, deployment: Deployment, after: asyncio.Event | None) -> None:
        if after is not None:
            await after.wait()
        await deployment.retire()
        self._figures.keep(deployment)
        del self._retiring[deployment]

    def _report(self) -> None:
        num_replicas = len(self._placements)
        report_checkpoints(self.routes, self._settings, self._metrics, num_replicas=num_replicas)


def segment_cache(settings: Settings) -> SegmentCache | None:
    """This process's part of what is kept of translated segments; None where nothing is."""
    num_bytes = settings.segment_cache // (settings.fronts + 1 if settings.fronts > 1 else 1)
    return SegmentCache(num_bytes) if num_bytes else None
