"""Marian's model files, `.npz` and `.bin`: options, and tensors that are read when asked for.

Owns what both formats have in common: what a tensor of a file is, which file is which, the options
that stand in it as `special:model.yml`. The formats are `npz.py` and `bin.py`; what
the tensors mean is `network.py`. Nothing is unpickled.
"""

import gzip
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from torch import Tensor

from model.errors import ConfigError, ForeignModelError, shown
from model.exchange.bounded_yaml import parse_yaml
from model.exchange.imports.imported import QuantisedRows

OPTIONS_TENSOR = "special:model.yml"
MAX_OPTIONS_BYTES = 2**20
MAX_TENSORS = 2**16
MAX_DIMENSIONS = 8
_GZIP = b"\x1f\x8b"


@dataclass(frozen=True, slots=True, kw_only=True)
class MarianTensor:
    """One tensor of a file.

    Attributes:
        shape: As Marian has it: of a projection (inputs, outputs).
        has_output_rows: It is an int8 matrix whose bytes stand as (outputs, inputs).
        read: Reads it: of `has_output_rows` (outputs, inputs), of other tensors `shape`; int8 as
            rows that all have one scale.
    """

    shape: tuple[int, ...]
    has_output_rows: bool
    read: Callable[[], Tensor | QuantisedRows]


@dataclass(frozen=True, slots=True, kw_only=True)
class MarianFile:
    """A model file, its header read.

    Attributes:
        path: Where it is.
        options: What `special:model.yml` says; empty where the file has none.
        tensors: All others, by their names.
    """

    path: Path
    options: Mapping[str, object]
    tensors: Mapping[str, MarianTensor]


def refused(path: Path, problem: str) -> ForeignModelError:
    """The error of one problem of a file, to be raised."""
    return ForeignModelError(path, [problem])


@contextmanager
def reading(path: Path) -> Iterator[BinaryIO]:
    """A file, open for reading; what the system cannot do with it is an error of the conversion.

    Raises:
        ForeignModelError: It is missing or unreadable.
    """
    try:
        with path.open("rb") as file:
            yield file
    except gzip.BadGzipFile:
        raise
    except OSError as error:
        raise refused(path, f"cannot be read: {error.strerror or error}") from error


def is_gzip(path: Path) -> bool:
    """Whether a file is gzip'ed, by its first bytes.

    Raises:
        ForeignModelError: It cannot be read.
    """
    with reading(path) as file:
        return file.read(len(_GZIP)) == _GZIP


def read_small(path: Path, max_bytes: int) -> bytes:
    """All of a small file, unpacked if it is gzip'ed.

    Raises:
        ForeignModelError: It is missing, unreadable, damaged or larger.
    """
    if is_gzip(path):
        data = _unpacked(path, max_bytes)
    else:
        with reading(path) as file:
            data = file.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise refused(path, f"has more than the {max_bytes} bytes that are allowed")
    return data


def _unpacked(path: Path, max_bytes: int) -> bytes:
    try:
        with reading(path) as file, gzip.open(file) as unpacked:
            return unpacked.read(max_bytes + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise refused(path, f"is no whole gzip file: {error}") from error


def parse_options(path: Path, data: bytes) -> dict[str, object]:
    """The mapping of a small YAML text; all NULs at its end are left out.

    Raises:
        ForeignModelError: It is no such text; the error names `path`.
    """
    if len(data) > MAX_OPTIONS_BYTES:
        raise refused(path, f"has {len(data)} bytes of options; at most {MAX_OPTIONS_BYTES}")
    try:
        value = parse_yaml(data.rstrip(b"\0").decode("utf-8"))
    except UnicodeDecodeError as error:
        raise refused(path, f"has options that are not UTF-8 at byte {error.start}") from error
    except ConfigError as error:
        raise refused(path, f"has options that are {error}") from error
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise refused(path, f"has options that are no mapping of names: {shown(value)}")
    return value
