"""What a session asks of the arithmetic below it, whatever that is.

Owns the protocol and what is passed over it; decides nothing. `model.decode.eager` is PyTorch on
any device, `model.decode.native` the int8 kernels of a CPU.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from model.decode.beam import RowContinuations, RowGroups
from model.decode.slots import Moves, Slot


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """What changes only when sentences join, leave or move.

    Attributes:
        slots: Running sentences by slot index.
        groups: Their rows.
        started: (R,) int64, the step at which each row's sentence joined.
        with_attention: Some sentence wants to know where its tokens looked.
    """

    slots: list[Slot]
    groups: RowGroups
    started: Tensor
    with_attention: bool


class Backend(Protocol):
    """A network, and the caches of the sentences that run through it.

    Rows and slots are those of the session's table: dense, moved when sentences leave.
    """

    @property
    def device(self) -> torch.device:
        """Where the session's tensors belong."""
        ...

    @property
    def score_dtype(self) -> torch.dtype:
        """Type in which log probabilities are added."""
        ...

    def encode(self, sources: Sequence[Sequence[int]], slots: Sequence[int]) -> None:
        """Encode sentences and keep what the decoder reads of each in its slot."""
        ...

    def arrange(self, layout: Layout) -> None:
        """Take note of a new layout, before the step that follows it."""
        ...

    def step(
        self, tokens: Tensor, positions: Tensor, *, step: int
    ) -> tuple[RowContinuations, Tensor | None]:
        """Feed every row one token.

        Args:
            tokens: (R,) int64.
            positions: (R,) int64, the target position of each.
            step: The session's step number.

        Returns:
            The likeliest next tokens of every row, as many as the layout's widest search
            considers, and, if the layout wants it, the source position that each row attended
            to most, (R,) int64.
        """
        ...

    def copy_rows(self, sources: Tensor, destinations: Tensor, num_past: int) -> None:
        """Give rows the pasts of others.

        Args:
            sources: (N,) int64 rows.
            destinations: (N,) int64 rows, none of them a source.
            num_past: Positions of the longest past, those of this step included.
        """
        ...

    def move(self, moves: Moves) -> None:
        """Follow sentences to other rows and slots."""
        ...

    def release(self, slot: Slot, *, num_past: int, is_sound: bool) -> None:
        """A sentence has left.

        Args:
            slot: Where it was.
            num_past: Positions of its past.
            is_sound: False when it gave numbers that are not finite, of which nothing may stay.
        """
        ...
