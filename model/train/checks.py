"""Checks of a run before it does any work.

Owns the order of the checks. What each of them compares is in the file that it is imported from.
"""

import logging
from pathlib import Path

import torch

from model.errors import ConfigError, TrainingError
from model.system.devices import memory_limit
from model.train.config.experiment import Experiment, read_experiment
from model.train.config.yaml_lines import KeyPlaces
from model.train.files import naming_files
from model.train.loop.memory import check_memory
from model.train.loop.objective import check_compiler
from model.train.loop.validation import check_tokenizers
from model.train.observer import fixed_difference
from model.train.records.report import EXPERIMENT_FILE
from model.train.saved.retention import check_folder
from model.train.saved.state import has_state
from model.train.start import check_start

_LOGGER = logging.getLogger("dragoman.train")


def check_run(
    experiment: Experiment,
    output: Path,
    device: torch.device,
    *,
    resume: bool,
    start_from: Path | None,
    num_workers: int,
    places: KeyPlaces,
) -> None:
    """All checks that need no work to be done first.

    Args:
        experiment: What is to be run.
        output: Folder of the run; it need not be there.
        device: Where to train.
        resume: The run is resumed.
        start_from: What it begins with, if anything.
        num_workers: That train together.
        places: Where the experiment's keys stand.

    Raises:
        ConfigError: The experiment cannot be run here, or not from `start_from`.
        TrainingError: The folder holds another run, or none to resume.
    """
    with naming_files(output):
        check_folder(output, has_state=has_state(output), resume=resume)
    if resume:
        _check_same_experiment(experiment, output / EXPERIMENT_FILE, places)
    with places.blame("run.bleu_tokenizer"):
        check_tokenizers(experiment)
    if experiment.run.compile:
        with places.blame("run.compile"):
            check_compiler(device)
    if experiment.run.time == "processor" and device.type != "cpu":
        with places.blame("run.time"):
            raise ConfigError(
                "run.time is 'processor', which counts nothing of what a device does; it must be"
                f" 'wall' on {device.type}"
            )
    with places.blame("run.update_freq"):
        if experiment.run.update_freq < num_workers:
            raise ConfigError(
                f"run.update_freq is {experiment.run.update_freq}; {num_workers} workers need at"
                f" least {num_workers}, a batch each"
            )
    if experiment.run.update_freq % num_workers:
        fields = {
            "update_freq": experiment.run.update_freq,
            "num_workers": num_workers,
            "reason": "some workers have a batch less than others in every update, and wait;"
            f" with a run.update_freq that is a multiple of {num_workers} none does",
        }
        _LOGGER.warning("workers_wait", extra={"fields": fields})
    with places.blame("network"):
        check_memory(experiment, memory_limit(device))
    if start_from is not None:
        check_start(start_from, experiment, places)


def _check_same_experiment(experiment: Experiment, path: Path, places: KeyPlaces) -> None:
    """Refusal to resume a run of another experiment, with the key that differs.

    If the run's own file is missing or cannot be read, only the state's fingerprint is compared.

    Raises:
        TrainingError: The message names the key and both values.
    """
    try:
        of_run = read_experiment(path)
    except ConfigError as error:
        _LOGGER.warning("experiment_not_compared", extra={"fields": {"reason": str(error)}})
        return
    difference = fixed_difference(experiment, of_run)
    if difference is not None:
        key, values = difference
        with places.blame(key):
            raise TrainingError(
                f"{key} {values} ({path}); resume with the experiment it began with"
            )
