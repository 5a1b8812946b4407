"""Entry point of the engine: `python -m service.engine.worker --fd N --front PID`.

Owns the order: what ends the process is settled before libraries are loaded, which with torch takes
seconds.
"""

import argparse
import sys

from service.engine.lifetime import end_with_parent, leave_signals_to_the_front


def main() -> int:
    """Serve the front at the other end of the socket `--fd`."""
    leave_signals_to_the_front()
    parser = argparse.ArgumentParser(description="The engine; started by `dragoman serve`.")
    parser.add_argument("--fd", type=int, required=True, help="the engine's end of the socket")
    parser.add_argument("--front", type=int, required=True, help="the front's process id")
    arguments = parser.parse_args()
    if not end_with_parent(arguments.front):
        return 0
    from service.engine.worker.process import run  # noqa: PLC0415  # loads libraries

    return run(arguments.fd)


if __name__ == "__main__":
    sys.exit(main())
