"""Documents on the command line: a file of a known kind is translated as one, not line by line.

Owns which files those are, and where their translation goes. How texts are translated is the
command's (`service.cli.translate`), how documents are read `model.documents`.
"""

import argparse
import io
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

from model.documents.document import Document
from model.documents.formats import KINDS, kind_of, open_document
from model.documents.limits import DocumentLimits
from model.errors import ConfigError, DataError, DocumentError
from service.cli.line_input import Input, opened_bytes
from service.cli.read_files import ReadFiles

LINES = "lines"
_SAMPLE_TEXTS = 50
_ARCHIVES = frozenset({"docx", "pptx", "xlsx", "odt", "odp", "epub"})


class Lines(Protocol):
    """What translates texts; see `service.cli.translate`."""

    def lines(
        self, rows: Sequence[tuple[str, str]], *, is_nearest: bool
    ) -> Iterator[tuple[int, str]]:
        """Each row's translation when it is ready: the row's index, and the text."""


def add_format_argument(parser: argparse.ArgumentParser) -> None:
    """Add the flag that says what a file is."""
    parser.add_argument(
        "--format",
        choices=[LINES, *KINDS],
        metavar="FORMAT",
        help=f"what FILE is: {LINES}, of which each is translated by itself, or a document"
        f" ({', '.join(KINDS)}); by default what its name ends in, and .txt is {LINES}",
    )


def opened_document(source: Input, arguments: argparse.Namespace) -> Document | None:
    """The document that a command translates; None for lines.

    Raises:
        ConfigError: It is an archive, and no file is named for it; or lines are asked for too.
        DataError: It cannot be read.
    """
    kind = _kind(source, arguments)
    if kind is None:
        return None
    limits = DocumentLimits()
    try:
        with opened_bytes(source) as stream:
            return open_document(_at_most(stream, limits.max_bytes + 1), kind, limits=limits)
    except OSError as error:
        raise DataError(f"{source.name}: {error.strerror}") from error
    except DocumentError as error:
        raise DataError(f"{source.name}: {error}") from error


def _kind(source: Input, arguments: argparse.Namespace) -> str | None:
    asked: str | None = arguments.format
    kind = asked or (kind_of(source.name) if source.text is None else None)
    if kind in (None, LINES) or (asked is None and kind == "txt"):
        return None
    if arguments.nearest_to is not None:
        if asked is not None:
            raise ConfigError(f"--nearest-to goes with --format {LINES}, not {asked}")
        return None
    if kind in _ARCHIVES and arguments.output is None:
        raise ConfigError(f"a {kind} document is no text for a terminal: name a file with --output")
    return kind


def _at_most(stream: io.RawIOBase | io.BufferedIOBase, num_bytes: int) -> bytes:
    """All bytes, or so many of them: a pipe gives some at a time."""
    found = bytearray()
    while len(found) < num_bytes and (block := stream.read(num_bytes - len(found))):
        found += block
    return bytes(found)


def document_sample(document: Document) -> str:
    """Its first texts, to see which language they are in."""
    return "\n".join(document.texts[:_SAMPLE_TEXTS])


def translate_document(
    document: Document, work: Lines, output: Path | None, read: ReadFiles
) -> None:
    """Translate a document; its file appears when it is whole.

    Raises:
        DataError: The output cannot be written.
    """
    from tqdm import tqdm

    if output is not None:
        read.refuse(output, output)
    rows = [(text, "") for text in document.texts]
    found = {}
    with tqdm(total=len(rows), unit=" texts", disable=not sys.stderr.isatty()) as bar:
        for index, text in work.lines(rows, is_nearest=False):
            found[index] = text
            bar.update()
    result = document.rebuild([found[index] for index in range(len(rows))])
    if output is None:
        sys.stdout.buffer.write(result)
        sys.stdout.flush()
    else:
        _write(output, result)


def _write(path: Path, data: bytes) -> None:
    final = Path(os.path.realpath(path))  # a link stays one
    partial = final.with_name(f".{final.name}.partial")
    try:
        try:
            partial.write_bytes(data)
            partial.replace(final)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}") from error
