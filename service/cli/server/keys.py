"""`dragoman keys`: makes API keys.

Owns what is printed: the line for the keys file on standard output, the key itself on standard
error, once, so that `dragoman keys new NAME >> FILE` keeps the one and shows the other. The file
stays one that a server reads: no name comes twice, and the line begins where a line begins.
"""

import argparse
import os
import stat
import sys
from pathlib import Path

from model.errors import ConfigError

HELP = "make API keys"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """One action, `new`, and what the key may do."""
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    new = actions.add_parser(
        "new",
        help="make a key: its line for the keys file goes to standard output, the key to"
        " standard error",
    )
    new.add_argument("name", help="who it is for; letters, digits, hyphens and underscores")
    new.add_argument("--admin", action="store_true", help="it also opens the administration")
    new.add_argument("--requests-per-minute", type=int, metavar="N", help="its limit")
    new.add_argument("--characters-per-minute", type=int, metavar="N", help="its limit")


def run(arguments: argparse.Namespace) -> int:
    """Print a fresh key once, and its line.

    Raises:
        ConfigError: The name or a limit is impossible, or the file that the line would go to has
            the name already.
    """
    from service.access.key_lines import lines_by_name
    from service.access.keys import ApiKey, check_name, new_key, parse_keys

    key, digest = new_key()
    line = ApiKey(
        name=check_name(arguments.name),
        sha256=digest,
        requests_per_minute=arguments.requests_per_minute,
        characters_per_minute=arguments.characters_per_minute,
        is_admin=arguments.admin,
    ).line()
    parse_keys(line, "the new key")
    before = _appended_to()
    if places := lines_by_name(before).get(arguments.name):
        raise ConfigError(
            f"the file has a key of the name {arguments.name} already, in line {places[0]}: put the"
            " new line in its place, or give the new key another name"
        )
    print(line if before[-1:] in ("", "\n") else f"\n{line}", flush=True)
    print(f"The key, which is shown only now: {key}", file=sys.stderr)
    return 0


def _appended_to() -> str:
    """What stands in the file that standard output is; empty where that is none or is not ours."""
    try:
        output = sys.stdout.fileno()
        if not stat.S_ISREG(os.fstat(output).st_mode):
            return ""
        return Path(f"/dev/fd/{output}").read_text(encoding="utf-8", errors="replace")
    except OSError:  # no descriptor; a system that does not open it again
        return ""
