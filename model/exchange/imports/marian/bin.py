"""Marian's `.bin`: a header of entries, then the tensors' bytes, back to back.

Owns that format, version 1: u64 version, u64 count; an entry of four u64 a tensor (length of its
name, type, rank, bytes); all names; all int32 shapes; u64 gap and as many bytes; the tensors. Where
each begins follows from the entries alone. Owns too how int8 matrices are arranged in it
(marian-dev, `src/common/binary.cpp`, `src/common/types.h`; intgemm's `PrepareB`).
"""

import math
import struct
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from io import SEEK_END, BytesIO
from pathlib import Path
from typing import BinaryIO

import torch
from torch import Tensor

from model.errors import ForeignModelError, shown
from model.exchange.imports.imported import QuantisedRows
from model.exchange.imports.marian.files import (
    MAX_DIMENSIONS,
    MAX_OPTIONS_BYTES,
    MAX_TENSORS,
    OPTIONS_TENSOR,
    MarianFile,
    MarianTensor,
    is_gzip,
    parse_options,
    read_small,
    reading,
    refused,
)

VERSION = 1
_MAX_HEADER_BYTES = 32 * 2**20
_MAX_UNPACKED_BYTES = 2**31
_COLUMNS_OF_BLOCK = 8
_MULTIPLIER_BYTES = 4
_MAX_PADDING = 4_096
"""Bytes that stand after a tensor; Marian fills up to its alignment, 256 at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    """Form in which one type's values stand in the file.

    Attributes:
        dtype: Of the elements.
        is_quantised: A float32 multiplier follows the elements.
        block_rows: Of a matrix in blocks: how many of its k stand together for each column.
    """

    dtype: torch.dtype
    is_quantised: bool = False
    block_rows: int | None = None


_KINDS = {
    0x404: _Kind(dtype=torch.float32),
    0x402: _Kind(dtype=torch.float16),
    0x101: _Kind(dtype=torch.int8),
    0x10001: _Kind(dtype=torch.int8, is_quantised=True),
    0x4101: _Kind(dtype=torch.int8, is_quantised=True),
    0x10002: _Kind(dtype=torch.int16, is_quantised=True),
    0x4102: _Kind(dtype=torch.int16, is_quantised=True),
    0x18001: _Kind(dtype=torch.int8, is_quantised=True, block_rows=16),
    0x11001: _Kind(dtype=torch.int8, is_quantised=True, block_rows=32),
    0x12001: _Kind(dtype=torch.int8, is_quantised=True, block_rows=64),
}
_REFUSED = {
    0x13001: "intgemm8avx512vnni, which Marian itself writes wrongly",
    0x802: "packed16 of FBGEMM",
    0x1801: "packed8avx2 of FBGEMM",
    0x2801: "packed8avx512 of FBGEMM",
}
_AGAIN = "convert the .npz again with --gemm-type intgemm8"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """One tensor's place: its name, type and shape, and its bytes from `offset` on."""

    name: str
    code: int
    shape: tuple[int, ...]
    offset: int
    num_bytes: int


def is_bin(path: Path) -> bool:
    """Whether a file begins as Marian's do and has its options; false where it cannot be read.

    One that is cut short behind its header is Marian's still: opening it says so.
    """
    try:
        return any(entry.name == OPTIONS_TENSOR for entry in _listed(_Content(path))[0])
    except ForeignModelError:
        return False


def open_bin(path: Path) -> MarianFile:
    """Header and options of a `.bin`.

    Raises:
        ForeignModelError: It is damaged, or has types that are not read; all of them are listed.
    """
    content = _Content(path)
    entries = _entries(content)
    problems = [problem for entry in entries for problem in _problems(entry)]
    counts = Counter(entry.name for entry in entries)
    problems += [f"{shown(name)} is there twice" for name, count in counts.items() if count > 1]
    if problems:
        raise ForeignModelError(path, problems)
    options: dict[str, object] = {}
    tensors = {}
    for entry in entries:
        if entry.name == OPTIONS_TENSOR:
            if entry.num_bytes > MAX_OPTIONS_BYTES:
                limit = f"at most {MAX_OPTIONS_BYTES} are read"
                raise refused(path, f"has {entry.num_bytes} bytes of options; {limit}")
            options = parse_options(path, bytes(content.part(entry)))
            continue
        tensors[entry.name] = MarianTensor(
            shape=entry.shape,
            has_output_rows=_has_output_rows(entry),
            read=partial(_read, content, entry),
        )
    return MarianFile(path=path, options=options, tensors=tensors)


