"""Caches of running sentences, allocated once: keys, values, and what was generated.

Owns where it lies. Two facts make the layout of keys and values:

* Every row writes one column a step, and all rows write the same one, so a step is one slice
  assignment and a row's past is the last columns of the table. When those have come far enough
  from the front they move there, at the latest when the table is full: twice the longest past
  makes that rare. Where nothing has a past, the next column is the first.
* Beams are not reordered here. A row's past is copied only when a parent has a second child
  (`copy_rows`); see ARCHITECTURE, "Children stay in their parent's row".

Tables start as zeros, so that what a shorter row has not written is finite and can be masked. On a
CPU they are the system's zeros: address space that becomes memory page by page where it is
written, so that a session laid out for long sentences costs what its sentences need, about twice
the columns of the longest. At the most it is all that `model.decode.footprint` counts.
"""

import math
import mmap
from collections.abc import Sequence
from contextlib import suppress

import torch
from torch import Tensor

from model.cells import StateShape
from model.config import ModelConfig
from model.decode.footprint import EAGER_COLUMNS

_SPARE_COLUMNS = 64
"""Columns at least between two moves to the front, beside as many as there are of the past."""


def _zeros(shape: tuple[int, ...], *, device: torch.device, dtype: torch.dtype) -> Tensor:
    num_bytes = math.prod(shape) * dtype.itemsize
    if device.type != "cpu" or not num_bytes:
        return torch.zeros(shape, device=device, dtype=dtype)
    return torch.frombuffer(_small_pages(num_bytes), dtype=dtype).view(shape)


