"""The backend in PyTorch: any device, any float type, the exact arithmetic of `model.nn`.

Owns the caches as tensors and the shapes of a step over them. The arithmetic of a step is
`model.decode.incremental`.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from model.decode import beam
from model.decode.backend import Layout
from model.decode.cache import MemoryCache, RowCache
from model.decode.incremental import IncrementalDecoder, StepShape
from model.decode.request import SessionLimits
from model.decode.slots import Moves, Slot
from model.nn.transformer import Transformer


class EagerBackend:
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
        self._decoder = IncrementalDecoder(transformer)
        self._device = weight.device
        self._score_dtype = torch.float64 if weight.dtype == torch.float64 else torch.float32
        self._cache = RowCache(
            transformer.config,
            max_rows=limits.max_rows,
            max_length=limits.max_target_length,
            device=weight.device,
            dtype=weight.dtype,
        )
        self._memory = MemoryCache(
            transformer.config,
            max_slots=limits.max_slots,
            max_source_length=limits.max_source_length,
            device=weight.device,
            dtype=weight.dtype,
        )
        self._suppressed = self._ids(suppressed_ids) if suppressed_ids else None
        self._pad_id = transformer.config.pad_id
        self._layout: Layout | None = None
        self._memory_mask: Tensor | None = None
        self._memory_length = 0

    @property
    def device(self) -> torch.device:
        """The network's."""
        return self._device

    @property
    def score_dtype(self) -> torch.dtype:
        """float64 for a float64 network, float32 for any other."""
        return self._score_dtype

    def _ids(self, values: Sequence[int]) -> Tensor:
        return torch.tensor(values, dtype=torch.int64, device=self._device)

    def encode(self, sources: Sequence[Sequence[int]], slots: Sequence[int]) -> None:
        """Encode sentences as one padded batch; see `Backend.encode`."""
        width = max(map(len, sources))
        padded = [[*ids, *[self._pad_id] * (width - len(ids))] for ids in sources]
        lengths = self._ids([len(ids) for ids in sources])
        mask = torch.arange(width, device=self._device) < lengths.unsqueeze(1)
        ids = torch.tensor(padded, dtype=torch.int64, device=self._device)
        self._decoder.encode(ids, mask, self._memory, self._ids(slots))

    def arrange(self, layout: Layout) -> None:
        """Make the mask over the slots' sources."""
        lengths = [len(slot.request.source_ids) for slot in layout.slots]
        longest = max(lengths)
        mask = None
        if min(lengths) < longest:
            mask = torch.arange(longest, device=self._device) < self._ids(lengths).unsqueeze(1)
            mask = mask.view(len(lengths), 1, 1, longest)
        self._layout, self._memory_mask, self._memory_length = layout, mask, longest

    def step(
        self, tokens: Tensor, positions: Tensor, *, step: int
    ) -> tuple[beam.RowContinuations, Tensor | None]:
        """Feed every row one token; see `Backend.step`."""
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
        logits, looked = self._decoder.step(
            tokens,
            positions,
            self._cache,
            self._memory,
            StepShape(
                slot_rows=layout.groups.rows,
                row_places=layout.groups.position,
                past_mask=mask,
                memory_mask=self._memory_mask,
                window=window,
                memory_length=self._memory_length,
                with_attention=layout.with_attention,
            ),
        )
        continuations = beam.row_continuations(
            logits.to(self._score_dtype), layout.groups.max_candidates, self._suppressed
        )
        return continuations, None if looked is None else looked.argmax(dim=-1)

    def copy_rows(self, sources: Tensor, destinations: Tensor, num_past: int) -> None:
        """Copy keys and values; see `Backend.copy_rows`."""
        self._cache.copy_rows(sources, destinations, num_past)

    def move(self, moves: Moves) -> None:
        """Copy what moved; see `Backend.move`."""
        if moves.rows:
            sources, destinations, pasts = zip(*moves.rows, strict=True)
            self._cache.copy_rows(self._ids(sources), self._ids(destinations), max(pasts))
        for source, destination, length in moves.slots:
            self._memory.move(source, destination, length)

    def release(self, slot: Slot, *, num_past: int, is_sound: bool) -> None:  # noqa: ARG002
        """Zero what is not finite: masked columns must be; the rest is overwritten some day."""
        if not is_sound:
            self._cache.clear_rows(slot.rows)
            self._memory.clear(slot.index)
