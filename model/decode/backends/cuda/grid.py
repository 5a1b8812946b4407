"""Grid of all sentences of one beam width: admitted in packed chunks, stepped by recordings.

Owns the order of work between host and device. The host launches a step, then reads what the step
before it did, while the device works; nothing in the loop waits for the device but that reading.
What a sentence does after its end, until the host has heard of it, is not looked at.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from model.config import MAX_NO_REPEAT_NGRAM, SpecialTokens
from model.decode.backends.cuda.buckets import Bucket, rounded_up
from model.decode.backends.cuda.constants import Constants
from model.decode.backends.cuda.growth import Room, Sizes
from model.decode.backends.cuda.ledger import Launched, Ledger
from model.decode.backends.cuda.network import GridNetwork
from model.decode.backends.cuda.newcomers import Newcomers, fill_rows
from model.decode.backends.cuda.recording import Recorder, Recordings, Step
from model.decode.backends.cuda.search import GridSearch, unpack
from model.decode.backends.cuda.tables import GridTables
from model.decode.footprint import MAX_ENCODED_TOKENS
from model.errors import KernelError
from model.phrases import MAX_PHRASE_TOKENS
from model.request import DecodeRequest, FinishedSentence, SessionLimits

_MIN_COLUMNS = 32
_MIN_SOURCE = 32
_MIN_PHRASE_TOKENS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sent:
    """A report on its way to the host.

    Attributes:
        packed: Where it arrives.
        num_groups: Of the step's bucket.
        has_arrived: Recorded behind the copy; None where copies do not run on their own.
        launched: Who took part in the step.
    """

    packed: Tensor
    num_groups: int
    has_arrived: torch.cuda.Event | None
    launched: Launched


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
        room: Room | None = None,
    ) -> None:
        """Prepare for up to `num_slots` sentences; tables become as large as these need.

        They become no larger than there is `room` for.
        """
        self._network = network
        self._search = GridSearch(
            tokens,
            vocab_size=network.config.output_size,
            device=network.device,
            chooser=network.chooser(tokens),
        )
        self._pad_id = network.config.pad_id
        self._tables = _tables(
            network,
            width=width,
            num_slots=num_slots,
            limits=limits,
            device=network.device,
            room=room,
        )
        self._newcomers = Newcomers(self._tables, forced_first_id=tokens.forced_first_id)
        self._ledger = Ledger(
            num_slots=num_slots, num_columns=self._tables.max_columns, width=width
        )
        self._constants = Constants()
        self._recordings = Recordings(recorder)
        self._refused: set[Bucket] = set()  # for which a kernel cannot be had
        self._sent: deque[_Sent] = deque()
        self._is_last = False

    @property
    def is_idle(self) -> bool:
        """No sentence is running."""
        return self._ledger.is_idle

    def num_fitting(self, requests: Sequence[DecodeRequest]) -> int:
        """How many of the first of these sentences there is memory for, up to their caps."""
        return bisect_left(
            range(1, len(requests) + 1),
            x=True,
            key=lambda count: not self._tables.has_room(self._needs(requests[:count], to_cap=True)),
        )

    def fits_now(self, request: DecodeRequest) -> bool:
        """Whether a sentence could begin in the tables as they are."""
        return self._tables.has(self._needs([request], to_cap=False))

    def forget_ended(self) -> None:
        """Keep room for no more than what runs may need."""
        self._tables.foresee_only(self._ledger.last_cap() + 1)

    def describe_needs(self, request: DecodeRequest) -> str:
        """Tables that a sentence needs which is alone."""
        return str(self._needs([request], to_cap=True))

    def _needs(self, requests: Sequence[DecodeRequest], *, to_cap: bool) -> Sizes:
        """Sizes that newcomers need beside what runs: now, or up to the cap of every sentence."""
        num_columns = self._newcomers.longest_plan(requests)
        if to_cap:
            num_columns = max(num_columns, self._ledger.last_cap(), *map(_cap, requests))
        return Sizes(
            num_slots=int(self._ledger.next_slots(len(requests))[-1]) + 1,
            num_columns=num_columns + 1,  # what is forced next is looked up behind the past
            source_length=self._source_length(max(len(r.source_ids) for r in requests)),
        )

    def admit(
        self, slot_ids: Sequence[int], requests: Sequence[DecodeRequest], *, to_cap: bool = True
    ) -> int:
        """Encode sentences in chunks of like lengths, and set their searches up.

        Args:
            slot_ids: Their names.
            requests: As many as `num_fitting`, or one that `fits_now`.
            to_cap: Keep room for all that they may come to need, which there is.

        Returns:
            Source tokens encoded, what they were padded with included.

        Raises:
            MemoryError: There are more than `num_fitting`; nothing has changed then.
        """
        foreseen = max(self._ledger.last_cap(), *map(_cap, requests)) + 1 if to_cap else 0
        self._reserve(self._needs(requests, to_cap=False), foreseen=foreseen)
        self._tables.foresee(foreseen)
        slots = self._ledger.add(slot_ids, requests)
        try:
            num_tokens = sum(
                self._encode(length, [requests[i] for i in chunk], slots[chunk])
                for length, chunk in self._chunks(requests)
            )
            self._newcomers.write(slots, requests)
        except BaseException:
            for slot_id in slot_ids:
                self.release(slot_id)
            raise
        return num_tokens

    def _reserve(self, needed: Sizes, *, foreseen: int) -> None:
        """Growth of the tables to what all sentences need; earlier recordings read the old ones."""
        if self._tables.reserve(needed, foreseen=foreseen):
            self._recordings.clear()

    def _source_length(self, length: int) -> int:
        return rounded_up(length, minimum=_MIN_SOURCE, maximum=self._tables.max_source_length)

    def _chunks(self, requests: Sequence[DecodeRequest]) -> Iterator[tuple[int, list[int]]]:
        """Padded lengths and requests of them, up to so many tokens at once."""
        lengths = [len(request.source_ids) for request in requests]
        padded = {length: self._source_length(length) for length in set(lengths)}
        order = sorted(range(len(requests)), key=lengths.__getitem__)
        for length, group in groupby(order, key=lambda i: padded[lengths[i]]):
            waiting = list(group)
            size = max(1, MAX_ENCODED_TOKENS // length)
            for first in range(0, len(waiting), size):
                yield length, waiting[first : first + size]

    def _encode(
        self, length: int, requests: Sequence[DecodeRequest], slots: NDArray[np.int64]
    ) -> int:
        sources = [request.source_ids for request in requests]
        packed = np.full((len(sources), length + 2), self._pad_id, dtype=np.int64)
        packed[:, 0] = slots
        packed[:, 1] = [len(source) for source in sources]
        fill_rows(packed[:, 2:], sources)
        on_device = self._tables.to_device(packed)
        self._network.encode(on_device[:, 2:], on_device[:, 1], on_device[:, 0], self._tables)
        return packed[:, 2:].size

    def release(self, slot_id: int) -> None:
        """Drop a sentence; what it still does on the device is not looked at."""
        (slot,) = self._ledger.remove([slot_id])
        self._tables.clear(int(slot))  # whether it is finite is not known

    def written(self, slot_id: int) -> list[int]:
        """Tokens that the first beam of a sentence had after the last step that was read."""
        return self._ledger.written(slot_id)

    def launch(self) -> None:
        """Start the next step of all sentences, and the copy of its report, if one needs it.

        Raises:
            MemoryError: Pasts have become longer, and what was free at admission is free no more.
        """
        self._is_last = not self._ledger.has_steps_left()
        if self._is_last:
            return
        past = Sizes(num_slots=0, num_columns=self._ledger.longest_past() + 1, source_length=0)
        self._reserve(past, foreseen=self._ledger.last_cap() + 1)
        bucket, report = self._stepped()
        launched = self._ledger.launch(bucket.num_slots)
        on_gpu = report.device.type == "cuda"
        packed = torch.empty(report.shape, dtype=report.dtype, pin_memory=on_gpu)
        packed.copy_(report, non_blocking=on_gpu)
        has_arrived = None
        if on_gpu:
            has_arrived = torch.cuda.Event()  # type: ignore[no-untyped-call]  # torch's own
            has_arrived.record()
        self._sent.append(
            _Sent(
                packed=packed,
                num_groups=bucket.num_groups,
                has_arrived=has_arrived,
                launched=launched,
            )
        )

    def _stepped(self) -> tuple[Bucket, Tensor]:
        """One step of all sentences: what it covered, and its report on the device."""
        bucket = self._bucket()
        try:
            return bucket, self._step(bucket)()
        except KernelError:  # what the programs before it wrote is written again
            self._refused.add(bucket)
            return self._stepped()

    def _bucket(self) -> Bucket:
        """The smallest bucket that holds all sentences.

        Triton's programs read to each sentence's own length and no further: where nothing else runs
        a bucket has all columns, so that there are few of them.
        """
        bucket, tables = self._tight_bucket(), self._tables
        by_kernels = self._search.adds_bias(bucket, tables.width)
        if by_kernels and self._network.has_kernel_layers:
            bucket = replace(bucket, num_columns=tables.num_columns)
            if not bucket.with_sources:
                bucket = replace(bucket, source_length=tables.source_length)
        if bucket in self._refused:
            bucket = replace(self._tight_bucket(), by_kernels=False)
        return bucket

    def _tight_bucket(self) -> Bucket:
        """The exact needs of all sentences, without rounding."""
        tables, options = self._tables, self._ledger.options()
        return Bucket(
            num_slots=rounded_up(self._ledger.num_covered(), minimum=1, maximum=tables.num_slots),
            num_columns=rounded_up(
                self._ledger.longest_past(), minimum=_MIN_COLUMNS, maximum=tables.num_columns
            ),
            source_length=self._source_length(options.source_length),
            num_candidates=max(2 * tables.width, options.num_candidates),
            with_sources=options.with_sources,
            with_suppressed=options.with_suppressed,
            with_sampling=options.with_sampling,
            num_phrase_tokens=_phrase_tokens(options.num_phrase_tokens),
            num_groups=rounded_up(options.num_groups, minimum=1, maximum=tables.width),
            no_repeat_ngram=_ngram(options.no_repeat_ngram),
            by_kernels=True,
        )

    def _step(self, bucket: Bucket) -> Step:
        """The step of a bucket, recorded once it has been used before."""
        network, search, tables = self._network, self._search, self._tables  # and not the grid

        constants = self._constants

        def write() -> Step:
            def step() -> Tensor:
                with constants:
                    with_bias = not search.adds_bias(bucket, tables.width)
                    logits, sources = network.step(tables, bucket, with_bias=with_bias)
                    return search.step(tables, bucket, logits, sources)

            return step

        return self._recordings.step(bucket, write)

    def collect(self) -> list[FinishedSentence]:
        """Reading of all launched steps but the last, which is read too if it is final."""
        finished: list[FinishedSentence] = []
        while len(self._sent) > self._num_unread():
            finished += self._read(self._sent.popleft())
        return finished

    def _num_unread(self) -> int:
        return 0 if self.is_idle or self._is_last else 1

    def _read(self, sent: _Sent) -> list[FinishedSentence]:
        if sent.has_arrived is not None:
            sent.has_arrived.synchronize()
        report = unpack(sent.packed.numpy(), self._tables.width, num_groups=sent.num_groups)
        over = self._ledger.read(report, sent.launched)
        return self._finish(over) if over else []

    def _finish(self, slot_ids: Sequence[int]) -> list[FinishedSentence]:
        found = self._ledger.hypotheses(slot_ids)
        poisoned = self._ledger.poisoned(slot_ids)
        slots = self._ledger.remove(slot_ids).tolist()
        for slot, hypotheses, is_poisoned in zip(slots, found, poisoned, strict=True):
            if is_poisoned or not hypotheses:
                self._tables.clear(slot)
        return [
            FinishedSentence(slot_id=slot_id, hypotheses=hypotheses)
            for slot_id, hypotheses in zip(slot_ids, found, strict=True)
        ]

    def check_integrity(self) -> None:
        """Assert that slots and sentences agree."""
        self._ledger.check_integrity()


def first_bytes(network: GridNetwork, *, width: int, num_slots: int, limits: SessionLimits) -> int:
    """Bytes that a new grid takes for its tables and the logits of a step."""
    tables = _tables(
        network, width=width, num_slots=num_slots, limits=limits, device=torch.device("meta")
    )
    return tables.first_bytes()


def _tables(
    network: GridNetwork,
    *,
    width: int,
    num_slots: int,
    limits: SessionLimits,
    device: torch.device,
    room: Room | None = None,
) -> GridTables:
    """The first tables of a grid; on the device "meta" they only have sizes."""
    return GridTables(
        network.config,
        network.states,
        width=width,
        num_slots=num_slots,
        limits=limits,
        device=device,
        dtype=network.dtype,
        score_dtype=network.score_dtype,
        room=room,
    )


def _cap(request: DecodeRequest) -> int:
    """Position behind the last one that a sentence may have."""
    return len(request.prefix_ids) + request.search.max_length - 1


def _ngram(size: int) -> int:
    """The longest n-gram that does not come again, or one of few sizes above; 0 without any."""
    return rounded_up(size, minimum=1, maximum=MAX_NO_REPEAT_NGRAM) if size else 0


def _phrase_tokens(num_tokens: int) -> int:
    """Room for a sentence's phrases, one of few sizes; 0 without any."""
    if not num_tokens:
        return 0
    return rounded_up(num_tokens, minimum=_MIN_PHRASE_TOKENS, maximum=MAX_PHRASE_TOKENS)
