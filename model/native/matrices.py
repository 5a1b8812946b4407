"""Matrices of a network by name, in one memory: packed there, or found there packed.

Owns which matrix lies where. What a matrix is made of is `model.native.network`; the memory is
the kernels' (`src/weight_memory.h`), and where it comes from a file `model.native.packed_folder`'s.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from model.native import kernels
from model.native.layout import Floats, Quanta

if TYPE_CHECKING:
    from model.native import _kernels

MatrixParts = tuple[Quanta, Floats, Floats | None]
"""int8 rows (outputs, inputs), their scales (outputs,), a bias (outputs,) or None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Place of a packed matrix in a memory, and its sizes."""

    offset: int
    num_outputs: int
    num_inputs: int


class Matrices(Protocol):
    """Source of a network's matrices."""

    def matrix(
        self, name: str, parts: Callable[[], MatrixParts], padding: float = 0.0
    ) -> "_kernels.Matrix":
        """The matrix of a name.

        Args:
            name: No two matrices of a network have the same.
            parts: What it is made of; called only if it has to be packed.
            padding: Bias of the outputs that fill up the last panel.
        """
        ...

    def finish(self) -> None:
        """All matrices have been asked for."""
        ...


class PackedHere:
    """Matrices that are packed one by one, as they are asked for."""

    def __init__(self, module: kernels.Kernels) -> None:
        self.memory = module.weight_memory()
        self.places: dict[str, Place] = {}
        self._module = module

    def matrix(
        self, name: str, parts: Callable[[], MatrixParts], padding: float = 0.0
    ) -> "_kernels.Matrix":
        """Pack a matrix; see `Matrices`."""
        matrix = self._module.matrix(*parts(), padding, self.memory)
        self.places[name] = Place(
            offset=matrix.offset, num_outputs=matrix.num_outputs, num_inputs=matrix.num_inputs
        )
        return matrix

    def finish(self) -> None:
        """Give back the memory that no matrix needs."""
        self.memory.trim()


class PackedBefore:
    """Matrices that lie packed in a memory."""

    def __init__(
        self,
        module: kernels.Kernels,
        memory: "_kernels.WeightMemory",
        places: Mapping[str, Place],
    ) -> None:
        self._module = module
        self._memory = memory
        self._places = places

    def matrix(
        self,
        name: str,
        parts: Callable[[], MatrixParts],  # noqa: ARG002  # nothing is to be packed
        padding: float = 0.0,  # noqa: ARG002  # likewise
    ) -> "_kernels.Matrix":
        """Find a matrix; see `Matrices`.

        Raises:
            KeyError: There is none of this name.
            IndexError: It lies beyond the memory's end.
        """
        place = self._places[name]
        return self._module.matrix.packed_in(
            self._memory, place.offset, place.num_outputs, place.num_inputs
        )

    def finish(self) -> None:
        """Nothing is left to do."""
