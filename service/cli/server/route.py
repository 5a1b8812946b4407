"""`dragoman route`: one address for groups of servers with different languages.

Owns the flags and the one line that says where it listens. Whom a request goes to is
`service.router`.
"""

import argparse

HELP = "pass requests on to the group of servers that has their languages"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags; limits and the rest are DRAGOMAN_… variables, as of `dragoman serve`."""
    parser.add_argument(
        "--group",
        action="append",
        default=[],
        metavar="NAME=URL",
        dest="groups",
        help="servers with the same checkpoints behind one name or address, such as"
        " europe=http://europe:8000; once for each group",
    )
    parser.add_argument("--host", help="address to listen on (DRAGOMAN_HOST, 127.0.0.1)")
    parser.add_argument(
        "--port", type=int, help="port to listen on, 0 for a free one (DRAGOMAN_PORT, 8000)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Pass requests on until SIGTERM or SIGINT.

    Raises:
        ConfigError: A group or a setting is impossible, or the port is taken.
    """
    from service.logs import configure_logging
    from service.router.groups import parse_groups
    from service.router.process import Router
    from service.settings import load_settings

    groups = parse_groups(arguments.groups)
    settings = load_settings({"host": arguments.host, "port": arguments.port})
    names = ", ".join(group.name for group in groups)

    def announce(address: str) -> None:
        print(f"Dragoman routes on {address} to {names}", flush=True)

    configure_logging(settings.log_level)
    Router(settings, groups, announce=announce).run()
    return 0
