"""Pending segments: accepted by the front, and not yet answered by the engine that has them.

Owns the future that each is awaited by, and how much work they are. A cancelled segment stays
pending until the engine has answered it for good, so the limit bounds what either side holds.
How many there may be is `service.engine.client.segment_room`; what is sent and received is
`service.engine.client.client`.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from service.engine.client.segment_room import SegmentRoom
from service.engine.client.submission import (
    OnTokens,
    SegmentJob,
    SegmentObserver,
    row_steps_of,
)
from service.engine.errors import (
    EngineError,
    EngineUnavailableError,
    SegmentFailedError,
)
from service.engine.messages import Cancelled, Failed, Finished, Written

_NOBODY: Mapping[int, OnTokens] = MappingProxyType({})

LastWord = Finished | Failed | Cancelled


class Pending(NamedTuple):
    """An accepted segment.

    Attributes:
        answer: The future of its answer.
        job: What was asked for.
        client: Whose it is, as a number that says nothing of them.
        num_row_steps: Its work, as far as it can be told beforehand.
        num_moves: Engines that were lost with it.
        on_tokens: Called with its tokens as it gets them; None where nobody watches.
    """

    answer: asyncio.Future[Finished]
    job: SegmentJob
    num_row_steps: int
    client: int = 0
    num_moves: int = 0
    on_tokens: OnTokens | None = None

    @property
    def is_watched(self) -> bool:
        """Whether somebody is told its tokens."""
        return self.on_tokens is not None


class PendingSegments:
    """The pending segments of one engine.

    Args:
        room: Their places, of this engine's alone or of several engines'.
        observer: Hears of every segment.

    Attributes:
        num_rows: Beam rows of all of them, running or waiting.
        num_row_steps: Their work, as far as it can be told beforehand.
    """

    def __init__(self, room: SegmentRoom, *, observer: SegmentObserver | None) -> None:
        self.num_rows = 0
        self.num_row_steps = 0
        self._room = room
        self._observer = observer
        self._by_id: dict[int, Pending] = {}

    def __len__(self) -> int:
        return len(self._by_id)

    def __contains__(self, segment_id: int) -> bool:
        return segment_id in self._by_id

    def __repr__(self) -> str:
        return f"<PendingSegments {len(self)}, {self.num_rows} rows>"

    def add(
        self,
        jobs: Mapping[int, SegmentJob],
        *,
        client: int = 0,
        watched: Mapping[int, OnTokens] = _NOBODY,
    ) -> dict[int, asyncio.Future[Finished]]:
        """Take numbered segments that have been sent; the futures of their answers.

        Args:
            jobs: By number.
            client: Whose they are.
            watched: Whom the tokens of each are told to, if anybody is.
        """
        loop = asyncio.get_running_loop()
        answers: dict[int, asyncio.Future[Finished]] = {
            segment_id: loop.create_future() for segment_id in jobs
        }
        self.take_over(
            {
                number: Pending(
                    answers[number],
                    job,
                    row_steps_of(job),
                    client,
                    on_tokens=watched.get(number),
                )
                for number, job in jobs.items()
            }
        )
        if self._observer is not None:
            for job in jobs.values():
                self._observer.segment_received(job)
        return answers

    def take_over(self, segments: Mapping[int, Pending]) -> None:
        """Take segments that another engine had, under their numbers; there is always room."""
        for pending in segments.values():
            self._room.take(pending.job)
            self.num_rows += pending.job.request.search.beam_size
            self.num_row_steps += pending.num_row_steps
        self._by_id.update(segments)

    def settle(self, word: LastWord) -> None:
        """Take a segment off the list, by the engine's final answer, and answer its future."""
        pending = self._by_id.get(word.segment_id)
        if pending is not None:
            if self._observer is not None:
                self._observe(self._observer, pending.job, word)
            del self._by_id[word.segment_id]
        self._room.answered()
        if pending is None:
            return
        self._leave(pending)
        if pending.answer.done():  # its request has gone
            return
        if isinstance(word, Finished):
            pending.answer.set_result(word)
        elif isinstance(word, Failed):
            _fail(pending.answer, SegmentFailedError(code=word.code, message=word.message))

    def tell(self, written: Written) -> None:
        """Pass on tokens of a segment, in the order of answers, to whoever waits for it."""
        pending = self._by_id.get(written.segment_id)
        if pending is None or pending.on_tokens is None or pending.answer.done():
            return
        # As answers are told: an error of whoever is told is none of the engine's stream.
        asyncio.get_running_loop().call_soon(_tell, pending, written)

    def take_all(self) -> dict[int, Pending]:
        """Take all segments off the list, unanswered, by their numbers; their places are free."""
        all_pending = dict(self._by_id)
        self._by_id.clear()
        for pending in all_pending.values():
            self._leave(pending)
        return all_pending

    def _leave(self, pending: Pending) -> None:
        self._room.leave(pending.job)
        self.num_rows -= pending.job.request.search.beam_size
        self.num_row_steps -= pending.num_row_steps

    @staticmethod
    def _observe(observer: SegmentObserver, job: SegmentJob, word: LastWord) -> None:
        match word:
            case Finished():
                observer.segment_finished(job, word)
            case Failed():
                observer.segment_failed(job)
            case Cancelled():
                observer.segment_cancelled(job)


def fail_all(segments: Iterable[Pending], new_error: Callable[[], EngineUnavailableError]) -> None:
    """Answer segments that no engine has any more with an error; each has its own."""
    for pending in segments:
        if not pending.answer.done():
            _fail(pending.answer, new_error())


def _fail(answer: asyncio.Future[Finished], error: EngineError) -> None:
    """Set the error and mark it as seen: a caller that has gone is no fault to report."""
    answer.set_exception(error)
    answer.exception()


def _tell(pending: Pending, written: Written) -> None:
    """Tell tokens, unless whoever waited has left since they came."""
    if pending.on_tokens is not None and not pending.answer.cancelled():
        pending.on_tokens(written.start, written.token_ids)
