"""The front's side of the engine: accept or refuse, number the segments, route the answers.

Owns what is pending and how much of it there may be, and notices when the engine is gone or hangs.
Runs on the event loop and never blocks it; imports no torch. The process and the stream are
`service.engine.client.process`; who starts another engine is `service.engine.client.supervisor`.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import count
from types import TracebackType
from typing import Literal, NamedTuple, Self

from model.errors import InputError
from service.engine.client.process import EngineLink, start_engine
from service.engine.client.room import Excess, Room
from service.engine.client.submission import (
    SegmentBatch,
    SegmentJob,
    SegmentObserver,
    check_fits,
    submits,
)
from service.engine.client.throughput import Throughput
from service.engine.client.watchdog import Watchdog
from service.engine.errors import (
    EngineError,
    EngineUnavailableError,
    ProtocolError,
    QueueFullError,
    SegmentFailedError,
)
from service.engine.messages import (
    Cancel,
    Cancelled,
    Configure,
    EngineMessage,
    Failed,
    Finished,
    Ready,
    Shutdown,
    Snapshot,
    StartFailed,
    Submit,
)
from service.priority import Priority

logger = logging.getLogger(__name__)

_OPEN_SHARE = 0.95
"""Of the queue, what may be taken when somebody with a new text is let in."""

LossReason = Literal["exit", "hang", "protocol"]
"""How an engine was lost: it left, it did not get on, or it said what it must not."""


class _Pending(NamedTuple):
    """An accepted segment: who waits for it, and what was asked for."""

    answer: asyncio.Future[Finished]
    job: SegmentJob


class EngineClient:
    """One engine process, as the front sees it.

    Made by `start`; an async context manager that closes on leaving. Every accepted segment is
    pending until the engine has said its last word on it, a cancelled one too, so
    `max_pending_segments` bounds what either side holds. Of that, `reserved_share` is left by each
    class to the other.

    Attributes:
        ready: What the engine said when it was warm.
        start_seconds: From the start of its process to that, interpreter and imports included.
        snapshot: The engine's latest one.
    """

    def __init__(
        self,
        link: EngineLink,
        ready: Ready,
        *,
        max_pending_segments: int,
        reserved_share: float,
        hang_seconds: float,
        observer: SegmentObserver | None,
        clock: Callable[[], float],
        start_seconds: float,
    ) -> None:
        self.ready = ready
        self.start_seconds = start_seconds
        self.snapshot = Snapshot(
            max_rows=ready.max_rows * len(ready.checkpoints),
            max_slots=ready.max_slots * len(ready.checkpoints),
        )
        self._link = link
        self._observer = observer
        self._clock = clock
        self._throughput = Throughput()
        self._numbers = count(1)
        self._requests = count(1)
        self._pending: dict[int, _Pending] = {}
        self._room = Room(max_pending_segments, reserved_share=reserved_share)
        self._nothing_pending = asyncio.Event()
        self._nothing_pending.set()
        self._lost = asyncio.Event()
        self._loss_reason: LossReason | None = None
        self._watchdog = Watchdog(hang_seconds=hang_seconds, now=clock())
        self._is_draining = False
        self._is_closing = False
        self._listener = asyncio.create_task(self._listen(), name="engine-listener")
        self._watcher = asyncio.create_task(self._watch(), name="engine-watcher")

    @classmethod
    async def start(
        cls,
        configure: Configure,
        *,
        max_pending_segments: int,
        reserved_share: float = 0.0,
        start_timeout_seconds: float = 120.0,
        hang_seconds: float = 30.0,
        observer: SegmentObserver | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> Self:
        """Spawn an engine and wait until it is warm.

        Args:
            configure: What it loads and how much may run.
            max_pending_segments: Segments accepted and not answered, at most.
            reserved_share: Of them, those that each class leaves to the other.
            start_timeout_seconds: Time to load and to warm up.
            hang_seconds: Silence, or standstill with work, after which it is taken for lost.
            observer: Hears of every segment.
            clock: Monotonic seconds.

        Raises:
            EngineStartError: It did not become ready; no process is left behind.
        """
        started = clock()
        link, ready = await start_engine(configure, timeout_seconds=start_timeout_seconds)
        return cls(
            link,
            ready,
            max_pending_segments=max_pending_segments,
            reserved_share=reserved_share,
            hang_seconds=hang_seconds,
            observer=observer,
            clock=clock,
            start_seconds=clock() - started,
        )

    async def __aenter__(self) -> Self:
        """The client itself."""
        return self

    async def __aexit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close."""
        await self.close()

    def __repr__(self) -> str:
        state = "draining" if self._is_draining else "ready"
        return (
            f"<EngineClient pid={self.process_id} {state if self.is_alive else 'lost'}"
            f" pending={self.num_pending}/{self.max_pending_segments}>"
        )

    @property
    def process_id(self) -> int:
        """The engine's process id."""
        return self._link.process_id

    @property
    def is_alive(self) -> bool:
        """The engine is there."""
        return not self._lost.is_set()

    @property
    def loss_reason(self) -> LossReason | None:
        """How the engine was lost; None while it is there, and when it was closed."""
        return self._loss_reason

    @property
    def is_draining(self) -> bool:
        """No more work is accepted."""
        return self._is_draining

    @property
    def is_ready(self) -> bool:
        """Work is accepted."""
        return self.is_alive and not self._is_draining

    @property
    def num_pending(self) -> int:
        """Segments accepted on which the engine has not said its last word."""
        return len(self._pending)

    @property
    def max_pending_segments(self) -> int:
        """How many there may be."""
        return self._room.limit

    @property
    def max_request_segments(self) -> int:
        """How many of them may be of one class, and so of one request."""
        return self._room.class_limit

    def check_open(self, priority: Priority | None = None) -> None:
        """Return if there is room for somebody whose segments are not known yet.

        The last part of the queue is for those who have passed and whose segments are being made:
        whoever is let in is hardly ever refused, and who is refused has cost nothing.

        Args:
            priority: Their class, once it is known.

        Raises:
            QueueFullError: Too much is pending now, of all or of their class.
        """
        excess = self._room.excess(1, priority, share=_OPEN_SHARE)
        if excess is not None:
            raise self._queue_full(excess)

    def submit(self, jobs: Sequence[SegmentJob], *, client: int = 0) -> SegmentBatch:
        """Accept all of `jobs`, or none; never waits.

        Args:
            jobs: The segments of one request, all of one class.
            client: Whose they are, as a number that says nothing of them.

        Raises:
            EngineUnavailableError: The engine is gone, draining or closed.
            InputError: A job could never run, or there are more than may ever be pending.
            QueueFullError: Too much is pending now.
        """
        if not self.is_ready:
            raise EngineUnavailableError(
                "the engine is draining" if self.is_alive else "the engine is gone"
            )
        for job in jobs:
            check_fits(job, self.ready)
        self._check_room(jobs)
        numbered = {next(self._numbers): job for job in jobs}
        for segments in submits(numbered, client=client, request=next(self._requests)):
            self._link.send(Submit(segments=segments))
        loop = asyncio.get_running_loop()
        answers: dict[int, asyncio.Future[Finished]] = {
            segment_id: loop.create_future() for segment_id in numbered
        }
        for segment_id, job in numbered.items():
            self._pending[segment_id] = _Pending(answers[segment_id], job)
            self._room.take(1, job.priority)
            if self._observer is not None:
                self._observer.segment_received(job)
        if answers:
            self._nothing_pending.clear()
        return SegmentBatch(answers, cancel=self._send_cancel)

    async def drain(self, *, timeout_seconds: float) -> bool:
        """Accept nothing more and wait for what is pending; True when all of it is answered."""
        self._is_draining = True
        try:
            async with asyncio.timeout(timeout_seconds):
                await self._nothing_pending.wait()
        except TimeoutError:
            return False
        return True

    async def close(self, *, grace_seconds: float = 5.0) -> None:
        """End the engine, first politely; pending segments fail. A second call is harmless."""
        self._is_draining = self._is_closing = True
        self._fail_pending("the engine was closed")
        with suppress(EngineUnavailableError):
            self._link.send(Shutdown())
        try:
            await asyncio.wait([self._listener], timeout=grace_seconds)
        finally:
            if not self._listener.done():
                self._link.kill()
        await asyncio.wait([self._listener, self._watcher])

    async def wait_left(self, *, timeout_seconds: float) -> bool:
        """Wait for the process of a lost engine to be gone; True when it is."""
        await asyncio.wait([self._listener], timeout=timeout_seconds)
        return self._listener.done()

    async def wait_lost(self) -> None:
        """Return once the engine is gone, whoever ended it; its process may still be leaving."""
        await self._lost.wait()

    def _check_room(self, jobs: Sequence[SegmentJob]) -> None:
        limit = self.max_request_segments
        if len(jobs) > limit:
            raise InputError(
                f"there are {len(jobs)} segments; the limit is {limit}",
                value=len(jobs),
                limit=limit,
            )
        excess = self._room.excess(len(jobs), jobs[0].priority if jobs else None)
        if excess is not None:
            raise self._queue_full(excess)

    def _queue_full(self, excess: Excess) -> QueueFullError:
        wait = self._throughput.wait_seconds(excess.value - excess.limit, now=self._clock())
        return QueueFullError(value=excess.value, limit=excess.limit, retry_after_seconds=wait)

    def _send_cancel(self, segment_ids: Sequence[int]) -> None:
        still_pending = tuple(number for number in segment_ids if number in self._pending)
        if still_pending:
            with suppress(EngineUnavailableError):
                self._link.send(Cancel(segment_ids=still_pending))

    async def _listen(self) -> None:
        """Route what the engine says until it is lost, then see it out."""
        try:
            while self.is_alive:
                for message in await self._link.receive():
                    self._watchdog.heard(message)
                    self._take(message)
        except EngineUnavailableError:
            self._lose("exit")
        except Exception:
            logger.exception("engine_answers_unreadable")
            self._lose("protocol")
        finally:
            self._lose("exit")  # as far as it has not been said yet
            await self._link.reap()
            fields = {
                "reason": self._loss_reason or "closed",
                "exit_status": self._link.exit_status,
            }
            logger.info("engine_left", extra={"fields": fields})

    async def _watch(self) -> None:
        """Give the engine up when it hangs."""
        while self.is_alive:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._watchdog.interval_seconds):
                    await self._lost.wait()
            if self._watchdog.is_hung(now=self._clock(), has_work=self.num_pending > 0):
                self._lose("hang")

    def _lose(self, reason: LossReason) -> None:
        """Take the engine for gone: what is pending fails now, and what it still says is nothing.

        The process is killed, which a stopped one cannot refuse; the listener sees it out.
        """
        if not self.is_alive:
            return
        self._lost.set()
        if not self._is_closing:
            self._loss_reason = reason
            fields = {"reason": reason, "num_pending": self.num_pending}
            logger.error("engine_lost", extra={"fields": fields})
            self._link.kill()
        self._fail_pending("the engine is gone")

    def _take(self, message: EngineMessage) -> None:
        match message:
            case Snapshot():
                self.snapshot = message
            case Finished() | Failed() | Cancelled():
                self._observe(message)
                answer = self._settle(message.segment_id)
                if answer is None:
                    return
                if isinstance(message, Finished):
                    answer.set_result(message)
                elif isinstance(message, Failed):
                    _fail(answer, SegmentFailedError(code=message.code, message=message.message))
            case Ready() | StartFailed():
                raise ProtocolError(f"{type(message).__name__} is only ever the first message")

    def _observe(self, word: Finished | Failed | Cancelled) -> None:
        """Pass on the last word on a segment."""
        pending = self._pending.get(word.segment_id)
        if pending is None or self._observer is None:
            return
        job = pending.job
        match word:
            case Finished():
                self._observer.segment_finished(job, word)
            case Failed():
                self._observer.segment_failed(job)
            case Cancelled():
                self._observer.segment_cancelled(job)

    def _settle(self, segment_id: int) -> asyncio.Future[Finished] | None:
        """Take a segment off the list; its future, unless nobody waits for it any more."""
        pending = self._pending.pop(segment_id, None)
        self._throughput.record(self._clock())
        if not self._pending:
            self._nothing_pending.set()
        if pending is None:
            return None
        self._room.leave(1, pending.job.priority)
        return None if pending.answer.done() else pending.answer

    def _fail_pending(self, reason: str) -> None:
        all_pending = list(self._pending.values())
        self._pending.clear()
        self._nothing_pending.set()
        for answer, job in all_pending:
            self._room.leave(1, job.priority)
            if not answer.done():
                _fail(answer, EngineUnavailableError(reason))


def _fail(answer: asyncio.Future[Finished], error: EngineError) -> None:
    """Set the error and mark it as seen: a caller that has gone is no fault to report."""
    answer.set_exception(error)
    answer.exception()
