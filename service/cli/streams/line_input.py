"""Text that a command reads line by line: a file, standard input, or a text among its arguments.

Owns what an argument means, opening, the division into lines (a line feed ends one, nothing else
does), what of a pipe has come already, and the digest of all that is read. Whether a file may be
written as well is `service.cli.streams.read_files`' question.
"""

import codecs
import gzip
import hashlib
import io
import os
import re
import select
import stat
import sys
import zlib
from collections import deque
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from model.errors import DataError
from model.file_heads import other_than_utf8
from model.system.paths import exists, is_file
from service.cli.streams.beginnings import beginning
from service.cli.streams.read_files import STANDARD_INPUT

THE_TEXT = "the text"

_Row = TypeVar("_Row")
_Bytes = io.RawIOBase | io.BufferedIOBase
_BLOCK = 2**16
_DIGEST_BLOCK = 2**20
_FILE_NAME = re.compile(r"\S*/\S*|\S*[^\W_]\.[A-Za-z][A-Za-z0-9]{0,9}")
"""What means a file: a path, or a name with an ending."""


@dataclass(frozen=True, slots=True)
class Input:
    """Something to translate.

    Attributes:
        name: What errors call it: a file, `-`, or `THE_TEXT`.
        text: The text itself, if an argument is one; else it is read.
    """

    name: str
    text: str | None = None

    @property
    def files(self) -> list[str]:
        """The file that it is, if it is one."""
        return [self.name] if self.text is None else []


def named_input(argument: str) -> Input:
    """What an argument means: the file of that name, else a text.

    Args:
        argument: As it was written.

    Raises:
        DataError: It is no file, but looks like the name of one.
    """
    if argument == STANDARD_INPUT or _exists(argument):
        return Input(argument)
    if _FILE_NAME.fullmatch(argument):
        try:
            Path(argument).stat()
        except OSError as error:
            raise DataError(
                f"{argument}: {error.strerror}; if it is a text, give it as --text"
            ) from error
    return Input(THE_TEXT, argument)


def _exists(name: str) -> bool:
    try:
        return os.path.lexists(name)
    except ValueError:  # a null character
        return False


class OpenedLines(AbstractContextManager["OpenedLines"]):
    """Lines of an input; of a pipe or a terminal each as soon as it is written.

    Args:
        source: Where they are.

    Raises:
        DataError: It cannot be opened.
    """

    def __init__(self, source: Input) -> None:
        self._name = source.name
        if source.text == "":
            source = replace(source, text="\n")  # an empty text is a line all the same
        self._stream, self._is_waited_for = _opened(source)
        self._whole: deque[bytes] = deque()
        self._parts: list[bytes] = []
        self._has_ended = False
        self._number = 0

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stream.close()

    def __iter__(self) -> Iterator[str]:
        """The lines.

        Raises:
            DataError: One is not UTF-8, or reading fails.
        """
        while (line := self._next()) is not None:
            self._number += 1
            yield _decoded(line, self._name, self._number)

    def is_ready(self) -> bool:
        """Whether what comes next is there without waiting, be it a line or the end."""
        if not self._is_waited_for:
            return True
        while not (self._whole or self._has_ended):
            if not select.select([self._stream], [], [], 0)[0]:
                return False
            self._read()
        return True

    def _next(self) -> bytes | None:
        while not self._whole:
            if self._has_ended:
                last = b"".join(self._parts)
                self._parts = []
                return last or None
            self._read()
        return self._whole.popleft()

    def _read(self) -> None:
        block = read_block(self._stream, _BLOCK, self._name)
        first, *rest = block.split(b"\n")
        self._parts.append(first)
        if rest:
            self._whole.append(b"".join(self._parts))
            self._whole.extend(rest[:-1])
            self._parts = [rest[-1]]
        self._has_ended = not block


def ready_rows(rows: Iterator[_Row], lines: OpenedLines, max_rows: int) -> Iterator[list[_Row]]:
    """Rows to work on together: all that can be had without waiting, and at least one.

    Args:
        rows: Made of lines.
        lines: They.
        max_rows: Together.

    Raises:
        DataError: A row cannot be read; those before it were given.
    """
    problem = None
    while problem is None:
        chunk = []
        try:
            for row in islice(rows, max_rows):
                chunk.append(row)
                if not lines.is_ready():
                    break
        except DataError as error:
            problem = error
        if chunk:
            yield chunk
        elif problem is None:
            return
    raise problem


def _decoded(line: bytes, name: str, number: int) -> str:
    """A line as text.

    Raises:
        DataError: It is not UTF-8.
    """
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        what = other_than_utf8(line) if number == 1 else None
        if what is not None:
            raise DataError(
                f"{name}: is {what}; lines are read from text in UTF-8, packed only by gzip, with"
                " the ending .gz"
            ) from error
        raise DataError(
            f"{name}:{number}: not valid UTF-8"
            f" ({error.reason} at byte {error.start + 1} of the line)"
        ) from error


