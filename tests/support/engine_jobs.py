"""Segments for a real engine, and what is asked of it around them."""

import contextlib
import os
import signal
from collections.abc import Iterator

from model.config import SearchConfig
from model.request import DecodeRequest
from service.engine.client.client import EngineClient
from service.engine.client.submission import SegmentBatch, SegmentJob

OUT_OF_VOCABULARY = 1_000_000


def job(
    number: int = 0, *, beam_size: int = 2, max_length: int = 6, num_hypotheses: int = 1
) -> SegmentJob:
    return SegmentJob(
        request=DecodeRequest(
            source_ids=(*range(10 + number, 14 + number + number % 9), 1),
            prefix_ids=(0,),
            search=SearchConfig(
                beam_size=beam_size, max_length=max_length, num_hypotheses=num_hypotheses
            ),
        )
    )


def poison() -> SegmentJob:
    return SegmentJob(
        request=DecodeRequest(
            source_ids=(OUT_OF_VOCABULARY, 1), prefix_ids=(0,), search=SearchConfig(max_length=5)
        )
    )


async def settled(engine: EngineClient) -> None:
    """Everything sent so far has been dealt with: a later segment has had its answer."""
    with engine.submit([job(max_length=1)]) as batch:
        await batch.results()


async def long_running(engine: EngineClient) -> SegmentBatch:
    """A batch of which a part is being decoded and a part waits, for some seconds to come."""
    first = engine.submit([job(max_length=1)])
    batch = engine.submit([job(number, max_length=60) for number in range(190)])
    await first.results()
    assert batch.num_pending > 0
    return batch


def assert_idle(engine: EngineClient) -> None:
    counters = engine.counters
    assert engine.num_pending == 0
    assert (counters.num_waiting, counters.num_running) == (0, 0)
    assert (counters.num_rows, counters.num_slots) == (0, 0)
    answered = counters.num_finished + counters.num_cancelled + counters.num_failed
    assert counters.num_received == answered


@contextlib.contextmanager
def stopped(engine: EngineClient) -> Iterator[None]:
    """The engine holds still, so that what is pending stays pending."""
    os.kill(engine.process_id, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(engine.process_id, signal.SIGCONT)
