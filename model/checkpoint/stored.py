"""An open weight file: its header checked against the manifest, its tensors read one by one.

Owns the reading of model.safetensors, for whoever wants floats and for whoever wants the stored
int8 rows. Nothing is ever unpickled.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from model.checkpoint.manifest import SCALE_SUFFIX, TensorEntry, TensorType
from model.checkpoint.quantisation import MAX_QUANTUM, dequantise_rows, quantise_rows
from model.checkpoint.verification import MAX_HEADER_BYTES
from model.errors import CheckpointError
from model.system.paths import utf8_name

# As safetensors spells them in its header.
_HEADER_TYPES: Mapping[TensorType, str] = {
    "float32": "F32",
    "float16": "F16",
    "bfloat16": "BF16",
    "int8": "I8",
}

_BLOCK = 2**22
"""Numbers that are checked together, so that a check takes little memory beside a large table."""


@contextmanager
def open_weights(path: Path, entries: Mapping[str, TensorEntry]) -> Iterator["StoredWeights"]:
    """Open a weight file whose header agrees with the manifest's entries.

    Raises:
        CheckpointError: It does not, or the file is not readable.
    """
    _check_header_size(path)
    try:
        with utf8_name(path) as opened, safe_open(opened, framework="pt", device="cpu") as file:
            slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
            found = {
                name: f"{piece.get_dtype()} {piece.get_shape()}" for name, piece in slices.items()
            }
        problems = differences(_layout(entries), found)
        if problems:
            raise CheckpointError(path, f"does not hold the tensors it should: {problems}")
        yield StoredWeights(path, entries)
    except SafetensorError as error:
        raise CheckpointError(path, f"is not a readable safetensors file: {error}") from error


class StoredWeights:
    """Tensors of a weight file, read and checked when they are asked for."""

    def __init__(self, path: Path, entries: Mapping[str, TensorEntry]) -> None:
        self._path = path
        self._entries = entries
        self._expected = _layout(entries)

    def _read(self, name: str) -> Tensor:
        # Opened anew each time: an open file stays mapped, and every page read from it counts as
        # this process's memory, so that loading would peak at twice the network.
        try:
            with (
                utf8_name(self._path) as opened,
                safe_open(opened, framework="pt", device="cpu") as file,
            ):
                piece = file.get_slice(name)
                found = f"{piece.get_dtype()} {piece.get_shape()}"
                value: Tensor = file.get_tensor(name)
        except FileNotFoundError:
            found = ""
        if found != self._expected[name]:
            raise CheckpointError(self._path, "was replaced while it was read; load it again")
        return value

    def __contains__(self, name: str) -> bool:
        """Whether there is such a tensor."""
        return name in self._entries

    def tensor(self, name: str, *, dtype: torch.dtype = torch.float32) -> Tensor:
        """A tensor, widened.

        Raises:
            CheckpointError: It has values that are not finite.
        """
        value = self._read(name)
        if self._entries[name].quantisation is not None:
            value = dequantise_rows(value, self._read(name + SCALE_SUFFIX)).to(dtype)
        else:
            # A copy: what safetensors returns may be a view of the mapped file.
            value = value.to(dtype, copy=True)
        self._check_finite(name, value)
        return value

    def rows(self, name: str) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.float32]]:
        """A matrix as int8 rows, (rows, columns), and the scale of each, (rows,).

        Stored rows come as they are, whatever their scales; a float matrix is quantised.

        Raises:
            CheckpointError: It has values that are not finite.
        """
        if self._entries[name].quantisation is None:
            value = self._read(name)
            self._check_finite(name, value)
            quanta, scale = quantise_rows(value)
        else:
            quanta, scale = self._read(name), self._read(name + SCALE_SUFFIX)
            self._check_finite(name, scale * MAX_QUANTUM)
        return quanta.numpy(), scale.numpy()

    def floats(self, name: str) -> npt.NDArray[np.float32]:
        """A tensor of any shape as floats.

        Raises:
            CheckpointError: It has values that are not finite.
        """
        return self.tensor(name).numpy()

    def _check_finite(self, name: str, value: Tensor) -> None:
        num_blocks = -(-value.numel() // _BLOCK)
        blocks = torch.chunk(value.flatten(), max(1, num_blocks))
        if not all(bool(torch.isfinite(block).all()) for block in blocks):
            raise CheckpointError(self._path, f"{name} has values that are not finite")


def _layout(entries: Mapping[str, TensorEntry]) -> dict[str, str]:
    """What the header of the file must say: type and shape by name."""
    layout = {}
    for name, entry in entries.items():
        layout[name] = f"{_HEADER_TYPES[entry.dtype]} {list(entry.shape)}"
        if entry.quantisation is not None:
            layout[name + SCALE_SUFFIX] = f"F32 {[entry.shape[0]]}"
    return layout


def differences(expected: Mapping[str, str], found: Mapping[str, str]) -> str:
    """Everything that is missing, unexpected or different, on one line; empty if nothing is."""
    problems = [f"{name} is missing" for name in expected if name not in found]
    problems += [f"{name} is unexpected" for name in found if name not in expected]
    problems += [
        f"{name} is {found[name]}, expected {expected[name]}"
        for name in expected
        if name in found and found[name] != expected[name]
    ]
    return "; ".join(problems)


def _check_header_size(path: Path) -> None:
    """Refuse a header that claims more than the file has, before anything is allocated."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            claimed = int.from_bytes(file.read(8), "little")
    except OSError as error:
        raise CheckpointError(path, f"cannot be read: {error.strerror}") from error
    limit = min(size - 8, MAX_HEADER_BYTES)
    if claimed > limit:
        raise CheckpointError(path, f"its header claims {claimed} bytes; at most {limit} can be")
