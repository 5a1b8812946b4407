"""An open weight file: its tensors read one by one, as floats.

Its header is checked by `model.checkpoint.tensors.weight_header`; int8 rows as they are stored are
`model.checkpoint.tensors.mapped`. Nothing is ever unpickled.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import torch
from safetensors import safe_open
from torch import Tensor

from model.checkpoint.manifest import SCALE_SUFFIX, TensorEntry
from model.checkpoint.tensors.quantisation import dequantise_rows
from model.checkpoint.tensors.weight_header import checked_weights, header_layout
from model.errors import CheckpointError
from model.system.paths import utf8_name

_BLOCK = 2**22
"""Numbers that are checked together, so that a check takes little memory beside a large table."""


@contextmanager
def open_weights(path: Path, entries: Mapping[str, TensorEntry]) -> Iterator["StoredWeights"]:
    """Open a weight file whose header agrees with the manifest's entries.

    Raises:
        CheckpointError: It does not, or the file is not readable.
    """
    with checked_weights(path, entries):
        yield StoredWeights(path, entries)


class StoredWeights:
    """Tensors of a weight file, read and checked when they are asked for."""

    def __init__(self, path: Path, entries: Mapping[str, TensorEntry]) -> None:
        self._path = path
        self._entries = entries
        self._expected = header_layout(entries)

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

    def _check_finite(self, name: str, value: Tensor) -> None:
        num_blocks = -(-value.numel() // _BLOCK)
        blocks = torch.chunk(value.flatten(), max(1, num_blocks))
        if not all(bool(torch.isfinite(block).all()) for block in blocks):
            raise CheckpointError(self._path, f"{name} has values that are not finite")