def read_block(stream: _Bytes, num_bytes: int, name: str) -> bytes:
    """The next bytes, waited for; none at the end.

    Raises:
        DataError: Reading fails, or what is packed is cut or damaged.
    """
    try:
        while (block := stream.read(num_bytes)) is None:  # of a pipe that does not block
            select.select([stream], [], [])
    except OSError as error:
        raise DataError(f"{name}: {error.strerror or error}") from error
    except (EOFError, zlib.error) as error:
        raise DataError(f"{name}: {error}") from error
    return block


def opened_bytes(source: Input) -> _Bytes:
    """Everything that is to be read, as it is.

    Raises:
        DataError: It cannot be opened.
    """
    return _opened(source)[0]


def _opened(source: Input) -> tuple[_Bytes, bool]:
    """The bytes, and whether reading them may wait for a writer."""
    if source.text is not None:
        return io.BytesIO(source.text.encode(errors="surrogateescape")), False
    name = source.name
    try:
        if name.endswith(".gz"):
            return gzip.open(name, "rb"), False
        file = sys.stdin.fileno() if name == STANDARD_INPUT else name
        stream = io.FileIO(file, closefd=name != STANDARD_INPUT)
    except OSError as error:
        raise DataError(f"{name}: {error.strerror}") from error
    return stream, not stat.S_ISREG(os.fstat(stream.fileno()).st_mode)


def num_lines(source: Input) -> int | None:
    """Number of lines; None of what can be read only once.

    Raises:
        DataError: One is not UTF-8, or reading fails.
    """
    if source.text is None and not _is_file(source.name):
        return None
    with OpenedLines(source) as lines:
        return sum(1 for _ in lines)


def sample(source: Input) -> str | None:
    """The first lines, to see which language they are in.

    Returns:
        None of what can be read only once, and as of `beginning`.

    Raises:
        DataError: One is not UTF-8, or reading fails.
    """
    if source.text is None and not _is_file(source.name):
        return None
    with OpenedLines(source) as lines:
        return beginning(lines)


def digest(source: Input, *, has_lines: bool) -> str | None:
    """SHA-256 of everything that is to be read; None of what can be read only once.

    Args:
        source: What is to be read.
        has_lines: Whether it is read line by line, so that all of it has to be UTF-8: what is not
            is told before any work, which an input that is mended could not go on from.

    Raises:
        DataError: Reading fails, or it is to be UTF-8 and is not.
    """
    if source.text is not None:
        return _digest(io.BytesIO(source.text.encode(errors="surrogateescape")), source, has_lines)
    try:
        if source.name == STANDARD_INPUT:
            return _standard_input_digest(source, has_lines)
        if exists(Path(source.name)) and not _is_file(source.name):
            return None
        is_packed = source.name.endswith(".gz")
        with Path(source.name).open("rb") as stream:
            found = _digest(stream, source, has_lines and not is_packed)
    except OSError as error:
        raise DataError(f"{source.name}: {error.strerror}") from error
    if has_lines and is_packed:
        with opened_bytes(source) as unpacked:
            _digest(unpacked, source, has_lines)
    return found


def _digest(stream: _Bytes, source: Input, has_lines: bool) -> str:  # noqa: FBT001  # of one file
    """SHA-256 of what a stream has from where it is; errors as of `digest`."""
    start = stream.tell()
    found = hashlib.sha256()
    decoder = codecs.getincrementaldecoder("utf-8")()
    is_utf8 = True
    while is_utf8 and (block := read_block(stream, _DIGEST_BLOCK, source.name)):
        found.update(block)
        is_utf8 = not has_lines or _is_utf8(decoder, block)
    if has_lines and not (is_utf8 and _is_utf8(decoder, b"", is_last=True)):
        stream.seek(start)
        for number, line in enumerate(stream, start=1):
            _decoded(line, source.name, number)
    return found.hexdigest()


def _is_utf8(decoder: codecs.IncrementalDecoder, block: bytes, *, is_last: bool = False) -> bool:
    try:
        decoder.decode(block, final=is_last)
    except UnicodeDecodeError:
        return False
    return True


def _is_file(name: str) -> bool:
    return name != STANDARD_INPUT and is_file(Path(name))


def _standard_input_digest(source: Input, has_lines: bool) -> str | None:  # noqa: FBT001
    """Digest of what is still to be read, if that can be read twice."""
    number = sys.stdin.fileno()
    if not stat.S_ISREG(os.fstat(number).st_mode):
        return None
    start = os.lseek(number, 0, os.SEEK_CUR)
    try:
        with open(number, "rb", closefd=False) as stream:
            return _digest(stream, source, has_lines)
    finally:
        os.lseek(number, start, os.SEEK_SET)
