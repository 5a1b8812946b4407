"""All sentences of one beam width: admitted in packed chunks, stepped by recordings, read late.

Owns the order of work between host and device. The host launches a step, then reads what the step
before it did, while the device works; nothing in the loop waits for the device but that reading.
What a sentence does after its end, until the host has heard of it, is not looked at.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TypedDict

import torch
from torch import Tensor

from model.config import SpecialTokens
from model.decode.backends.cuda.ledger import Launched, Ledger
from model.decode.backends.cuda.network import GridNetwork
from model.decode.backends.cuda.recording import Recorder, Step
from model.decode.backends.cuda.search import GridSearch, unpack
from model.decode.backends.cuda.tables import Bucket, GridTables, rounded_up
from model.phrases import MAX_PHRASE_TOKENS
from model.request import DecodeRequest, FinishedSentence, SessionLimits

_MIN_COLUMNS = 32
_MIN_SOURCE = 32
_MIN_PHRASE_TOKENS = 8
_MAX_ENCODED_TOKENS = 16_384
_RECORD_AT = 2
"""A bucket's first step runs as written, which also warms it up; from here on it is recorded."""


class _Needs(TypedDict):
    """What a bucket has of the sentences that run, beside how far they are."""

    source_length: int
    num_candidates: int
    with_sources: bool
    with_suppressed: bool
    with_sampling: bool
    num_phrase_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sent:
    """A report on its way to the host.

    Attributes:
        packed: Where it arrives.
        has_arrived: Recorded behind the copy; None where copies do not run on their own.
        launched: Who took part in the step.
    """

    packed: Tensor
    has_arrived: torch.cuda.Event | None
    launched: Launched


@dataclass(slots=True)
class _Recording:
    """A step of one shape, and how often it was asked for."""

    step: Step
    num_uses: int = 0


