"""Runs numbered segments through a decoding session.

Owns which segment is in which slot, what a segment's time went into, and what becomes of
segments when the network fails. The only file of the service that knows the session and
loads a checkpoint. Who joins and when is `service.engine.scheduler`.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from model.checkpoint.manifest import Manifest
from model.config import SearchConfig
from model.decode.session import (
    DecodeRequest,
    DecodingSession,
    FinishedSentence,
    Hypothesis,
    SessionLimits,
)
from model.errors import ConfigError, DeviceError
from model.loading import Runnable, load_for_decoding
from service.engine.messages import (
    PROTOCOL_VERSION,
    Cancelled,
    Configure,
    Device,
    Failed,
    Finished,
    OutputHypothesis,
    Ready,
    SegmentTimings,
    SubmitSegment,
)
from service.engine.pacing import Pacing
from service.engine.totals import Totals

logger = logging.getLogger(__name__)

_WARMUP_TEXT = "1 2 3 4 5 6 7 8 9"
_WARMUP_LENGTH = 12
_WARMUP_BEAM = 4


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


class Runner:
    """A decoding session and the segments that wait for it or run in it.

    A segment that was accepted gets exactly one last word, from `cancel`, `admit` or `step`.

    Attributes:
        pacing: How long encoding and steps have taken lately.
    """

    def __init__(
        self,
        open_session: Callable[[], DecodingSession],
        *,
        totals: Totals,
        clock: Callable[[], float],
    ) -> None:
        """Open the first session; another one follows only a failure."""
        self.pacing = Pacing()
        self._open_session = open_session
        self._session = open_session()
        self._totals = totals
        self._clock = clock
        self._jobs: dict[int, _Job] = {}
        self._running: dict[int, _Job] = {}
        self._newcomers: list[_Job] = []

    def __repr__(self) -> str:
        return f"<Runner jobs={len(self._jobs)} running={len(self._running)} {self._session!r}>"

    @property
    def is_idle(self) -> bool:
        """No segment waits or runs."""
        return not self._jobs

    @property
    def free_rows(self) -> int:
        """Rows that may still be taken."""
        return self._session.free_rows

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

    def warm_up(self, requests: Sequence[DecodeRequest]) -> None:
        """Translate requests that nobody waits for; before the first segment only."""
        self._session.admit(requests)
        while not self._session.is_idle:
            self._session.step()

    def accept(self, segments: Sequence[SubmitSegment]) -> None:
        """Remember segments that have arrived."""
        now = self._clock()
        self._totals.num_received += len(segments)
        for segment in segments:
            self._jobs[segment.segment_id] = _Job(segment=segment, arrived=now)

    def cancel(self, segment_id: int) -> list[Cancelled]:
        """Drop a segment, waiting or running; one that has had its last word is ignored."""
        job = self._jobs.pop(segment_id, None)
        if job is None:
            return []
        if job.slot_id is not None:
            del self._running[job.slot_id]
            self._session.release(job.slot_id)
        self._totals.num_cancelled += 1
        return [Cancelled(segment_id=segment_id)]

    def admit(self, segment_ids: Sequence[int]) -> list[Failed]:
        """Encode waiting segments as one batch; if that fails, all of them fail."""
        if not segment_ids:
            return []
        jobs = [self._jobs[segment_id] for segment_id in segment_ids]
        started = self._clock()
        try:
            slot_ids = self._session.admit([_request(job.segment) for job in jobs])
        except Exception as error:
            logger.exception("admit_failed", extra={"fields": {"num_segments": len(jobs)}})
            reason = type(error).__name__
        else:
            lengths = [len(job.segment.source_ids) for job in jobs]
            seconds = self._clock() - started
            self._totals.count_admission(lengths, seconds=seconds)
            self.pacing.encoded(max(lengths) * len(lengths), seconds=seconds)
            for job, slot_id in zip(jobs, slot_ids, strict=True):
                job.admitted, job.slot_id = started, slot_id
                job.encode_seconds = seconds
                job.first_step = self._totals.num_steps
                self._running[slot_id] = job
            self._newcomers.extend(jobs)
            return []
        failures = self._fail(jobs, reason)
        is_sound = self._session.num_slots == len(self._running)
        return failures if is_sound else failures + self._start_over(reason)

    def step(self) -> list[Finished | Failed]:
        """Extend every running segment by one token; if that fails, all of them fail."""
        if not self._running:
            return []
        num_rows = self._session.num_rows
        started = self._clock()
        try:
            finished = self._session.step()
        except Exception as error:
            logger.exception("step_failed", extra={"fields": {"num_segments": self.num_slots}})
            reason = type(error).__name__
        else:
            now = self._clock()
            self._totals.count_step(num_rows, seconds=now - started)
            self.pacing.stepped(seconds=now - started)
            for job in self._newcomers:
                job.first_stepped = now
            self._newcomers.clear()
            return [self._finish(sentence, now) for sentence in finished]
        return [*self._start_over(reason)]

    def check_integrity(self) -> None:
        """Assert that jobs and session agree."""
        assert self._session.num_slots == len(self._running)
        assert all(self._jobs[job.segment.segment_id] is job for job in self._running.values())
        if not self._running:
            assert self._session.num_rows == 0

    def _finish(self, sentence: FinishedSentence, now: float) -> Finished | Failed:
        job = self._running.pop(sentence.slot_id)
        if not sentence.hypotheses:
            return self._fail([job], "no finite score")[0]
        del self._jobs[job.segment.segment_id]
        self._totals.num_finished += 1
        self._totals.num_target_tokens += len(sentence.hypotheses[0].token_log_probs)
        return Finished(
            segment_id=job.segment.segment_id,
            hypotheses=tuple(map(_output, sentence.hypotheses)),
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
            message = f"the engine gave up segment {segment_id}: {reason}"
            failures.append(Failed(segment_id=segment_id, code="engine_error", message=message))
        return failures

    def _start_over(self, reason: str) -> list[Failed]:
        """Fail what runs and take a new session: one that raised half-way is not trusted."""
        failures = self._fail(list(self._running.values()), reason)
        self._running.clear()
        self._newcomers.clear()
        del self._session  # its caches go before the next ones come
        self._session = self._open_session()
        return failures


def load_runner(
    configure: Configure, *, totals: Totals, clock: Callable[[], float]
) -> tuple[Runner, Ready]:
    """Load the checkpoint and translate a little, so that no request pays for the first time.

    Raises:
        CheckpointError: The checkpoint is missing, damaged or inconsistent.
        DeviceError: The device is not there.
        UnsupportedVariantError: The fast decoding path does not run this network, or int8 is
            asked for and cannot be had.
        ConfigError: A limit of `configure` is below 1.
    """
    for name in ("num_threads", "max_rows", "max_slots", "admit_token_budget"):
        value = getattr(configure, name)
        if value < 1:
            raise ConfigError(f"{name} is {value}; it must be at least 1")
    device = resolve_device(configure.device)
    started = clock()
    checkpoint = load_for_decoding(
        Path(configure.checkpoint_path),
        device=device,
        compute_type=configure.compute_type,
        num_threads=configure.num_threads,
    )
    # Beside the kernels' own threads torch has only small work, which more threads slow down.
    torch.set_num_threads(1 if checkpoint.compute_type == "int8" else configure.num_threads)
    manifest = checkpoint.manifest
    limits = _session_limits(manifest, configure)
    loaded = clock()
    runner = Runner(
        lambda: DecodingSession(checkpoint.network, tokens=manifest.tokens, limits=limits),
        totals=totals,
        clock=clock,
    )
    for requests in _warmup_batches(checkpoint, limits):
        runner.warm_up(requests)
    ready = Ready(
        protocol_version=PROTOCOL_VERSION,
        checkpoint_name=manifest.name,
        device=str(device),
        compute_type=checkpoint.compute_type,
        num_threads=configure.num_threads,
        load_seconds=loaded - started,
        warmup_seconds=clock() - loaded,
        max_rows=limits.max_rows,
        max_slots=limits.max_slots,
        max_source_length=limits.max_source_length,
        max_target_length=manifest.limits.max_target_length,
        max_prefix_length=limits.max_target_length - manifest.limits.max_target_length,
    )
    return runner, ready


def resolve_device(name: Device) -> torch.device:
    """The device to run on; "auto" is CUDA where there is one.

    Raises:
        DeviceError: CUDA is asked for and not there: running elsewhere would hide it.
    """
    has_cuda = torch.cuda.is_available()
    if name == "cuda" and not has_cuda:
        raise DeviceError("device is 'cuda', but torch finds no CUDA device")
    return torch.device("cuda" if has_cuda and name != "cpu" else "cpu")


def _session_limits(manifest: Manifest, configure: Configure) -> SessionLimits:
    """The manifest's lengths, with room for the start token and the longest forced prefix."""
    prefix_length = 1 + max(len(pair.target_prefix) for pair in manifest.pairs)
    return SessionLimits(
        max_rows=configure.max_rows,
        max_slots=configure.max_slots,
        max_source_length=manifest.limits.max_source_length,
        max_target_length=manifest.limits.max_target_length + prefix_length,
    )


