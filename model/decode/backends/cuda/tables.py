"""Tables of a grid on the device: caches, the state of the search, the requests.

Owns shapes and growth; what a newcomer has in them is written by
`model.decode.backends.cuda.newcomers`. Tables grow to what sentences have needed so far, by
doubling where that fits into free memory, and never shrink: what a checkpoint allows at the most
may be more than a device has, and is seldom asked for. But for that nothing here ever moves, so
that a recorded step finds everything where it was when it was recorded. Two facts make the layout:

* A sentence's past is a tree of nodes (t, k): what row k was fed at position t. Keys and values
  stay with their node for good; each row has a mask of the nodes that are its ancestors. When beams
  are reordered, masks change places and nothing else does.
* An empty slot computes on: its results are not looked at, its position stops
  at the end of the table. What is not finite there would reach the next sentence through any mask
  (0 · NaN is NaN), so a slot that is left with such numbers is cleared.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from model.cells import StateShape
from model.config import ModelConfig
from model.decode.backends.cuda.buckets import padded_vocabulary
from model.decode.backends.cuda.growth import Room, Sizes, doubled, growth_bytes
from model.decode.footprint import FEWEST_SLOTS
from model.decode.lexical import Automata, automata_of
from model.decode.sampling import RowSampling
from model.phrases import MAX_PHRASE_TOKENS, Alternatives
from model.request import SessionLimits

_ALIGNMENT = 16
"""Columns and source positions are multiples of it: fused attention needs that of a mask's rows."""


_FEWEST = {"slots": FEWEST_SLOTS, "columns": 64, "sources": 64}
"""What tables begin with, where limits allow as many."""


_ONES = (
    "widths",
    "group_sizes",
    "num_candidates",
    "max_lengths",
    "prefix_lengths",
    "source_lengths",
)
"""Tables with a number of each slot, 1 where no sentence has been."""


def _enlarged(table: Tensor, *sizes: tuple[int, int], fill: float = 0) -> Tensor:
    """A table with larger dimensions, (dimension, size) each, and its values where they were."""
    shape = list(table.shape)
    for dimension, size in sizes:
        shape[dimension] = size
    if shape == list(table.shape):
        return table
    larger = torch.full(shape, fill, device=table.device, dtype=table.dtype)
    larger[tuple(slice(size) for size in table.shape)] = table
    return larger


def _columns(num_columns: int) -> Sizes:
    """Columns, of whatever else there is."""
    return Sizes(num_slots=0, num_columns=num_columns, source_length=0)


