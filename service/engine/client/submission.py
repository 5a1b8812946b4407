"""Submission of segments: the jobs of one request, and the wait for their answers.

Owns the envelope of a request on this side, whether an engine could run it, and how the answers of
one submission are awaited and dropped. Imports no torch. Who numbers the segments is
`service.engine.client.client`.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Protocol, Self

from model.errors import InputError
from model.request import DecodeRequest
from service.engine.messages import Finished, Ready, SubmitSegment
from service.labels import Served
from service.priority import Priority, work_of

_SEGMENTS_PER_SUBMIT = 64

OnTokens = Callable[[int, tuple[int, ...]], None]
"""Called with how many tokens of a segment stay, and with those that stand behind them now."""
OnWritten = Callable[[int, int, tuple[int, ...]], None]
"""The same for the segments of a submission: called with the place of a job first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentJob:
    """A request with what the front schedules and counts it by.

    Attributes:
        request: What is to be searched.
        priority: The class it waits in.
        checkpoint: Which of the engine's checkpoints translates it, by its place.
        served: How its pair and checkpoint are told; None where it is not counted.
    """

    request: DecodeRequest
    priority: Priority = "interactive"
    checkpoint: int = 0
    served: Served | None = None


def row_steps_of(job: SegmentJob) -> int:
    """The work of a segment, before anything is known of its translation: beams × tokens."""
    request = job.request
    return work_of((len(request.source_ids),), beam_size=request.search.beam_size)


class SegmentObserver(Protocol):
    """Observer of segments, on the event loop: each is received, and answered once or never."""

    def segment_received(self, job: SegmentJob) -> None:
        """A segment was handed to the engine."""

    def segment_finished(self, job: SegmentJob, finished: Finished) -> None:
        """The engine translated a segment."""

    def segment_cancelled(self, job: SegmentJob) -> None:
        """The engine dropped a segment."""

    def segment_failed(self, job: SegmentJob) -> None:
        """The engine gave a segment up."""


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
        watch: "Watch | None" = None,
    ) -> None:
        self._answers = answers
        self._cancel = cancel
        self._watch = watch
        self._dropped: set[int] = set()

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
        if len(answers) == 1:
            return [await answers[0]]
        if answers:
            done, _ = await asyncio.wait(answers, return_when=asyncio.FIRST_EXCEPTION)
            for answer in done:
                answer.result()
        return [answer.result() for answer in answers]

    async def as_answered(self) -> AsyncIterator[tuple[int, Finished]]:
        """The answers as they arrive, each with the index of its job.

        Raises:
            SegmentFailedError: The engine gave this one up; the others go on.
            EngineUnavailableError: The engine is gone, or was closed.
            asyncio.CancelledError: `cancel` was called meanwhile.
        """
        done: asyncio.Queue[tuple[int, asyncio.Future[Finished]]] = asyncio.Queue()

        def note(place: int, answer: asyncio.Future[Finished]) -> None:
            done.put_nowait((place, answer))

        for place, answer in enumerate(self._answers.values()):
            answer.add_done_callback(partial(note, place))
        for _ in range(len(self)):
            place, answer = await done.get()
            yield place, answer.result()

    def on_answered(self, report: Callable[[int, asyncio.Future[Finished]], None]) -> None:
        """Have each answer reported when it is there, with the place of its job.

        Args:
            report: Called with futures that are done, cancelled ones among them.
        """
        for place, answer in enumerate(self._answers.values()):
            answer.add_done_callback(partial(report, place))

    def cancel(self) -> None:
        """Drop what is unfinished; the engine hears of it at once.

        A wait for a single answer that was cancelled has cancelled that answer already. Tokens are
        told no more, not even those of segments that are finished.
        """
        if self._watch is not None:
            self._watch.end()
        dropped = [
            number
            for number, answer in self._answers.items()
            if (answer.cancel() or answer.cancelled()) and number not in self._dropped
        ]
        self._dropped.update(dropped)
        if dropped:
            self._cancel(dropped)


class Watch:
    """Whom the tokens of a submission are told to, until its batch is left.

    Args:
        on_written: As of `service.engine.client.interface.Engine.submit`; None is nobody.
    """

    def __init__(self, on_written: OnWritten | None) -> None:
        self._on_written = on_written

    def of_segments(self, numbers: Iterable[int]) -> dict[int, OnTokens]:
        """What is called for each segment, by its number; nothing if nobody watches.

        Args:
            numbers: Of the segments, in the order of their jobs.
        """
        if self._on_written is None:
            return {}
        return {number: partial(self._tell, place) for place, number in enumerate(numbers)}

    def end(self) -> None:
        """Tell nobody any more."""
        self._on_written = None

    def _tell(self, place: int, start: int, token_ids: tuple[int, ...]) -> None:
        if self._on_written is not None:
            self._on_written(place, start, token_ids)


def check_fits(job: SegmentJob, ready: Ready) -> None:
    """Return if the engine could run the job.

    Raises:
        InputError: It never could.
    """
    limits, request = ready.checkpoints[job.checkpoint], job.request
    search = request.search
    if (
        1 <= len(request.source_ids) <= limits.max_source_length
        and 1 <= len(request.prefix_ids) <= limits.max_prefix_length
        and 1 <= search.beam_size <= ready.max_rows
        and 1 <= search.max_length <= limits.max_target_length
    ):
        return
    for name, value, limit in (
        ("source tokens", len(request.source_ids), limits.max_source_length),
        ("prefix tokens", len(request.prefix_ids), limits.max_prefix_length),
        ("beams", request.search.beam_size, ready.max_rows),
        ("target tokens", request.search.max_length, limits.max_target_length),
    ):
        if not 1 <= value <= limit:
            raise InputError(
                f"a segment has {value} {name}; from 1 to {limit} are possible",
                value=value,
                limit=limit,
            )


def submits(
    jobs: Mapping[int, SegmentJob], *, client: int, submission: int, are_watched: bool = False
) -> Iterator[tuple[SubmitSegment, ...]]:
    """The numbered jobs of a submission in pieces that are far below the limit of a frame."""
    requests = [job.request for job in jobs.values()]
    work = sum(request.search.beam_size * len(request.source_ids) for request in requests)
    segments = [
        SubmitSegment(
            segment_id=segment_id,
            request=job.request,
            priority=job.priority,
            checkpoint=job.checkpoint,
            client=client,
            submission=submission,
            submission_work=work,
            is_watched=are_watched,
        )
        for segment_id, job in jobs.items()
    ]
    for start in range(0, len(segments), _SEGMENTS_PER_SUBMIT):
        yield tuple(segments[start : start + _SEGMENTS_PER_SUBMIT])
