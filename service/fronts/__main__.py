"""Entry point of a front: `python -m service.fronts --link N --passing N --listener N --owner PID`.

Owns the order: what ends the process is settled before libraries are loaded.
"""

import argparse
import sys

from service.engine.lifetime import end_with_parent, leave_signals_to_the_front


def main() -> int:
    """Answer requests until the owner ends it."""
    leave_signals_to_the_front()
    parser = argparse.ArgumentParser(description="A front; started by `dragoman serve`.")
    parser.add_argument("--link", type=int, required=True, help="the socket to the owner")
    parser.add_argument("--passing", type=int, required=True, help="the socket for connections")
    parser.add_argument("--listener", type=int, required=True, help="the socket of the port")
    parser.add_argument("--owner", type=int, required=True, help="the owner's process id")
    arguments = parser.parse_args()
    if not end_with_parent(arguments.owner):
        return 0
    from service.fronts.process import run  # noqa: PLC0415  # loads libraries

    return run(link=arguments.link, passing=arguments.passing, listener=arguments.listener)


if __name__ == "__main__":
    sys.exit(main())
