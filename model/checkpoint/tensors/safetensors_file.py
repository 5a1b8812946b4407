"""A weight file that is written tensor by tensor: header first, then every tensor in its place.

Owns the bytes of model.safetensors (the format of the safetensors library: a little-endian u64, the
length of a JSON header; the header; the tensors) and the quantisation of what goes in. Reading is
`model.checkpoint.tensors.stored`. A network is never in memory as a whole, nor is a copy of a large
tensor.
"""

import errno
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from model.checkpoint.manifest import SCALE_SUFFIX, TensorEntry, TensorType
from model.checkpoint.tensors.quantisation import quantise_rows
from model.checkpoint.tensors.weight_header import HEADER_TYPES
from model.errors import ConfigError

TYPE_NAMES: Mapping[torch.dtype, TensorType] = {
    torch.float32: "float32",
    torch.float16: "float16",
    torch.bfloat16: "bfloat16",
    torch.int8: "int8",
}
_TYPES: Mapping[TensorType, torch.dtype] = {name: dtype for dtype, name in TYPE_NAMES.items()}
_ORDER = list(HEADER_TYPES)
_CHUNK_ELEMENTS = 2**22
_CANNOT_SET_ASIDE = {errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS}


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantisedRows:
    """A matrix of int8 rows.

    Attributes:
        quanta: int8 (rows, …), from -127 to 127.
        scale: float32 (rows,); the weights are quanta · scale.
    """

    quanta: Tensor
    scale: Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Place of every tensor of a file.

    Attributes:
        header: The first bytes of the file.
        offsets: Where each tensor, scales among them, begins in the file.
        num_bytes: Of the whole file.
    """

    header: bytes
    offsets: Mapping[str, int]
    num_bytes: int


def file_layout(entries: Mapping[str, TensorEntry]) -> Layout:
    """The layout that the safetensors library gives the same tensors, to the byte."""
    stored = dict(_stored(entries))
    names = sorted(stored, key=lambda name: (_ORDER.index(stored[name].dtype), name))
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    begins, end = {}, 0
    for name in names:
        entry = stored[name]
        begins[name] = end
        end += math.prod(entry.shape) * _TYPES[entry.dtype].itemsize
        header[name] = {
            "dtype": HEADER_TYPES[entry.dtype],
            "shape": list(entry.shape),
            "data_offsets": [begins[name], end],
        }
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    first = len(text).to_bytes(8, "little") + text
    return Layout(
        header=first,
        offsets={name: len(first) + begin for name, begin in begins.items()},
        num_bytes=len(first) + end,
    )


class WeightFile:
    """An open weight file that takes tensors in any order."""

    def __init__(self, descriptor: int, entries: Mapping[str, TensorEntry], layout: Layout) -> None:
        self._descriptor = descriptor
        self._entries = entries
        self._layout = layout

    def write(self, name: str, value: Tensor | QuantisedRows) -> None:
        """Write one tensor of the network, in the type of its entry.

        Rows that are int8 already are written as they are; they are widened where the entry is of
        floats.

        Raises:
            ConfigError: A value is not finite, or does not fit the type.
            OSError: The disk refuses.
        """
        entry = self._entries[name]
        shape = tuple(value.quanta.shape if isinstance(value, QuantisedRows) else value.shape)
        if shape != entry.shape:
            raise ConfigError(f"{name} has shape {list(shape)}, expected {list(entry.shape)}")
        begin, scale_begin = self._layout.offsets[name], None
        if entry.quantisation is not None:
            scale_begin = self._layout.offsets[name + SCALE_SUFFIX]
        for part in _chunks(value):
            if scale_begin is None:
                begin = self._put(begin, _narrowed(name, _widened(part), _TYPES[entry.dtype]))
                continue
            rows = _quantised(name, part)
            begin = self._put(begin, rows.quanta)
            scale_begin = self._put(scale_begin, rows.scale)

    def flush(self) -> None:
        """Bring what was written to the disk.

        Raises:
            OSError: The disk refuses.
        """
        os.fsync(self._descriptor)

    def _put(self, offset: int, value: Tensor) -> int:
        """Write the bytes of a tensor at an offset; the offset behind them."""
        left = value.contiguous().reshape(-1).view(torch.uint8).numpy().data
        while left:
            written = os.pwrite(self._descriptor, left, offset)
            left, offset = left[written:], offset + written
        return offset


@contextmanager
def opened_weight_file(path: Path, entries: Mapping[str, TensorEntry]) -> Iterator[WeightFile]:
    """A file of the size and with the header that the entries make, to be filled.

    A file that is there already is gone on with: its tensors stay. Its room on the disk is set
    aside first, where the file system does that: a disk without it refuses before any is read.

    Raises:
        OSError: It cannot be written.
    """
    layout = file_layout(entries)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        _set_aside(descriptor, layout.num_bytes)
        os.pwrite(descriptor, layout.header, 0)
        yield WeightFile(descriptor, entries, layout)
    finally:
        os.close(descriptor)


def _set_aside(descriptor: int, num_bytes: int) -> None:
    os.ftruncate(descriptor, num_bytes)
    try:
        os.posix_fallocate(descriptor, 0, num_bytes)
    except OSError as error:
        if error.errno not in _CANNOT_SET_ASIDE:
            raise


def write_weight_file(
    path: Path, entries: Mapping[str, TensorEntry], tensors: Iterable[tuple[str, Tensor]]
) -> None:
    """Write all tensors of a network.

    Raises:
        ConfigError: A value is not finite, or does not fit its type.
        OSError: The file cannot be written.
    """
    with opened_weight_file(path, entries) as file:
        for name, value in tensors:
            file.write(name, value)


def _stored(entries: Mapping[str, TensorEntry]) -> Iterator[tuple[str, TensorEntry]]:
    """All tensors of the file: those of the network, and the scales of quantised ones."""
    for name, entry in entries.items():
        yield name, entry
        if entry.quantisation is not None:
            yield name + SCALE_SUFFIX, TensorEntry(shape=entry.shape[:1], dtype="float32")


def _chunks(value: Tensor | QuantisedRows) -> Iterator[Tensor | QuantisedRows]:
    """The same, some rows at a time; what has no rows is one part."""
    whole = value.quanta if isinstance(value, QuantisedRows) else value
    if whole.dim() < 2:
        yield value
        return
    step = max(1, _CHUNK_ELEMENTS // max(1, whole[0].numel()))
    for begin in range(0, len(whole), step):
        rows = slice(begin, begin + step)
        if isinstance(value, QuantisedRows):
            yield QuantisedRows(quanta=value.quanta[rows], scale=value.scale[rows])
        else:
            yield value[rows].detach().cpu()


def _quantised(name: str, part: Tensor | QuantisedRows) -> QuantisedRows:
    if isinstance(part, QuantisedRows):
        _check_finite(name, part.scale)
        return part
    quanta, scale = quantise_rows(_narrowed(name, part, torch.float32))
    return QuantisedRows(quanta=quanta, scale=scale)


def _widened(part: Tensor | QuantisedRows) -> Tensor:
    if isinstance(part, Tensor):
        return part.detach().cpu()
    scale = part.scale.reshape(-1, *[1] * (part.quanta.dim() - 1))
    return part.quanta.to(torch.float32) * scale


def _narrowed(name: str, value: Tensor, dtype: torch.dtype) -> Tensor:
    _check_finite(name, value)
    narrowed = value.to(dtype)
    if not bool(torch.isfinite(narrowed).all()):
        raise ConfigError(f"{name} has values that do not fit {TYPE_NAMES[dtype]}")
    return narrowed


def _check_finite(name: str, value: Tensor) -> None:
    if not bool(torch.isfinite(value).all()):
        raise ConfigError(f"{name} has values that are not finite; it cannot be saved")
