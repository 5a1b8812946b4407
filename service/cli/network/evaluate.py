"""`dragoman evaluate`: BLEU and chrF of a checkpoint on a source and a reference file.

Owns the flags and the printing. The scores are `model.offline.evaluate`'s.
"""

import argparse
import sys
from contextlib import ExitStack
from pathlib import Path

from service.cli.arguments.directions import chosen_direction
from service.cli.arguments.offline import (
    add_search_arguments,
    chosen_search,
    chosen_threads,
)
from service.cli.arguments.opening import opened_by_flags
from service.cli.signals import leaving_at_once
from service.cli.streams.line_output import opened_output
from service.cli.streams.read_files import ReadFiles

HELP = "score a checkpoint's translations by BLEU and chrF"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.usage = "%(prog)s [options] [CHECKPOINT] SOURCE REFERENCE"
    parser.add_argument(
        "first",
        type=Path,
        metavar="CHECKPOINT",
        help="a checkpoint, or a folder of several, of which --from and --to choose one; may be"
        " left out (DRAGOMAN_CHECKPOINT, else the bundled ones)",
    )
    parser.add_argument(
        "second", type=Path, metavar="SOURCE", help="UTF-8 text, one line a segment, or .gz"
    )
    parser.add_argument(
        "third",
        type=Path,
        nargs="?",
        metavar="REFERENCE",
        help="its translation, line by line",
    )
    parser.add_argument(
        "--tokenize",
        metavar="NAME",
        help="sacrebleu's tokenizer: 13a, intl, zh, ja-mecab, ko-mecab, char or none"
        " (default: by the target language)",
    )
    add_search_arguments(parser)
    parser.add_argument("--output", type=Path, help="also write the translations here")


def run(arguments: argparse.Namespace) -> int:
    """Translate, score, print two lines.

    Raises:
        CheckpointError: The checkpoint cannot be used.
        ConfigError: The flags are impossible.
        DataError: The files cannot be read, are empty, or have different numbers of lines.
    """
    with leaving_at_once():
        from tqdm import tqdm

        from model.offline.evaluate import check_tokenizer, default_tokenizer, score
        from model.train.data.parallel import iterate_parallel

    num_threads = chosen_threads(arguments)
    search = chosen_search(arguments)
    path, source, reference = _paths(arguments)
    ReadFiles([source, reference]).refuse_streams()
    lines = iterate_parallel(source, reference, may_be_blank=True)
    sources, references = zip(*lines, strict=True)  # before the checkpoint, which takes longer
    direction = chosen_direction(arguments, path)
    tokenizer = arguments.tokenize or default_tokenizer(direction.pair.target)
    check_tokenizer(tokenizer)
    read = ReadFiles([source, reference], folders=[direction.directory])
    max_rows = max(128, search.beam_size)
    opened = opened_by_flags(direction, arguments, num_threads=num_threads, max_rows=max_rows)
    is_hidden = not sys.stderr.isatty()
    with ExitStack() as stack:
        output = None
        if arguments.output is not None:
            output = stack.enter_context(opened_output(arguments.output, None, read=read))
        bar = stack.enter_context(tqdm(unit=" segments", disable=is_hidden, file=sys.stderr))

        def advance(num_segments: int) -> None:
            bar.update(num_segments)

        translations = opened.translator.translate(
            sources, direction.pair, search, on_finished=advance
        )
        hypotheses = [translation.text for translation in translations]
        if output is not None:
            output.write(hypotheses)
    scores = score(hypotheses, references, tokenizer=tokenizer)  # what is written stays if it fails
    print(scores.bleu)
    print(scores.chrf)
    return 0


def _paths(arguments: argparse.Namespace) -> tuple[Path | None, Path, Path]:
    """Checkpoint, if one is named, source and reference."""
    if arguments.third is None:
        return None, arguments.first, arguments.second
    return arguments.first, arguments.second, arguments.third
