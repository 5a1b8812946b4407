"""`dragoman translate`: a file or standard input to standard output or a file, line by line.

Owns the flags, the reading and the order of things. The translating is `model.translator`, which
decodes exactly as the server does; an output file is `service.cli.line_output`'s.
"""

import argparse
import gzip
import hashlib
import sys
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from itertools import islice, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from model.errors import DataError
from model.paths import exists, is_file, is_folder
from service.cli.line_output import LineOutput, opened_output
from service.cli.offline import (
    MAX_ROWS,
    add_search_arguments,
    check_count,
    chosen_pair,
    chosen_search,
    set_threads,
)
from service.cli.signals import leaving_at_once

if TYPE_CHECKING:
    from model.checkpoint.manifest import LanguagePair
    from model.config import SearchConfig

HELP = "translate a file or standard input, line by line"

_LINES_AT_ONCE = 2_000
_LINES_AT_ONCE_TO_A_FILE = 4_000  # nobody waits for the first: fuller batches


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
        "--nearest-to",
        metavar="REFERENCE",
        help="of each line's beam, write the translation nearest to this file's line by chrF, as a"
        " student's text",
    )
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
    with leaving_at_once():
        from tqdm import tqdm

        from model.evaluate import nearest
        from model.loading import load_for_decoding
        from model.translator import Translator
        from service.engine.loading import resolve_device

    set_threads(arguments)
    search = chosen_search(arguments)
    check_count("--max-rows", arguments.max_rows, MAX_ROWS)
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

        references = None
        if arguments.nearest_to is not None:
            references = stack.enter_context(_opened(arguments.nearest_to))
        rows = _rows(_lines(stream, arguments.file), references, arguments)
        if output is not None:
            _pass_over(rows, output.num_done, arguments)
        num_lines = _LINES_AT_ONCE if output is None else _LINES_AT_ONCE_TO_A_FILE
        while chunk := list(islice(rows, num_lines)):
            lines = [line for line, _ in chunk]
            if references is None:
                translations = translator.translate(lines, pair, search, on_finished=advance)
                _write([translation.text for translation in translations], output)
                continue
            wide = replace(search, num_hypotheses=search.beam_size)
            found = translator.alternatives(lines, pair, wide, on_finished=advance)
            choices = zip(found, chunk, strict=True)
            _write([nearest([t.text for t in own], row[1]) for own, row in choices], output)
    return 0


def _pass_over(
    rows: Iterator[tuple[str, str]], num_done: int, arguments: argparse.Namespace
) -> None:
    if sum(1 for _ in islice(rows, num_done)) < num_done:
        raise DataError(
            f"{arguments.output}: an interrupted command has left {num_done} lines of it, more than"
            f" {arguments.file} has; remove its .partial file"
        )


def _write(lines: list[str], output: LineOutput | None) -> None:
    if output is not None:
        output.write(lines)
        return
    sys.stdout.writelines(f"{line}\n" for line in lines)
    sys.stdout.flush()


def _rows(
    lines: Iterator[str], references: TextIO | None, arguments: argparse.Namespace
) -> Iterator[tuple[str, str]]:
    """Each line with its reference, which is empty where there is no file of them."""
    if references is None:
        yield from ((line, "") for line in lines)
        return
    reference_lines = _lines(references, arguments.nearest_to)
    for number, (line, reference) in enumerate(zip_longest(lines, reference_lines), start=1):
        if line is None or reference is None:
            shorter = arguments.file if line is None else arguments.nearest_to
            raise DataError(
                f"{shorter}:{number}: no such line; {arguments.file} and {arguments.nearest_to}"
                " need the same number of lines"
            )
        yield line, reference


def _identity(
    arguments: argparse.Namespace, pair: "LanguagePair", search: "SearchConfig", compute_type: str
) -> str | None:
    """Stands for everything the output depends on; None for a pipe, which passes once."""
    from model.checkpoint.checksums import CHECKSUMS_FILE

    inputs = [name for name in (arguments.file, arguments.nearest_to) if name is not None]
    if any(name == "-" or _is_pipe(Path(name)) for name in inputs):
        return None
    names = [str(arguments.checkpoint / CHECKSUMS_FILE), *inputs]
    parts = [repr((pair, search, compute_type))]
    for name in names:
        try:
            with Path(name).open("rb") as stream:
                parts.append(hashlib.file_digest(stream, "sha256").hexdigest())
        except OSError as error:
            raise DataError(f"{name}: {error.strerror}") from error
    return hashlib.sha256(" ".join(parts).encode()).hexdigest()[:16]


def _is_pipe(path: Path) -> bool:
    return exists(path) and not is_file(path) and not is_folder(path)


def _opened(name: str) -> TextIO:
    """The input, with line feeds as the only line ends, so that nothing else is touched."""
    source: int | str = sys.stdin.fileno() if name == "-" else name
    try:
        if name.endswith(".gz"):
            return gzip.open(name, "rt", encoding="utf-8", newline="\n")
        return open(source, encoding="utf-8", newline="\n", closefd=name != "-")
    except OSError as error:
        raise DataError(f"{name}: {error.strerror}") from error


def _lines(stream: TextIO, name: str) -> Iterator[str]:
    try:
        for line in stream:
            yield line.removesuffix("\n")
    except UnicodeDecodeError as error:
        raise DataError(
            f"{name}: not valid UTF-8 ({error.reason} at byte {error.start})"
        ) from error
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{name}: {error}") from error