class _Content:
    """The bytes of a file; a gzip'ed one is unpacked into memory.

    Nothing is mapped: a file that is cut while it is read gives an error, where a map gives SIGBUS.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._unpacked = read_small(path, _MAX_UNPACKED_BYTES) if is_gzip(path) else None

    @contextmanager
    def opened(self) -> Iterator[BinaryIO]:
        if self._unpacked is not None:
            yield BytesIO(self._unpacked)
            return
        with reading(self.path) as file:
            yield file

    def part(self, entry: _Entry) -> bytearray:
        """The bytes of one tensor."""
        with self.opened() as file:
            file.seek(entry.offset)
            data = bytearray(file.read(entry.num_bytes))
        if len(data) < entry.num_bytes:
            raise refused(self.path, f"is cut short inside {shown(entry.name)}")
        return data


def _entries(content: _Content) -> list[_Entry]:
    """What the header lists.

    Raises:
        ForeignModelError: The header is damaged, or says more than the file has.
    """
    entries, size = _listed(content)
    needed = max((entry.offset + entry.num_bytes for entry in entries), default=0)
    if needed > size:
        problem = f"is cut short: it has {size} bytes, its header needs {needed}"
        raise refused(content.path, problem)
    return entries


def _listed(content: _Content) -> tuple[list[_Entry], int]:
    """What the header lists, whether it is there or not, and the bytes that there are.

    Raises:
        ForeignModelError: The header is damaged.
    """
    path = content.path
    with content.opened() as file:
        size = file.seek(0, SEEK_END)
        file.seek(0)
        header = _Header(path, file, min(size, _MAX_HEADER_BYTES))
        version, count = header.unsigned(2)
        if version != VERSION:
            raise refused(path, f"is of version {version}; version {VERSION} is read")
        if count > MAX_TENSORS:
            raise refused(path, f"lists {count} tensors; at most {MAX_TENSORS} are read")
        fields = [header.unsigned(4) for _ in range(count)]
        names = [header.name(length) for length, _, _, _ in fields]
        shapes = [header.shape(rank) for _, _, rank, _ in fields]
        (gap,) = header.unsigned(1)
        offset = file.tell() + gap
    entries = []
    for name, shape, (_, code, _, num_bytes) in zip(names, shapes, fields, strict=True):
        entries.append(
            _Entry(name=name, code=code, shape=shape, offset=offset, num_bytes=num_bytes)
        )
        offset += num_bytes
    return entries, size


class _Header:
    """The numbers and names of a header, read one after the other within a limit."""

    def __init__(self, path: Path, file: BinaryIO, limit: int) -> None:
        self._path = path
        self._file = file
        self._left = limit

    def _bytes(self, count: int) -> bytes:
        if count > self._left:
            raise refused(self._path, f"has a header that needs {count} bytes where none are")
        self._left -= count
        data = self._file.read(count)
        if len(data) < count:
            raise refused(self._path, "is cut short inside its header")
        return data

    def unsigned(self, count: int) -> tuple[int, ...]:
        return struct.unpack(f"<{count}Q", self._bytes(8 * count))

    def name(self, length: int) -> str:
        data = self._bytes(length).rstrip(b"\0")
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise refused(self._path, f"has a name that is not UTF-8: {shown(data)}") from error

    def shape(self, rank: int) -> tuple[int, ...]:
        if rank > MAX_DIMENSIONS:
            limit = f"at most {MAX_DIMENSIONS} are read"
            raise refused(self._path, f"has a tensor of {rank} dimensions; {limit}")
        return struct.unpack(f"<{rank}i", self._bytes(4 * rank))


def _problems(entry: _Entry) -> list[str]:
    """What is wrong with one entry."""
    name = shown(entry.name)
    kind = _KINDS.get(entry.code)
    if kind is None:
        what = _REFUSED.get(entry.code, "which is not known")
        return [f"{name} is of type {entry.code:#x}, {what}; {_AGAIN}"]
    if kind.dtype is torch.int8 and not kind.is_quantised and entry.name != OPTIONS_TENSOR:
        return [f"{name} is int8 without a multiplier, which only the options are; {_AGAIN}"]
    return _shape_problems(entry, kind)


def _shape_problems(entry: _Entry, kind: _Kind) -> list[str]:
    """What is wrong with the shape of one entry, or with how many bytes it has."""
    name, shape = shown(entry.name), entry.shape
    if any(size < 1 for size in shape):
        return [f"{name} has shape {shape}; sizes start at 1"]
    elements = math.prod(shape) * kind.dtype.itemsize
    least = elements + (_MULTIPLIER_BYTES if kind.is_quantised else 0)
    if not least <= entry.num_bytes <= least + _MAX_PADDING:
        return [f"{name} of shape {shape} needs {least} bytes; it has {entry.num_bytes}"]
    if kind.block_rows is None:
        return []
    if len(shape) != 2 or shape[0] % kind.block_rows or shape[1] % _COLUMNS_OF_BLOCK:
        blocks = f"{kind.block_rows} × {_COLUMNS_OF_BLOCK}"
        return [f"{name} of shape {shape} is not made of whole blocks of {blocks}; {_AGAIN}"]
    return []


def _has_output_rows(entry: _Entry) -> bool:
    """Whether the elements stand transposed: products' matrices do, tables of embeddings do not."""
    kind = _KINDS[entry.code]
    return kind.is_quantised and len(entry.shape) == 2 and "Wemb" not in entry.name


