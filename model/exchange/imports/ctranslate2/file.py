"""model.bin of CTranslate2: the header of every variable at once, values when they are asked for.

Owns the binary layout, versions 2 to 6, and what is refused of a file that is damaged, hostile or
not one. It does not own what the variables mean (`model.exchange.imports.ctranslate2.network`).

All numbers are little-endian. A file is its version (u32), the name of its specification, the
specification's revision (u32), the number of variables (u32) and the variables: name, rank (u8),
sizes (u32 each), element type (u8), bytes (u32), values. Aliases follow from version 3 on: their
number (u32), and for each its name and the variable's. A name is its length with a final NUL (u16)
and its characters. Before version 4 the element type was its size, and elements were counted
instead of bytes.
"""

import math
import os
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import torch
from torch import Tensor

from model.checkpoint.description.consistency import MAX_DIMENSIONS, MAX_TENSORS
from model.errors import ForeignModelError, shown
from model.exchange.imports.imported import QuantisedRows
from model.system.paths import is_file

WEIGHTS_FILE = "model.bin"
SCALE_SUFFIX = "_scale"
OLDEST_VERSION, NEWEST_VERSION = 2, 6

_TYPES = (torch.float32, torch.int8, torch.int16, torch.int32, torch.float16, torch.bfloat16)
_TYPES_BY_SIZE = {4: torch.float32, 2: torch.int16, 1: torch.int8}
_OLD_INT16_SCALE = 1000.0
"""Of int16 matrices without a scale of their own, which the oldest files have."""
_MAX_TEXT = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """Place of one variable of a file.

    Attributes:
        shape: () for a single value.
        dtype: Its element type.
        offset: Of its first byte in the file.
    """

    shape: tuple[int, ...]
    dtype: torch.dtype
    offset: int

    @property
    def num_bytes(self) -> int:
        """Of its values."""
        return math.prod(self.shape) * self.dtype.itemsize


class VariableFile:
    """An open model.bin: what it says of itself, and its variables by name, aliases among them.

    It keeps no file open; a value is read from the disk each time it is asked for.

    Args:
        path: The file.

    Raises:
        ForeignModelError: It is missing, truncated, of another version, or not such a file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with _opened(path) as file:
            reader = _Reader(path, file)
            self.version = reader.number("I")
            if not OLDEST_VERSION <= self.version <= NEWEST_VERSION:
                raise reader.error(
                    f"has version {self.version}; versions {OLDEST_VERSION} to {NEWEST_VERSION}"
                    " of CTranslate2's files are read"
                )
            self.specification = reader.name()
            self.revision = reader.number("I")
            self.variables = _variables(reader, self.version)

    def __repr__(self) -> str:
        return f"<VariableFile {self.specification} of {len(self.variables)} variables>"

    def values(self, name: str, start: int = 0, stop: int | None = None) -> Tensor:
        """A variable as it is stored, or the rows `start` to `stop` of its first dimension.

        Raises:
            ForeignModelError: The file has changed or cannot be read.
        """
        variable = self.variables[name]
        num_rows = variable.shape[0] if variable.shape else 1
        stop = num_rows if stop is None else stop
        row_bytes = variable.num_bytes // num_rows
        data = bytearray(row_bytes * (stop - start))
        with _opened(self.path) as file:
            file.seek(variable.offset + row_bytes * start)
            if file.readinto(data) != len(data):  # type: ignore[attr-defined]  # a buffered reader
                raise ForeignModelError(self.path, [f"ends within {shown(name)}"])
        shape = (stop - start, *variable.shape[1:]) if variable.shape else ()
        return torch.frombuffer(data, dtype=variable.dtype).view(shape)

    def weight(self, name: str, start: int = 0, stop: int | None = None) -> Tensor | QuantisedRows:
        """The same as a weight: int8 rows with their scales, everything else as floats.

        A stored integer is the weight times its row's scale (int8), or times the only one (int16).

        Raises:
            ForeignModelError: As of `values`, or a scale is not a positive number.
        """
        stored = self.values(name, start, stop)
        if stored.is_floating_point():
            return stored
        scale = self._scale(name, start, stop)
        if stored.dtype is torch.int8 and int(stored.min()) > torch.iinfo(torch.int8).min:
            return QuantisedRows(quanta=stored, scale=(1 / scale).expand(len(stored)).contiguous())
        return stored.float() / scale[:, None]

    def _scale(self, name: str, start: int, stop: int | None) -> Tensor:
        """One number a row, or one for all, (rows,) or (1,) float32."""
        scale_name = name + SCALE_SUFFIX
        if scale_name not in self.variables:
            return torch.tensor([_OLD_INT16_SCALE])
        is_one = math.prod(self.variables[scale_name].shape) == 1
        scale = self.values(scale_name) if is_one else self.values(scale_name, start, stop)
        scale = scale.float().flatten()
        if not bool((torch.isfinite(scale) & (scale > 0) & torch.isfinite(1 / scale)).all()):
            raise ForeignModelError(
                self.path, [f"{shown(scale_name)} has a scale that is not a positive number"]
            )
        return scale

    def number(self, name: str, default: float | None = None) -> float | None:
        """A single value; `default` if there is none of that name.

        Raises:
            ForeignModelError: It has several values, or one that is not finite.
        """
        if name not in self.variables:
            return default
        shape = self.variables[name].shape
        if math.prod(shape) != 1:
            raise ForeignModelError(
                self.path, [f"{shown(name)} has the shape {list(shape)}; it must be one value"]
            )
        value = float(self.values(name).float().item())
        if not math.isfinite(value):
            raise ForeignModelError(self.path, [f"{shown(name)} is {value}"])
        return value

    def text(self, name: str, default: str) -> str:
        """A word that older files keep as a variable.

        Raises:
            ForeignModelError: It is no text, or a long one.
        """
        if name not in self.variables:
            return default
        variable = self.variables[name]
        if variable.dtype is not torch.int8 or variable.num_bytes > _MAX_TEXT:
            raise ForeignModelError(self.path, [f"{shown(name)} is not a short text"])
        try:
            return bytes(self.values(name).flatten().view(torch.uint8).tolist()).decode()
        except UnicodeDecodeError as error:
            raise ForeignModelError(self.path, [f"{shown(name)} is not UTF-8"]) from error


def specification_of(path: Path) -> str | None:
    """The name of a file's specification ("TransformerSpec"); None if it is no such file."""
    try:
        with _opened(path) as file:
            reader = _Reader(path, file)
            is_known = OLDEST_VERSION <= reader.number("I") <= NEWEST_VERSION
            return reader.name() if is_known else None
    except ForeignModelError:
        return None


