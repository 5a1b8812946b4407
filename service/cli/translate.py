"""`dragoman translate`: a file or standard input to standard output, line by line.

Owns the flags, the reading and the writing. The translating is `model.translator`, which
decodes exactly as the server does.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from model.errors import ConfigError, DataError

if TYPE_CHECKING:
    from model.checkpoint.manifest import LanguagePair, Manifest

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
    parser.add_argument("--source", help="source language, if the checkpoint has several")
    parser.add_argument("--target", help="target language, if the checkpoint has several")
    parser.add_argument("--beam-size", type=int, default=4, help="beams (%(default)s)")
    parser.add_argument(
        "--length-penalty", type=float, default=1.0, help="exponent of the score (%(default)s)"
    )
    parser.add_argument(
        "--max-rows", type=int, default=128, help="beam rows decoded at once (%(default)s)"
    )
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    parser.add_argument("--threads", type=int, help="CPU threads")


def run(arguments: argparse.Namespace) -> int:
    """Translate; output line n is input line n.

    Raises:
        CheckpointError: The checkpoint cannot be used.
        ConfigError: The languages or the search are impossible.
        DataError: The input cannot be read or is not UTF-8.
    """
    import torch
    from tqdm import tqdm

    from model.checkpoint.weights import load_checkpoint
    from model.config import SearchConfig
    from model.translator import Translator
    from service.engine.runner import resolve_device

    if arguments.threads is not None:
        torch.set_num_threads(arguments.threads)
    search = SearchConfig(beam_size=arguments.beam_size, length_penalty=arguments.length_penalty)
    checkpoint = load_checkpoint(arguments.checkpoint, device=resolve_device(arguments.device))
    translator = Translator(checkpoint, max_rows=max(arguments.max_rows, search.beam_size))
    pair = _choose_pair(checkpoint.manifest, arguments.source, arguments.target)
    is_hidden = not sys.stderr.isatty()
    with (
        _opened(arguments.file) as stream,
        tqdm(unit=" lines", disable=is_hidden, file=sys.stderr) as bar,
    ):
        for lines in _pieces(stream, arguments.file):
            for translation in translator.translate(lines, pair, search):
                sys.stdout.write(translation.text + "\n")
            sys.stdout.flush()
            bar.update(len(lines))
    return 0


def _choose_pair(manifest: "Manifest", source: str | None, target: str | None) -> "LanguagePair":
    fitting = [
        pair
        for pair in manifest.pairs
        if source in (None, pair.source) and target in (None, pair.target)
    ]
    if len(fitting) == 1:
        return fitting[0]
    loaded = ", ".join(f"{pair.source} → {pair.target}" for pair in manifest.pairs)
    raise ConfigError(
        f"{len(fitting)} language pairs fit --source {source} --target {target};"
        f" the checkpoint has {loaded}"
    )


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
