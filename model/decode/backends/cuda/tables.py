"""What a grid keeps on the device, allocated once: caches, the state of the search, the requests.

Owns shapes and the writing of newcomers. Nothing here ever moves, so that a recorded step finds
everything where it was when it was recorded. Two facts make the layout:

* A sentence's past is a tree of nodes (t, k): what row k was fed at position t. Keys and values
  stay with their node for good; each row has a mask of the nodes that are its ancestors. When beams
  are reordered, masks change places and nothing else does.
* A slot that nobody uses computes on, for nobody: its results are not looked at, its position stops
  at the end of the table. What is not finite there would reach the next sentence through any mask
  (0 · NaN is NaN), so whoever leaves with such numbers has the slot cleared.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from model.config import ModelConfig
from model.decode.constraints import suppressed_mask
from model.decode.lexical import Automata, automata_of
from model.decode.sampling import RowSampling, numbers_of
from model.nn.cells import StateShape
from model.phrases import MAX_PHRASE_TOKENS, Alternatives
from model.request import DecodeRequest, SessionLimits

_ALIGNMENT = 16
"""Columns and source positions are multiples of it: fused attention needs that of a mask's rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """How much of the tables a step covers; a recorded step is for one of these.

    Attributes:
        num_slots: Slots, from the first.
        num_columns: Positions of the past, T, from the first.
        source_length: Source positions, M.
        num_candidates: Continuations a sentence considers at most, C.
        with_sources: Also say which source position each row attended to most.
        with_suppressed: Some sentence has tokens that it may not choose.
        with_sampling: Some sentence is drawn.
        num_phrase_tokens: Of all phrases of a sentence, at most; 0: no sentence has any.
    """

    num_slots: int
    num_columns: int
    source_length: int
    num_candidates: int
    with_sources: bool
    with_suppressed: bool
    with_sampling: bool
    num_phrase_tokens: int


def rounded_up(value: int, *, minimum: int, maximum: int) -> int:
    """The next of 1, 2, 3, 4, 6, 8, 12, 16, 24, … so that few buckets waste little."""
    size = max(value, minimum)
    power = 1 << (size - 1).bit_length()
    return min(power * 3 // 4 if size <= power * 3 // 4 else power, maximum)


class GridTables:
    """The tensors of S slots with K rows each; T columns of past and M source positions.

    Attributes:
        growing: (L, S, H, T, K, d) of each state of the decoder's cells that grows, by node: keys
            and values of self-attention.
        replaced: (L, S, K, H, d) of each that every step replaces, of the last nodes, in float32 at
            least.
        cross_keys: (L, S, H, M, d_k).
        cross_values: (L, S, H, M, d_v).
        ancestors: (S, K, T, K) bool, the nodes that each row continues.
        tokens: (S, K) int64, what each row is fed next.
        scores: (S, K) sums of log probabilities; -inf marks a row without hypothesis.
        positions: (S,) int64, where the next token goes.
        widths: (S,) int64, beams.
        num_candidates: (S,) int64.
        max_lengths: (S,) int64, target tokens with EOS.
        prefix_lengths: (S,) int64, at least 1.
        source_lengths: (S,) int64, at least 1.
        forced: (S, T) int64, what is forced at a position: the prefix, a first token, what the
            translation has to begin with; −1 where nothing is.
        sampling: How slots are drawn, (S,) each, without rows in the seeds; None until one is.
        suppressed: (S, V) bool, the tokens that a sentence may not choose; None until one has any.
        automata: Of the slots' phrases, as large as they can be; None until one has any.
        phrase_states: (2, S, K) int64, how far each row has come with them.
    """

    def __init__(
        self,
        config: ModelConfig,
        states: Sequence[StateShape],
        *,
        width: int,
        num_slots: int,
        limits: SessionLimits,
        device: torch.device,
        dtype: torch.dtype,
        score_dtype: torch.dtype,
        forced_first_id: int | None = None,
    ) -> None:
        """Allocate; `width` is K, `num_slots` is S. A first token may be forced on everybody."""
        self.width = width
        self.num_slots = num_slots
        self.num_columns = -(-(limits.max_target_length + 2) // _ALIGNMENT) * _ALIGNMENT
        self.max_source_length = -(-limits.max_source_length // _ALIGNMENT) * _ALIGNMENT
        self.device = device
        layers, heads = config.num_decoder_layers, config.num_heads
        sources = (layers, num_slots, heads, self.max_source_length)

        def zeros(*shape: int, kind: torch.dtype) -> Tensor:
            return torch.zeros(shape, device=device, dtype=kind)

        wide = torch.promote_types(dtype, torch.float32)
        self.growing = tuple(
            zeros(layers, num_slots, s.num_heads, self.num_columns, width, s.width, kind=dtype)
            for s in states
            if s.grows
        )
        self.replaced = tuple(
            zeros(layers, num_slots, width, s.num_heads, s.width, kind=wide)
            for s in states
            if not s.grows
        )
        self.cross_keys = zeros(*sources, config.query_width, kind=dtype)
        self.cross_values = zeros(*sources, config.value_width, kind=dtype)
        self.ancestors = zeros(num_slots, width, self.num_columns, width, kind=torch.bool)
        self.tokens = zeros(num_slots, width, kind=torch.int64)
        self.scores = zeros(num_slots, width, kind=score_dtype)
        self.positions = zeros(num_slots, kind=torch.int64)
        self.forced = zeros(num_slots, self.num_columns, kind=torch.int64)
        self.widths, self.num_candidates, self.max_lengths, self.prefix_lengths = (
            torch.ones(num_slots, device=device, dtype=torch.int64) for _ in range(4)
        )
        self.source_lengths = torch.ones(num_slots, device=device, dtype=torch.int64)
        self.suppressed: Tensor | None = None
        self.sampling: RowSampling | None = None
        self.automata: Automata | None = None
        self.phrase_states = zeros(2, num_slots, width, kind=torch.int64)
        self._forced_first_id = forced_first_id
        self._vocab_size = config.output_size

    def to_device(self, rows: Sequence[Sequence[int]]) -> Tensor:
        """Numbers from the host, (N, W) int64, without waiting for the device."""
        return self._sent(torch.from_numpy(np.array(rows, dtype=np.int64)))

    def _sent(self, values: Tensor) -> Tensor:
        if self.device.type == "cuda":
            values = values.pin_memory()
        return values.to(self.device, non_blocking=True)

    def write(self, slots: Sequence[int], requests: Sequence[DecodeRequest]) -> None:
        """Set the search of newcomers to its beginning; the encoder writes its output itself."""
        plans = [self._plan(request) for request in requests]
        longest = max(map(len, plans))
        packed = self.to_device(
            [
                (
                    slot,
                    request.search.beam_size,
                    request.search.candidates,
                    request.search.max_length,
                    len(request.prefix_ids),
                    len(request.source_ids),
                    request.search.num_starts,
                    *plan,
                    *[-1] * (longest - len(plan)),
                )
                for slot, request, plan in zip(slots, requests, plans, strict=True)
            ]
        )
        index, numbers = packed[:, 0], packed[:, 1:6]
        num_starts, forced = packed[:, 6:7], packed[:, 7:]
        columns = (
            self.widths,
            self.num_candidates,
            self.max_lengths,
            self.prefix_lengths,
            self.source_lengths,
        )
        for column, table in enumerate(columns):
            table.index_copy_(0, index, numbers[:, column])
        self.forced.index_fill_(0, index, -1)
        self.forced[:, :longest].index_copy_(0, index, forced)
        self.tokens.index_copy_(0, index, forced[:, :1].expand(-1, self.width))
        start = torch.zeros(len(slots), self.width, device=self.device, dtype=self.scores.dtype)
        is_empty = torch.arange(self.width, device=self.device) >= num_starts
        self.scores.index_copy_(0, index, start.masked_fill_(is_empty, float("-inf")))
        self.positions.index_fill_(0, index, 0)
        self.ancestors.index_fill_(0, index, value=False)
        self._write_suppressed(index, requests)
        self._write_sampling(index, requests)
        self._write_phrases(index, requests)

    def _plan(self, request: DecodeRequest) -> tuple[int, ...]:
        """What is forced at the first positions, whatever the network says."""
        first = () if self._forced_first_id is None else (self._forced_first_id,)
        plan = (*request.prefix_ids, *first, *request.forced_ids)
        return plan[: len(request.prefix_ids) + request.search.max_length]  # the cap goes first

    def _write_sampling(self, index: Tensor, requests: Sequence[DecodeRequest]) -> None:
        """Whoever joins is drawn in its own way, or not at all."""
        if self.sampling is None:
            if all(request.search.sampling is None for request in requests):
                return
            whole = torch.zeros_like(self.positions)
            real = whole.to(torch.float64)
            self.sampling = RowSampling(
                seeds=whole, temperatures=real, top_ks=whole.clone(), top_ps=real.clone()
            )
        numbers = [numbers_of(request.search) for request in requests]
        for table, values in zip(
            (
                self.sampling.temperatures,
                self.sampling.top_ks,
                self.sampling.top_ps,
                self.sampling.seeds,
            ),
            zip(*numbers, strict=True),
            strict=True,
        ):
            table.index_copy_(0, index, self._sent(torch.tensor(values, dtype=table.dtype)))

    def _write_suppressed(self, index: Tensor, requests: Sequence[DecodeRequest]) -> None:
        """Whoever joins has its own tokens suppressed, and none of the sentence's before it."""
        suppressed_ids = [request.suppressed_ids for request in requests]
        if self.suppressed is None and any(suppressed_ids):
            shape = (self.num_slots, self._vocab_size)
            self.suppressed = torch.zeros(shape, device=self.device, dtype=torch.bool)
        if self.suppressed is not None:
            mask = suppressed_mask(suppressed_ids, vocab_size=self._vocab_size, device=self.device)
            self.suppressed.index_copy_(0, index, mask)

    def _write_phrases(self, index: Tensor, requests: Sequence[DecodeRequest]) -> None:
        """Whoever joins has its own phrases, of which nothing is met."""
        phrases = [request.phrases for request in requests]
        if self.automata is None and any(phrases):
            self.automata = self._automata([()] * self.num_slots)
        if self.automata is not None:
            self.automata.write(index, self._automata(phrases))
            self.phrase_states.index_fill_(1, index, 0)

    def _automata(self, phrases: Sequence[Sequence[Alternatives]]) -> Automata:
        return automata_of(phrases, self.device, num_tokens=MAX_PHRASE_TOKENS)

    def clear(self, slot: int) -> None:
        """Zero what a sentence left, which may not be finite: what is masked must be."""
        outputs = (self.cross_keys, self.cross_values)
        for table in (*self.growing, *self.replaced, *outputs):
            table[:, slot] = 0.0
