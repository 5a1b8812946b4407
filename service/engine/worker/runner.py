"""Runner of numbered segments through a decoding session.

Owns which segment is in which slot, what a segment's time went into, and what becomes of segments
when the network fails: they are tried again in halves, so that one that breaks it fails alone. The
only file that drives a session while it serves; `service.engine.worker.loading` makes it. Who joins
and when is `service.engine.worker.scheduler`.
"""

import logging
import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from traceback import clear_frames

from model.decode.session import DecodeRequest, DecodingSession, FinishedSentence, Hypothesis
from model.errors import CapacityError, DecodingError
from model.system.out_of_memory import is_out_of_memory
from service.engine.messages import (
    Cancelled,
    Failed,
    Finished,
    SegmentTimings,
    SubmitSegment,
    Written,
)
from service.engine.worker.headroom import Headroom
from service.engine.worker.pacing import Pacing
from service.engine.worker.totals import Totals
from service.priority import Priority

_LOGGER = logging.getLogger(__name__)

_NO_FINITE_SCORE = "no finite score"


@dataclass(slots=True, kw_only=True)
class _Job:
    """A segment and when things happened to it, in seconds of the runner's clock."""

    segment: SubmitSegment
    arrived: float
    admitted: float = 0.0
    encode_seconds: float = 0.0
    first_stepped: float = 0.0
    first_step: int = 0
    slot_id: int | None = None
    num_told: int = 0  # tokens, if it is watched