def _small_pages(num_bytes: int) -> mmap.mmap:
    """The system's zeros in pages of the usual size.

    A row's stretch of a head is less than a huge page, in which its first column would make
    memory of all columns, and of the rows beside it.

    Raises:
        MemoryError: There is not so much address space.
    """
    try:
        pages = mmap.mmap(-1, num_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError as error:
        raise MemoryError(f"there is no memory for a table of {num_bytes} bytes") from error
    if hasattr(mmap, "MADV_NOHUGEPAGE"):
        with suppress(OSError):  # of a kernel that has no huge pages
            pages.madvise(mmap.MADV_NOHUGEPAGE)
    return pages


class History:
    """Generated tokens of each row, by the position of the token that was fed for each.

    Attributes:
        tokens: (R, T) int64.
        log_probs: (R, T) their log probabilities.
        sources: (R, T) int64, the source token each attended to most.
    """

    def __init__(
        self, *, max_rows: int, max_length: int, device: torch.device, dtype: torch.dtype
    ) -> None:
        """Allocate for `max_rows` rows of at most `max_length` positions; scores are `dtype`."""
        self.tokens = torch.zeros(max_rows, max_length, device=device, dtype=torch.int64)
        self.log_probs = torch.zeros(max_rows, max_length, device=device, dtype=dtype)
        self.sources = torch.zeros_like(self.tokens)

    def write(self, positions: Tensor, tokens: Tensor, log_probs: Tensor) -> None:
        """Add one token to every row in use; (R,) each."""
        rows = torch.arange(len(positions), device=positions.device)
        self.tokens[rows, positions] = tokens
        self.log_probs[rows, positions] = log_probs

    def copy_rows(self, sources: Tensor, destinations: Tensor, num_past: int) -> None:
        """Give `destinations` the first `num_past` positions of `sources`, (N,) int64 each."""
        for column in (self.tokens, self.log_probs, self.sources):
            column[destinations, :num_past] = column[sources, :num_past]


class RowCache:
    """The states of the decoder's cells by row, the growing ones by row and column.

    Attributes:
        growing: (L, R, H, C, d) of each state that grows: keys and values of self-attention.
        replaced: (L, R, H, d) of each that every step replaces, in float32 at least.
        column: The column being written, −1 before the first step.
    """

    def __init__(
        self,
        states: Sequence[StateShape],
        *,
        num_layers: int,
        max_rows: int,
        max_length: int,
        device: torch.device,
        dtype: torch.dtype,
    ) -> None:
        """Allocate for `max_rows` rows of at most `max_length` columns of past."""
        num_columns = EAGER_COLUMNS * max_length
        self.growing = tuple(
            _zeros(
                (num_layers, max_rows, state.num_heads, num_columns, state.width),
                device=device,
                dtype=dtype,
            )
            for state in states
            if state.grows
        )
        self.replaced = tuple(
            _zeros(
                (num_layers, max_rows, state.num_heads, state.width),
                device=device,
                dtype=torch.promote_types(dtype, torch.float32),
            )
            for state in states
            if not state.grows
        )
        self.column = -1
        self._num_columns = num_columns

    def advance(self, num_rows: int, num_past: int) -> None:
        """Open the next column, the first if there is no past.

        Args:
            num_rows: Rows in use, counted from the first.
            num_past: Columns of the past that any of them still needs.
        """
        num_used = self.column + 1
        if not num_past or num_used >= min(self._num_columns, 2 * num_past + _SPARE_COLUMNS):
            self._move_to_front(num_rows, num_past)
        self.column += 1

    def _move_to_front(self, num_rows: int, num_past: int) -> None:
        """Make the last columns the first; what is left behind them is finite or zero."""
        past = self.window(num_past)
        for table in self.growing:
            for rows in table[:, :num_rows]:  # (R, H, C, d) of a layer
                rows[:, :, :num_past] = rows[:, :, past]
                if not bool(rows[:, :, past].isfinite().all()):
                    rows[:, :, past] = 0.0  # `clear_rows` will not find it any more
        self.column = num_past - 1

    def window(self, width: int) -> slice:
        """The last `width` columns, the one being written included."""
        return slice(self.column + 1 - width, self.column + 1)

    def copy_rows(self, sources: Tensor, destinations: Tensor, num_past: int) -> None:
        """Give `destinations` the states of `sources`, of those that grow `num_past` columns.

        Args:
            sources: (N,) int64 rows.
            destinations: (N,) int64 rows, none of them a source.
            num_past: How far back the copy goes.
        """
        past = self.window(num_past)
        for table in self.growing:
            rows = table[:, :, :, past]
            rows[:, destinations] = rows[:, sources]
        for table in self.replaced:
            table[:, destinations] = table[:, sources]

    def are_finite(self, rows: Sequence[int], num_past: int) -> bool:
        """Whether the states of rows are numbers, of those that grow in the last columns."""
        past = self.window(num_past)
        parts = [table[:, row, :, past] for table in self.growing for row in rows]
        parts += [table[:, row] for table in self.replaced for row in rows]
        return all(bool(part.isfinite().all()) for part in parts)

    def clear_rows(self, rows: Sequence[int], num_past: int) -> None:
        """Zero the rows of a sentence that produced numbers which are not finite.

        Args:
            rows: Its rows.
            num_past: Columns that it has written; none but these holds such a number.
        """
        past = self.window(num_past)
        for row in rows:
            for table in self.growing:
                table[:, row, :, past] = 0.0
            for table in self.replaced:
                table[:, row] = 0.0


class CrossCache:
    """Cross-attention keys and values, once per sentence, beams sharing them.

    Attributes:
        keys: (L, N, H, S, d_k) for N slots.
        values: (L, N, H, S, d_v).
    """

    def __init__(
        self,
        config: ModelConfig,
        *,
        max_slots: int,
        max_source_length: int,
        device: torch.device,
        dtype: torch.dtype,
    ) -> None:
        """Allocate for `max_slots` sentences of at most `max_source_length` tokens."""
        shape = (config.num_decoder_layers, max_slots, config.num_heads, max_source_length)
        self.keys = _zeros((*shape, config.query_width), device=device, dtype=dtype)
        self.values = _zeros((*shape, config.value_width), device=device, dtype=dtype)
        self._width = 0  # source positions of the longest batch so far

    def write(self, layer: int, slots: Tensor, keys: Tensor, values: Tensor) -> None:
        """Store keys and values of newly admitted sentences.

        Args:
            layer: The decoder layer.
            slots: (N,) int64.
            keys: (N, H, S, d_k).
            values: (N, H, S, d_v).
        """
        length = keys.shape[2]
        self._width = max(self._width, length)
        self.keys[layer, :, :, :length].index_copy_(0, slots, keys)
        self.values[layer, :, :, :length].index_copy_(0, slots, values)

    def move(self, source: int, destination: int, length: int) -> None:
        """Move the encoder output of slot `source`, of `length` tokens, to `destination`."""
        for table in (self.keys, self.values):
            table[:, destination, :, :length] = table[:, source, :, :length]
        if not self.is_finite(source, length):
            self.clear(source)

    def is_finite(self, slot: int, length: int) -> bool:
        """Whether the encoder output of a slot, of `length` tokens, is numbers."""
        parts = (table[:, slot, :, :length] for table in (self.keys, self.values))
        return all(bool(part.isfinite().all()) for part in parts)

    def clear(self, slot: int) -> None:
        """Zero the keys and values of a sentence that produced numbers which are not finite.

        Its padding is not finite either, so all that batches have ever written goes.
        """
        for table in (self.keys, self.values):
            table[:, slot, :, : self._width] = 0.0
