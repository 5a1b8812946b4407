"""Cost of a decoding step by its rows, cost of encoding, and steps of sentences.

Owns the measurement, in this process, of what `benchmarks.replicas.simulation` is fed with.
"""

import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import cycle, pairwise
from pathlib import Path

from model.config import LengthLimits, SearchConfig
from model.decode.footprint import session_limits
from model.decode.session import DecodingSession
from model.loading import load_for_decoding
from model.request import DecodeRequest
from model.text.drafts.segments import Segment
from model.text.languages.tags import LanguagePair
from model.text.pipeline import TextPipeline, segment_cap

BEAM_SIZE = 4
NUM_SENTENCES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """What one sentence asks of an engine.

    Attributes:
        num_source_tokens: Its length.
        num_steps: Decoding steps that it takes.
    """

    num_source_tokens: int
    num_steps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTimes:
    """Times of one engine.

    Attributes:
        num_threads: Of the engine.
        step_seconds: Median of a step by its rows, ascending.
        encode_seconds: Median of encoding one sentence.
        sentences: Those that were translated.
    """

    num_threads: int
    step_seconds: tuple[tuple[int, float], ...]
    encode_seconds: float
    sentences: tuple[Sentence, ...]

    def step(self, num_rows: int) -> float:
        """Seconds of a step of so many rows: linear between those that were measured."""
        first, last = self.step_seconds[0], self.step_seconds[-1]
        if num_rows <= first[0]:
            return first[1]
        for (low, before), (high, after) in pairwise(self.step_seconds):
            if num_rows <= high or high == last[0]:
                return before + (after - before) * (num_rows - low) / (high - low)
        return last[1]

    def rows_that_cost_little(self, share: float = 0.25) -> int:
        """The most rows whose step takes at most this share longer than one sentence's."""
        limit = self.step_seconds[0][1] * (1 + share)
        return max(rows for rows, seconds in self.step_seconds if seconds <= limit)

    def described(self) -> dict[str, object]:
        """The same as JSON has it."""
        return asdict(self)

    @classmethod
    def read(cls, described: dict[str, object]) -> "StepTimes":
        """What `described` has written."""
        steps, sentences = described["step_seconds"], described["sentences"]
        assert isinstance(steps, list)
        assert isinstance(sentences, list)
        return cls(
            num_threads=int(str(described["num_threads"])),
            step_seconds=tuple((int(rows), float(seconds)) for rows, seconds in steps),
            encode_seconds=float(str(described["encode_seconds"])),
            sentences=tuple(Sentence(**one) for one in sentences),
        )


def sentences_of(checkpoint: Path, texts: Sequence[str]) -> list[tuple[Sentence, ...]]:
    """Of each text its sentences, with the steps that each takes, as a first search has it."""
    runnable = load_for_decoding(checkpoint, num_threads=1)
    manifest = runnable.manifest
    pipeline, pair = TextPipeline(runnable.tokenizer, manifest.limits), manifest.pairs[0]
    session = DecodingSession(
        runnable.network,
        tokens=manifest.tokens,
        limits=session_limits(manifest, max_rows=128, max_slots=32),
    )
    found: dict[tuple[int, ...], Sentence] = {}

    def searched(segment: Segment) -> Sentence:
        ids = tuple(segment.source_ids)
        if ids not in found:
            session.admit([_request(segment, pipeline, pair, manifest.limits)])
            num_steps = 1
            while not session.step():
                num_steps += 1
            found[ids] = Sentence(num_source_tokens=len(ids), num_steps=num_steps)
        return found[ids]

    return [tuple(map(searched, pipeline.prepare(text, pair).network_segments)) for text in texts]


def _request(
    segment: Segment, pipeline: TextPipeline, pair: LanguagePair, limits: LengthLimits
) -> DecodeRequest:
    return DecodeRequest(
        source_ids=segment.source_ids,
        prefix_ids=pipeline.prefix_ids(pair),
        search=SearchConfig(beam_size=BEAM_SIZE, max_length=segment_cap(segment, limits)),
    )


def measure_steps(
    checkpoint: Path,
    texts: Sequence[str],
    *,
    num_threads: int,
    seconds_each: float,
    device: str = "cpu",
    clock: Callable[[], float] = time.perf_counter,
) -> StepTimes:
    """Run as many sentences as `NUM_SENTENCES` says, each number for some seconds.

    Args:
        checkpoint: Its first pair is translated.
        texts: One sentence each.
        num_threads: Of the engine.
        seconds_each: How long each number of sentences runs.
        device: Where the network runs. A step is over when its winners are known here, so what it
            launches on a device counts.
        clock: Seconds, monotonic.
    """
    runnable = load_for_decoding(checkpoint, device=device, num_threads=num_threads)
    manifest = runnable.manifest
    pipeline = TextPipeline(runnable.tokenizer, manifest.limits)
    pair = manifest.pairs[0]
    requests = [
        _request(segment, pipeline, pair, manifest.limits)
        for text in texts
        for segment in pipeline.draft(text, pair).asked
    ]
    session = DecodingSession(
        runnable.network,
        tokens=manifest.tokens,
        limits=session_limits(manifest, max_rows=256, max_slots=64),
    )
    run = _Run(session, cycle(requests), clock)
    run.keep(NUM_SENTENCES[-1], seconds=seconds_each)  # a warm-up
    run = _Run(session, cycle(requests), clock)
    for number in NUM_SENTENCES:
        run.keep(number, seconds=seconds_each)
    return StepTimes(
        num_threads=num_threads,
        step_seconds=tuple(
            (rows, statistics.median(seconds)) for rows, seconds in sorted(run.by_rows.items())
        ),
        encode_seconds=statistics.median(run.encoding),
        sentences=tuple(run.sentences),
    )


class _Run:
    """Sentences that run through a session, and the times of what was done for them."""

    def __init__(
        self,
        session: DecodingSession,
        requests: Iterator[DecodeRequest],
        clock: Callable[[], float],
    ) -> None:
        self.by_rows: dict[int, list[float]] = defaultdict(list)
        self.encoding: list[float] = []
        self.sentences: list[Sentence] = []
        self._session = session
        self._requests = requests
        self._clock = clock

    def keep(self, number: int, *, seconds: float) -> None:
        """Have so many sentences run, each followed by another one, until the time is over."""
        running: dict[int, tuple[int, int]] = {}  # of a slot: source tokens, steps so far
        end = self._clock() + seconds
        while self._clock() < end:
            while len(running) < number:
                request = next(self._requests)
                started = self._clock()
                [slot] = self._session.admit([request])
                self.encoding.append(self._clock() - started)
                running[slot] = (len(request.source_ids), 0)
            started = self._clock()
            finished = self._session.step()
            self.by_rows[number * BEAM_SIZE].append(self._clock() - started)
            running = {slot: (source, steps + 1) for slot, (source, steps) in running.items()}
            for one in finished:
                source, steps = running.pop(one.slot_id)
                self.sentences.append(Sentence(num_source_tokens=source, num_steps=steps))
        for slot in running:
            self._session.release(slot)
