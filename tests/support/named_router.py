"""`dragoman route` with names of its own: run as NAMES.json PORT NAME=URL….

The file has the addresses of each name, and may change at any time.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from service.logs import configure_logging
from service.router.groups import parse_groups
from service.router.process import Router
from service.settings import load_settings


def main(names: Path, port: int, groups: Sequence[str]) -> None:
    """Route until a signal."""

    async def resolve(host: str, _port: int) -> list[str]:
        found: list[str] = json.loads(names.read_text())[host]  # noqa: ASYNC240  # of a few bytes
        return found

    def announce(address: str) -> None:
        sys.stdout.write(f"Routes on {address}\n")
        sys.stdout.flush()

    settings = load_settings({"port": port})
    configure_logging(settings.log_level)
    Router(settings, parse_groups(groups), announce=announce, resolve=resolve).run()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
