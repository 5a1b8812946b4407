"""A `Transformer` with its caches: rows in, the likeliest next tokens of every row out.

Owns the caches as tensors and the shapes of a step over them. The arithmetic of a step is
`model.decode.backends.eager.incremental`, the search over its results
`model.decode.backends.eager.backend`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from model.decode import beam_search
from model.decode.backends.eager.cache import CrossCache, RowCache
from model.decode.backends.eager.incremental import IncrementalDecoder, StepShape
from model.decode.backends.eager.slots import Moves, Slot
from model.decode.choice import Diversity
from model.decode.constraints import outside_mask, restrict, suppressed_mask
from model.decode.lexical import Automata
from model.decode.repeats import united
from model.decode.sampling import RowSampling
from model.decode.timing import Stopwatch
from model.nn.transformer import Transformer
from model.request import SessionLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Layout of the rows, which changes only when sentences join, leave or move.

    Attributes:
        slots: Running sentences by slot index.
        groups: Their rows.
        started: (R,) int64, the step at which each row's sentence joined.
        with_attention: Some sentence asks for an alignment.
        allowed: The tokens that each row may choose, R lists; None without a shortlist.
        sampling: How rows are drawn; None where no sentence asks for it.
        automata: What sentences have to contain; None where none has phrases.
        diversity: How beams are divided; None where no sentence has groups.
    """

    slots: list[Slot]
    groups: beam_search.RowGroups
    started: Tensor
    with_attention: bool
    allowed: list[npt.NDArray[np.int64]] | None = None
    sampling: RowSampling | None = None
    automata: Automata | None = None
    diversity: Diversity | None = None


