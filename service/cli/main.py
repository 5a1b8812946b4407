"""Command `dragoman`: choice of the sub-command, and errors as one line.

Owns exit codes: 0 done, 1 an error that was foreseen, 2 wrong usage, 3 done but for rows that have
no translation (`service.cli.translate.bulk`), 129 its terminal was closed, 130 interrupted, 141
nobody read on, 143 told to end.
"""

import argparse
import errno
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from importlib import import_module
from types import MappingProxyType

from model.errors import ConfigError, DragomanError
from service.cli.signals import INTERRUPTED, ending_on, outliving_hangups
from service.cli.streams.standard_streams import close_output, open_streams
from service.logs import configure_last_resort

_COMMANDS: Mapping[str, str] = MappingProxyType(
    {
        "serve": "server",
        "translate": "translate",
        "train": "network",
        "evaluate": "network",
        "explain": "network",
        "export": "network",
        "convert": "models",
        "pull": "models",
        "models": "models",
        "bench": "network",
        "shortlist": "network",
        "keys": "server",
        "reload": "server",
        "route": "server",
    }
)
"""As help lists them, and their rooms; each is a file with `HELP`, `add_arguments` and `run`."""
_SURVIVE_CLOSED_STREAMS = frozenset({"serve", "train"})
"""Those that go on without standard streams."""
_RELOADED_BY_HANGUP = frozenset({"serve", "route"})
"""Those that SIGHUP does not end."""
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}
"""Errors of writing to standard output; other files are named where they are written."""

_EPILOG = "Every sub-command has its own --help."


def build_parser(wanted: str | None = None) -> argparse.ArgumentParser:
    """The parser of all sub-commands, or of one; imports nothing heavy.

    Args:
        wanted: The only one, where it is known: the others would be imported for nothing.
    """
    parser = argparse.ArgumentParser(
        prog="dragoman", description="A self-hosted neural translation server.", epilog=_EPILOG
    )
    parser.add_argument("--version", action=_ShowVersion, nargs=0, help="show the version")
    commands = parser.add_subparsers(title="sub-commands", metavar="COMMAND", required=True)
    for name in _COMMANDS if wanted is None else (wanted,):
        command = import_module(f"service.cli.{_COMMANDS[name]}.{name}")
        subparser = commands.add_parser(name, help=command.HELP, description=command.HELP)
        command.add_arguments(subparser)
        print_error = getattr(command, "print_error", _print_error)
        may_be_closed = frozenset({"stdout", "stderr"} if name in _SURVIVE_CLOSED_STREAMS else ())
        subparser.set_defaults(
            run=command.run, print_error=print_error, may_be_closed=may_be_closed
        )
    return parser


class _ShowVersion(argparse.Action):
    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,  # noqa: ARG002  # argparse's signature
        values: object,  # noqa: ARG002  # same
        option_string: str | None = None,  # noqa: ARG002  # same
    ) -> None:
        from service.version import distribution_version

        print(f"dragoman {distribution_version()}")
        parser.exit()


def _print_error(error: DragomanError | str) -> None:
    print(f"dragoman: {error}", file=sys.stderr)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one sub-command; the exit status."""
    configure_last_resort()
    closed = open_streams()
    try:
        given = sys.argv[1:] if argv is None else argv
        wanted = given[0] if given and given[0] in _COMMANDS else None
        is_reloaded = wanted in _RELOADED_BY_HANGUP
        ending = [signal.SIGTERM] if is_reloaded else [signal.SIGTERM, signal.SIGHUP]
        with outliving_hangups() if is_reloaded else nullcontext():
            arguments = build_parser(wanted).parse_args(given)
            with ending_on(*ending):
                for name in {"stdout", "stderr"}.intersection(closed) - arguments.may_be_closed:
                    raise ConfigError(f"{name} is closed; what is not wanted goes to /dev/null")
                status: int = arguments.run(arguments)
                sys.stdout.flush()
    except DragomanError as error:
        arguments.print_error(error)
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        close_output()  # its reader has enough
        return 141
    except OSError as error:  # files are looked after where they are used
        named = error.filename
        if named is None and error.errno in _NO_ROOM:
            named = "standard output"
            close_output()
        _print_error(f"{named}: {error.strerror}" if named else str(error))
        return 1
    except MemoryError as error:
        _print_error(f"not enough memory: {error or 'for this command'}")
        return 1
    return status


if __name__ == "__main__":
    sys.exit(main())
