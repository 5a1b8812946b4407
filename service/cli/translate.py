"""`dragoman translate`: a file or standard input to standard output, line by line.

Owns the flags, the reading and the writing. The translating is `model.translator`, which
decodes exactly as the server does.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TextIO

from model.errors import DataError
from service.cli.offline import add_search_arguments, chosen_pair, chosen_search, set_threads

HELP = "translate a file or standard input, line by line"

_LINES_AT_ONCE = 2_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags."""
    parser.add_argument(
        "file", nargs="?", default="-", metavar="FILE", help="UTF-8 text, - for standard input"
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
    from service.engine.loading import resolve_device

    set_threads(arguments)
    search = chosen_search(arguments)
    checkpoint = load_for_decoding(
        arguments.checkpoint,
        device=resolve_device(arguments.device),
        compute_type=arguments.compute_type,
    )
    translator = Translator(checkpoint, max_rows=max(arguments.max_rows, search.beam_size))
    pair = chosen_pair(arguments, checkpoint.manifest)
    is_hidden = not sys.stderr.isatty()
    with (
        _opened(arguments.file) as stream,
        tqdm(unit=" segments", disable=is_hidden, file=sys.stderr) as bar,
    ):

        def advance(num_segments: int) -> None:
            bar.update(num_segments)

        for lines in _pieces(stream, arguments.file):
            for translation in translator.translate(lines, pair, search, on_finished=advance):
                sys.stdout.write(translation.text + "\n")
            sys.stdout.flush()
    return 0


def _opened(name: str) -> TextIO:
    """The input, with line feeds as the only line ends, so that nothing else is touched."""
    source: int | str = sys.stdin.fileno() if name == "-" else name
    try:
        return open(source, encoding="utf-8", newline="\n", closefd=name != "-")
    except OSError as error:
        raise DataError(f"{name}: {error.strerror}") from error


def _pieces(stream: TextIO, name: str) -> Iterator[Sequence[str]]:
    try:
        while lines := [line.removesuffix("\n") for line in islice(stream, _LINES_AT_ONCE)]:
            yield lines
    except UnicodeDecodeError as error:
        raise DataError(
            f"{name}: not valid UTF-8 ({error.reason} at byte {error.start})"
        ) from error
