"""`dragoman evaluate`: BLEU and chrF of a checkpoint on a source and a reference file.

Owns the flags and the printing. The scores are `model.evaluate`'s.
"""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from model.errors import ConfigError, DataError

if TYPE_CHECKING:
    from model.checkpoint.manifest import LanguagePair, Manifest

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
    parser.add_argument("--from", dest="source_language", help="if the checkpoint has several")
    parser.add_argument("--to", dest="target_language", help="if the checkpoint has several")
    parser.add_argument("--beam-size", type=int, default=4, help="beams (%(default)s)")
    parser.add_argument(
        "--length-penalty", type=float, default=1.0, help="exponent of the score (%(default)s)"
    )
    parser.add_argument("--output", type=Path, help="also write the translations here")
    parser.add_argument("--threads", type=int, help="CPU threads")
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")


def run(arguments: argparse.Namespace) -> int:
    """Translate, score, print two lines.

    Raises:
        CheckpointError: The checkpoint cannot be used.
        ConfigError: The flags are impossible.
        DataError: The files cannot be read or do not match.
    """
    import torch
    from tqdm import tqdm

    from model.checkpoint.weights import load_checkpoint
    from model.config import SearchConfig
    from model.evaluate import evaluate
    from model.train.data import read_lines
    from model.translator import Translator
    from service.engine.runner import resolve_device

    if arguments.threads is not None:
        if arguments.threads < 1:
            raise ConfigError(f"--threads is {arguments.threads}; it must be at least 1")
        torch.set_num_threads(arguments.threads)
    search = SearchConfig(beam_size=arguments.beam_size, length_penalty=arguments.length_penalty)
    checkpoint = load_checkpoint(arguments.checkpoint, device=resolve_device(arguments.device))
    pair = _choose_pair(checkpoint.manifest, arguments.source_language, arguments.target_language)
    sources, references = read_lines(arguments.source), read_lines(arguments.reference)
    is_hidden = not sys.stderr.isatty()
    with tqdm(unit=" segments", disable=is_hidden, file=sys.stderr) as bar:

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
    print(found.scores.bleu)
    print(found.scores.chrf)
    if arguments.output is not None:
        _write(arguments.output, found.hypotheses)
    return 0


def _choose_pair(manifest: "Manifest", source: str | None, target: str | None) -> "LanguagePair":
    fitting = [
        pair
        for pair in manifest.pairs
        if source in {None, pair.source} and target in {None, pair.target}
    ]
    if len(fitting) != 1:
        loaded = ", ".join(f"{pair.source} → {pair.target}" for pair in manifest.pairs)
        raise ConfigError(
            f"{len(fitting)} language pairs fit --from {source} --to {target}; the checkpoint has"
            f" {loaded}"
        )
    return fitting[0]


def _write(path: Path, lines: tuple[str, ...]) -> None:
    try:
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
    except OSError as error:
        raise DataError(f"{path}: {error.strerror or error}") from error
