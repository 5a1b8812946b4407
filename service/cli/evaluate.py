"""`dragoman evaluate`: BLEU and chrF of a checkpoint on a source and a reference file.

Owns the flags and the printing. The scores are `model.evaluate`'s.
"""

import argparse
import sys
from contextlib import ExitStack
from pathlib import Path

from service.cli.line_output import opened_output
from service.cli.offline import add_search_arguments, chosen_pair, chosen_search, set_threads
from service.cli.signals import leaving_at_once

HELP = "score a checkpoint's translations by BLEU and chrF"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags."""
    parser.add_argument("checkpoint", type=Path, help="checkpoint directory")
    parser.add_argument("source", type=Path, help="UTF-8 text, one line a segment, or .gz")
    parser.add_argument("reference", type=Path, help="its translation, line by line")
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

        from model.evaluate import evaluate
        from model.loading import load_for_decoding
        from model.train.data import iterate_parallel
        from model.translator import Translator
        from service.engine.loading import resolve_device

    set_threads(arguments)
    search = chosen_search(arguments)
    lines = iterate_parallel(arguments.source, arguments.reference, may_be_blank=True)
    sources, references = zip(*lines, strict=True)  # before the checkpoint, which takes longer
    checkpoint = load_for_decoding(
        arguments.checkpoint,
        device=resolve_device(arguments.device),
        compute_type=arguments.compute_type,
    )
    pair = chosen_pair(arguments, checkpoint.manifest)
    is_hidden = not sys.stderr.isatty()
    with ExitStack() as stack:
        output = None
        if arguments.output is not None:
            output = stack.enter_context(opened_output(arguments.output, None))
        bar = stack.enter_context(tqdm(unit=" segments", disable=is_hidden, file=sys.stderr))

        def advance(num_segments: int) -> None:
            bar.update(num_segments)

        found = evaluate(
            Translator(checkpoint, max_rows=max(128, search.beam_size)),
            pair,
            sources,
            references,
            search=search,
            tokenizer=arguments.tokenize,
            on_finished=advance,
        )
        if output is not None:
            output.write(found.hypotheses)
    print(found.scores.bleu)
    print(found.scores.chrf)
    return 0
