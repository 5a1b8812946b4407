"""What tests of online translation share: requests, a slow engine and one that only echoes."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from model.request import Hypothesis
from service.engine.client.client import EngineClient
from service.engine.client.segment_room import SegmentRoom
from service.engine.client.submission import OnWritten, SegmentBatch, SegmentJob
from service.engine.errors import EngineError, QueueFullError
from service.engine.messages import Configure, Finished, SegmentTimings
from service.models.requests.translation import SegmentTally, TranslationRequest
from service.models.routes.routing import Hop, Route
from service.models.translating.segment_cache import SegmentCache
from service.models.translating.translator import OnlineTranslator
from support.tiny_checkpoint import EN_ZH, TINY_LIMITS

TEXT = "The cat sees the river."
MARKED = "The cat sees {name} and the river."
FULL = QueueFullError(value=9, limit=8, retry_after_seconds=1.0)


def request_of(
    texts: Sequence[str],
    *,
    beam_size: int = 2,
    num_alternatives: int = 0,
    max_length: int | None = None,
    timeout_seconds: float = 60.0,
    tally: SegmentTally | None = None,
) -> TranslationRequest:
    """A plain request of the tiny checkpoint."""
    return TranslationRequest(
        tally=tally,
        texts=tuple(texts),
        route=Route(hops=(Hop(checkpoint="tiny", pair=EN_ZH),)),
        beam_size=beam_size,
        length_penalty=1.0,
        num_alternatives=num_alternatives,
        max_length=max_length,
        with_alignment=False,
        timeout_seconds=timeout_seconds,
    )


@contextmanager
def slow_engine(runner: asyncio.Runner, *checkpoints: Path) -> Iterator[EngineClient]:
    """An engine in float32, slow enough for deadlines and cancellations to meet its work."""
    configure = Configure(
        checkpoint_paths=tuple(map(str, checkpoints)),
        num_threads=1,
        device="cpu",
        compute_type="float32",
        max_rows=16,
        max_slots=4,
        log_level="error",
    )
    engine = runner.run(EngineClient.start(configure, room=SegmentRoom(30)))
    try:
        yield engine
    finally:
        runner.run(engine.close())


class Echo:
    """An engine that answers at once with the source, and keeps what it is asked for.

    Args:
        max_submits: So many submits are accepted.
        refusal: What a further one is told; None lets it wait without an answer.
        keeps_all: The whole source is the answer; else its first token is.
    """

    max_request_segments = 8

    def __init__(
        self,
        *,
        max_submits: int = 9,
        refusal: EngineError | None = FULL,
        keeps_all: bool = False,
    ) -> None:
        self.submits: list[list[SegmentJob]] = []
        self.cancelled: list[int] = []
        self._max_submits = max_submits
        self._refusal = refusal
        self._keeps_all = keeps_all

    def submit(
        self, jobs: Sequence[SegmentJob], *, client: int = 0, on_written: OnWritten | None = None
    ) -> SegmentBatch:
        is_over = len(self.submits) == self._max_submits
        if is_over and self._refusal is not None:
            raise self._refusal
        loop = asyncio.get_running_loop()
        answers = {number: loop.create_future() for number in range(len(jobs))}
        if not is_over:
            self.submits.append(list(jobs))
            for number, job in enumerate(jobs):
                answers[number].set_result(self._finished(number, job))
        return SegmentBatch(answers, cancel=self.cancelled.extend)

    def _finished(self, number: int, job: SegmentJob) -> Finished:
        ids = job.request.source_ids[:-1] if self._keeps_all else job.request.source_ids[:1]
        hypothesis = Hypothesis(
            token_ids=ids,
            score=-1.0,
            token_log_probs=(-1.0,) * (len(ids) + 1),
            is_truncated=False,
            alignment=tuple(range(len(ids))) if job.request.search.with_alignment else None,
        )
        timings = SegmentTimings(
            queue_seconds=0.0, first_step_seconds=0.0, decode_seconds=0.0, num_steps=0
        )
        return Finished(segment_id=number, hypotheses=(hypothesis,), timings=timings)


def translator_over(
    pipeline_of: OnlineTranslator, engine: Any, *, cache: SegmentCache | None = None
) -> OnlineTranslator:
    """The same checkpoint by another engine."""
    return OnlineTranslator(
        pipeline=pipeline_of.pipeline,
        limits=TINY_LIMITS,
        engine=engine,
        text_thread=pipeline_of._text_work._thread,
        bulk_turn=asyncio.Semaphore(1),
        cache=cache,
    )
