"""Marian's `.npz`: a zip archive of NumPy arrays.

Owns that format: the archive's entries, the arrays' headers, and what is refused of either. Weights
are float32 or float16, the options bytes; an array of Python objects, which would be unpickled, is
refused.
"""

import lzma
import math
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO

import numpy as np
import torch
from torch import Tensor

from model.errors import ForeignModelError, shown
from model.exchange.imports.marian.files import (
    MAX_DIMENSIONS,
    MAX_OPTIONS_BYTES,
    MAX_TENSORS,
    OPTIONS_TENSOR,
    MarianFile,
    MarianTensor,
    parse_options,
    reading,
    refused,
)

_ENTRY = struct.Struct("<4s22xHxx")
"""What stands before an entry's name: first PK34, at last how long the name is."""
_MAX_NAME = 256
_MAX_ARRAY_HEADER = 4_096
_MAX_DEFLATE_RATIO = 1_032
"""What deflate can shrink at most; an entry that says more does not hold what it says."""
_DTYPES = {"<f4": torch.float32, "<f2": torch.float16, "|i1": torch.int8, "|u1": torch.uint8}


def is_npz(path: Path) -> bool:
    """Whether a file is an archive of arrays with Marian's options; false if it cannot be read.

    One that begins as an archive and is none, as a download that broke off, counts by its name:
    opening it says so.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except zipfile.BadZipFile:
        return path.suffix == ".npz" and _begins_with_array(path)
    except (OSError, ValueError, RuntimeError):
        return False
    return f"{OPTIONS_TENSOR}.npy" in names or OPTIONS_TENSOR in names


def _begins_with_array(path: Path) -> bool:
    """Whether a file begins as an archive whose first entry is an array."""
    try:
        with reading(path) as file:
            head = file.read(_ENTRY.size + _MAX_NAME)
    except ForeignModelError:
        return False
    if len(head) < _ENTRY.size:
        return False
    magic, length = _ENTRY.unpack_from(head)
    return magic == b"PK\x03\x04" and head[_ENTRY.size :][:length].endswith(b".npy")


def open_npz(path: Path) -> MarianFile:
    """Headers and options of a `.npz`.

    Raises:
        ForeignModelError: It is damaged, or has arrays that no model has; all of them are listed.
    """
    with _archive(path) as archive:
        entries = archive.infolist()
        if len(entries) > MAX_TENSORS:
            raise refused(path, f"has {len(entries)} arrays; at most {MAX_TENSORS} are read")
        problems: list[str] = []
        tensors: dict[str, MarianTensor] = {}
        options: dict[str, object] = {}
        for entry in entries:
            name = entry.filename.removesuffix(".npy")
            try:
                if name == OPTIONS_TENSOR:
                    options = parse_options(path, _option_bytes(archive, entry))
                    continue
                shape = _weight_shape(archive, entry)
            except ForeignModelError as error:
                problems += error.problems
                continue
            except ValueError as error:
                problems.append(f"{shown(name)} {error}")
                continue
            if name in tensors:
                problems.append(f"{shown(name)} is there twice")
            read = partial(_read, path, entry.filename)
            tensors[name] = MarianTensor(shape=shape, has_output_rows=False, read=read)
    if problems:
        raise ForeignModelError(path, problems)
    return MarianFile(path=path, options=options, tensors=tensors)


@contextmanager
def _archive(path: Path) -> Iterator[zipfile.ZipFile]:
    """The open archive; what is wrong with it is an error of the conversion."""
    try:
        with reading(path) as file, zipfile.ZipFile(file) as archive:
            yield archive
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, RuntimeError) as error:
        raise refused(path, f"is a damaged archive: {error}") from error


def _weight_shape(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> tuple[int, ...]:
    """Shape of one array of weights.

    Raises:
        ValueError: It is none that a model has; bytes have no multiplier here, and are no weights.
    """
    dtype, shape, _ = _header(archive, entry)
    if not dtype.is_floating_point:
        raise ValueError("is of bytes, which only the options are; weights are float32 or float16")
    return shape


def _header(
    archive: zipfile.ZipFile, entry: zipfile.ZipInfo
) -> tuple[torch.dtype, tuple[int, ...], bool]:
    """Type, shape, and whether columns come first, of one array.

    Raises:
        ValueError: The array is none that a model has.
    """
    if entry.file_size > _MAX_DEFLATE_RATIO * entry.compress_size + _MAX_ARRAY_HEADER:
        raise ValueError(f"says that it has {entry.file_size} bytes; it cannot")
    with archive.open(entry) as file:
        dtype, shape, is_columns_first = _array_header(file)
        begin = file.tell()
    if dtype.str not in _DTYPES:
        raise ValueError(f"is of type {dtype.str}; a model has {', '.join(_DTYPES)}")
    if len(shape) > MAX_DIMENSIONS:
        raise ValueError(f"has {len(shape)} dimensions; at most {MAX_DIMENSIONS} are read")
    num_bytes = begin + math.prod(shape) * dtype.itemsize
    if num_bytes != entry.file_size:
        raise ValueError(f"of shape {shape} needs {num_bytes} bytes; it has {entry.file_size}")
    return _DTYPES[dtype.str], shape, is_columns_first


def _array_header(file: IO[bytes]) -> tuple[np.dtype, tuple[int, ...], bool]:
    version = np.lib.format.read_magic(file)
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    if version not in readers:
        raise ValueError(f"is an array of version {version}; 1.0 and 2.0 are read")
    try:
        shape, is_columns_first, dtype = readers[version](file, max_header_size=_MAX_ARRAY_HEADER)
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError):
        raise
    except Exception as error:  # whatever a header from elsewhere makes NumPy's parser raise
        raise ValueError(f"has a damaged header ({type(error).__name__})") from error
    return dtype, shape, is_columns_first


def _option_bytes(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    if entry.file_size > MAX_OPTIONS_BYTES:
        raise ValueError(f"has {entry.file_size} bytes; at most {MAX_OPTIONS_BYTES} are read")
    dtype, _, _ = _header(archive, entry)
    if dtype not in {torch.int8, torch.uint8}:
        raise ValueError("is no text")
    with archive.open(entry) as file:
        _array_header(file)
        return file.read()


def _read(path: Path, entry_name: str) -> Tensor:
    """The values of one array, with its shape."""
    with _archive(path) as archive:
        entry = archive.getinfo(entry_name)
        try:
            dtype, shape, is_columns_first = _header(archive, entry)
        except ValueError as error:
            raise refused(path, f"{shown(entry_name)} {error}") from error
        with archive.open(entry) as file:
            _array_header(file)
            values = torch.frombuffer(bytearray(file.read()), dtype=dtype)
    return (
        values.reshape(shape[::-1]).permute(*range(len(shape))[::-1])
        if (is_columns_first)
        else values.reshape(shape)
    )
