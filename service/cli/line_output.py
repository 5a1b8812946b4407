"""An output file that appears whole, and goes on where an interrupted command stopped.

Owns the file that grows beside it, `.NAME.IDENTITY.partial`: plain text to its end, so that whole
lines can be counted; where the name ends in `.gz` it is packed into a third file, and only removed
when that one has the name. The identity stands for everything the lines depend on, so lines of
other inputs are never continued, and a command that was killed before the removal, done once more,
gives the same bytes.
"""

import fcntl
import gzip
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from model.errors import DataError
from model.paths import exists, is_file, is_folder

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
        identity: Of the input and the settings; None begins anew, and leaves nothing to go on from.

    Raises:
        DataError: The file cannot be written, or another command writes it; or it is none: a device
            would be replaced by a file.
    """
    if not path.name or is_folder(path):
        raise DataError(f"{path}: is a directory; it must be a file")
    if exists(path) and not is_file(path):
        raise DataError(f"{path}: is no regular file; to write there, redirect standard output")
    final = Path(os.path.realpath(path))  # a link stays one
    partial = final.with_name(f".{final.name}.{identity or 'new'}.partial")
    try:
        with _taken(partial) as stream:
            try:
                num_done = _keep_whole_lines(stream) if identity else stream.truncate()
                yield LineOutput(stream, num_done)
                os.fsync(stream.fileno())
            except BaseException:
                if identity is None:
                    partial.unlink()
                raise
            if path.suffix == ".gz":
                _pack(partial, final)
                partial.unlink()
            else:
                partial.replace(final)
    except OSError as error:
        raise DataError(f"{path}: {error.strerror or error}") from error


@contextmanager
def _taken(partial: Path) -> Iterator[BinaryIO]:
    """The file, made if it is missing, while no other process has it."""
    handle = os.open(partial, os.O_RDWR | os.O_CREAT, 0o666)
    with os.fdopen(handle, "r+b") as stream:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_ours = os.path.samestat(os.fstat(handle), partial.stat())
        except (BlockingIOError, FileNotFoundError):
            is_ours = False
        if not is_ours:
            raise DataError(f"{partial}: another command is writing it")
        yield stream


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