class GridTables:
    """The tensors of S slots with K rows each; T columns of past and M source positions.

    Attributes:
        width: K.
        vocab_size: V', padded.
        num_slots: S at present; `max_slots` at the most.
        num_columns: T at present; `max_columns` at the most.
        source_length: M at present; `max_source_length` at the most.
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
        group_sizes: (S,) int64, beams of each group; all of them where there are no groups.
        penalties: (S,) of what another group has chosen, in the precision of scores.
        num_candidates: (S,) int64.
        max_lengths: (S,) int64, target tokens with EOS.
        prefix_lengths: (S,) int64, at least 1.
        source_lengths: (S,) int64, at least 1.
        forced: (S, T) int64, what is forced at a position: the prefix, a first token, what the
            translation has to begin with; −1 where nothing is.
        sampling: How slots are drawn, (S,) each, without rows in the seeds; None until one is.
        automata: Of the slots' phrases, as large as they can be; None until one has any.
        phrase_states: (2, S, K) int64, how far each row has come with them.
        suppressed: (S, V') bool, the tokens that a sentence may not choose, of the padded
            vocabulary; None until one has any.
        no_repeat_ngrams: (S,) int64, n of each slot.
        fed: (S, T, K) int64, what each node was fed, of sentences that may not repeat themselves;
            None until there is one.
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
        room: Room | None = None,
    ) -> None:
        """Allocate a little; `width` is K, and growth is bounded by `room`."""
        self._room = room or Room(None)
        self.width = width
        self.max_slots = num_slots
        self.max_columns = -(-(limits.max_target_length + 2) // _ALIGNMENT) * _ALIGNMENT
        self.max_source_length = -(-limits.max_source_length // _ALIGNMENT) * _ALIGNMENT
        self.device = device
        self.num_slots = min(_FEWEST["slots"], self.max_slots)
        self.num_columns = min(_FEWEST["columns"], self.max_columns)
        self.source_length = min(_FEWEST["sources"], self.max_source_length)
        self.vocab_size = padded_vocabulary(config.output_size)
        self._begin_caches(config, states, dtype)
        self._begin_searches(score_dtype)
        self._promised = self.sizes  # there is room for them, and it is kept

    def _zeros(self, *shape: int, dtype: torch.dtype) -> Tensor:
        return torch.zeros(shape, device=self.device, dtype=dtype)

    def _begin_caches(
        self, config: ModelConfig, states: Sequence[StateShape], dtype: torch.dtype
    ) -> None:
        layers, heads = config.num_decoder_layers, config.num_heads
        slots, columns, width = self.num_slots, self.num_columns, self.width
        wide = torch.promote_types(dtype, torch.float32)
        self.growing = tuple(
            self._zeros(layers, slots, s.num_heads, columns, width, s.width, dtype=dtype)
            for s in states
            if s.grows
        )
        self.replaced = tuple(
            self._zeros(layers, slots, width, s.num_heads, s.width, dtype=wide)
            for s in states
            if not s.grows
        )
        sources = (layers, slots, heads, self.source_length)
        self.cross_keys = self._zeros(*sources, config.query_width, dtype=dtype)
        self.cross_values = self._zeros(*sources, config.value_width, dtype=dtype)

    def _begin_searches(self, score_dtype: torch.dtype) -> None:
        slots, columns, width = self.num_slots, self.num_columns, self.width
        whole = torch.int64
        self.ancestors = self._zeros(slots, width, columns, width, dtype=torch.bool)
        self.tokens = self._zeros(slots, width, dtype=whole)
        self.scores = self._zeros(slots, width, dtype=score_dtype)
        self.positions = self._zeros(slots, dtype=whole)
        self.forced = self._zeros(slots, columns, dtype=whole) - 1
        self.widths, self.group_sizes, self.num_candidates, self.max_lengths = (
            torch.ones(slots, device=self.device, dtype=whole) for _ in range(4)
        )
        self.prefix_lengths, self.source_lengths = (
            torch.ones(slots, device=self.device, dtype=whole) for _ in range(2)
        )
        self.penalties = self._zeros(slots, dtype=score_dtype)
        self.suppressed: Tensor | None = None
        self.no_repeat_ngrams = self._zeros(slots, dtype=whole)
        self.fed: Tensor | None = None
        self.sampling: RowSampling | None = None
        self.automata: Automata | None = None
        self.phrase_states = self._zeros(2, slots, width, dtype=whole)

    @property
    def sizes(self) -> Sizes:
        """What there is."""
        return Sizes(
            num_slots=self.num_slots,
            num_columns=self.num_columns,
            source_length=self.source_length,
        )

    @property
    def _most(self) -> Sizes:
        return Sizes(
            num_slots=self.max_slots,
            num_columns=self.max_columns,
            source_length=self.max_source_length,
        )

    def has_room(self, needed: Sizes) -> bool:
        """Whether tables are so large, or could be; of what was promised nobody is asked."""
        if self._promised.covers(needed.within(self._most)):
            return True
        return self._has_for(self._exact(needed))

    def has(self, needed: Sizes) -> bool:
        """Whether tables are so large."""
        return self.sizes.covers(needed.within(self._most))

    def reserve(self, needed: Sizes, *, foreseen: int = 0) -> bool:
        """Have at least what is needed; True if tables have moved.

        Each table is copied by itself.

        Args:
            needed: Slots, columns and source positions. They are doubled, so that tables seldom
                move, if what is foreseen fits even then; else all that is foreseen is taken now.
            foreseen: Columns that what runs may need later.

        Raises:
            MemoryError: There is no room for it; the tables are as they were then.
        """
        if self.has(needed):
            return False
        self._room.look_again()
        before = self.sizes
        sizes = doubled(needed, before, most=self._most)
        later = _columns(foreseen)
        last = self._exact(later).joined(sizes)
        if not self._room.has(self.width, lambda: self.bytes_to_have(sizes, last)):
            sizes = self._exact(needed.joined(later))
            if not self._has_for(sizes):
                raise MemoryError(f"no memory for tables of {sizes}; there are {before}")
        self.num_slots, self.num_columns = sizes.num_slots, sizes.num_columns
        self.source_length = sizes.source_length
        self._grow_caches()
        self._grow_searches()
        self._room.look_again()
        self._promised = self.sizes
        self.foresee(foreseen)
        return True

    def foresee(self, num_columns: int) -> None:
        """Keep room for columns that what runs may need later, from whatever else would grow.

        There must be room for them. It stays when sentences end, so that those that come next, as
        long as they were, are no question each time.
        """
        self._promise(self._exact(_columns(num_columns)).joined(self._promised))

    def foresee_only(self, num_columns: int) -> None:
        """Keep no room for more columns."""
        self._promise(self._exact(_columns(num_columns)).within(self._promised))

    def _promise(self, sizes: Sizes) -> None:
        self._promised = sizes
        self._room.promise(self.width, self.bytes_to_have(sizes))

    def _has_for(self, sizes: Sizes) -> bool:
        return self._room.has_for(self.width, sizes, lambda: self.bytes_to_have(sizes))

    def _exact(self, needed: Sizes) -> Sizes:
        """What there is, and what is needed beyond it."""
        return needed.aligned(_ALIGNMENT).within(self._most).joined(self.sizes)

    def first_bytes(self) -> int:
        """Bytes of tables and logits as they are."""
        return sum(self._table_bytes(self.sizes)) + self.num_slots * self._logit_bytes()

    def bytes_to_have(self, *stages: Sizes) -> int:
        """Bytes that must be free for tables to become so large, and for a step to be recorded.

        The logits of the sentences that there is a place for already are counted: earlier
        recordings, which have them, go when tables move.
        """
        return self.bytes_to_grow(*stages) + self.num_slots * self._logit_bytes()

    def _logit_bytes(self) -> int:
        """Bytes of the logits of one sentence."""
        return self.width * self.vocab_size * self.scores.element_size()

    def bytes_to_grow(self, *stages: Sizes) -> int:
        """Bytes that must be free for tables to become so large, one size after the other.

        What a step takes for the logits of more sentences is added.
        """
        copies: list[tuple[int, int]] = []
        present = self.sizes
        for sizes in stages:
            before, after = self._table_bytes(present), self._table_bytes(sizes)
            copies += zip(before, after, strict=True)
            present = sizes
        logits = 2 * (present.num_slots - self.num_slots) * self._logit_bytes()
        return logits + growth_bytes(copies)

    def _table_bytes(self, sizes: Sizes) -> list[int]:
        """Bytes of each table that is worth counting, were they so large."""
        slots = (sizes.num_slots, self.num_slots)
        columns = (sizes.num_columns, self.num_columns)
        sources = (sizes.source_length, self.source_length)

        def grown(table: Tensor | None, *ratios: tuple[int, int]) -> int:
            num_bytes = 0 if table is None else table.nbytes
            for new, old in ratios:
                num_bytes = num_bytes // old * new  # a table's dimension is a factor of its bytes
            return num_bytes

        return [
            *(grown(table, slots, columns) for table in self.growing),
            *(grown(table, slots) for table in self.replaced),
            grown(self.cross_keys, slots, sources),
            grown(self.cross_values, slots, sources),
            grown(self.ancestors, slots, columns),
            grown(self.forced, slots, columns),
            grown(self.suppressed, slots),
            grown(self.fed, slots, columns),
        ]

    def _grow_caches(self) -> None:
        slots, columns = (1, self.num_slots), (3, self.num_columns)
        growing, self.growing = list(self.growing), ()
        for place, table in enumerate(growing):
            growing[place] = _enlarged(table, slots, columns)
            del table  # before the next one takes as much
        self.growing = tuple(growing)
        self.replaced = tuple(_enlarged(table, slots) for table in self.replaced)
        self.cross_keys = _enlarged(self.cross_keys, slots, (3, self.source_length))
        self.cross_values = _enlarged(self.cross_values, slots, (3, self.source_length))

    def _grow_searches(self) -> None:
        slots = (0, self.num_slots)
        self.ancestors = _enlarged(self.ancestors, slots, (2, self.num_columns))
        self.forced = _enlarged(self.forced, slots, (1, self.num_columns), fill=-1)
        for name in ("tokens", "scores", "positions", "penalties", "no_repeat_ngrams"):
            setattr(self, name, _enlarged(getattr(self, name), slots))
        for name in _ONES:
            setattr(self, name, _enlarged(getattr(self, name), slots, fill=1))
        if self.suppressed is not None:
            self.suppressed = _enlarged(self.suppressed, slots)
        if self.fed is not None:
            self.fed = _enlarged(self.fed, slots, (1, self.num_columns))
        if self.sampling is not None:
            self.sampling = RowSampling(
                seeds=_enlarged(self.sampling.seeds, slots),
                temperatures=_enlarged(self.sampling.temperatures, slots),
                top_ks=_enlarged(self.sampling.top_ks, slots),
                top_ps=_enlarged(self.sampling.top_ps, slots),
            )
        self.phrase_states = _enlarged(self.phrase_states, (1, self.num_slots))
        if self.automata is not None:
            before = self.automata
            self.begin_automata().write(torch.arange(len(before.full), device=self.device), before)

    def to_device(self, rows: NDArray[np.int64]) -> Tensor:
        """Numbers from the host, (N, W) int64, without waiting for the device."""
        return self.sent(torch.from_numpy(rows))

    def sent(self, values: Tensor) -> Tensor:
        """A tensor of the host, on the device, without waiting for it."""
        if self.device.type == "cuda":
            values = values.pin_memory()
        return values.to(self.device, non_blocking=True)

    def begin_suppressed(self) -> Tensor:
        """The table of suppressed tokens, none of which is; there was none."""
        self.suppressed = self._zeros(self.num_slots, self.vocab_size, dtype=torch.bool)
        return self.suppressed

    def begin_fed(self) -> None:
        """The table of what nodes were fed; there was none."""
        shape = (self.num_slots, self.num_columns, self.width)
        self.fed = self._zeros(*shape, dtype=torch.int64)

    def begin_sampling(self) -> RowSampling:
        """Tables of how slots are drawn; there were none."""
        whole = torch.zeros_like(self.positions)
        real = whole.to(torch.float64)
        self.sampling = RowSampling(
            seeds=whole, temperatures=real, top_ks=whole.clone(), top_ps=real.clone()
        )
        return self.sampling

    def begin_automata(self) -> Automata:
        """Automata of as many slots as there are, without phrases."""
        empty: list[list[Alternatives]] = [[] for _ in range(self.num_slots)]
        self.automata = automata_of(empty, self.device, num_tokens=MAX_PHRASE_TOKENS)
        return self.automata

    def clear(self, slot: int) -> None:
        """Zero what a sentence left, which may not be finite: what is masked must be."""
        outputs = (self.cross_keys, self.cross_values)
        for table in (*self.growing, *self.replaced, *outputs):
            table[:, slot] = 0.0
