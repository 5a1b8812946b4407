"""Where the weights of an int8 network come from, one tensor at a time.

Owns the protocol and the source that quantises a network in memory; the one that reads a
checkpoint's int8 rows as they are is `model.checkpoint.mapped`. Tensors are asked for one by
one so that a network is packed without a second copy of it in memory.
"""

from collections.abc import Mapping
from typing import Protocol

from torch import Tensor

from model.checkpoint.quantisation import quantise_rows
from model.native.layout import Floats, Quanta


class WeightSource(Protocol):
    """Tensors by the names of `Transformer.state_dict`."""

    def __contains__(self, name: str) -> bool:
        """Whether there is such a tensor."""
        ...

    def rows(self, name: str) -> tuple[Quanta, Floats]:
        """A matrix as int8 rows, (rows, columns), and the scale of each, (rows,)."""
        ...

    def floats(self, name: str) -> Floats:
        """A tensor of any shape as floats."""
        ...


class NetworkWeights:
    """The weights of a network in memory, by name, quantised when they are asked for."""

    def __init__(self, state: Mapping[str, Tensor]) -> None:
        self._state = state

    def __contains__(self, name: str) -> bool:
        """Whether there is such a tensor."""
        return name in self._state

    def rows(self, name: str) -> tuple[Quanta, Floats]:
        """A matrix as int8 rows, (rows, columns), and the scale of each, (rows,)."""
        quanta, scale = quantise_rows(self._state[name])
        return quanta.numpy(), scale.numpy()

    def floats(self, name: str) -> Floats:
        """A tensor of any shape as floats."""
        values: Floats = self._state[name].detach().float().contiguous().numpy()
        return values