class Grid:
    """Sentences with up to `width` beams each."""

    def __init__(
        self,
        network: GridNetwork,
        *,
        width: int,
        num_slots: int,
        tokens: SpecialTokens,
        limits: SessionLimits,
        recorder: Recorder,
    ) -> None:
        """Allocate tables for `num_slots` sentences."""
        self._network = network
        self._search = GridSearch(tokens, network.device, network.chooser(tokens))
        self._pad_id = network.config.pad_id
        self._recorder = recorder
        self._tables = GridTables(
            network.config,
            network.states,
            width=width,
            num_slots=num_slots,
            limits=limits,
            device=network.device,
            dtype=network.dtype,
            score_dtype=network.score_dtype,
            forced_first_id=tokens.forced_first_id,
        )
        self._ledger = Ledger(
            num_slots=num_slots, num_columns=self._tables.num_columns, width=width
        )
        self._recordings: dict[Bucket, _Recording] = {}
        self._sent: deque[_Sent] = deque()
        self._needed: _Needs | None = None
        self._is_last = False

    @property
    def is_idle(self) -> bool:
        """No sentence is running."""
        return self._ledger.is_idle

    def admit(self, slot_ids: Sequence[int], requests: Sequence[DecodeRequest]) -> int:
        """Encode sentences in chunks of like lengths, and set their searches up.

        Returns:
            Source tokens encoded, what they were padded with included.
        """
        self._needed = None
        slots = [
            self._ledger.add(slot_id, request)
            for slot_id, request in zip(slot_ids, requests, strict=True)
        ]
        try:
            num_tokens = sum(
                self._encode([requests[i] for i in chunk], [slots[i] for i in chunk])
                for chunk in self._chunks(requests)
            )
            self._tables.write(slots, requests)
        except BaseException:
            for slot_id in slot_ids:
                self.release(slot_id)
            raise
        return num_tokens

    def _source_length(self, request: DecodeRequest) -> int:
        return rounded_up(
            len(request.source_ids), minimum=_MIN_SOURCE, maximum=self._tables.max_source_length
        )

    def _chunks(self, requests: Sequence[DecodeRequest]) -> list[list[int]]:
        """Requests of one padded length, up to so many tokens."""
        order = sorted(range(len(requests)), key=lambda i: len(requests[i].source_ids))
        chunks = []
        for length, group in groupby(order, key=lambda i: self._source_length(requests[i])):
            waiting = list(group)
            while waiting:
                size = max(1, _MAX_ENCODED_TOKENS // length)
                chunks.append(waiting[:size])
                del waiting[:size]
        return chunks

    def _encode(self, requests: Sequence[DecodeRequest], slots: Sequence[int]) -> int:
        length = self._source_length(requests[-1])
        packed = self._tables.to_device(
            [
                (
                    slot,
                    len(request.source_ids),
                    *request.source_ids,
                    *[self._pad_id] * (length - len(request.source_ids)),
                )
                for slot, request in zip(slots, requests, strict=True)
            ]
        )
        self._network.encode(packed[:, 2:], packed[:, 1], packed[:, 0], self._tables)
        return length * len(requests)

    def release(self, slot_id: int) -> None:
        """Drop a sentence; what it still does on the device is not looked at."""
        self._needed = None
        self._tables.clear(self._ledger.remove(slot_id))  # whether it is finite is not known

    def launch(self) -> None:
        """Start the next step of everybody, and the copy of what it does, if anybody needs one."""
        self._is_last = not self._ledger.has_steps_left()
        if self._is_last:
            return
        bucket = self._bucket()
        launched = self._ledger.launch(bucket.num_slots)
        report = self._step(bucket)()
        on_gpu = report.device.type == "cuda"
        packed = torch.empty(report.shape, dtype=report.dtype, pin_memory=on_gpu)
        packed.copy_(report, non_blocking=on_gpu)
        has_arrived = None
        if on_gpu:
            has_arrived = torch.cuda.Event()  # type: ignore[no-untyped-call]  # torch's own
            has_arrived.record()
        self._sent.append(_Sent(packed=packed, has_arrived=has_arrived, launched=launched))

    def _bucket(self) -> Bucket:
        """The smallest bucket that holds everybody."""
        tables = self._tables
        return Bucket(
            num_slots=rounded_up(self._ledger.num_covered(), minimum=1, maximum=tables.num_slots),
            num_columns=rounded_up(
                self._ledger.longest_past(), minimum=_MIN_COLUMNS, maximum=tables.num_columns
            ),
            **self._needs(),
        )

    def _needs(self) -> _Needs:
        """What the sentences that run need, which changes only when one joins or leaves."""
        if self._needed is None:
            running = self._ledger.running
            self._needed = {
                "source_length": max(map(self._source_length, running)),
                "num_candidates": max(
                    2 * self._tables.width, *(item.search.candidates for item in running)
                ),
                "with_sources": any(item.search.with_alignment for item in running),
                "with_suppressed": any(item.suppressed_ids for item in running),
                "with_sampling": any(item.search.sampling is not None for item in running),
                "num_phrase_tokens": max(map(_num_phrase_tokens, running)),
            }
        return self._needed

    def _step(self, bucket: Bucket) -> Step:
        """The step of a bucket, recorded once it has been used before."""
        network, search, tables = self._network, self._search, self._tables  # and not the grid

        def step() -> Tensor:
            with_bias = not search.adds_bias(bucket, tables.width)
            logits, sources = network.step(tables, bucket, with_bias=with_bias)
            return search.step(tables, bucket, logits, sources)

        recording = self._recordings.setdefault(bucket, _Recording(step))
        recording.num_uses += 1
        if recording.num_uses == _RECORD_AT:
            recording.step = self._recorder.record(step)
        return recording.step

    def collect(self) -> list[FinishedSentence]:
        """Read all steps but the last one launched; if nothing comes after it, that one too."""
        finished: list[FinishedSentence] = []
        while len(self._sent) > self._num_unread():
            finished += self._read(self._sent.popleft())
        return finished

    def _num_unread(self) -> int:
        return 0 if self.is_idle or self._is_last else 1

    def _read(self, sent: _Sent) -> list[FinishedSentence]:
        if sent.has_arrived is not None:
            sent.has_arrived.synchronize()
        report = unpack(sent.packed.numpy(), self._tables.width)
        return [self._finish(slot_id) for slot_id in self._ledger.read(report, sent.launched)]

    def _finish(self, slot_id: int) -> FinishedSentence:
        self._needed = None
        hypotheses = self._ledger.hypotheses(slot_id)
        is_poisoned = self._ledger.is_poisoned(slot_id)
        slot = self._ledger.remove(slot_id)
        if is_poisoned or not hypotheses:
            self._tables.clear(slot)
        return FinishedSentence(slot_id=slot_id, hypotheses=hypotheses)

    def check_integrity(self) -> None:
        """Assert that slots and sentences agree."""
        self._ledger.check_integrity()


def _num_phrase_tokens(request: DecodeRequest) -> int:
    """Room for a sentence's phrases, one of few sizes; 0 without any."""
    if not request.phrases:
        return 0
    num_tokens = sum(len(path) for phrase in request.phrases for path in phrase)
    return rounded_up(num_tokens, minimum=_MIN_PHRASE_TOKENS, maximum=MAX_PHRASE_TOKENS)
