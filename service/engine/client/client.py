"""Client of one engine process: submits segments, routes the answers, notices a loss.

Owns the conversation from the engine's Ready to its end, and when the engine is taken for gone or
hung. Runs on the event loop and never blocks it; imports no torch. What is pending is
`service.engine.client.pending`, the process and the stream are `service.engine.client.process`,
another engine is started by `service.engine.client.supervisor`.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import count
from typing import Literal, Self

from service.engine.client.interface import Engine
from service.engine.client.pending import Pending, PendingSegments, fail_all
from service.engine.client.process import EngineLink, start_engine
from service.engine.client.segment_room import SegmentRoom
from service.engine.client.submission import (
    OnTokens,
    OnWritten,
    SegmentBatch,
    SegmentJob,
    SegmentObserver,
    Watch,
    check_fits,
    submits,
)
from service.engine.client.watchdog import Watchdog
from service.engine.errors import (
    EngineClosedError,
    EngineUnavailableError,
    ProtocolError,
)
from service.engine.messages import (
    Cancel,
    Cancelled,
    Configure,
    EngineCounters,
    EngineMessage,
    Failed,
    Finished,
    Ready,
    Shutdown,
    StartFailed,
    Submit,
    Written,
)

_LOGGER = logging.getLogger(__name__)

_GONE = "the engine is gone"

LossReason = Literal["exit", "hang", "protocol"]
"""How an engine was lost: its process ended, it made no progress, or it sent no valid message."""


class EngineClient(Engine):
    """One engine process, as the front sees it.

    Made by `start`.

    Attributes:
        ready: The engine's Ready message.
        start_seconds: From the start of its process to that, interpreter and imports included.
        counters: The engine's latest ones.
    """

    def __init__(
        self,
        link: EngineLink,
        ready: Ready,
        *,
        room: SegmentRoom,
        hang_seconds: float,
        observer: SegmentObserver | None,
        numbers: Iterator[int],
        on_orphaned: Callable[[Mapping[int, Pending]], None],
        clock: Callable[[], float],
        start_seconds: float,
    ) -> None:
        self.ready = ready
        self.start_seconds = start_seconds
        self.counters = EngineCounters(
            max_rows=ready.max_rows * len(ready.checkpoints),
            max_slots=ready.max_slots * len(ready.checkpoints),
        )
        self._link = link
        self._clock = clock
        self._numbers = numbers
        self._on_orphaned = on_orphaned
        self._submissions = count(1)
        self._room = room
        self._pending = PendingSegments(room, observer=observer)
        self._lost = asyncio.Event()
        self._loss_reason: LossReason | None = None
        self._received_at = clock()
        self._watchdog = Watchdog(hang_seconds=hang_seconds, now=self._received_at)
        self._is_closing = False
        self._listener = asyncio.create_task(self._listen(), name="engine-listener")
        self._watcher = asyncio.create_task(self._watch(), name="engine-watcher")

    @classmethod
    async def start(
        cls,
        configure: Configure,
        *,
        room: SegmentRoom,
        start_timeout_seconds: float = 120.0,
        hang_seconds: float = 30.0,
        observer: SegmentObserver | None = None,
        numbers: Iterator[int] | None = None,
        on_orphaned: Callable[[Mapping[int, Pending]], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> Self:
        """Spawn an engine and wait until it is warm.

        Args:
            configure: What it loads and how much may run.
            room: Places of segments, which other engines may share.
            start_timeout_seconds: Time to load and to warm up.
            hang_seconds: Silence, or standstill with work, after which it is taken for lost.
            observer: Hears of every segment.
            numbers: Of segments; engines that take over each other's share them.
            on_orphaned: Called with what is pending, by its numbers, when the engine is lost, to
                be answered in another way; None answers all of it with an error.
            clock: Monotonic seconds.

        Raises:
            EngineStartError: It did not become ready; no process is left behind.
        """
        started = clock()
        link, ready = await start_engine(configure, timeout_seconds=start_timeout_seconds)
        return cls(
            link,
            ready,
            room=room,
            hang_seconds=hang_seconds,
            observer=observer,
            numbers=count(1) if numbers is None else numbers,
            on_orphaned=_fail_orphans if on_orphaned is None else on_orphaned,
            clock=clock,
            start_seconds=clock() - started,
        )

    def __repr__(self) -> str:
        state = "ready" if self.is_ready else "closing" if self.is_alive else "lost"
        return (
            f"<EngineClient pid={self.process_id} {state}"
            f" pending={self.num_pending} of {self._room!r}>"
        )

    @property
    def process_id(self) -> int:
        """The engine's process id."""
        return self._link.process_id

    @property
    def is_alive(self) -> bool:
        """Whether the engine runs."""
        return not self._lost.is_set()

    @property
    def loss_reason(self) -> LossReason | None:
        """How the engine was lost; None while it is there, and when it was closed."""
        return self._loss_reason

    @property
    def is_ready(self) -> bool:
        """As of `Engine`: until it is lost or closed."""
        return self.is_alive and not self._is_closing

    @property
    def num_pending(self) -> int:
        """As of `Engine`."""
        return len(self._pending)

    @property
    def num_rows(self) -> int:
        """Beam rows of these, running or waiting."""
        return self._pending.num_rows

    @property
    def num_row_steps(self) -> int:
        """Their work, as far as it can be told beforehand."""
        return self._pending.num_row_steps

    @property
    def silent_seconds(self) -> float:
        """Time since the engine was last heard of."""
        return self._clock() - self._received_at

    @property
    def max_request_segments(self) -> int:
        """How many segments may be of one class, and so of one request."""
        return self._room.class_limit

    def submit(
        self, jobs: Sequence[SegmentJob], *, client: int = 0, on_written: OnWritten | None = None
    ) -> SegmentBatch:
        """As of `Engine`, by this process."""
        self.check_jobs(jobs)
        numbered = {next(self._numbers): job for job in jobs}
        watch = Watch(on_written)
        answers = self.accept(numbered, client=client, watched=watch.of_segments(numbered))
        return SegmentBatch(answers, cancel=self.cancel, watch=watch)

    def check_jobs(self, jobs: Sequence[SegmentJob]) -> None:
        """Return if `jobs` would be accepted.

        Raises:
            EngineError: As of `submit`.
            InputError: Likewise.
        """
        if not self.is_ready:
            raise EngineClosedError if self._is_closing else EngineUnavailableError(_GONE)
        for job in jobs:
            check_fits(job, self.ready)
        self._room.check(jobs)

    def accept(
        self, numbered: Mapping[int, SegmentJob], *, client: int, watched: Mapping[int, OnTokens]
    ) -> dict[int, asyncio.Future[Finished]]:
        """The futures of the answers to jobs that were checked, which this engine gets now.

        Args:
            numbered: Jobs by number.
            client: Whose they are.
            watched: Whom the tokens of each are told to: of all of them, or of none.
        """
        self._send(numbered, client=client, are_watched=bool(watched))
        return self._pending.add(numbered, client=client, watched=watched)

    def take_over(self, segments: Mapping[int, Pending]) -> None:
        """Translate segments of a lost engine, for the requests that wait for them."""
        for kind in dict.fromkeys((one.client, one.is_watched) for one in segments.values()):
            client, are_watched = kind
            own = {
                number: one.job
                for number, one in segments.items()
                if (one.client, one.is_watched) == kind
            }
            self._send(own, client=client, are_watched=are_watched)
        self._pending.take_over(segments)

    def _send(self, numbered: Mapping[int, SegmentJob], *, client: int, are_watched: bool) -> None:
        """Send jobs; over a broken stream it is the engine's loss that says so, in a moment."""
        submission = next(self._submissions)
        with suppress(EngineUnavailableError):
            for segments in submits(
                numbered, client=client, submission=submission, are_watched=are_watched
            ):
                self._link.send(Submit(segments=segments))

    async def close(self, *, grace_seconds: float = 5.0) -> None:
        """End the engine, by force after a while; pending segments fail. Harmless when repeated."""
        self._is_closing = True
        fail_all(self._pending.take_all().values(), EngineClosedError)
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
        """Return once the engine is lost or closed; its process may still be ending."""
        await self._lost.wait()

    def cancel(self, segment_ids: Iterable[int]) -> None:
        """Cancel those of these segments that the engine has and has not answered."""
        still_pending = tuple(number for number in segment_ids if number in self._pending)
        if still_pending:
            with suppress(EngineUnavailableError):
                self._link.send(Cancel(segment_ids=still_pending))

    async def _listen(self) -> None:
        """Route the engine's messages until it is lost, then reap its process."""
        try:
            await self._link.listen(self._receive)
        except EngineUnavailableError:
            self._lose("exit")
        except Exception:
            _LOGGER.exception("engine_answers_unreadable")
            self._lose("protocol")
        finally:
            self._lose("exit")  # as far as it has not been said yet
            await self._link.reap()
            fields = {
                "reason": self._loss_reason or "closed",
                "exit_status": self._link.exit_status,
            }
            _LOGGER.info("engine_left", extra={"fields": fields})

    def _receive(self, messages: Sequence[EngineMessage]) -> None:
        """Route messages that have come; those of an engine that is taken for lost are ignored."""
        if not self.is_alive:
            return
        self._received_at = self._clock()
        for message in messages:
            self._watchdog.observe(message)
            self._take(message)

    async def _watch(self) -> None:
        """Take the engine for lost when it hangs."""
        while self.is_alive:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._watchdog.interval_seconds):
                    await self._lost.wait()
            if self._watchdog.is_hung(now=self._clock(), has_work=self.num_pending > 0):
                self._lose("hang")

    def _lose(self, reason: LossReason) -> None:
        """Take the engine for lost: what is pending is orphaned, later messages are ignored.

        The process is killed, which a stopped one cannot refuse; the listener sees it out.
        """
        if not self.is_alive:
            return
        self._lost.set()
        orphans = self._pending.take_all()
        if self._is_closing:
            fail_all(orphans.values(), EngineClosedError)
            return
        self._loss_reason = reason
        fields = {"reason": reason, "num_pending": len(orphans)}
        _LOGGER.error("engine_lost", extra={"fields": fields})
        self._link.kill()
        self._on_orphaned(orphans)

    def _take(self, message: EngineMessage) -> None:
        match message:
            case EngineCounters():
                self.counters = message
            case Finished() | Failed() | Cancelled():
                self._pending.settle(message)
            case Written():
                self._pending.tell(message)
            case Ready() | StartFailed():
                raise ProtocolError(f"{type(message).__name__} is only ever the first message")


def _fail_orphans(orphans: Mapping[int, Pending]) -> None:
    fail_all(orphans.values(), partial(EngineUnavailableError, _GONE))