def _warmup_batches(checkpoint: Runnable, limits: SessionLimits) -> list[list[DecodeRequest]]:
    """One greedy sentence, one beam, and as many beams as there is room for."""
    pair = checkpoint.manifest.pairs[0]
    source_ids = checkpoint.tokenizer.encode(_WARMUP_TEXT, pair)[-limits.max_source_length :]
    prefix_ids = checkpoint.tokenizer.target_prefix(pair)
    max_length = min(_WARMUP_LENGTH, checkpoint.manifest.limits.max_target_length)
    beam_size = min(_WARMUP_BEAM, limits.max_rows)

    def request(beam_size: int) -> DecodeRequest:
        return DecodeRequest(
            source_ids=tuple(source_ids),
            prefix_ids=tuple(prefix_ids),
            search=SearchConfig(beam_size=beam_size, max_length=max_length),
        )

    num_beams = min(limits.max_slots, limits.max_rows // beam_size)
    return [[request(1)], [request(beam_size)], [request(beam_size)] * num_beams]


def _request(segment: SubmitSegment) -> DecodeRequest:
    return DecodeRequest(
        source_ids=segment.source_ids, prefix_ids=segment.prefix_ids, search=segment.search
    )


def _output(hypothesis: Hypothesis) -> OutputHypothesis:
    return OutputHypothesis(
        token_ids=hypothesis.token_ids,
        score=hypothesis.score,
        token_log_probs=hypothesis.token_log_probs,
        is_truncated=hypothesis.is_truncated,
        alignment=hypothesis.alignment,
    )
