"""`dragoman serve`: the translation server.

Owns the flags and the one line that says where it listens.
"""

import argparse
import gc
import logging
from typing import TYPE_CHECKING, get_args

from model.arithmetic import ComputeType
from service.cli.streams.standard_streams import close_output

if TYPE_CHECKING:
    from service.engine.messages import LoadedCheckpoint

HELP = "serve translations over HTTP"

_LOGGER = logging.getLogger("dragoman")

_OBJECTS_A_COLLECTION = 10_000
"""New objects before garbage is looked for: requests in work are no garbage, and are not few."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags; each overrules its DRAGOMAN_… variable."""
    parser.add_argument("--host", help="address to listen on (DRAGOMAN_HOST, 127.0.0.1)")
    parser.add_argument(
        "--port", type=int, help="port to listen on, 0 for a free one (DRAGOMAN_PORT, 8000)"
    )
    parser.add_argument(
        "--checkpoint",
        help="directory of a checkpoint, or of several (DRAGOMAN_CHECKPOINT, checkpoints, else the"
        " bundled ones)",
    )
    parser.add_argument(
        "--device",
        choices=("auto", "cpu", "cuda"),
        help="where the network runs; a device that is missing is an error (DRAGOMAN_DEVICE, auto)",
    )
    parser.add_argument(
        "--replicas",
        help="engines that translate side by side, a number or auto: one a GPU, or one a core but"
        " the front's (DRAGOMAN_REPLICAS, 1)",
    )
    parser.add_argument(
        "--fronts",
        type=int,
        help="processes that answer requests on the port and share the engines"
        " (DRAGOMAN_FRONTS, 1)",
    )
    parser.add_argument(
        "--compute-type",
        choices=get_args(ComputeType),
        help="arithmetic of the network; one that is missing is an error"
        " (DRAGOMAN_COMPUTE_TYPE, auto: int8 on a CPU that can, else float32)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Serve until SIGTERM or SIGINT.

    Raises:
        ConfigError: A setting is impossible, the checkpoint is missing, or the port is taken.
        DragomanError: The engine did not start.
    """
    from service.engine.messages import Ready
    from service.logs import configure_logging
    from service.models.checkpoints.discovery import scan
    from service.server import Server
    from service.settings import load_settings

    names = ("host", "port", "checkpoint", "device", "compute_type", "replicas", "fronts")
    settings = load_settings({name: getattr(arguments, name) for name in names})
    scan(settings.checkpoint)  # before anything is listened on

    def announce(address: str, ready: Ready) -> None:
        gc.freeze()  # what is there now stays; garbage is looked for among what comes
        loaded = ready.checkpoints
        noun = "checkpoint" if len(loaded) == 1 else "checkpoints"
        names = ", ".join(checkpoint.name for checkpoint in loaded)
        compute_types = " and ".join(dict.fromkeys(map(_arithmetic, loaded)))
        _print(
            f"Dragoman listens on {address} with {noun} {names}"
            f" ({settings.checkpoint}) on {ready.device} ({compute_types})"
        )

    configure_logging(settings.log_level)
    gc.set_threshold(_OBJECTS_A_COLLECTION)
    Server(settings, announce=announce).run()
    return 0


def _arithmetic(checkpoint: "LoadedCheckpoint") -> str:
    """Arithmetic of a checkpoint, with the reason where it is slow."""
    slow = f", slow: {checkpoint.compute_problem}" if checkpoint.is_slow else ""
    return f"{checkpoint.compute_type}{slow}"


def _print(line: str) -> None:
    """Print, if anything can be printed: a full disk behind standard output stops no server."""
    try:
        print(line, flush=True)
    except (OSError, UnicodeError) as error:
        close_output()
        fields = {"error": type(error).__name__}
        _LOGGER.warning("standard_output_lost", extra={"fields": fields})
