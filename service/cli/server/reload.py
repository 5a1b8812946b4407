"""`dragoman reload`: the checkpoints of all servers behind a name, loaded anew.

Owns the flags, where the key comes from, and what is printed. Whom it asks, and how often, is
`service.cli.server.fleet`.
"""

import argparse
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from model.errors import ConfigError
from service.cli.arguments.offline import check_count

if TYPE_CHECKING:
    from service.cli.server.fleet import Outcome

HELP = "load the checkpoints of all servers behind a name anew, without a pause"
STANDARD_INPUT = "-"
_MAX_SECONDS = 86_400
_MAX_AT_ONCE = 64


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument(
        "--service",
        dest="names",
        action="append",
        required=True,
        metavar="NAME",
        help="name whose addresses are servers, such as a headless Service; or an address; may be"
        " repeated",
    )
    parser.add_argument("--port", type=int, default=8000, help="of each of them (%(default)s)")
    parser.add_argument(
        "--key-file",
        required=True,
        metavar="FILE",
        help=f"file with an administrator's API key; {STANDARD_INPUT} for standard input",
    )
    parser.add_argument(
        "--timeout",
        type=float,
        default=300.0,
        metavar="SECONDS",
        help="time of each server, in which it is asked again while it starts (%(default)g)",
    )
    parser.add_argument(
        "--at-once",
        type=int,
        default=1,
        metavar="N",
        help="servers that are reloaded at the same time (%(default)s)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Reload; one line for each server on standard output.

    Raises:
        ConfigError: A flag is impossible, or the file holds no key.
        FleetError: No server is there, or not all serve the same new checkpoints.
    """
    from service.cli.server.fleet import Fleet, FleetError, common_problem

    check_count("--port", arguments.port, 65_535)
    check_count("--at-once", arguments.at_once, _MAX_AT_ONCE)
    if not (math.isfinite(arguments.timeout) and 0 < arguments.timeout <= _MAX_SECONDS):
        raise ConfigError(
            f"--timeout is {arguments.timeout:g}; it must be above 0, and at most {_MAX_SECONDS}"
        )
    fleet = Fleet(
        names=tuple(arguments.names),
        port=arguments.port,
        key=_key(arguments.key_file),
        seconds=arguments.timeout,
    )
    outcomes: list[Outcome] = []
    for outcome in fleet.reload(at_once=arguments.at_once):
        print(_line(outcome), flush=True)
        outcomes.append(outcome)
    if problem := common_problem(outcomes):
        raise FleetError(problem)
    return 0


def _line(outcome: "Outcome") -> str:
    """What is said of one server."""
    if outcome.has_left:
        return f"{outcome.address}: has left"
    if outcome.checkpoints is None:
        return f"{outcome.address}: NOT reloaded: {outcome.problem}"
    line = f"{outcome.address}: reloaded: {', '.join(outcome.checkpoints)}"
    return line + "".join(f"; FAULTY: {fault}" for fault in outcome.faulty)


def _key(name: str) -> str:
    """The key in a file.

    Raises:
        ConfigError: There is none, or more than one word.
    """
    key = _read(name).strip()
    if not (key.isascii() and key.isprintable() and key and " " not in key):
        shown = "standard input" if name == STANDARD_INPUT else name
        raise ConfigError(f"{shown} holds no API key: it must be one word of ASCII characters")
    return key


def _read(name: str) -> str:
    """The text of a file or of standard input; none where bytes of it are no text."""
    try:
        return sys.stdin.read() if name == STANDARD_INPUT else Path(name).read_text("utf-8")
    except UnicodeDecodeError:
        return ""
