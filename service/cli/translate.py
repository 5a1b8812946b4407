"""`dragoman translate`: a file or standard input to standard output or a file, line by line.

Owns the flags, the reading and the order of things. The translating is `model.translator`, which
decodes exactly as the server does; an output file is `service.cli.line_output`'s.
"""

import argparse
import gzip
import hashlib
import sys
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from model.errors import DataError
from service.cli.line_output import LineOutput, opened_output
from service.cli.offline import add_search_arguments, chosen_pair, chosen_search, set_threads

if TYPE_CHECKING:
    from model.checkpoint.manifest import LanguagePair
    from model.config import SearchConfig

HELP = "translate a file or standard input, line by line"

_LINES_AT_ONCE = 2_000
_LINES_AT_ONCE_TO_A_FILE = 10_000  # nobody waits for the first: fuller batches


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags."""
    parser.add_argument(
        "file",
        nargs="?",
        default="-",
        metavar="FILE",
        help="UTF-8 text or .gz, - for standard input",
    )
    parser.add_argument(
        "--output",
        type=Path,
        metavar="FILE",
        help="write here, .gz is packed; the file appears when it is whole, and the same command"
        " goes on where it was interrupted",
    )
    parser.add_argument(
        "--checkpoint",
        type=Path,
        default=Path("checkpoints/en-zh-small"),
        help="checkpoint directory (%(default)s)",
    )
    add_search_arguments(parser)
    parser.add_argument(
        "--max-rows", type=int, default=128, help="beam rows decoded at once (%(default)s)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Translate; output line n is input line n.

    Raises:
        CheckpointError: The checkpoint cannot be used.
        ConfigError: The languages or the search are impossible.
        DataError: The input cannot be read or is not UTF-8.
    """
    from tqdm import tqdm

    from model.loading import load_for_decoding
    from model.translator import Translator
    from service.engine.runner import resolve_device

    set_threads(arguments)
    search = chosen_search(arguments)
    checkpoint = load_for_decoding(
        arguments.checkpoint,
        device=resolve_device(arguments.device),
        compute_type=arguments.compute_type,
    )
    translator = Translator(checkpoint, max_rows=max(arguments.max_rows, search.beam_size))
    pair = chosen_pair(arguments, checkpoint.manifest)
    with ExitStack() as stack:
        output = None
        if arguments.output is not None:
            identity = _identity(arguments, pair, search, checkpoint.compute_type)
            output = stack.enter_context(opened_output(arguments.output, identity))
        stream = stack.enter_context(_opened(arguments.file))
        bar = stack.enter_context(
            tqdm(unit=" segments", disable=not sys.stderr.isatty(), file=sys.stderr)
        )

        def advance(num_segments: int) -> None:
            bar.update(num_segments)

        num_lines = _LINES_AT_ONCE if output is None else _LINES_AT_ONCE_TO_A_FILE
        pieces = _pieces(stream, arguments.file, num_lines)
        for lines in pieces if output is None else _remaining(pieces, output.num_done):
            found = translator.translate(lines, pair, search, on_finished=advance)
            _write([translation.text for translation in found], output)
    return 0


def _write(lines: list[str], output: LineOutput | None) -> None:
    if output is not None:
        output.write(lines)
        return
    sys.stdout.writelines(f"{line}\n" for line in lines)
    sys.stdout.flush()


def _remaining(pieces: Iterator[Sequence[str]], num_done: int) -> Iterator[Sequence[str]]:
    """The lines after the first `num_done`."""
    for lines in pieces:
        rest = lines[num_done:]
        num_done = max(0, num_done - len(lines))
        if rest:
            yield rest


def _identity(
    arguments: argparse.Namespace, pair: "LanguagePair", search: "SearchConfig", compute_type: str
) -> str | None:
    """Stands for everything the output depends on; None for standard input, which passes once."""
    from model.checkpoint.checksums import CHECKSUMS_FILE

    if arguments.file == "-":
        return None
    listing = arguments.checkpoint / CHECKSUMS_FILE
    try:
        with Path(arguments.file).open("rb") as stream:
            text = hashlib.file_digest(stream, "sha256").hexdigest()
        weights = hashlib.sha256(listing.read_bytes()).hexdigest()
    except OSError as error:
        raise DataError(f"{error.filename}: {error.strerror}") from error
    parts = repr((weights, text, pair, search, compute_type))
    return hashlib.sha256(parts.encode()).hexdigest()[:16]


def _opened(name: str) -> TextIO:
    """The input, with line feeds as the only line ends, so that nothing else is touched."""
    source: int | str = sys.stdin.fileno() if name == "-" else name
    try:
        if name.endswith(".gz"):
            return gzip.open(name, "rt", encoding="utf-8", newline="\n")
        return open(source, encoding="utf-8", newline="\n", closefd=name != "-")
    except OSError as error:
        raise DataError(f"{name}: {error.strerror}") from error


def _pieces(stream: TextIO, name: str, num_lines: int) -> Iterator[Sequence[str]]:
    try:
        while lines := [line.removesuffix("\n") for line in islice(stream, num_lines)]:
            yield lines
    except UnicodeDecodeError as error:
        raise DataError(
            f"{name}: not valid UTF-8 ({error.reason} at byte {error.start})"
        ) from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{name}: {error}") from error
