"""One training run, from an experiment file to a checkpoint that can be served.

Owns the order of things: text, vocabulary, network, resume, loop, end. Each of them is another
file's.
"""

import logging
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch

from model.errors import ConfigError, TrainingError
from model.nn.transformer import Transformer
from model.train.batching import BatchStream
from model.train.distributed import Group
from model.train.experiment import Experiment
from model.train.finish import finish_run
from model.train.observer import RunObserver, fingerprint
from model.train.progress import ProgressReporter
from model.train.reading import RunText, read_text
from model.train.start import check_start_shape, copy_start_vocabularies, load_start_weights
from model.train.state import STATE_FILE, Progress, load_state
from model.train.trainer import SilentObserver, Trainer, build_optimiser
from model.train.validation import Validator
from model.train.vocabulary import PAD_ID, START_ID, Vocabularies, load_pieces

LOGGER = logging.getLogger("dragoman.train")

CHECKPOINT_FOLDER = "checkpoint"
"""Where, in a run's folder, its checkpoint is put."""


def train(
    experiment: Experiment,
    *,
    data_folder: Path,
    output: Path,
    resume: bool,
    device: torch.device,
    command: str,
    start_from: Path | None = None,
    cache: Path | None = None,
    group: Group | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> bool:
    """Run an experiment; its checkpoint is `output`/checkpoint.

    Args:
        experiment: What to run.
        data_folder: Holds the language pair's folder.
        output: Gets the vocabulary, `state.pt`, snapshots and the checkpoint; made if missing.
        resume: Go on from `output`'s state; otherwise `output` must hold none. A run that was
            over is only finished again.
        device: Where to train.
        command: For the card: what makes this checkpoint.
        start_from: Folder of another run, or a checkpoint directory, whose vocabulary and
            (latest) weights this one begins with; the optimiser begins anew. Not looked at
            when resuming.
        cache: Folder that keeps tokenised text, for other runs too; None for the run's own.
        group: The workers that train together; None is one alone.
        should_stop: Asked between updates; the state is saved before stopping.

    Returns:
        Whether the run came to its end and there is a checkpoint.

    Raises:
        DataError: Text is missing, misaligned or empty.
        TrainingError: The run diverged, or its state does not fit.
    """
    group = group or Group()
    _check_folder(experiment, output, resume=resume, group=group)
    with group.first_goes_first():
        text = _prepare_text(
            experiment,
            data_folder,
            output,
            start_from=None if resume else start_from,
            is_vocabulary_there=resume or not group.is_first,
            is_resumed=resume,
            cache=cache,
        )
    torch.manual_seed(experiment.run.seed)
    transformer = build_network(experiment, text.vocabularies).to(device)
    if start_from is not None and not resume:
        load_start_weights(start_from, transformer)
    trainer, observer = _prepare(
        experiment, text, transformer, output=output, resume=resume, group=group
    )
    if not group.is_first:
        trainer.train(SilentObserver())
        return trainer.fraction() >= 1.0
    num_parameters = sum(parameter.numel() for parameter in transformer.parameters())
    for report in text.reports:
        LOGGER.info("%s", report)
    LOGGER.info("%d pairs, %d parameters, %s", len(text.pairs), num_parameters, device)
    with ProgressReporter(
        stream=sys.stderr, progress=trainer.progress, fraction=trainer.fraction()
    ) as reporter:
        trainer.train(
            observer.bind(reporter),
            should_stop=lambda: should_stop() or observer.has_lost_patience(trainer.progress),
        )
        is_over = trainer.fraction() >= 1.0 or observer.has_lost_patience(trainer.progress)
        trainer.progress = observer.last(trainer.progress, is_over=is_over)
    if not is_over:
        return False
    finish_run(
        experiment,
        folder=output,
        directory=output / CHECKPOINT_FOLDER,
        vocabularies=text.vocabularies,
        transformer=transformer,
        progress=trainer.progress,
        reports=text.reports,
        report=text.report,
        command=command,
    )
    return True


def _check_folder(experiment: Experiment, output: Path, *, resume: bool, group: Group) -> None:
    has_state = (output / STATE_FILE).exists()
    if has_state and not resume:
        raise TrainingError(
            f"{output}: holds a run already; resume it, or choose another output folder"
        )
    if resume and not has_state:
        raise TrainingError(f"{output}: holds no state to resume from")
    if experiment.run.update_freq < group.size:
        raise ConfigError(
            f"run.update_freq is {experiment.run.update_freq}; {group.size} workers need at least"
            f" {group.size}, a batch each"
        )


def _prepare_text(
    experiment: Experiment,
    data_folder: Path,
    output: Path,
    *,
    start_from: Path | None,
    is_vocabulary_there: bool,
    is_resumed: bool,
    cache: Path | None,
) -> RunText:
    if start_from is not None:
        check_start_shape(start_from, experiment)
    output.mkdir(parents=True, exist_ok=True)
    if start_from is not None and not is_vocabulary_there:
        copy_start_vocabularies(experiment.vocabulary, start_from, output)
        is_vocabulary_there = True
    return read_text(
        experiment,
        data_folder,
        output,
        is_vocabulary_there=is_vocabulary_there,
        is_resumed=is_resumed,
        cache=cache,
    )


def build_network(experiment: Experiment, vocabularies: Vocabularies) -> Transformer:
    """The experiment's network with fresh weights.

    Raises:
        ConfigError: The shape is impossible.
    """
    sizes = [
        load_pieces(path).get_piece_size()
        for path in (vocabularies.source_path, vocabularies.target_path)
    ]
    return Transformer(
        experiment.network.build(
            source_size=sizes[0], target_size=sizes[1], is_joint=vocabularies.is_joint
        )
    )


def _prepare(
    experiment: Experiment,
    text: RunText,
    transformer: Transformer,
    *,
    output: Path,
    resume: bool,
    group: Group,
) -> tuple[Trainer, RunObserver]:
    """A trainer where the run begins or goes on, and what watches it."""
    optimiser = build_optimiser(transformer, experiment.optimiser)
    progress = Progress()
    if resume:
        progress = load_state(
            output,
            transformer=transformer,
            optimiser=optimiser,
            fingerprint=fingerprint(experiment),
            device=next(transformer.parameters()).device,
        )
    stream = BatchStream(
        text.pairs,
        max_tokens=experiment.run.batch_tokens,
        seed=experiment.run.seed,
        pad_id=PAD_ID,
        start_id=START_ID,
        position=progress.position,
    )
    trainer = Trainer(
        transformer,
        optimiser,
        stream,
        optimiser_config=experiment.optimiser,
        schedule=experiment.schedule,
        run=experiment.run,
        clock=time.monotonic,
        progress=progress,
        group=group,
    )
    observer = RunObserver(
        experiment,
        folder=output,
        transformer=transformer,
        optimiser=optimiser,
        validator=Validator(experiment, text.vocabularies, text.dev),
        progress=progress,
    )
    return trainer, observer
