"""The front's side of the engine: accept or refuse, number the segments, route the answers.

Owns what is pending and how much of it there may be. Runs on the event loop and never blocks
it; imports no torch. The process and the stream are `service.engine.link`.
"""

import asyncio
import logging
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from types import TracebackType
from typing import Self

from model.config import SearchConfig
from model.errors import InputError
from service.engine.errors import (
    EngineError,
    EngineUnavailableError,
    ProtocolError,
    QueueFullError,
    SegmentFailedError,
)
from service.engine.link import EngineLink, start_engine
from service.engine.messages import (
    Cancel,
    Cancelled,
    Configure,
    EngineMessage,
    Failed,
    Finished,
    Ready,
    SegmentTimings,
    Shutdown,
    Snapshot,
    StartFailed,
    Submit,
    SubmitSegment,
)
from service.engine.scheduler import Priority
from service.engine.throughput import Throughput

logger = logging.getLogger(__name__)

_SEGMENTS_PER_SUBMIT = 64
_TERMINATE_SECONDS = 2.0


def default_num_threads() -> int:
    """Threads for the engine: the usable cores but one, which is the front's."""
    has_affinity = hasattr(os, "sched_getaffinity")
    num_cores = len(os.sched_getaffinity(0)) if has_affinity else (os.cpu_count() or 1)
    return max(1, num_cores - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentJob:
    """One segment to translate.

    Attributes:
        source_ids: Source tokens with EOS.
        prefix_ids: The start token and the forced target tags.
        search: How it is searched.
        priority: The class it waits in.
    """

    source_ids: tuple[int, ...]
    prefix_ids: tuple[int, ...]
    search: SearchConfig
    priority: Priority = "interactive"


class SegmentBatch:
    """The segments of one accepted submit.

    A context manager: leaving it cancels what is unfinished, so that nothing is translated
    for a caller that has gone.
    """

    def __init__(
        self,
        answers: Mapping[int, asyncio.Future[Finished]],
        *,
        cancel: Callable[[Sequence[int]], None],
    ) -> None:
        self._answers = answers
        self._cancel = cancel

    def __enter__(self) -> Self:
        """The batch itself."""
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Cancel what is unfinished."""
        self.cancel()

    def __len__(self) -> int:
        return len(self._answers)

    def __repr__(self) -> str:
        return f"<SegmentBatch pending={self.num_pending} of {len(self)}>"

    @property
    def num_pending(self) -> int:
        """Segments without an answer."""
        return sum(not answer.done() for answer in self._answers.values())

    async def results(self) -> list[Finished]:
        """The answers, in the order of the jobs.

        Raises:
            SegmentFailedError: The engine gave one of them up; the others go on.
            EngineUnavailableError: The engine is gone, or was closed.
            asyncio.CancelledError: `cancel` was called meanwhile.
        """
        answers = list(self._answers.values())
        if answers:
            done, _ = await asyncio.wait(answers, return_when=asyncio.FIRST_EXCEPTION)
            for answer in done:
                answer.result()
        return [answer.result() for answer in answers]

    def cancel(self) -> None:
        """Drop what is unfinished; the engine hears of it at once."""
        segment_ids = [number for number, answer in self._answers.items() if answer.cancel()]
        if segment_ids:
            self._cancel(segment_ids)


class EngineClient:
    """One engine process, as the front sees it.

    Made by `start`; an async context manager that closes on leaving. Every accepted segment is
    pending until the engine has said its last word on it, a cancelled one too, so
    `max_pending_segments` bounds what either side holds.
    """

    def __init__(
        self,
        link: EngineLink,
        ready: Ready,
        *,
        max_pending_segments: int,
        on_finished: Callable[[SegmentTimings], None] | None,
        clock: Callable[[], float],
    ) -> None:
        self.ready = ready
        self.max_pending_segments = max_pending_segments
        self.snapshot = Snapshot(max_rows=ready.max_rows, max_slots=ready.max_slots)
        self._link = link
        self._on_finished = on_finished
        self._clock = clock
        self._throughput = Throughput()
        self._numbers = count(1)
        self._pending: dict[int, asyncio.Future[Finished]] = {}
        self._nothing_pending = asyncio.Event()
        self._nothing_pending.set()
        self._lost = asyncio.Event()
        self._is_draining = False
        self._is_closing = False
        self._listener = asyncio.create_task(self._listen(), name="engine-listener")

    @classmethod
    async def start(
        cls,
        configure: Configure,
        *,
        max_pending_segments: int,
        start_timeout_seconds: float = 120.0,
        on_finished: Callable[[SegmentTimings], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> Self:
        """Spawn an engine and wait until it is warm.

        Args:
            configure: What it loads and how much may run.
            max_pending_segments: Segments accepted and not answered, at most.
            start_timeout_seconds: Time to load and to warm up.
            on_finished: Called on the event loop with the timings of every finished segment.
            clock: Monotonic seconds.

        Raises:
            EngineStartError: It did not become ready; no process is left behind.
        """
        link, ready = await start_engine(configure, timeout_seconds=start_timeout_seconds)
        return cls(
            link,
            ready,
            max_pending_segments=max_pending_segments,
            on_finished=on_finished,
            clock=clock,
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

    def submit(self, jobs: Sequence[SegmentJob]) -> SegmentBatch:
        """Accept all of `jobs`, or none; never waits.

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
            _check_fits(job, self.ready)
        self._check_room(len(jobs))
        numbered = {next(self._numbers): job for job in jobs}
        for segments in _submits(numbered):
            self._link.send(Submit(segments=segments))
        loop = asyncio.get_running_loop()
        answers: dict[int, asyncio.Future[Finished]] = {
            segment_id: loop.create_future() for segment_id in numbered
        }
        self._pending.update(answers)
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
        if self.is_alive:
            self._link.send(Shutdown())
        try:
            await asyncio.wait([self._listener], timeout=grace_seconds)
            if not self._listener.done():
                self._link.terminate()
                await asyncio.wait([self._listener], timeout=_TERMINATE_SECONDS)
        finally:
            if not self._listener.done():
                self._link.kill()
        await asyncio.wait([self._listener])

    async def wait_lost(self) -> None:
        """Return once the engine is gone, whoever ended it."""
        await self._lost.wait()

    def _check_room(self, num_segments: int) -> None:
        limit = self.max_pending_segments
        if num_segments > limit:
            raise InputError(
                f"there are {num_segments} segments; the limit is {limit}",
                value=num_segments,
                limit=limit,
            )
        excess = self.num_pending + num_segments - limit
        if excess > 0:
            wait = self._throughput.wait_seconds(excess, now=self._clock())
            raise QueueFullError(value=excess + limit, limit=limit, retry_after_seconds=wait)

    def _send_cancel(self, segment_ids: Sequence[int]) -> None:
        still_pending = tuple(number for number in segment_ids if number in self._pending)
        if still_pending and self.is_alive:
            self._link.send(Cancel(segment_ids=still_pending))

    async def _listen(self) -> None:
        """Route what the engine says until it leaves, then see it out."""
        try:
            while True:
                for message in await self._link.receive():
                    self._take(message)
        except EngineUnavailableError:
            pass  # it has left; what that means is settled below
        except Exception:
            logger.exception("engine_answers_unreadable")
            self._link.kill()
        finally:
            level = logging.INFO if self._is_closing else logging.ERROR
            fields: dict[str, object] = {"num_pending": self.num_pending}
            self._lost.set()
            self._fail_pending("the engine is gone")
            await self._link.reap()
            fields["exit_status"] = self._link.exit_status
            logger.log(level, "engine_left", extra={"fields": fields})

    def _take(self, message: EngineMessage) -> None:
        match message:
            case Snapshot():
                self.snapshot = message
            case Finished():
                answer = self._settle(message.segment_id)
                if answer is not None:
                    answer.set_result(message)
                if self._on_finished is not None:
                    self._on_finished(message.timings)
            case Failed():
                answer = self._settle(message.segment_id)
                if answer is not None:
                    _fail(answer, SegmentFailedError(code=message.code, message=message.message))
            case Cancelled():
                self._settle(message.segment_id)
            case Ready() | StartFailed():
                raise ProtocolError(f"{type(message).__name__} is only ever the first message")

    def _settle(self, segment_id: int) -> asyncio.Future[Finished] | None:
        """Take a segment off the list; its future, unless nobody waits for it any more."""
        answer = self._pending.pop(segment_id, None)
        self._throughput.record(self._clock())
        if not self._pending:
            self._nothing_pending.set()
        return None if answer is None or answer.done() else answer

    def _fail_pending(self, reason: str) -> None:
        answers = list(self._pending.values())
        self._pending.clear()
        self._nothing_pending.set()
        for answer in answers:
            if not answer.done():
                _fail(answer, EngineUnavailableError(reason))


def _fail(answer: asyncio.Future[Finished], error: EngineError) -> None:
    """Set the error and mark it as seen: a caller that has gone is no fault to report."""
    answer.set_exception(error)
    answer.exception()


def _check_fits(job: SegmentJob, ready: Ready) -> None:
    for name, value, limit in (
        ("source tokens", len(job.source_ids), ready.max_source_length),
        ("prefix tokens", len(job.prefix_ids), ready.max_prefix_length),
        ("beams", job.search.beam_size, ready.max_rows),
        ("target tokens", job.search.max_length, ready.max_target_length),
    ):
        if not 1 <= value <= limit:
            raise InputError(
                f"a segment has {value} {name}; from 1 to {limit} are possible",
                value=value,
                limit=limit,
            )


def _submits(jobs: Mapping[int, SegmentJob]) -> Iterable[tuple[SubmitSegment, ...]]:
    """The jobs in pieces that are far below the limit of a frame."""
    segments = [
        SubmitSegment(
            segment_id=segment_id,
            source_ids=job.source_ids,
            prefix_ids=job.prefix_ids,
            search=job.search,
            priority=job.priority,
        )
        for segment_id, job in jobs.items()
    ]
    for start in range(0, len(segments), _SEGMENTS_PER_SUBMIT):
        yield tuple(segments[start : start + _SEGMENTS_PER_SUBMIT])
