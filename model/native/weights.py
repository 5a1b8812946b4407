"""Source of the weights of an int8 network, one tensor at a time.

Owns the protocol. A network in memory is `model.native.in_memory`; a checkpoint's int8 rows as they
are stored are `model.checkpoint.tensors.mapped`. Tensors are asked for one by one so that a network
is packed without a second copy of it in memory.
"""

from typing import Protocol

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
