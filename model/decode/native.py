"""The backend of the int8 kernels: sentences keep their places, only names move.

Owns the translation from the session's dense rows and slots, which move when sentences leave, to
the kernels' rows and slots, which stay where they are, so that nothing is ever copied.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from model.decode.backend import Layout
from model.decode.beam import RowContinuations
from model.decode.request import SessionLimits
from model.decode.slots import Moves, Slot
from model.native import kernels
from model.native.network import Int8Network


class NativeBackend:
    """A packed network and the kernels' caches."""

    def __init__(self, network: Int8Network, *, limits: SessionLimits) -> None:
        """Reserve address space for the caches; memory follows as it is written.

        Raises:
            UnsupportedVariantError: The kernels are not there.
        """
        self._session = kernels.load().session(
            network.packed,
            network.team,
            max_rows=limits.max_rows,
            max_slots=limits.max_slots,
            max_source_length=limits.max_source_length,
            max_target_length=limits.max_target_length,
        )
        self._vocab_size = network.config.output_size
        self._places = torch.arange(limits.max_rows)  # the kernels' row of each row
        self._slots = torch.arange(limits.max_slots)  # the kernels' slot of each slot
        self._rows = self._row_slots = np.zeros(0, dtype=np.int64)
        self._layout: Layout | None = None

    @property
    def device(self) -> torch.device:
        """The CPU."""
        return torch.device("cpu")

    @property
    def score_dtype(self) -> torch.dtype:
        """float32."""
        return torch.float32

    def step_seconds(self) -> dict[str, float]:
        """Seconds spent in the parts of all steps so far."""
        names = ("embedding", "self_attention", "cross_attention", "feed_forward", "output")
        return dict(zip(names, self._session.seconds(), strict=True))

    def encode(self, sources: Sequence[Sequence[int]], slots: Sequence[int]) -> None:
        """Encode sentences laid end to end, without padding; see `Backend.encode`."""
        self._session.encode(
            np.fromiter((token for ids in sources for token in ids), dtype=np.int32),
            np.fromiter(map(len, sources), dtype=np.int32),
            self._slots[torch.tensor(slots)].numpy().astype(np.int32),
        )

    def arrange(self, layout: Layout) -> None:
        """Look up the kernels' rows and slots once a layout."""
        groups = layout.groups
        num_rows = len(groups.position)
        self._rows = self._places[:num_rows].numpy()
        self._row_slots = self._slots[groups.position // groups.rows.shape[1]].numpy()
        self._layout = layout

    def step(
        self,
        tokens: Tensor,
        positions: Tensor,
        *,
        step: int,  # noqa: ARG002  # the kernels go by positions
    ) -> tuple[RowContinuations, Tensor | None]:
        """Feed every row one token; see `Backend.step`."""
        layout = self._layout
        assert layout is not None
        num_candidates = min(layout.groups.max_candidates, self._vocab_size)
        log_probs = torch.empty(len(tokens), num_candidates)
        best = torch.empty(len(tokens), num_candidates, dtype=torch.int64)
        looked = torch.empty_like(tokens) if layout.with_attention else None
        self._session.step(
            tokens.numpy(),
            self._rows,
            self._row_slots,
            positions.numpy(),
            log_probs.numpy(),
            best.numpy(),
            None if looked is None else looked.numpy(),
        )
        return RowContinuations(log_probs=log_probs, tokens=best), looked

    def copy_rows(self, sources: Tensor, destinations: Tensor, num_past: int) -> None:
        """Copy the lists of where each past lies, not the pasts; see `Backend.copy_rows`."""
        self._session.copy_pasts(
            self._places[sources].numpy(), self._places[destinations].numpy(), num_past
        )

    def move(self, moves: Moves) -> None:
        """Exchange names; see `Backend.move`."""
        for places, moved in ((self._places, moves.rows), (self._slots, moves.slots)):
            for source, destination, _ in moved:
                places[[source, destination]] = places[[destination, source]]

    def release(self, slot: Slot, *, num_past: int, is_sound: bool) -> None:  # noqa: ARG002
        """Give the memory of long pasts back; what is not finite is never read again."""
        for row in slot.rows:
            self._session.forget_past(int(self._places[row]), num_past)
