"""`dragoman shortlist`: a copy of a checkpoint with a lexical shortlist learnt from aligned text.

Owns the flags and the order of things, and which directions a text teaches. The table is
`model.train.lexicon`'s, the copy `model.checkpoint.shortlist`'s.
"""

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from model.errors import ConfigError
from service.cli.arguments.directions import chosen_direction
from service.cli.arguments.offline import add_pair_arguments, check_count
from service.cli.streams.read_files import ReadFiles

if TYPE_CHECKING:
    from model.checkpoint.manifest import Manifest
    from model.text.languages.tags import LanguagePair
    from model.text.subwords.tokenizer import Tokenizer

HELP = "learn a lexical shortlist from aligned text, and write a copy of a checkpoint that has it"

_MAX_LISTED = 10_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("checkpoint", type=Path, help="checkpoint directory; it stays as it is")
    parser.add_argument(
        "source", type=Path, metavar="SOURCE", help="UTF-8 text, one line a segment, or .gz"
    )
    parser.add_argument("target", type=Path, metavar="TARGET", help="its translation, line by line")
    parser.add_argument("output", type=Path, help="directory of the copy, which must not exist yet")
    add_pair_arguments(parser)
    parser.add_argument(
        "--frequent",
        type=int,
        default=100,
        help="target tokens that are always listed, the most frequent (%(default)s)",
    )
    parser.add_argument(
        "--best",
        type=int,
        default=100,
        help="target tokens of each source token, the likeliest (%(default)s)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Learn, write, print where.

    Raises:
        CheckpointError: The checkpoint cannot be used, or the copy cannot be written.
        ConfigError: The flags are impossible, or the checkpoint has directions that the text does
            not teach.
        DataError: The files cannot be read, are empty, or have different numbers of lines.
    """
    from tqdm import tqdm

    from model.checkpoint.description.config_file import read_manifest
    from model.checkpoint.shortlist import CARD_HEAD, add_shortlist, check_new
    from model.checkpoint.tokenizer import load_tokenizer
    from model.train.data.parallel import iterate_parallel
    from model.train.lexicon import learn_shortlist

    check_count("--frequent", arguments.frequent, _MAX_LISTED)
    check_count("--best", arguments.best, _MAX_LISTED)
    ReadFiles([arguments.source, arguments.target]).refuse_streams()
    check_new(arguments.output)  # and not when all has been learnt
    direction = chosen_direction(arguments, arguments.checkpoint)
    manifest = read_manifest(direction.directory)
    pairs = _directions_of(manifest, direction.pair)
    tokenizer = load_tokenizer(direction.directory, manifest)
    lines = iterate_parallel(arguments.source, arguments.target, may_be_blank=True)
    shown = tqdm(lines, unit=" lines", disable=not sys.stderr.isatty(), file=sys.stderr)
    learnt = learn_shortlist(
        _segments(shown, tokenizer, pairs),
        num_sources=manifest.network.vocab_size,
        num_targets=manifest.network.output_size,
        num_frequent=arguments.frequent,
        num_best=arguments.best,
        with_source=manifest.files.source_vocabulary == manifest.files.target_vocabulary,
    )
    num_lines = learnt.num_segments // len(pairs)
    note = (
        f"{CARD_HEAD}\n\nLearnt from {num_lines} aligned lines by IBM model 1: the"
        f" {arguments.frequent} most frequent target tokens and the {arguments.best} likeliest"
        " of each source token. It is used where it is asked for."
    )
    add_shortlist(direction.directory, arguments.output, learnt.shortlist, note=note)
    print(f"{arguments.output}: learnt from {num_lines} lines")
    return 0


def _directions_of(manifest: "Manifest", pair: "LanguagePair") -> list["LanguagePair"]:
    """The direction of a text and, if the checkpoint has it, the one back.

    Raises:
        ConfigError: The checkpoint has others: nothing would be listed for them.
    """
    back = manifest.pair(pair.target, pair.source)
    pairs = [pair] if back is None else [pair, back]
    others = [other for other in manifest.pairs if other not in pairs]
    if others:
        raise ConfigError(
            f"{manifest.name} has {len(manifest.pairs)} directions; text in {pair.source} and"
            f" {pair.target} teaches nothing of {others[0].source} → {others[0].target}"
        )
    return pairs


def _segments(
    lines: Iterable[tuple[str, str]], tokenizer: "Tokenizer", pairs: Sequence["LanguagePair"]
) -> Iterator[tuple[list[int], list[int]]]:
    """Ids of both sides, for each direction; lines that are blank on one side teach nothing."""
    for line in lines:
        if all(text.strip() for text in line):
            for pair, (source, target) in zip(pairs, (line, line[::-1]), strict=False):
                yield tokenizer.encode(source, pair), tokenizer.encode_target(target)