class Runner:
    """A decoding session and the segments that wait for it or run in it.

    A segment that was accepted gets exactly one final answer, from `cancel`, `admit` or `step`.

    When the session raises, whatever it held is not trusted any more: a new one is opened, and
    the segments that were in work are tried again, group by group and nothing beside them. What
    raised is split into halves, so of n segments each is tried at most log2(n) + 1 times, and one
    that breaks the network is alone when it fails. Searches start anew and are deterministic:
    the others get the result that they would have had. Newcomers wait meanwhile.

    Attributes:
        pacing: How long encoding and steps have taken lately.
    """

    def __init__(
        self,
        open_session: Callable[[], DecodingSession],
        *,
        totals: Totals,
        clock: Callable[[], float],
        pacing: Pacing | None = None,
    ) -> None:
        """Open the first session; another one follows only a failure."""
        self.pacing = pacing or Pacing()
        self._open_session = open_session
        self._session = open_session()
        self._totals = totals
        self._clock = clock
        self._headroom = Headroom(max_rows=self._session.free_rows)
        self._jobs: dict[int, _Job] = {}
        self._running: dict[int, _Job] = {}
        self._watched: dict[int, _Job] = {}  # of these, by slot id
        self._newcomers: list[_Job] = []
        self._retries: deque[list[_Job]] = deque()
        self._is_retrying = False  # what runs was tried before

    def __repr__(self) -> str:
        return f"<Runner jobs={len(self._jobs)} running={len(self._running)} {self._session!r}>"

    @property
    def is_idle(self) -> bool:
        """No segment waits or runs."""
        return not self._jobs

    @property
    def max_rows(self) -> int:
        """Rows that may be taken in all: fewer than there are for a while after memory ran out."""
        return self._headroom.rows(now=self._clock())

    @property
    def free_rows(self) -> int:
        """Rows that may still be taken; none while segments are tried again."""
        if self._retries or (self._is_retrying and self._running):
            return 0
        # Below 0 only if the limit fell while more ran; it falls where a new session begins.
        return max(0, min(self._session.free_rows, self.max_rows - self._session.num_rows))

    @property
    def free_slots(self) -> int:
        """Segments that may still be admitted."""
        return self._session.free_slots

    @property
    def num_rows(self) -> int:
        """Rows in use."""
        return self._session.num_rows

    @property
    def num_slots(self) -> int:
        """Slots in use."""
        return self._session.num_slots

    def num_retries_of(self, priority: Priority) -> int:
        """Segments of a class that wait to be tried again."""
        jobs = [job for group in self._retries for job in self._still_wanted(group)]
        return sum(job.segment.priority == priority for job in jobs)

    def warm_up(self, requests: Sequence[DecodeRequest]) -> None:
        """Translate requests for warm-up; before the first segment only.

        Raises:
            DecodingError: One of them has no finite score.
        """
        self._session.admit(requests)
        while not self._session.is_idle:
            for sentence in self._session.step():
                if not _finite(sentence.hypotheses):
                    raise DecodingError(_NO_FINITE_SCORE)

    def accept(self, segments: Sequence[SubmitSegment]) -> None:
        """Remember segments that have arrived."""
        now = self._clock()
        self._totals.num_received += len(segments)
        for segment in segments:
            self._jobs[segment.segment_id] = _Job(segment=segment, arrived=now)

    def cancel(self, segment_id: int) -> list[Cancelled]:
        """Drop a segment, waiting or running; one that was answered for good is ignored."""
        job = self._jobs.pop(segment_id, None)
        if job is None:
            return []
        if job.slot_id is not None:
            del self._running[job.slot_id]
            self._watched.pop(job.slot_id, None)
            self._session.release(job.slot_id)
        self._totals.num_cancelled += 1
        return [Cancelled(segment_id=segment_id)]

    def admit(self, segment_ids: Sequence[int]) -> list[Failed]:
        """Encode waiting segments as one batch; what fails of it is tried again in halves."""
        if segment_ids:  # newcomers, who have a row only when all that was tried again has ended
            self._is_retrying = False
        return self._admit([self._jobs[segment_id] for segment_id in segment_ids])

    def _admit(self, jobs: Sequence[_Job]) -> list[Failed]:
        if not jobs:
            return []
        num_encoded_before = self._session.num_encoded_tokens
        started = self._clock()
        try:
            slot_ids = self._session.admit([job.segment.request for job in jobs])
        except Exception as error:
            _LOGGER.exception("admit_failed", extra={"fields": {"num_segments": len(jobs)}})
            return self._start_over(jobs, error)
        lengths = [len(job.segment.request.source_ids) for job in jobs]
        seconds = self._clock() - started
        num_encoded_tokens = self._session.num_encoded_tokens - num_encoded_before
        self._totals.count_admission(
            lengths, num_encoded_tokens=num_encoded_tokens, seconds=seconds
        )
        self.pacing.encoded(max(lengths) * len(lengths), seconds=seconds)
        for job, slot_id in zip(jobs, slot_ids, strict=True):
            job.admitted, job.slot_id = started, slot_id
            job.encode_seconds = seconds
            job.first_step = self._totals.num_steps
            self._running[slot_id] = job
            if job.segment.is_watched:
                job.num_told = 0
                self._watched[slot_id] = job
        self._newcomers.extend(jobs)
        return []

    def step(self) -> list[Finished | Failed]:
        """Extend every running segment by one token; if that fails, they are tried again."""
        if not self._running:
            failures = self._admit(self._next_retries())
            if not self._running:
                return [*failures]
        num_rows = self._session.num_rows
        started = self._clock()
        try:
            finished = self._session.step()
        except Exception as error:
            _LOGGER.exception("step_failed", extra={"fields": {"num_segments": self.num_slots}})
            return [*self._start_over(list(self._running.values()), error)]
        now = self._clock()
        self._totals.count_step(num_rows, seconds=now - started)
        self.pacing.stepped(seconds=now - started)
        for job in self._newcomers:
            job.first_stepped = now
        self._newcomers.clear()
        return [self._finish(sentence, now) for sentence in finished]

    def written(self) -> list[Written]:
        """Tokens that watched segments have got since the last call."""
        news = []
        for slot_id, job in self._watched.items():
            token_ids = tuple(self._session.written(slot_id)[job.num_told :])
            if token_ids:
                segment_id = job.segment.segment_id
                news.append(Written(segment_id=segment_id, start=job.num_told, token_ids=token_ids))
                job.num_told += len(token_ids)
        return news

    def _next_retries(self) -> list[_Job]:
        """The next group that is to be tried again; none if there is none."""
        while self._retries:
            if jobs := self._still_wanted(self._retries.popleft()):
                self._is_retrying = True
                return jobs
        return []

    def _still_wanted(self, jobs: Sequence[_Job]) -> list[_Job]:
        return [job for job in jobs if job.segment.segment_id in self._jobs]

    def _start_over(self, suspects: Sequence[_Job], error: Exception) -> list[Failed]:
        """Take a new session, since one that raised half-way is not trusted.

        Args:
            suspects: What was being admitted or stepped; others that ran are tried again too.
            error: What the session raised.
        """
        is_short = is_out_of_memory(error)
        suspect_ids = {job.segment.segment_id for job in suspects}
        running = self._running.values()
        bystanders = [job for job in running if job.segment.segment_id not in suspect_ids]
        if is_short:
            clear_frames(error.__traceback__)  # they hold tensors
            num_rows = sum(job.segment.request.search.beam_size for job in (*suspects, *bystanders))
            self._headroom.ran_out(num_rows, now=self._clock())
        for job in self._running.values():
            job.slot_id = None
        self._running.clear()
        self._watched.clear()
        self._newcomers.clear()
        del self._session  # its caches go before the next ones come
        self._session = self._open_session()
        if len(suspects) == 1 and not (is_short and bystanders):
            groups = [bystanders]
            failures = self._fail(suspects, _reason(error))
        else:
            middle = len(suspects) // 2
            groups = [bystanders, list(suspects[:middle]), list(suspects[middle:])]
            failures = []
        self._retries.extendleft(group for group in reversed(groups) if group)
        return failures

    def check_integrity(self) -> None:
        """Assert that jobs and session agree."""
        assert self._session.num_slots == len(self._running)
        assert all(self._jobs[job.segment.segment_id] is job for job in self._running.values())
        assert self._watched.items() <= self._running.items()
        if not self._running:
            assert self._session.num_rows == 0

    def _finish(self, sentence: FinishedSentence, now: float) -> Finished | Failed:
        job = self._running.pop(sentence.slot_id)
        self._watched.pop(sentence.slot_id, None)
        hypotheses = _finite(sentence.hypotheses)
        if not hypotheses:
            return self._fail([job], _NO_FINITE_SCORE)[0]
        del self._jobs[job.segment.segment_id]
        self._totals.num_finished += 1
        self._totals.num_target_tokens += len(hypotheses[0].token_log_probs)
        return Finished(
            segment_id=job.segment.segment_id,
            hypotheses=tuple(hypotheses),
            timings=SegmentTimings(
                queue_seconds=job.admitted - job.arrived,
                first_step_seconds=job.first_stepped - job.arrived,
                decode_seconds=now - job.admitted,
                num_steps=self._totals.num_steps - job.first_step,
                priority=job.segment.priority,
                encode_seconds=job.encode_seconds,
                arrived_at_seconds=job.arrived,
            ),
        )

    def _fail(self, jobs: Sequence[_Job], reason: str) -> list[Failed]:
        self._totals.num_failed += len(jobs)
        failures = []
        for job in jobs:
            segment_id = self._jobs.pop(job.segment.segment_id).segment.segment_id
            fields = {"segment_id": segment_id, "reason": reason}
            _LOGGER.error("segment_failed", extra={"fields": fields})
            message = f"the engine gave up segment {segment_id}: {reason}"
            failures.append(Failed(segment_id=segment_id, code="engine_error", message=message))
        return failures


def _reason(error: Exception) -> str:
    """Why a segment is given up; only words that surely quote no text."""
    return str(error) if isinstance(error, CapacityError) else type(error).__name__


def _finite(hypotheses: Sequence[Hypothesis]) -> list[Hypothesis]:
    """Those that are worth something: an overflow makes scores of any kind."""
    return [
        one
        for one in hypotheses
        if math.isfinite(one.score) and all(map(math.isfinite, one.token_log_probs))
    ]
