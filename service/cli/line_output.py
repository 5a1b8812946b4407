"""An output file that appears whole, and goes on where an interrupted command stopped.

Owns the file that grows beside it, `.NAME.IDENTITY.partial`: plain text to its end, so that whole
lines can be counted; where the name ends in `.gz` it is packed into a third file, and only removed
when that one has the name. The identity stands for everything the lines depend on, so lines of
other inputs are never continued, and a command that was killed before the removal, done once more,
gives the same bytes.
"""

import gzip
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from model.errors import DataError

_BLOCK = 2**20


class LineOutput:
    """Lines that are written in order; see `opened_output`.

    Attributes:
        num_done: Lines that an interrupted command has left.
    """

    def __init__(self, stream: BinaryIO, num_done: int) -> None:
        self._stream = stream
        self.num_done = num_done

    def write(self, lines: Iterable[str]) -> None:
        """Append lines; when this returns they survive the process."""
        self._stream.writelines(f"{line}\n".encode() for line in lines)
        self._stream.flush()


@contextmanager
def opened_output(path: Path, identity: str | None) -> Iterator[LineOutput]:
    """Write a file of lines; it gets its name when the block is left without an error.

    Args:
        path: The file; replaced if it is there. Packed if it ends in `.gz`.
        identity: Of the input and the settings; None begins anew.

    Raises:
        DataError: The file cannot be written.
    """
    if not path.name:
        raise DataError(f"{path}: is a directory; it must be a file")
    partial = path.with_name(f".{path.name}.{identity or 'new'}.partial")
    try:
        with partial.open("r+b" if identity and partial.exists() else "w+b") as stream:
            num_done = _keep_whole_lines(stream)
            yield LineOutput(stream, num_done)
            os.fsync(stream.fileno())
        if path.suffix == ".gz":
            _pack(partial, path)
            partial.unlink()
        else:
            partial.replace(path)
    except OSError as error:
        raise DataError(f"{path}: {error.strerror or error}") from error


def _keep_whole_lines(stream: BinaryIO) -> int:
    """Cut off what follows the last line feed, stand there, and count the lines before."""
    num_lines = end = 0
    while block := stream.read(_BLOCK):
        num_lines += block.count(b"\n")
        if b"\n" in block:
            end = stream.tell() - len(block) + block.rindex(b"\n") + 1
    stream.seek(end)
    stream.truncate()
    return num_lines


def _pack(partial: Path, path: Path) -> None:
    """Make `path` of the lines of `partial`, which stays."""
    packed = partial.with_name(f"{partial.name}.gz")
    with (
        partial.open("rb") as lines,
        packed.open("wb") as raw,
        gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as stream,  # the same lines, the same bytes
    ):
        shutil.copyfileobj(lines, stream, _BLOCK)
    with packed.open("rb") as written:
        os.fsync(written.fileno())
    packed.replace(path)
