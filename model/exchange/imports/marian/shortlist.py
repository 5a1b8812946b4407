"""Marian's binary lexical shortlist, `lex.50.50.<pair>.s2t.bin`: read, and checked to the last id.

Owns that format: six u64 (magic, checksum, first, best, number of offsets, number of ids), u64
offsets, u32 target ids, source token by source token (marian-dev, `src/data/shortlist.cpp`). The
first so many target tokens are always listed. What a list is for is `model.shortlist`.
"""

import struct
from pathlib import Path

import numpy as np
import numpy.typing as npt

from model.errors import ForeignModelError
from model.exchange.imports.marian.files import read_small, refused
from model.shortlist import Shortlist

MAGIC = 0xF11A48D5013417F5
_QUICKSAND = struct.pack("<i", 1_234_567_890)
_HEADER = struct.Struct("<6Q")
_MAX_BYTES = 2**27
_MASK = 2**64 - 1
_MIXER = 0x9E3779B9
_BLOCK = 2**16
"""Words that are numbers of Python's together: each takes four times its bytes."""


def is_shortlist(path: Path) -> bool:
    """Whether a file begins as Marian's binary shortlists do; false where it cannot be read."""
    try:
        return read_small(path, _MAX_BYTES)[:8] == struct.pack("<Q", MAGIC)
    except ForeignModelError:
        return False


def read_shortlist(
    path: Path, *, num_sources: int, num_targets: int, num_rows: int, with_source: bool
) -> Shortlist:
    """The table of a file.

    Args:
        path: Where it is; may be gzip'ed.
        num_sources: Tokens of the source vocabulary.
        num_targets: Tokens of the target vocabulary.
        num_rows: Source tokens that our network has: those behind Marian's have empty lists.
        with_source: Both sides have one vocabulary: then Marian lists source tokens, too.

    Raises:
        ForeignModelError: It is of another format, damaged, or of other vocabularies.
    """
    data = read_small(path, _MAX_BYTES)
    first, best, num_offsets, num_ids = _header(path, data)
    if not 1 <= num_offsets <= num_sources + 1:
        problem = f"has lists for {num_offsets - 1} source tokens; the vocabulary has {num_sources}"
        raise refused(path, problem)
    needed = _HEADER.size + 8 * num_offsets + 4 * num_ids
    if len(data) != needed:
        raise refused(path, f"has {len(data)} bytes; its header needs {needed}")
    _check_sum(path, data)
    offsets = np.frombuffer(data, "<u8", count=num_offsets, offset=_HEADER.size)
    ids = np.frombuffer(data, "<u4", count=num_ids, offset=_HEADER.size + 8 * num_offsets)
    _check_lists(path, offsets, ids, best=best, num_targets=num_targets)
    lengths = np.zeros(num_rows, dtype=np.int64)
    lengths[: num_offsets - 1] = np.diff(offsets.astype(np.int64))
    return Shortlist(
        always=np.arange(min(first, num_targets), dtype=np.int32),
        offsets=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32),
        ids=ids.astype(np.int32),
        with_source=with_source,
    )


def checksum(words: npt.NDArray[np.uint64]) -> int:
    """Marian's checksum of the u64 that follow it; four bytes that are left over are not in it."""
    found = 0
    for begin in range(0, len(words), _BLOCK):
        for word in words[begin : begin + _BLOCK].tolist():
            found ^= (word + _MIXER + (found << 6) + (found >> 2)) & _MASK
    return found


def _header(path: Path, data: bytes) -> tuple[int, int, int, int]:
    if data.startswith(_QUICKSAND):
        raise refused(path, "is a shortlist of Quicksand's, which is not read; Marian's own is")
    if len(data) < _HEADER.size:
        raise refused(path, f"has {len(data)} bytes; a shortlist's header has {_HEADER.size}")
    magic, _, first, best, num_offsets, num_ids = _HEADER.unpack_from(data)
    if magic != MAGIC:
        raise refused(path, f"begins with {magic:#018x}; Marian's shortlists begin with {MAGIC:#x}")
    return first, best, num_offsets, num_ids


def _check_sum(path: Path, data: bytes) -> None:
    (stored,) = struct.unpack_from("<Q", data, 8)
    found = checksum(np.frombuffer(data, "<u8", count=(len(data) - 16) // 8, offset=16))
    if found != stored:
        raise refused(path, f"is damaged: its checksum is {found:#018x}, it says {stored:#018x}")


def _check_lists(
    path: Path,
    offsets: npt.NDArray[np.uint64],
    ids: npt.NDArray[np.uint32],
    *,
    best: int,
    num_targets: int,
) -> None:
    """Offsets that rise from 0 to the end, lists that are no longer than said, ids that exist."""
    if offsets[0] != 0 or offsets[-1] != len(ids) or (offsets[1:] < offsets[:-1]).any():
        raise refused(path, f"has offsets that do not rise from 0 to {len(ids)}")
    longest = int(np.diff(offsets).max(initial=0))
    if longest > best:
        raise refused(path, f"has a list of {longest} target tokens; its header says {best}")
    largest = int(ids.max(initial=0))
    if largest >= num_targets:
        raise refused(path, f"has target id {largest}; the vocabulary has {num_targets} tokens")
