"""The front's life: booting, ready, restarting its engine, draining; or failed, or given up.

Owns which generation of checkpoints is served, how the next one takes its place, and the order in
which things start and stop. The handlers ask it for a translator and are refused while there is
none. HTTP is `service.app`, signals and sockets are `service.server`.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from enum import Enum
from typing import TYPE_CHECKING

from model.checkpoint.manifest import LanguagePair, LengthLimits
from model.errors import DragomanError
from service.engine.errors import EngineUnavailableError
from service.engine.messages import Ready, Snapshot
from service.engine.totals import only_totals, summed
from service.errors import conflict, overloaded, reload_failed, unavailable
from service.generation import Generation, WorkCount
from service.lag import probe_loop_lag
from service.metrics import EngineCollector, Metrics
from service.settings import Settings
from service.translator import OnlineTranslator

if TYPE_CHECKING:
    from service.spans import Spans

_LOGGER = logging.getLogger("dragoman")


class Phase(Enum):
    """Where the front is in its life."""

    BOOTING = "booting"
    READY = "ready"
    RESTARTING = "restarting"
    DRAINING = "draining"
    FAILED = "failed"
    LOST = "lost"


_REFUSALS = {
    Phase.BOOTING: "the translation engine is starting",
    Phase.RESTARTING: "the translation engine is starting again",
    Phase.DRAINING: "the server is shutting down",
    Phase.FAILED: "the translation engine did not start",
    Phase.LOST: "the translation engine is not running",
}


class Front:
    """What the handlers share.

    Args:
        settings: Of the server.
        metrics: Where the front and its engine are measured.
        clock: Seconds, monotonic.
        on_ready: Called once, when the engine is warm.
        on_failed: Called once instead, when it cannot start; and when it is given up later, if
            `settings.exit_when_lost`.
        spans: What traces requests; closed when the front stops. None: nothing does.

    Attributes:
        settings: Of the server.
        metrics: Where the front and its engine are measured.
        spans: What traces requests, if anything does.
        text_thread: One thread for everything that is done to text.
    """

    def __init__(
        self,
        settings: Settings,
        metrics: Metrics,
        *,
        clock: Callable[[], float] = time.monotonic,
        on_ready: Callable[[Ready], None] | None = None,
        on_failed: Callable[[DragomanError], None] | None = None,
        spans: "Spans | None" = None,
    ) -> None:
        self.settings = settings
        self.metrics = metrics
        self.spans = spans
        self.text_thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="text")
        self._clock = clock
        self._on_ready = on_ready
        self._on_failed = on_failed
        self._phase = Phase.BOOTING
        self._generation: Generation | None = None
        self._retiring: dict[Generation, asyncio.Task[None]] = {}
        self._past = Snapshot()  # totals of generations that are gone
        self._grace: asyncio.Timeout | None = None
        self._reload: asyncio.Timeout | None = None
        self._work = WorkCount()
        metrics.watch_work(lambda: self._work.num, limit=settings.max_requests)

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
        if self._generation is None:
            raise unavailable(_REFUSALS[self._phase], code=self._phase.value)
        return self._generation

    @property
    def pairs(self) -> tuple[LanguagePair, ...]:
        """The language pairs of all checkpoints.

        Raises:
            RequestError: A 503: they are not known yet.
        """
        return self._served.pairs

    def limits(self, pair: LanguagePair) -> LengthLimits:
        """Lengths that the checkpoint of a loaded pair was trained for."""
        return self._served.limits(pair)

    def check_ready(self) -> None:
        """Return if a translation would be accepted now.

        Raises:
            RequestError: A 503 that says why not.
        """
        phase = self.phase
        if phase is not Phase.READY:
            raise unavailable(_REFUSALS[phase], code=phase.value)

    def check_room(self) -> None:
        """Return if one more translation request could be worked on now.

        The handlers ask this first of all: a refusal must not wait for the text thread, which
        has most to do just then.

        Raises:
            RequestError: A 503 when none is accepted, a 429 when too many are in work.
            QueueFullError: Too many segments wait already.
        """
        self.check_ready()
        self._served.supervisor.check_open()
        limit = self.settings.max_requests
        if self._work.num >= limit:
            raise overloaded(
                f"Slowdown: {self._work.num} requests are in work; the limit is {limit}",
                value=self._work.num,
                limit=limit,
                seconds=1.0,
            )

    def check_live(self) -> None:
        """Return unless only a restart can help.

        Raises:
            RequestError: A 503 that says why.
        """
        phase = self.phase
        if phase in (Phase.FAILED, Phase.LOST):
            raise unavailable(_REFUSALS[phase], code=phase.value)

    @contextmanager
    def translator(self, pair: LanguagePair) -> Iterator[OnlineTranslator]:
        """The translator of a pair, for one request that counts as work until it is left.

        It stays as it is, whatever is loaded meanwhile.

        Raises:
            RequestError: A 503 when there is none, a 429 when too many requests are in work.
            QueueFullError: Too many segments wait already.
        """
        self.check_room()
        generation = self._served
        translator = generation.translator(pair)
        if translator is None:
            raise unavailable("the checkpoints were just replaced", code="reloaded")
        with self._work.one_more(), generation.work.one_more():
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
            self.text_thread.shutdown(cancel_futures=True)
            if self.spans is not None:
                await self.spans.close()

    async def drain(self) -> bool:
        """Refuse new work and wait for what was accepted, at most the grace time.

        Returns:
            Whether all of it was answered; the rest gets a 503.
        """
        self._phase = Phase.DRAINING
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

    async def reload(self) -> tuple[str, ...]:
        """Load the checkpoints anew beside those that are served, then serve the new ones.

        Requests that have begun end on the old engine, which leaves after the last of them. Until
        then there are two engines, and their memory.

        Returns:
            The names of the checkpoints that are served now.

        Raises:
            RequestError: A 409 when a reload is running, or when the new ones cannot be served; a
                503 when there is nothing to replace. The old ones are served as before.
        """
        if self._phase is not Phase.READY:
            raise unavailable(_REFUSALS[self._phase], code=self._phase.value)
        if self._reload is not None:
            raise conflict("the checkpoints are being reloaded already", code="reload_running")
        try:
            async with asyncio.timeout(None) as self._reload:
                generation = await self._open()
        except TimeoutError:
            raise unavailable(_REFUSALS[self._phase], code=self._phase.value) from None
        except DragomanError as error:
            _LOGGER.error("reload failed", extra={"fields": {"reason": str(error)}})  # noqa: TRY400  # it is foreseen
            raise reload_failed(str(error)) from error
        finally:
            self._reload = None
        old, self._generation = self._served, generation
        self._retiring[old] = asyncio.create_task(self._retire(old), name="retire")
        _LOGGER.info("reloaded", extra={"fields": {"checkpoints": generation.names}})
        return generation.names

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
        self._generation = generation
        self._watch()
        if self._phase is Phase.BOOTING:
            self._phase = Phase.READY
            if self._on_ready is not None:
                self._on_ready(generation.supervisor.ready)

    async def _open(self) -> Generation:
        return await Generation.open(
            self.settings,
            metrics=self.metrics,
            text_thread=self.text_thread,
            clock=self._clock,
            on_finished=self.spans.segments_finished if self.spans is not None else None,
            on_given_up=self._given_up,
        )

    def _given_up(self) -> None:
        """No engine will be started again."""
        if self.settings.exit_when_lost and self._on_failed is not None:
            self._on_failed(EngineUnavailableError("the translation engine was lost too often"))

    @property
    def _generations(self) -> list[Generation]:
        """Those that have an engine, the one that is served last."""
        served = [] if self._generation is None else [self._generation]
        return [*self._retiring, *served]

    async def _close_engines(self) -> None:
        for generation in self._generations:
            await generation.supervisor.close()

    def _watch(self) -> None:
        def snapshot() -> Snapshot:
            generations = self._generations
            return summed([self._past, *(one.supervisor.snapshot for one in generations)])

        self.metrics.watch_engine(
            EngineCollector(
                snapshot=snapshot,
                num_pending=lambda: sum(one.supervisor.num_pending for one in self._generations),
                max_pending=self.settings.max_pending_segments,
                is_up=lambda: self._served.supervisor.is_ready,
                ready=lambda: self._served.supervisor.ready,
                process_id=lambda: self._served.supervisor.process_id,
            )
        )

    def _fail(self, error: DragomanError) -> None:
        self._phase = Phase.FAILED
        _LOGGER.error("start failed", extra={"fields": {"reason": str(error)}})
        if self._on_failed is not None:
            self._on_failed(error)


def _end_now(timeout: asyncio.Timeout | None) -> None:
    """Let a timeout that somebody is in expire."""
    if timeout is not None and not timeout.expired():
        timeout.reschedule(asyncio.get_running_loop().time())