def _read(content: _Content, entry: _Entry) -> Tensor | QuantisedRows:
    kind = _KINDS[entry.code]
    data = content.part(entry)
    count = math.prod(entry.shape)
    values = torch.frombuffer(data, dtype=kind.dtype, count=count)
    if not kind.is_quantised:
        return values.reshape(entry.shape)
    (multiplier,) = struct.unpack_from("<f", data, count * kind.dtype.itemsize)
    if not (math.isfinite(multiplier) and multiplier > 0):
        raise refused(content.path, f"{shown(entry.name)} has the multiplier {multiplier}")
    shape = entry.shape[::-1] if _has_output_rows(entry) else entry.shape
    if kind.block_rows is not None:
        values = _from_blocks(values, rows=entry.shape[0], block_rows=kind.block_rows)
    return _widened(values.reshape(shape), multiplier)


def _from_blocks(values: Tensor, *, rows: int, block_rows: int) -> Tensor:
    """A matrix (k, n) in blocks as (n, k): for each 8 columns, for each R rows, 8×R elements."""
    blocks = values.reshape(-1, rows // block_rows, _COLUMNS_OF_BLOCK, block_rows)
    return blocks.transpose(1, 2).contiguous()


def _widened(values: Tensor, multiplier: float) -> Tensor | QuantisedRows:
    """Elements over their multiplier; int8 matrices stay int8, with one scale for all rows."""
    # 1 over it in float32, as Marian has it; −128 is none of its values.
    is_kept = values.dtype is torch.int8 and values.dim() == 2 and int(values.min()) > -128
    if not is_kept:
        return values.to(torch.float32) / multiplier
    return QuantisedRows(quanta=values, scale=_scales(values.shape, multiplier))


def _scales(shape: Sequence[int], multiplier: float) -> Tensor:
    return torch.full((shape[0],), 1.0) / torch.tensor(multiplier)
