"""Output file that appears whole, and is continued where an interrupted command stopped.

Owns the file that grows beside it, `.NAME.IDENTITY.partial`: plain text to its end, so that whole
lines can be counted. Lines that are ready before their turn are kept in a second file, `….ahead`,
each with its number, so that nothing that was finished is lost, however far the next line in order
is. Where the name ends in `.gz` the lines are packed into a third file, or a document is made of
them there, and the others are only removed when that one has the name. The identity stands for
everything the lines depend on, so lines of other inputs are never continued, and a command that was
killed before the removal, done once more, gives the same bytes.
"""

import fcntl
import gzip
import hashlib
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from model.errors import DataError
from model.system.paths import exists, is_file, is_folder
from service.cli.streams.read_files import ReadFiles

AHEAD_SUFFIX = ".ahead"
PACKED_SUFFIX = ".gz"
PARTIAL_SUFFIX = ".partial"

_BLOCK = 2**20
_MAX_NAME_BYTES = 255


Make = Callable[[Path, Path], None]
"""Writes a file, the second, of the lines of another one, which stays."""


class LineOutput:
    """Lines that are written in order, or kept until it is their turn; see `opened_output`.

    Attributes:
        path: The file that they become.
        num_done: Lines in order that are there; at first those that an interrupted command left.
        ahead: Lines after them that are there as well, by their number, counted from 0.
    """

    def __init__(self, path: Path, stream: BinaryIO, ahead: BinaryIO, num_done: int) -> None:
        self.path = path
        self._stream = stream
        self._ahead_stream = ahead
        self.num_done = num_done
        self.ahead = {number: line for number, line in _kept_lines(ahead) if number >= num_done}

    @property
    def num_lines(self) -> int:
        """Number of lines there are."""
        return self.num_done + len(self.ahead)

    def keep(self, number: int, line: str) -> None:
        """Keep a line whose turn has not come; when this returns it survives the process."""
        self._ahead_stream.write(f"{number}\t{line}\n".encode())
        self._ahead_stream.flush()
        self.ahead[number] = line

    def settle(self, num_lines: int) -> None:
        """Write the next lines in order, all of which have been kept."""
        turn = range(self.num_done, self.num_done + num_lines)
        self.write(self.ahead[number] for number in turn)
        for number in turn:
            del self.ahead[number]
        if not self.ahead:
            self._ahead_stream.seek(0)
            self._ahead_stream.truncate()

    def write(self, lines: Iterable[str]) -> None:
        """Append lines; when this returns they survive the process."""
        encoded = [f"{line}\n".encode() for line in lines]
        self._stream.writelines(encoded)
        self._stream.flush()
        self.num_done += len(encoded)


@contextmanager
def opened_output(
    path: Path, identity: str | None, *, read: ReadFiles, make: Make | None = None
) -> Iterator[LineOutput]:
    """Write a file of lines; it gets its name when the block is left without an error.

    Args:
        path: The file; replaced if it is there. Packed if it ends in `.gz`.
        identity: Of the input and the settings; None begins anew, and leaves nothing to go on from.
        read: What the command reads, none of which is written.
        make: Makes the file of the lines, where it is more than these.

    Raises:
        DataError: The file cannot be written, or another command writes it; or it is one that is
            read; or it is none: a device would be replaced by a file.
    """
    _check_place(path)
    final = Path(os.path.realpath(path))  # a link stays one
    partial = final.with_name(_partial_name(final.name, identity or "new"))
    ahead, packed = (partial.with_name(partial.name + end) for end in (AHEAD_SUFFIX, PACKED_SUFFIX))
    for own in (path, partial, ahead, packed):
        read.refuse(own, own)
    try:
        with _taken(partial) as stream:
            try:
                with ahead.open("r+b" if exists(ahead) else "w+b") as kept:
                    num_done = _keep_whole_lines(stream) if identity else stream.truncate()
                    if not identity:
                        kept.truncate()
                    yield LineOutput(path, stream, kept, num_done)
                os.fsync(stream.fileno())
            except BaseException:
                if identity is None:
                    partial.unlink()
                    ahead.unlink(missing_ok=True)
                raise
            make = make or (_pack if path.suffix == ".gz" else None)
            if make is not None:
                make(partial, packed)
                packed.replace(final)
                ahead.unlink()
                partial.unlink()
            else:
                ahead.unlink()
                partial.replace(final)
    except OSError as error:
        raise DataError(f"{path}: {error.strerror or error}") from error


def _check_place(path: Path) -> None:
    if not path.name or is_folder(path):
        raise DataError(f"{path}: is a directory; it must be a file")
    if exists(path) and not is_file(path):
        raise DataError(f"{path}: is no regular file; to write there, redirect standard output")


def _partial_name(name: str, identity: str) -> str:
    """Name of the partial file, short enough for every suffix that is put behind it."""
    whole = f".{name}.{identity}{PARTIAL_SUFFIX}"
    longest = _MAX_NAME_BYTES - max(len(AHEAD_SUFFIX), len(PACKED_SUFFIX))
    if len(os.fsencode(whole)) <= longest:
        return whole
    short = hashlib.sha256(os.fsencode(name)).hexdigest()[:32]
    return f".{short}.{identity}{PARTIAL_SUFFIX}"


@contextmanager
def _taken(partial: Path) -> Iterator[BinaryIO]:
    """The file, created if missing, and locked against other processes."""
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


def _kept_lines(stream: BinaryIO) -> Iterator[tuple[int, str]]:
    """The numbered lines of a file, up to one that was not written to its end; stands there."""
    end = 0
    for entry in stream:
        number, tab, line = entry.partition(b"\t")
        if not (tab and number.isdigit() and line.endswith(b"\n")):
            break
        try:
            kept = line.removesuffix(b"\n").decode()
        except UnicodeDecodeError:
            break
        yield int(number), kept
        end += len(entry)
    stream.seek(end)
    stream.truncate()


def _pack(partial: Path, packed: Path) -> None:
    """Pack the lines of `partial`, which stays."""
    with (
        partial.open("rb") as lines,
        packed.open("wb") as raw,
        gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as stream,  # the same lines, the same bytes
    ):
        shutil.copyfileobj(lines, stream, _BLOCK)
    with packed.open("rb") as written:
        os.fsync(written.fileno())
