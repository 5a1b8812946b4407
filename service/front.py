"""The front's life: booting, ready, draining; or failed, or without its engine.

Owns the text pipeline, the engine and the order in which they start and stop. The handlers ask
it for a translator and are refused while there is none. HTTP is `service.app`, signals and
sockets are `service.server`.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from enum import Enum
from typing import TYPE_CHECKING

from msgspec.structs import replace

from model.checkpoint.manifest import Manifest, read_manifest
from model.errors import DragomanError
from model.text.tokenizer import Tokenizer
from model.translation import TextPipeline
from service.engine.client import EngineClient, default_num_threads
from service.engine.messages import Configure, Ready, Snapshot
from service.errors import overloaded, unavailable
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
    DRAINING = "draining"
    FAILED = "failed"
    LOST = "lost"


_REFUSALS = {
    Phase.BOOTING: "the translation engine is starting",
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
        on_failed: Called once instead, when it cannot start.
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
        self._manifest: Manifest | None = None
        self._engine: EngineClient | None = None
        self._translator: OnlineTranslator | None = None
        self._grace: asyncio.Timeout | None = None
        self._num_in_work = 0
        self._is_idle = asyncio.Event()
        self._is_idle.set()
        metrics.watch_work(lambda: self._num_in_work, limit=settings.max_requests)

    def __repr__(self) -> str:
        return f"Front({self._phase.value}, {self._num_in_work} requests in work)"

    @property
    def phase(self) -> Phase:
        """Where the front is in its life."""
        return self._phase

    @property
    def manifest(self) -> Manifest:
        """What the checkpoint says of itself.

        Raises:
            RequestError: A 503: it is not known yet.
        """
        if self._manifest is None:
            raise unavailable(_REFUSALS[self._phase], code=self._phase.value)
        return self._manifest

    def check_ready(self) -> None:
        """Return if a translation would be accepted now.

        Raises:
            RequestError: A 503 that says why not.
        """
        if self._phase is not Phase.READY:
            raise unavailable(_REFUSALS[self._phase], code=self._phase.value)

    def check_live(self) -> None:
        """Return unless only a restart can help.

        Raises:
            RequestError: A 503 that says why.
        """
        if self._phase in (Phase.FAILED, Phase.LOST):
            raise unavailable(_REFUSALS[self._phase], code=self._phase.value)

    @contextmanager
    def translator(self) -> Iterator[OnlineTranslator]:
        """The translator, for one request that counts as work until it is left.

        Raises:
            RequestError: A 503 when there is none, a 429 when too many requests are in work.
        """
        self.check_ready()
        assert self._translator is not None
        limit = self.settings.max_requests
        if self._num_in_work >= limit:
            raise overloaded(
                f"Slowdown: {self._num_in_work} requests are in work; the limit is {limit}",
                value=self._num_in_work,
                limit=limit,
                seconds=1.0,
            )
        self._num_in_work += 1
        self._is_idle.clear()
        try:
            yield self._translator
        finally:
            self._num_in_work -= 1
            if self._num_in_work == 0:
                self._is_idle.set()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Start in the background; leaving stops everything and waits for it."""
        tasks = [
            asyncio.create_task(self._live(), name="engine"),
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
            self.text_thread.shutdown(cancel_futures=True)
            if self.spans is not None:
                await self.spans.close()

    async def drain(self) -> bool:
        """Refuse new work and wait for what was accepted, at most the grace time.

        Returns:
            Whether all of it was answered; the rest gets a 503.
        """
        self._phase = Phase.DRAINING
        try:
            async with asyncio.timeout(self.settings.grace_seconds) as self._grace:
                await self._is_idle.wait()
        except TimeoutError:
            if self._engine is not None:
                await self._engine.close()
            return False
        return True

    def hurry(self) -> None:
        """End the grace time of a drain now."""
        if self._grace is not None and not self._grace.expired():
            self._grace.reschedule(asyncio.get_running_loop().time())

    async def _live(self) -> None:
        try:
            await self._serve_engine()
        except DragomanError as error:
            self._fail(error)
        except Exception as error:
            _LOGGER.exception("start failed")
            self._fail(DragomanError(f"unexpected {type(error).__name__} at start"))

    async def _serve_engine(self) -> None:
        loop = asyncio.get_running_loop()
        manifest, pipeline = await loop.run_in_executor(self.text_thread, self._load_pipeline)
        async with await self._start_engine() as engine:
            self._engine = engine
            self._translator = OnlineTranslator(
                pipeline=pipeline,
                limits=manifest.limits,
                engine=engine,
                text_thread=self.text_thread,
                on_finished=self.spans.segments_finished if self.spans is not None else None,
            )
            self._manifest = manifest
            self._watch(engine)
            if self._phase is Phase.BOOTING:
                self._phase = Phase.READY
                if self._on_ready is not None:
                    self._on_ready(engine.ready)
            await engine.wait_lost()
        if self._phase is Phase.READY:
            self._phase = Phase.LOST
            _LOGGER.error("engine lost")

    def _load_pipeline(self) -> tuple[Manifest, TextPipeline]:
        directory = self.settings.checkpoint
        manifest = read_manifest(directory)
        return manifest, TextPipeline(Tokenizer.load(directory, manifest), manifest)

    async def _start_engine(self) -> EngineClient:
        settings = self.settings
        configure = Configure(
            checkpoint_path=str(settings.checkpoint.resolve()),
            num_threads=settings.num_threads or default_num_threads(),
            device=settings.device,
            compute_type=settings.compute_type,
            max_rows=settings.max_rows,
            max_slots=settings.max_slots,
            admit_token_budget=settings.admit_token_budget,
            reserved_share=settings.reserved_share,
            log_level=settings.log_level,
        )
        return await EngineClient.start(
            configure,
            max_pending_segments=settings.max_pending_segments,
            start_timeout_seconds=settings.start_timeout_seconds,
            on_finished=self.metrics.segment_finished,
            clock=self._clock,
        )

    def _watch(self, engine: EngineClient) -> None:
        self.metrics.watch_engine(
            EngineCollector(
                snapshot=lambda: _current(engine),
                num_pending=lambda: engine.num_pending,
                max_pending=engine.max_pending_segments,
                is_up=lambda: engine.is_alive,
                ready=lambda: engine.ready,
                process_id=lambda: engine.process_id if engine.is_alive else None,
            )
        )

    def _fail(self, error: DragomanError) -> None:
        self._phase = Phase.FAILED
        _LOGGER.error("start failed", extra={"fields": {"reason": str(error)}})
        if self._on_failed is not None:
            self._on_failed(error)


def _current(engine: EngineClient) -> Snapshot:
    """The latest snapshot; an engine that is gone runs nothing any more."""
    if engine.is_alive:
        return engine.snapshot
    return replace(engine.snapshot, num_waiting=0, num_running=0, num_rows=0, num_slots=0)
