"""`dragoman explain`: pictures of what a network does with one sentence.

Owns the flags and the printing. What is drawn is `model.explain`'s.
"""

import argparse
from pathlib import Path

from model.config import SearchConfig
from model.errors import ConfigError
from model.system.paths import is_folder
from service.cli.arguments.directions import check_unreplaced, chosen_direction
from service.cli.arguments.offline import MAX_BEAM_SIZE, add_pair_arguments, check_count
from service.cli.signals import leaving_at_once
from service.cli.streams.read_files import ReadFiles

HELP = "draw attention, positions and learning rates for one sentence"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument(
        "checkpoint",
        type=Path,
        help="a checkpoint, or a folder of several, of which --from and --to choose one",
    )
    parser.add_argument("sentence", help="one sentence of the source language")
    parser.add_argument(
        "--target", help="draw how this sentence is written; without it, the translation is"
    )
    parser.add_argument(
        "--output", type=Path, default=Path("explained"), help="folder to write (%(default)s)"
    )
    parser.add_argument(
        "--experiment",
        type=Path,
        metavar="EXPERIMENT.yaml",
        help="also draw the learning rate of this experiment",
    )
    add_pair_arguments(parser)
    parser.add_argument("--beam-size", type=int, default=4, help="beams (%(default)s)")


def run(arguments: argparse.Namespace) -> int:
    """Load, translate, draw, print the page's path.

    Raises:
        CheckpointError: The checkpoint cannot be used.
        ConfigError: The flags are impossible, or matplotlib is missing.
        InputError: The sentence is several, or too long for a picture.
    """
    check_count("--beam-size", arguments.beam_size, MAX_BEAM_SIZE)
    search = SearchConfig(beam_size=arguments.beam_size)
    try:
        with leaving_at_once():
            from model.explain.labels import installed_fonts
            from model.explain.pages import write_pages
    except ImportError as error:
        raise ConfigError(
            f"explain needs a package that is not installed ({error.name});"
            " pip install -e '.[train]'"
        ) from error
    from model.checkpoint.weights import load_checkpoint
    from model.explain.sentence import explain_sentence
    from model.train.config.experiment import read_experiment

    experiment = None
    if arguments.experiment is not None:
        experiment = read_experiment(arguments.experiment)
    direction = chosen_direction(arguments, arguments.checkpoint)
    checkpoint = load_checkpoint(direction.directory)
    check_unreplaced(direction, checkpoint.manifest)
    _keep_files(arguments, direction.directory)
    explained = explain_sentence(
        checkpoint,
        direction.pair,
        arguments.sentence,
        target=arguments.target,
        search=search,
    )
    page = write_pages(
        explained,
        checkpoint.transformer,
        arguments.output,
        fonts=installed_fonts(),
        schedule=None if experiment is None else experiment.schedule,
        num_updates=None if experiment is None else experiment.run.max_updates or None,
    )
    print(page)
    return 0


def _keep_files(arguments: argparse.Namespace, checkpoint: Path) -> None:
    """Refuse an output folder in which something that is read would be replaced."""
    output: Path = arguments.output
    if not is_folder(output):
        return
    names = [] if arguments.experiment is None else [arguments.experiment]
    read = ReadFiles(names, folders=[checkpoint])
    for path in sorted(output.iterdir()):
        read.refuse(path, path)