class CachedNetwork:
    """A `Transformer` and its caches, in its own precision, on its own device."""

    def __init__(
        self, transformer: Transformer, *, limits: SessionLimits, suppressed_ids: Sequence[int]
    ) -> None:
        """Allocate the caches.

        Args:
            transformer: In evaluation mode; its weights must not change afterwards.
            limits: What to allocate for.
            suppressed_ids: Tokens that are never generated.

        Raises:
            UnsupportedVariantError: If the fast path does not run this network.
        """
        weight = transformer.target_embedding.weight
        self._decoder = IncrementalDecoder(transformer, max_length=limits.max_target_length)
        self._device = weight.device
        self._score_dtype = torch.float64 if weight.dtype == torch.float64 else torch.float32
        self._cache = RowCache(
            self._decoder.states,
            num_layers=transformer.config.num_decoder_layers,
            max_rows=limits.max_rows,
            max_length=limits.max_target_length,
            device=weight.device,
            dtype=weight.dtype,
        )
        self._cross_cache = CrossCache(
            transformer.config,
            max_slots=limits.max_slots,
            max_source_length=limits.max_source_length,
            device=weight.device,
            dtype=weight.dtype,
        )
        self._suppressed = self._ids(suppressed_ids) if suppressed_ids else None
        self._pad_id = transformer.config.pad_id
        self._vocab_size = transformer.config.output_size
        self._layout: Layout | None = None
        self._source_mask: Tensor | None = None
        self._source_length = 0
        self._suppressed_mask: Tensor | None = None  # (R, V), while a sentence has some
        self._outside: Tensor | None = None  # (R, V), with a shortlist

    @property
    def vocab_size(self) -> int:
        """Target tokens."""
        return self._vocab_size

    def _ids(self, values: Sequence[int]) -> Tensor:
        return torch.tensor(values, dtype=torch.int64, device=self._device)

    def encode(self, sources: Sequence[Sequence[int]], slots: Sequence[int]) -> None:
        """Encode sentences as one padded batch and keep what the decoder reads of each."""
        width = max(map(len, sources))
        padded = [[*ids, *[self._pad_id] * (width - len(ids))] for ids in sources]
        lengths = self._ids([len(ids) for ids in sources])
        mask = torch.arange(width, device=self._device) < lengths.unsqueeze(1)
        ids = torch.tensor(padded, dtype=torch.int64, device=self._device)
        self._decoder.encode(ids, mask, self._cross_cache, self._ids(slots))

    def arrange(self, layout: Layout) -> None:
        """Take note of a new layout, before the step that follows it."""
        lengths = [len(slot.request.source_ids) for slot in layout.slots]
        longest = max(lengths)
        mask = None
        if min(lengths) < longest:
            mask = torch.arange(longest, device=self._device) < self._ids(lengths).unsqueeze(1)
            mask = mask.view(len(lengths), 1, 1, longest)
        self._layout, self._source_mask, self._source_length = layout, mask, longest
        self._outside = None
        if layout.allowed is not None:
            outside = outside_mask(layout.allowed, vocab_size=self._vocab_size)
            self._outside = outside.to(self._device)
        self._suppressed_mask = None
        if any(slot.request.suppressed_ids for slot in layout.slots):
            self._suppressed_mask = self._mask_of(layout)

    def _mask_of(self, layout: Layout) -> Tensor:
        """Which tokens the rows may not choose: (R, V) bool."""
        suppressed_ids: list[tuple[int, ...]] = [()] * len(layout.groups.position)
        for slot in layout.slots:
            for row in slot.rows:
                suppressed_ids[row] = slot.request.suppressed_ids
        return suppressed_mask(suppressed_ids, vocab_size=self._vocab_size, device=self._device)

    def step(
        self,
        tokens: Tensor,
        positions: Tensor,
        *,
        step: int,
        watch: Stopwatch,
        repeats: Tensor | None = None,
    ) -> tuple[beam_search.RowContinuations, Tensor | None]:
        """Feed every row one token.

        Args:
            tokens: (R,) int64.
            positions: (R,) int64, the target position of each.
            step: The session's step number.
            watch: Gets the time of every part.
            repeats: (R, V) bool, by which tokens rows would repeat themselves; None where they may.

        Returns:
            The likeliest next tokens of every row, as many as the layout's widest search
            considers, and, if the layout wants it, the source position that each row attended
            to most, (R,) int64.
        """
        layout = self._layout
        assert layout is not None
        num_rows = len(tokens)
        fed = [slot.num_fed(step) for slot in layout.slots]
        window = max(fed) + 1
        mask = None
        if min(fed) + 1 < window:
            columns = torch.arange(window, device=self._device)
            mask = columns >= (window - 1 - positions).unsqueeze(1)
            mask = mask.view(num_rows, 1, 1, window)
        self._cache.advance(num_rows, window - 1)
        logits, weights = self._decoder.step(
            tokens,
            positions,
            self._cache,
            self._cross_cache,
            StepShape(
                slot_rows=layout.groups.rows,
                row_places=layout.groups.position,
                past_mask=mask,
                source_mask=self._source_mask,
                window=window,
                source_length=self._source_length,
                with_attention=layout.with_attention,
            ),
            watch=watch,
        )
        continuations = beam_search.row_continuations(
            restrict(logits.to(self._score_dtype), self._outside),
            layout.groups.max_candidates,
            self._suppressed,
            united(self._suppressed_mask, repeats),
            words=None if layout.automata is None else layout.automata.words_of(layout.groups),
        )
        watch.lap("output")
        return continuations, None if weights is None else weights.argmax(dim=-1)

    def copy_rows(self, sources: Tensor, destinations: Tensor, num_past: int) -> None:
        """Give rows the pasts of others.

        Args:
            sources: (N,) int64 rows.
            destinations: (N,) int64 rows, none of them a source.
            num_past: Positions of the longest past, those of this step included.
        """
        self._cache.copy_rows(sources, destinations, num_past)

    def move(self, moves: Moves) -> None:
        """Follow sentences to other rows and slots."""
        if moves.rows:
            sources, destinations, pasts = zip(*moves.rows, strict=True)
            self._cache.copy_rows(self._ids(sources), self._ids(destinations), max(pasts))
            if not self._cache.are_finite(sources, max(pasts)):
                self._cache.clear_rows(sources, max(pasts))
        for source, destination, length in moves.slots:
            self._cross_cache.move(source, destination, length)

    def leave(self, slot: Slot, num_past: int) -> None:
        """Take note that a sentence of so many steps leaves whose numbers may not be finite."""
        length = len(slot.request.source_ids)
        is_finite = self._cross_cache.is_finite(slot.index, length)
        if not (is_finite and self._cache.are_finite(slot.rows, num_past)):
            self.clear(slot, num_past)

    def clear(self, slot: Slot, num_past: int) -> None:
        """Zero what a sentence of so many steps left that is not finite: what is masked must be."""
        self._cache.clear_rows(slot.rows, num_past)
        self._cross_cache.clear(slot.index)
