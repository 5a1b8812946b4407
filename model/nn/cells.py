"""The recurrent part of a decoder layer, as an interface: what each position takes from the past.

Owns what a cell must say and do: which state it keeps of a row, how it runs over whole sequences,
how it is stepped. What is known of one without running it is `model.cells`. Where states lie, how
they grow and how they follow their rows when beams are reordered is each backend's `Past`. The
cells are `model.nn.self_attention` and `model.nn.ssru`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, Protocol

from torch import Tensor, nn

from model.cells import StateShape


class Past(Protocol):
    """The states of one step's rows, as a backend keeps them.

    The backend sees to it that a row finds the states of the hypothesis that it continues, however
    beams were reordered since.
    """

    def attend(self, layer: int, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """Add this step to the growing states, two of them, and attend to all there is.

        Args:
            layer: Index of the layer.
            queries: (R, H, d_k), not scaled.
            keys: (R, H, d_k) of this step, the first growing state.
            values: (R, H, d_v) of this step, the second.

        Returns:
            (R, H·d_v).
        """
        ...

    def last(self, layer: int) -> tuple[Tensor, ...]:
        """The replaced states after the step before; zeros at the first step.

        Returns:
            (R, H, d) each, in float32 at least: sums over many positions need it.
        """
        ...

    def replace(self, layer: int, states: tuple[Tensor, ...]) -> None:
        """Keep the replaced states after this step, (R, H, d) each, in the order of `last`."""
        ...


CellStep = Callable[[int, Tensor, Past], Tensor]
"""One step of a cell: index of the layer, (R, D) and the past → (R, D)."""


class Cell(nn.Module, ABC):
    """The recurrent part of a decoder layer.

    Attributes:
        name: What its weights stand under in a layer; its norm's stand under `name` + "_norm".
    """

    name: ClassVar[str]

    @abstractmethod
    def state_shapes(self) -> tuple[StateShape, ...]:
        """The states it keeps of a row, in the order in which they are given and taken."""

    @abstractmethod
    def over_sequence(
        self,
        x: Tensor,
        *,
        mask: Tensor | None = None,
        bias: Tensor | None = None,
        maps: list[Tensor] | None = None,
    ) -> Tensor:
        """Run over whole sequences, each position seeing itself and those before it.

        Args:
            x: (B, T, D).
            mask: Which positions may be seen, broadcast to (B, H, T, T).
            bias: Added to the scores of a cell that attends, (H, T, T).
            maps: If given, a cell that attends appends its weights (B, H, T, T) to it.

        Returns:
            (B, T, D).
        """

    @abstractmethod
    def fuse(self) -> CellStep:
        """The same, one position at a time; the weights must not change afterwards."""
