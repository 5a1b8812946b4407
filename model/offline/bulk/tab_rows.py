"""Rows of a table with tabs (TSV), whose quotes may be quotes or plain characters.

Owns where such a row ends, and what its fields mean. Spreadsheets put fields in quotes, databases
and corpora do not, so a quote that begins a field is special only where the field is closed: by a
quote before a tab or a line end, of the same line; or of a later one, if no tab stands between.
Everything else is a field as it is written. Of one column, where a line with a quote and one that
ends by a quote look like a field of both, a line is a row.
"""

import re
from collections import deque
from collections.abc import Callable, Iterator
from typing import BinaryIO

from model.offline.bulk.blocks import MAX_ROW_BYTES
from model.offline.bulk.lines import body_of, row_of

_FIELD = re.compile(
    rb'"((?:[^"\n]++|"")*+)"(?=\t|\Z)'  # in quotes, on one line
    rb'|"((?:[^"\t]++|"")*+)"(?=\t|\Z)'  # on several
    rb"|[^\t]*+"
)
_UNCLOSED = re.compile(rb'"(?:[^"\t]++|"")*+')
_INSIDE = re.compile(rb'(?:[^"\t]++|"")*+')
_CLOSING = re.compile(rb'(?:[^"\t]++|"")*+"(?=\t|\Z)')


def rows_with_tabs(
    stream: BinaryIO, name: str, first: int = 1, *, may_span: bool
) -> Iterator[bytes]:
    """Rows from where a stream is, each with its line end.

    Args:
        stream: Where they are.
        name: Of the file, for errors.
        first: Number of the first row.
        may_span: Whether a field in quotes may have line feeds.

    Raises:
        DataError: A line is too long to be held in memory.
    """
    number = first
    ahead: deque[bytes] = deque()

    def following() -> bytes:
        return ahead.popleft() if ahead else row_of(stream, f"{name}, row", number)

    while row := following():
        while may_span and b'"' in row and _is_open(body_of(row)):
            is_closed, lines = _until_closed(following, MAX_ROW_BYTES - len(row))
            if not is_closed:
                ahead.extendleft(reversed(lines))
                break
            row = b"".join([row, *lines])
        yield row
        number += 1


def fields_with_tabs(body: bytes) -> list[bytes]:
    """What the fields of a row mean."""
    if b'"' not in body:
        return body.split(b"\t")
    return [_meaning(match) for match in _matches(body)]


def _meaning(match: re.Match[bytes]) -> bytes:
    quoted = match[1] if match[1] is not None else match[2]
    return match[0] if quoted is None else quoted.replace(b'""', b'"')


def _matches(body: bytes) -> Iterator[re.Match[bytes]]:
    place = 0
    while place <= len(body):
        match = _FIELD.match(body, place)
        assert match is not None  # a field may be empty
        yield match
        place = match.end() + 1


def _is_open(body: bytes) -> bool:
    """Whether the last field of a row begins with a quote that a later line may close."""
    *_, last = _matches(body)
    is_bare = last.lastindex is None
    return is_bare and _UNCLOSED.fullmatch(body, last.start()) is not None


def _until_closed(following: Callable[[], bytes], max_bytes: int) -> tuple[bool, list[bytes]]:
    """Whether lines close a field in quotes, and those that were read to see it.

    The next line that begins such a field cannot be inside of this one, so no line is read by many.
    """
    lines: list[bytes] = []
    num_bytes = 0
    while line := following():
        lines.append(line)
        num_bytes += len(line)
        body = body_of(line)
        if num_bytes > max_bytes:
            break
        if _CLOSING.match(body):
            return True, lines
        if not _INSIDE.fullmatch(body):
            break
    return False, lines
