"""What the sub-commands that translate without a server share: flags of the search, the pair.

Owns `--from`, `--to`, `--beam-size`, `--length-penalty`, `--threads`, `--device` and
`--compute-type`.
"""

import argparse
from typing import TYPE_CHECKING, get_args

from model.config import MAX_THREADS, ComputeType, SearchConfig
from model.errors import ConfigError

MAX_BEAM_SIZE = 128
MAX_ROWS = 65_536
_LONG_NUMBER = 10**20

if TYPE_CHECKING:
    from model.checkpoint.manifest import LanguagePair, Manifest


def add_pair_arguments(parser: argparse.ArgumentParser) -> None:
    """From which language to which; `chosen_pair` reads them."""
    parser.add_argument(
        "--from",
        dest="source_language",
        metavar="LANGUAGE",
        help="source language, if the checkpoint has several",
    )
    parser.add_argument(
        "--to",
        dest="target_language",
        metavar="LANGUAGE",
        help="target language, if the checkpoint has several",
    )


def add_search_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags."""
    add_pair_arguments(parser)
    parser.add_argument("--beam-size", type=int, default=4, help="beams (%(default)s)")
    parser.add_argument(
        "--length-penalty", type=float, default=1.0, help="exponent of the score (%(default)s)"
    )
    parser.add_argument("--threads", type=int, help="CPU threads (one a core that may be used)")
    add_arithmetic_arguments(parser)


def add_arithmetic_arguments(parser: argparse.ArgumentParser) -> None:
    """Where the network runs, and in which arithmetic."""
    parser.add_argument(
        "--device",
        choices=("auto", "cpu", "cuda"),
        default="auto",
        help="where the network runs (%(default)s)",
    )
    parser.add_argument(
        "--compute-type",
        choices=get_args(ComputeType),
        default="auto",
        help="arithmetic of the network (%(default)s: bfloat16 on a GPU, int8 on a CPU that can,"
        " else float32)",
    )


def chosen_search(arguments: argparse.Namespace) -> SearchConfig:
    """The search that the flags ask for.

    Raises:
        ConfigError: It is impossible.
    """
    check_count("--beam-size", arguments.beam_size, MAX_BEAM_SIZE)
    return SearchConfig(beam_size=arguments.beam_size, length_penalty=arguments.length_penalty)


def set_threads(arguments: argparse.Namespace) -> None:
    """Give torch the threads that the flag asks for.

    Raises:
        ConfigError: There are fewer than one, or more than any machine is good for.
    """
    import torch

    if arguments.threads is None:
        return
    check_count("--threads", arguments.threads, MAX_THREADS)
    torch.set_num_threads(arguments.threads)


def check_count(flag: str, value: int, limit: int) -> None:
    """Refuse a number of something that a flag cannot be.

    Raises:
        ConfigError: It is not from 1 to `limit`.
    """
    if not 1 <= value <= limit:
        raise ConfigError(f"{flag} is {_shown(value)}; it must be from 1 to {limit}")


def _shown(value: int) -> str:
    return str(value) if abs(value) < _LONG_NUMBER else "a number of more than 20 digits"


def chosen_pair(arguments: argparse.Namespace, manifest: "Manifest") -> "LanguagePair":
    """The one pair of the checkpoint that the flags leave.

    Raises:
        ConfigError: They leave none, or several.
    """
    source, target = arguments.source_language, arguments.target_language
    fitting = [
        pair
        for pair in manifest.pairs
        if source in {None, pair.source} and target in {None, pair.target}
    ]
    if len(fitting) == 1:
        return fitting[0]
    loaded = ", ".join(f"{pair.source} → {pair.target}" for pair in manifest.pairs)
    raise ConfigError(
        f"{len(fitting)} language pairs fit --from {source} --to {target}; the checkpoint has"
        f" {loaded}"
    )
