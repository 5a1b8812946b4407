"""`dragoman train`: one experiment file in, one checkpoint out.

Owns the flags, the environment, the signals, and the log: lines on a terminal, JSON elsewhere,
except for unexpected exceptions. The training is `model.train`.
"""

import argparse
import logging
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from model.errors import ConfigError, DragomanError
from model.system.paths import as_text, is_folder
from service.cli.arguments.offline import chosen_threads
from service.cli.streams.read_files import ReadFiles
from service.logs import JsonFormatter, LineFormatter

if TYPE_CHECKING:
    from model.train.config.experiment import Experiment

HELP = "train a network as an experiment file says"

DATA_VARIABLE = "DRAGOMAN_DATA"
_LOGGER = "dragoman.train"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags."""
    parser.add_argument(
        "experiment", type=Path, metavar="EXPERIMENT.yaml", help="what to train, and on what"
    )
    parser.add_argument(
        "--data",
        type=Path,
        help="folder that holds PAIR/train, PAIR/dev and PAIR/test"
        f" (default: the environment's {DATA_VARIABLE})",
    )
    parser.add_argument(
        "--output",
        type=Path,
        help="folder of the run: state, snapshots, checkpoint (default: runs/NAME of the"
        " experiment file)",
    )
    parser.add_argument(
        "--resume",
        action="store_true",
        help="go on from the output folder's state, exactly where it was saved",
    )
    parser.add_argument(
        "--start-from",
        type=Path,
        metavar="FOLDER",
        help="begin with the vocabulary and the latest weights of another run's folder, or of a"
        " checkpoint directory; not looked at with --resume",
    )
    parser.add_argument(
        "--cache",
        type=Path,
        metavar="FOLDER",
        help="keep tokenised text here, for other runs too (default: OUTPUT/text)",
    )
    parser.add_argument(
        "--threads", type=int, help="CPU threads; the default is one a core that may be used"
    )
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")


def run(arguments: argparse.Namespace) -> int:
    """Train; SIGTERM and the first Ctrl-C stop the run soon, once the state is saved.

    Returns:
        0 when the run completed, 130 when it was stopped and can be resumed. That is the first
        worker's status; the others' is 0, so that torchrun reports the first worker's failure.

    Raises:
        ConfigError: The experiment file or the flags are impossible.
        DataError: Text is missing, misaligned or empty.
        DeviceError: There is no GPU, or none for this worker.
        TrainingError: The run diverged, its state does not fit, or a file cannot be written.
    """
    import torch

    from model.system.allocator import keep_freed_memory
    from model.system.devices import resolve_device, use_unplanned_attention
    from model.train.config.experiment import read_placed_experiment
    from model.train.loop.distributed import FirstWorkerError, joined_group, local_device
    from model.train.run import train
    from model.train.saved.retention import CHECKPOINT_FOLDER
    from model.train.saved.state import has_state

    _configure_logging(sys.stderr)
    output = arguments.output or Path("runs") / arguments.experiment.stem
    device = local_device(torch.device(resolve_device(arguments.device)))
    use_unplanned_attention(device)
    if device.type == "cpu":
        keep_freed_memory()
    stop_request = _StopRequest()
    try:
        with stop_request, joined_group(os.environ, device) as group:
            with group.first_worker_first(device):  # an error that all have is reported once
                experiment, places = read_placed_experiment(arguments.experiment)
                torch.set_num_threads(chosen_threads(arguments))
                _keep_experiment(arguments.experiment, experiment, output)
                data_folder = _data_folder(arguments.data)
            is_complete = train(
                experiment,
                data_folder=data_folder,
                output=output,
                resume=arguments.resume,
                device=device,
                command=_command(arguments),
                start_from=arguments.start_from,
                cache=arguments.cache,
                group=group,
                places=places,
                should_stop=stop_request.is_set,
            )
    except FirstWorkerError:
        return 0
    if not group.is_first:
        return 0
    if not is_complete:
        resume = f"stopped; go on with --resume (the state is in {output})"
        again = f"stopped before there is a state in {output}; go on with the same command"
        _print_last(sys.stderr, logging.INFO, "stopped", resume if has_state(output) else again)
        return 130
    print(as_text(output / CHECKPOINT_FOLDER))
    return 0


def print_error(error: DragomanError) -> None:
    """Print the error that ended the run: a line on a terminal, elsewhere an event of the log."""
    line = f"dragoman: {error}" if _is_terminal(sys.stderr) else str(error)
    _print_last(sys.stderr, logging.ERROR, "error", line)


def _is_terminal(stream: TextIO) -> bool:
    """Whether the log is lines for a terminal; elsewhere it is JSON."""
    return stream.isatty()


def _configure_logging(stream: TextIO) -> None:
    handler = logging.StreamHandler(stream)
    plain = LineFormatter("%(asctime)s ")
    handler.setFormatter(plain if _is_terminal(stream) else JsonFormatter())
    logging.basicConfig(handlers=[handler], level=logging.INFO)
    logging.captureWarnings(capture=True)


def _print_last(stream: TextIO, level: int, event: str, text: str) -> None:
    """Print the last line of a run, even after logging has ended."""
    if _is_terminal(stream):
        line = text
    else:
        facts = {"levelno": level, "levelname": logging.getLevelName(level), "name": _LOGGER}
        fields = {"msg": event, "fields": {"text": text}}
        line = JsonFormatter().format(logging.makeLogRecord({**facts, **fields}))
    print(line, file=stream, flush=True)


def _keep_experiment(path: Path, experiment: "Experiment", output: Path) -> None:
    """Refusal of a run that would write its experiment over the file it was read from.

    Raises:
        DataError: It would; not where that file is what a run has written.
    """
    from model.train.records.report import EXPERIMENT_FILE, is_as_written

    place = output / EXPERIMENT_FILE
    if not is_as_written(path.read_text(encoding="utf-8"), experiment):
        ReadFiles([path]).refuse(place, place)


def _data_folder(flag: Path | None) -> Path:
    named = flag or os.environ.get(DATA_VARIABLE)
    if not named:
        raise ConfigError(f"no data folder; give --data, or set {DATA_VARIABLE}")
    folder = Path(named)
    if not is_folder(folder):
        raise ConfigError(f"{folder}: the data folder is not a directory")
    return folder


def _command(arguments: argparse.Namespace) -> str:
    """The command line without this machine's folders."""
    words = ["dragoman train", _portable(arguments.experiment)]
    if arguments.start_from is not None:
        words.append(f"--start-from {_portable(arguments.start_from)}")
    if arguments.threads is not None:
        words.append(f"--threads {arguments.threads}")
    if arguments.device != "auto":
        words.append(f"--device {arguments.device}")
    return " ".join(words)


def _portable(path: Path) -> str:
    """A file's name as text, without this machine's folders."""
    return as_text(path.name if path.is_absolute() else path)


class _StopRequest:
    """Context that notes SIGTERM or SIGINT; a second SIGINT interrupts at once."""

    def __init__(self) -> None:
        self._is_set = False
        self._previous: dict[signal.Signals, signal._HANDLER] = {}

    def __enter__(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            self._previous[number] = signal.signal(number, self._handle)

    def __exit__(self, *exception: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def is_set(self) -> bool:
        """Whether the run should stop."""
        return self._is_set

    def _handle(self, *_: object) -> None:
        self._is_set = True
        signal.signal(signal.SIGINT, signal.default_int_handler)
