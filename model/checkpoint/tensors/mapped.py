"""Tensors of a weight file as arrays, mapped one at a time: stored int8 rows, or floats.

Owns the reading of model.safetensors for the packing of weights. Floats for a network of `model.nn`
are `model.checkpoint.tensors.stored`. Imports no torch.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt

from model.checkpoint.manifest import SCALE_SUFFIX, TensorEntry
from model.checkpoint.tensors.int8_rows import MAX_QUANTUM, Floats, Quanta, int8_rows
from model.checkpoint.tensors.weight_header import checked_weights
from model.errors import CheckpointError

_LENGTH_BYTES = 8
_TYPES: Mapping[str, npt.DTypeLike] = {
    "F32": "<f4",
    "F16": "<f2",
    "BF16": "<u2",  # the upper half of a float32's bits
    "I8": "i1",
}
_BLOCK = 2**22
"""Numbers that are checked together, so that a check takes little memory beside a large table."""


@contextmanager
def mapped_weights(path: Path, entries: Mapping[str, TensorEntry]) -> Iterator["MappedWeights"]:
    """Open a weight file whose header agrees with the manifest's entries.

    Raises:
        CheckpointError: It does not, or the file is not readable.
    """
    with checked_weights(path, entries):
        yield MappedWeights(path, entries)


class MappedWeights:
    """Tensors of a weight file, read and checked when they are asked for."""

    def __init__(self, path: Path, entries: Mapping[str, TensorEntry]) -> None:
        self._path = path
        self._entries = entries
        self._header = _header(path)
        self._places = json.loads(self._header)

    def __contains__(self, name: str) -> bool:
        """Whether there is such a tensor."""
        return name in self._entries

    def rows(self, name: str) -> tuple[Quanta, Floats]:
        """A matrix as int8 rows, (rows, columns), and the scale of each, (rows,).

        Stored rows come as they are, whatever their scales; a float matrix is quantised.

        Raises:
            CheckpointError: It has values that are not finite.
        """
        if self._entries[name].quantisation is None:
            return self._quantised(name)
        scales = self._floats(name + SCALE_SUFFIX)
        with _quiet():
            most = scales * np.float32(MAX_QUANTUM)
        self._check_finite(name, most)
        stored: Quanta = self._stored(name).view(np.int8)
        return stored, scales

    def floats(self, name: str) -> Floats:
        """A tensor of any shape as floats.

        Raises:
            CheckpointError: It has values that are not finite.
        """
        values = self._floats(name)
        if self._entries[name].quantisation is not None:
            scale = self._floats(name + SCALE_SUFFIX)
            with _quiet():
                values *= scale.reshape(-1, *[1] * (values.ndim - 1))
        self._check_finite(name, values)
        return values

    def _quantised(self, name: str) -> tuple[Quanta, Floats]:
        """Rows of floats, a block of them widened at a time."""
        stored = self._stored(name)
        quanta, scale = np.empty(stored.shape, np.int8), np.empty(len(stored), np.float32)
        size = max(1, _BLOCK // max(1, stored[:1].size))
        for begin in range(0, len(stored), size):
            block = slice(begin, begin + size)
            values = _widened(stored[block])
            self._check_finite(name, values)
            rows, scale[block] = int8_rows(values.reshape(len(values), -1))
            quanta[block] = rows.reshape(values.shape)
        return quanta, scale

    def _floats(self, name: str) -> Floats:
        return _widened(self._stored(name))

    def _stored(self, name: str) -> npt.NDArray[np.generic]:
        """A view of the file, mapped for this tensor alone.

        Every page that is read counts as this process's memory while it is mapped, so a file that
        stayed mapped would make loading peak at twice the network.
        """
        if _header(self._path) != self._header:
            raise CheckpointError(self._path, "was replaced while it was read; load it again")
        place = self._places[name]
        begin, end = place["data_offsets"]
        kind = np.dtype(_TYPES[place["dtype"]])
        shape = tuple(place["shape"])
        if begin == end:
            return np.empty(shape, dtype=kind)
        offset = _LENGTH_BYTES + len(self._header) + begin
        try:
            return np.memmap(self._path, dtype=kind, mode="r", offset=offset, shape=shape)
        except (OSError, ValueError) as error:
            raise CheckpointError(self._path, f"cannot be mapped: {error}") from error

    def _check_finite(self, name: str, value: Floats) -> None:
        flat = value.reshape(-1)
        blocks = (flat[begin : begin + _BLOCK] for begin in range(0, len(flat), _BLOCK))
        if not all(np.isfinite(block).all() for block in blocks):
            raise CheckpointError(self._path, f"{name} has values that are not finite")


def _quiet() -> np.errstate:
    """A context in which what is not finite is found by a check and not by a warning."""
    return np.errstate(over="ignore", invalid="ignore")


def _widened(stored: npt.NDArray[np.generic]) -> Floats:
    """A copy in float32."""
    if stored.dtype == np.uint16:
        return (stored.astype(np.uint32) << 16).view(np.float32)
    return stored.astype(np.float32)


def _header(path: Path) -> bytes:
    """The JSON of a file; its size and its words are checked before."""
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(_LENGTH_BYTES), "little")
            return file.read(length)
    except OSError as error:
        raise CheckpointError(path, f"cannot be read: {error.strerror}") from error
