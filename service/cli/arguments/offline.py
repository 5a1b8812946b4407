"""Flags that the sub-commands without a server share, and their limits.

Owns `--from`, `--to`, `--model`, `--beam-size`, `--length-penalty`, `--threads`, `--device`,
`--compute-type` and `--shortlist`.
"""

import argparse
from typing import get_args

from model.arithmetic import ComputeType
from model.config import SearchConfig
from model.errors import ConfigError
from model.system.cores import MAX_THREADS, default_num_threads

MAX_BEAM_SIZE = 128
MAX_ROWS = 65_536
_LONG_NUMBER = 10**20


def add_pair_arguments(parser: argparse.ArgumentParser) -> None:
    """From which language to which; `service.cli.arguments.directions` reads them."""
    parser.add_argument(
        "--from",
        dest="source_language",
        metavar="LANGUAGE",
        help="source language, where there are several: en, zh, de-AT, …",
    )
    parser.add_argument(
        "--to",
        dest="target_language",
        metavar="LANGUAGE",
        help="target language, where there are several",
    )
    parser.add_argument(
        "--model",
        metavar="NAME",
        help="which checkpoint, where several have these languages (as the server chooses:"
        " DRAGOMAN_PREFERRED, else the one with the fewest directions)",
    )


def add_search_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
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
    parser.add_argument(
        "--shortlist",
        action="store_true",
        help="choose only among the tokens that the checkpoint's lexical shortlist has for each"
        " sentence; on a CPU",
    )


def chosen_search(arguments: argparse.Namespace) -> SearchConfig:
    """The search that the flags ask for.

    Raises:
        ConfigError: It is impossible.
    """
    check_count("--beam-size", arguments.beam_size, MAX_BEAM_SIZE)
    return SearchConfig(beam_size=arguments.beam_size, length_penalty=arguments.length_penalty)


def chosen_threads(arguments: argparse.Namespace) -> int:
    """Threads of the network: the flag's, else one a core that may be used.

    Raises:
        ConfigError: There are fewer than one, or more than any machine is good for.
    """
    if arguments.threads is None:
        return default_num_threads()
    check_count("--threads", arguments.threads, MAX_THREADS)
    threads: int = arguments.threads
    return threads


def check_count(flag: str, value: int, limit: int) -> None:
    """Refuse a number of something that a flag cannot be.

    Raises:
        ConfigError: It is not from 1 to `limit`.
    """
    if not 1 <= value <= limit:
        raise ConfigError(f"{flag} is {_shown(value)}; it must be from 1 to {limit}")


def _shown(value: int) -> str:
    return str(value) if abs(value) < _LONG_NUMBER else "a number of more than 20 digits"