def _variables(reader: "_Reader", version: int) -> Mapping[str, Variable]:
    """All variables, and under each alias the one it stands for."""
    variables: dict[str, Variable] = {}
    for _ in range(reader.count("variables")):
        name = reader.name()
        if name in variables:
            raise reader.error(f"has {shown(name)} twice")
        variables[name] = _variable(reader, name, version)
    for _ in range(reader.count("aliases") if version >= 3 else 0):
        alias, name = reader.name(), reader.name()
        if alias in variables or name not in variables:
            raise reader.error(f"has an alias {shown(alias)} of {shown(name)} that cannot be")
        variables[alias] = variables[name]
        if name + SCALE_SUFFIX in variables:
            variables[alias + SCALE_SUFFIX] = variables[name + SCALE_SUFFIX]
    reader.finish()
    return variables


def _variable(reader: "_Reader", name: str, version: int) -> Variable:
    """The header of one variable; its values are passed over."""
    rank = reader.number("B")
    if rank > MAX_DIMENSIONS:
        raise reader.error(f"{shown(name)} has {rank} dimensions; at most {MAX_DIMENSIONS}")
    shape = tuple(reader.number("I") for _ in range(rank))
    code, count = reader.number("B"), reader.number("I")
    is_sized = version < 4
    known = _TYPES_BY_SIZE if is_sized else dict(enumerate(_TYPES))
    if code not in known:
        raise reader.error(f"{shown(name)} has the unknown element type {code}")
    variable = Variable(shape=shape, dtype=known[code], offset=reader.position)
    num_bytes = count * code if is_sized else count
    if num_bytes != variable.num_bytes or num_bytes == 0:
        raise reader.error(
            f"{shown(name)} of shape {list(shape)} has {num_bytes} bytes; it must have"
            f" {variable.num_bytes}, and at least one value"
        )
    reader.skip(num_bytes, f"the values of {shown(name)}")
    return variable


class _Reader:
    """Reader of the file, in order and never past its end."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self._path = path
        self._file = file
        self._size = os.fstat(file.fileno()).st_size
        self.position = 0

    def error(self, problem: str) -> ForeignModelError:
        return ForeignModelError(self._path, [problem])

    def number(self, kind: str) -> int:
        """An unsigned integer: B, H or I of the module `struct`."""
        code = f"<{kind}"
        (value,) = struct.unpack(code, self._take(struct.calcsize(code), "a number"))
        return int(value)

    def name(self) -> str:
        data = self._take(self.number("H"), "a name")
        if not data.endswith(b"\0"):
            raise self.error(f"has a name without an end before byte {self.position}")
        try:
            return data[:-1].decode()
        except UnicodeDecodeError as error:
            raise self.error(f"has a name before byte {self.position} that is not UTF-8") from error

    def count(self, of: str) -> int:
        value = self.number("I")
        if value > MAX_TENSORS:
            raise self.error(f"has {value} {of}; at most {MAX_TENSORS} are read")
        return value

    def skip(self, num_bytes: int, what: str) -> None:
        self._need(num_bytes, what)
        self.position += num_bytes
        self._file.seek(self.position)

    def finish(self) -> None:
        """Refuse what stands behind the end."""
        if self.position != self._size:
            raise self.error(f"goes on for {self._size - self.position} bytes after its end")

    def _take(self, num_bytes: int, what: str) -> bytes:
        self._need(num_bytes, what)
        self.position += num_bytes
        data = self._file.read(num_bytes)
        if len(data) != num_bytes:
            raise self.error(f"was cut while {what} was read")
        return data

    def _need(self, num_bytes: int, what: str) -> None:
        if num_bytes > self._size - self.position:
            raise self.error(
                f"has {self._size} bytes and ends within {what}, which begins at byte"
                f" {self.position}"
            )


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    """A regular file, open for reading."""
    if not is_file(path, _unusable):
        raise _unusable(path, "is missing, or is not a file")
    try:
        with path.open("rb") as file:
            yield file
    except OSError as error:
        raise _unusable(path, f"cannot be read: {error.strerror}") from error


def _unusable(path: Path, problem: str) -> ForeignModelError:
    return ForeignModelError(path, [problem])
