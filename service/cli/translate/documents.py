"""Documents on the command line: a file of a known kind is translated as one, not line by line.

Owns which files those are, and where their translation goes. How texts are translated is the
command's (`service.cli.translate.translate`), how documents are read `model.documents`.
"""

import argparse
import gzip
import io
import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

from model.documents.kinds import KINDS, kind_of
from model.documents.notation.document import Document
from model.documents.notation.limits import DocumentLimits
from model.errors import ConfigError, DataError, DocumentError
from service.cli.streams.beginnings import beginning
from service.cli.streams.line_input import Input, opened_bytes, read_block
from service.cli.streams.line_output import PACKED_SUFFIX, LineOutput, Make

LINES = "lines"
_PLAIN = frozenset({"txt", "md"})
"""Kinds of which either can be read as the other."""
_ARCHIVES = frozenset({"docx", "pptx", "xlsx", "odt", "ods", "odp", "epub"})


class Lines(Protocol):
    """Protocol of what translates texts; see `service.cli.translate.translate`."""

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
    from model.documents.formats import open_document

    limits = DocumentLimits()
    try:
        with opened_bytes(source) as stream:
            data = _at_most(stream, limits.max_bytes + 1, source.name)
        return open_document(data, kind, limits=limits)
    except DocumentError as error:
        raise DataError(f"{source.name}: {error}") from error


def _kind(source: Input, arguments: argparse.Namespace) -> str | None:
    asked: str | None = arguments.format
    kind = asked or _named_kind(source)
    if kind in (None, LINES) or (asked is None and kind == "txt"):
        return None
    if arguments.nearest_to is not None:
        if asked is not None:
            raise ConfigError(f"--nearest-to goes with --format {LINES}, not {asked}")
        return None
    if kind in _ARCHIVES and arguments.output is None:
        raise ConfigError(f"a {kind} document is no text for a terminal: name a file with --output")
    return kind


def _named_kind(source: Input) -> str | None:
    """The kind that the name of a file says, packed or not; None of a text."""
    return _kind_of_packed(source.name) if source.text is None else None


def _kind_of_packed(name: str) -> str | None:
    return kind_of(name.removesuffix(PACKED_SUFFIX))


def check_output(
    output: Path, document: Document | None, source: Input, *, asked: str | None
) -> None:
    """Refuse a name that promises another kind of document than is written.

    Args:
        output: The file that is written.
        document: What is translated; None of lines, which may be called what their input is.
        source: The input.
        asked: What `--format` says; lines that are asked for may be called as any text.

    Raises:
        ConfigError: Nothing would open the file as what it is called.
    """
    promised = _kind_of_packed(output.name)
    written = "txt" if document is None else document.kind
    if promised in (None, written) or _PLAIN.issuperset({promised, written}):
        return
    hint = "a document keeps its kind"
    if document is None:
        is_text = promised not in _ARCHIVES
        if is_text and (asked == LINES or promised == _named_kind(source)):
            return
        hint = f"--format {LINES} if it is to have that name" if is_text else "name it .txt"
    raise ConfigError(
        f"--output {output} is named as {promised}, and what is written is {written}; {hint}"
    )


def _at_most(stream: io.RawIOBase | io.BufferedIOBase, num_bytes: int, name: str) -> bytes:
    """All bytes, or so many of them: a pipe gives some at a time."""
    found = bytearray()
    while len(found) < num_bytes and (block := read_block(stream, num_bytes - len(found), name)):
        found += block
    return bytes(found)


def document_facts(document: Document | None) -> list[object]:
    """What the output of a document depends on; none of lines.

    The digest of standard input is no such fact: all of it has been read by now.
    """
    return [] if document is None else [document.kind, document.texts]


def document_sample(document: Document) -> str | None:
    """Its first texts, to see which language they are in; None as of `beginning`."""
    return beginning(document.texts)


def translate_document(
    document: Document, work: Lines, output: LineOutput | None, *, language: str | None = None
) -> None:
    """Translate the texts of a document that are not in `output` yet; without one, write it out.

    Args:
        document: What is translated.
        work: What translates.
        output: Where texts are kept, each as a line of JSON; `maker` makes the document of them.
        language: Tag of the translations' language, as of `maker`.
    """
    from tqdm import tqdm

    rows = [(text, "") for text in document.texts]
    kept = set() if output is None else {*range(output.num_done), *output.ahead}
    missing = [index for index in range(len(rows)) if index not in kept]
    found: dict[int, str] = {}
    is_hidden = not sys.stderr.isatty()
    with tqdm(total=len(rows), initial=len(kept), unit=" texts", disable=is_hidden) as bar:
        for place, text in work.lines([rows[index] for index in missing], is_nearest=False):
            if output is None:
                found[place] = text
            else:
                output.keep(missing[place], json.dumps(text))
            bar.update()
    if output is not None:
        output.settle(len(rows) - output.num_done)
        return
    translations = [found[index] for index in range(len(rows))]
    sys.stdout.buffer.write(document.rebuild(translations, language))
    sys.stdout.flush()


def maker(document: Document, language: str | None = None, *, is_packed: bool = False) -> Make:
    """What makes the translated document of its texts, once all of them are there.

    Args:
        document: What is translated.
        language: Tag of the translations' language; None if they are the texts as they were.
        is_packed: By gzip.
    """

    def make(lines: Path, path: Path) -> None:
        with lines.open(encoding="ascii") as texts, path.open("wb") as file:
            made = document.rebuild([json.loads(text) for text in texts], language)
            file.write(gzip.compress(made, mtime=0) if is_packed else made)
            file.flush()
            os.fsync(file.fileno())

    return make
