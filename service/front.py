"""The front's life: booting, ready, restarting its engine, draining; or failed, or given up.

Owns how the next generation of checkpoints takes its place, and the order in which things start and
stop; which generation serves what is `service.models.registry`. The handlers ask it for a
translator and are refused while there is none. HTTP is `service.app`, signals and sockets are
`service.server`.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from dataclasses import asdict

from model.config import LengthLimits
from model.errors import DragomanError
from model.text.language import LanguagePair
from service.engine.client.room import Room
from service.engine.counters import only_totals, summed
from service.engine.errors import EngineUnavailableError
from service.engine.messages import LoadedCheckpoint, Ready, Snapshot
from service.errors import RequestError, conflict, overloaded, reload_failed, unavailable
from service.http.arrivals import Arrivals
from service.labels import Served
from service.models.deployment import Generation, WorkCount
from service.models.registry import Fault, Routes
from service.models.translator import OnlineTranslator, SegmentsFinished
from service.phase import REFUSALS, Phase
from service.priority import Priority
from service.settings import Settings
from service.telemetry.engine_metrics import EngineCollector
from service.telemetry.lag import probe_loop_lag
from service.telemetry.metrics import Metrics

_LOGGER = logging.getLogger("dragoman")


class Front:
    """What the handlers share.

    Args:
        settings: Of the server.
        metrics: Where the front and its engine are measured.
        clock: Seconds, monotonic.
        on_ready: Called once, when the engine is warm.
        on_failed: Called once instead, when it cannot start; and when it is given up later, if
            `settings.exit_when_lost`.
        on_finished: Called with the segments of every request that were translated.

    Attributes:
        settings: Of the server.
        metrics: Where the front and its engine are measured.
        text_thread: One thread for everything that is done to text.
        strangers_thread: One thread for large bodies of those who have shown no key, so that nobody
            else's text waits behind them.
        arrivals: The bodies that are still arriving.
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
    ) -> None:
        self.settings = settings
        self.metrics = metrics
        self.text_thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="text")
        self.strangers_thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="strangers")
        self.arrivals = Arrivals()
        self._clock = clock
        self._on_ready = on_ready
        self._on_failed = on_failed
        self._on_finished = on_finished
        self._phase = Phase.BOOTING
        self._routes = Routes()
        self._retiring: dict[Generation, asyncio.Task[None]] = {}
        self._past = Snapshot()  # totals of generations that are gone
        self._grace: asyncio.Timeout | None = None
        self._reload: asyncio.Timeout | None = None
        self._replacing = asyncio.Lock()
        self._work = WorkCount()
        self._room = Room(settings.max_requests, reserved_share=settings.reserved_share)
        metrics.watch_work(lambda: self._work.num, limit=settings.max_requests)
        self._watch()

    def __repr__(self) -> str:
        return f"Front({self.phase.value}, {self._work.num} requests in work)"

    @property
    def phase(self) -> Phase:
        """Where the front is in its life; while it serves, its engine says so."""
        if self._phase is not Phase.READY:
            return self._phase
        supervisor = self._served.supervisor
        if supervisor.is_ready:
            return Phase.READY
        return Phase.LOST if supervisor.is_exhausted else Phase.RESTARTING

    @property
    def _served(self) -> Generation:
        if self._routes.latest is None:
            raise unavailable(REFUSALS[self._phase], code=self._phase.value)
        return self._routes.latest

    @property
    def pairs(self) -> tuple[LanguagePair, ...]:
        """The language pairs of all checkpoints.

        Raises:
            RequestError: A 503: they are not known yet.
        """
        self._served  # noqa: B018  # or it raises
        return self._routes.pairs

    @property
    def loaded(self) -> list[LoadedCheckpoint]:
        """Every checkpoint that is served, as its engine has described it."""
        return self._routes.loaded

    @property
    def faults(self) -> list[Fault]:
        """The checkpoints that could not be loaded as they are on the disk."""
        return self._routes.faults

    def limits(self, pair: LanguagePair) -> LengthLimits:
        """Lengths that the checkpoint of a loaded pair was trained for."""
        return (self._routes.find(pair) or self._served).limits(pair)

    def served(self, pair: LanguagePair) -> Served | None:
        """A loaded pair as metrics and logs tell it; None when it is loaded no more."""
        return self._routes.served.get(pair)

    def check_ready(self) -> None:
        """Return if a translation would be accepted now.

        Raises:
            RequestError: A 503 that says why not.
        """
        phase = self.phase
        if phase is not Phase.READY:
            raise unavailable(REFUSALS[phase], code=phase.value)

    def check_room(self, priority: Priority | None = None) -> None:
        """Return if one more translation request could be worked on now.

        The handlers ask this first of all: a refusal must not wait for the text thread, which
        has most to do just then.

        Args:
            priority: Its class, once it is known: a class that has filled its part is refused,
                and the other is not.

        Raises:
            RequestError: A 503 when none is accepted, a 429 when too many are in work.
            QueueFullError: Too many segments wait already.
        """
        self.check_ready()
        self._served.supervisor.check_open(priority)
        excess = self._room.excess(1, priority)
        if excess is not None:
            num = excess.value - 1
            what = f"{priority} requests" if excess.limit < self._room.limit else "requests"
            raise overloaded(
                f"Slowdown: {num} {what} are in work; the limit is {excess.limit}",
                value=num,
                limit=excess.limit,
                seconds=1.0,
            )

    def check_live(self) -> None:
        """Return unless only a restart can help.

        Raises:
            RequestError: A 503 that says why.
        """
        phase = self.phase
        if phase in (Phase.FAILED, Phase.LOST):
            raise unavailable(REFUSALS[phase], code=phase.value)

    @contextmanager
    def translator(self, pair: LanguagePair, priority: Priority) -> Iterator[OnlineTranslator]:
        """The translator of a pair, for one request that counts as work until it is left.

        It stays as it is, whatever is loaded meanwhile.

        Raises:
            RequestError: A 503 when there is none, a 429 when too many requests are in work.
            QueueFullError: Too many segments wait already.
        """
        self.check_room(priority)
        generation = self._routes.find(pair)
        translator = None if generation is None else generation.translator(pair)
        if generation is None or translator is None:
            raise unavailable("the checkpoints were just replaced", code="reloaded")
        with (
            self._room.holding(1, priority),
            self._work.one_more(),
            generation.work.one_more(),
        ):
            yield translator

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Start in the background; leaving stops everything and waits for it."""
        tasks = [
            asyncio.create_task(self._boot(), name="boot"),
            asyncio.create_task(
                probe_loop_lag(self.metrics.loop_woke_late, clock=self._clock), name="lag probe"
            ),
        ]
        try:
            yield
        finally:
            tasks += self._retiring.values()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._close_engines()
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
        _end_now(self._reload)
        try:
            async with asyncio.timeout(self.settings.grace_seconds) as self._grace:
                await self._work.wait_idle()
        except TimeoutError:
            await self._close_engines()
            return False
        finally:
            self._grace = None
        return True

    def hurry(self) -> None:
        """End the grace time of a drain now."""
        _end_now(self._grace)

    async def reload(self) -> None:
        """Load the checkpoints anew beside those that are served, then serve the new ones.

        Requests that have begun end on the old engine, which leaves after the last of them. Until
        then there are two engines, and their memory. An old one that has the last good version of
        a checkpoint stays for it.

        Raises:
            RequestError: A 409 when a reload is running, or when none of the new ones can be
                served; a 503 when there is nothing to replace. The old ones are served as before.
        """
        if self._phase is not Phase.READY:
            raise unavailable(REFUSALS[self._phase], code=self._phase.value)
        if self._replacing.locked():
            raise conflict("the checkpoints are being reloaded already", code="reload_running")
        async with self._replacing:
            await self._replace()

    async def _replace_outdated(self) -> bool:
        """Serve what can be loaded now in place of an engine that does not find its files again.

        Returns:
            Whether that is anything.
        """
        async with self._replacing:
            if self._phase is not Phase.READY:
                return False
            try:
                await self._replace()
            except RequestError:  # logged there
                return False
        return True

    async def _replace(self) -> None:
        try:
            async with asyncio.timeout(None) as self._reload:
                generation = await self._open()
        except TimeoutError:
            raise unavailable(REFUSALS[self._phase], code=self._phase.value) from None
        except DragomanError as error:
            self.metrics.reloaded("checkpoints", "failure")
            _LOGGER.error("reload failed", extra={"fields": {"reason": str(error)}})  # noqa: TRY400  # it is foreseen
            raise reload_failed(str(error)) from error
        except Exception:
            self.metrics.reloaded("checkpoints", "failure")
            raise
        finally:
            self._reload = None
        for old in self._routes.take(generation):
            self._retiring[old] = asyncio.create_task(self._retire(old), name="retire")
        self.metrics.reloaded("checkpoints", "partial" if generation.faulty else "success")
        self._tell_checkpoints()
        names = [checkpoint.name for checkpoint in self.loaded]
        _LOGGER.info("reloaded", extra={"fields": {"checkpoints": names}})

    async def _retire(self, generation: Generation) -> None:
        await generation.retire()
        self._past = summed([self._past, only_totals(generation.supervisor.snapshot)])
        del self._retiring[generation]

    async def _boot(self) -> None:
        try:
            self._begin(await self._open())
        except DragomanError as error:
            self._fail(error)
        except Exception as error:
            _LOGGER.exception("start failed")
            self._fail(DragomanError(f"unexpected {type(error).__name__} at start"))

    def _begin(self, generation: Generation) -> None:
        """Serve the first generation, unless it is time to leave already."""
        self._routes.take(generation)
        self.metrics.loaded("checkpoints", is_complete=not generation.faulty)
        self._tell_checkpoints()
        if self._phase is Phase.BOOTING:
            self._phase = Phase.READY
            self.metrics.became_ready()
            if self._on_ready is not None:
                self._on_ready(generation.supervisor.ready)

    def _tell_checkpoints(self) -> None:
        """Log and count what is served, in which arithmetic and why, and what is not."""
        self.metrics.pairs_loaded(self._routes.served.values())
        for one in self.loaded:
            fields = {
                "checkpoint": one.name,
                "device": self._served.supervisor.ready.device,
                "compute_type": one.compute_type,
                "compute_reason": one.compute_reason,
                "compute_problem": one.compute_problem,
            }
            if one.is_slow:
                _LOGGER.warning("slow compute type", extra={"fields": fields})
            else:
                _LOGGER.info("checkpoint served", extra={"fields": fields})
        for fault in self.faults:
            _LOGGER.error("checkpoint refused", extra={"fields": asdict(fault)})

    async def _open(self) -> Generation:
        return await Generation.open(
            self.settings,
            metrics=self.metrics,
            text_thread=self.text_thread,
            clock=self._clock,
            on_finished=self._on_finished,
            on_given_up=self._given_up,
            on_outdated=self._replace_outdated,
        )

    def _given_up(self) -> None:
        """No engine will be started again."""
        if self.settings.exit_when_lost and self._on_failed is not None:
            self._on_failed(EngineUnavailableError("the translation engine was lost too often"))

    @property
    def _generations(self) -> list[Generation]:
        """Those that have an engine, the one that was loaded last at the end."""
        return [*self._retiring, *self._routes.generations]

    async def _close_engines(self) -> None:
        for generation in self._generations:
            await generation.supervisor.close()

    def _watch(self) -> None:
        """Export what the engine counts, from the first scrape on: before it is there, zeros."""

        def latest() -> Generation | None:
            return self._routes.latest

        def snapshot() -> Snapshot:
            generations = self._generations
            return summed([self._past, *(one.supervisor.snapshot for one in generations)])

        self.metrics.watch_engine(
            EngineCollector(
                snapshot=snapshot,
                num_pending=lambda: sum(one.supervisor.num_pending for one in self._generations),
                max_pending=self.settings.max_pending_segments,
                is_up=lambda: latest() is not None and self._served.supervisor.is_ready,
                ready=lambda: self._routes.ready,
                process_id=lambda: self._served.supervisor.process_id if latest() else None,
                start_seconds=lambda: self._served.supervisor.start_seconds if latest() else None,
                is_loaded=lambda: self._routes.by_directory,
            )
        )

    def _fail(self, error: DragomanError) -> None:
        if self._phase is Phase.DRAINING:  # an engine that nobody waits for any more
            return
        self._phase = Phase.FAILED
        _LOGGER.error("start failed", extra={"fields": {"reason": str(error)}})
        if self._on_failed is not None:
            self._on_failed(error)


def _end_now(timeout: asyncio.Timeout | None) -> None:
    """Let a timeout that somebody is in expire."""
    if timeout is not None and not timeout.expired():
        timeout.reschedule(asyncio.get_running_loop().time())
