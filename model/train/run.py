"""One training run, from an experiment file to a checkpoint that can be served.

Owns the order of things: text, vocabulary, network, resume, loop, end. Each of them is another
file's.
"""

import logging
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch

from model.errors import ConfigError, TrainingError
from model.nn.transformer import Transformer
from model.train.averaging import MovingAverage
from model.train.batching import BatchStream
from model.train.distributed import Group
from model.train.experiment import Experiment, read_experiment
from model.train.files import naming_files
from model.train.finish import finish_run
from model.train.keeping import CHECKPOINT_FOLDER, RunFiles, check_folder
from model.train.memory import check_memory, memory_limit
from model.train.objective import check_compiler
from model.train.observer import RunObserver, comparable, fingerprint, fixed_difference
from model.train.progress import ProgressReporter
from model.train.provenance import describe_start
from model.train.reading import RunText, read_text
from model.train.recorder import RunRecorder
from model.train.report import (
    EXPERIMENT_FILE,
    ReportFacts,
    Scored,
    read_card,
    score_fields,
    write_experiment,
    write_report,
)
from model.train.start import check_start, copy_start_vocabularies, load_start_weights
from model.train.state import Progress, has_state
from model.train.stopping import ShouldStop, StoppedError, never
from model.train.trainer import SilentObserver, Trainer, build_optimiser
from model.train.validation import Validator, check_tokenizers
from model.train.vocabulary import PAD_ID, START_ID, Vocabularies, load_pieces
from model.train.yaml_lines import KeyPlaces

LOGGER = logging.getLogger("dragoman.train")


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
    places: KeyPlaces | None = None,
    should_stop: ShouldStop = never,
) -> bool:
    """Run an experiment; its checkpoint is `output`/checkpoint.

    Args:
        experiment: What to run.
        data_folder: Holds the language pairs' folders.
        output: Gets the vocabulary, the tokenised text, states, snapshots, the checkpoint, the
            journal and the report; made if missing.
        resume: Go on from `output`'s state; otherwise `output` must hold none. A run that was
            over is only finished again.
        device: Where to train.
        command: What was typed, for the report; the card has the one that began the run.
        start_from: Folder of another run, or a checkpoint directory, whose vocabulary and
            (latest) weights this one begins with; the optimiser begins anew. Not looked at
            when resuming.
        cache: Folder that keeps tokenised text, for other runs too; None for the run's own.
        group: The workers that train together; None is one alone.
        places: Where the experiment's keys stand, for errors to name.
        should_stop: Asked on the first worker, again and again: while text is prepared, where
            there may be no state to go on from, and between updates, where it is saved first.

    Returns:
        Whether the run came to its end and there is a checkpoint.

    Raises:
        ConfigError: BLEU's tokenizer or a compiler that the run needs is not installed, what the
            run begins with has another vocabulary, an update has fewer batches than there are
            workers, or the network cannot fit into memory.
        DataError: Text is missing, misaligned or empty.
        TrainingError: The run diverged, its state does not fit, or a file cannot be written; on
            the others (`FirstWorkerError`), the first worker came to an error, which it tells.
    """
    group, places = group or Group(), places or KeyPlaces()
    if resume or not group.is_first:  # the others get their weights from the first
        start_from = None
    try:
        with group.first_goes_first(device):
            if group.is_first:
                _check(experiment, output, device, resume=resume, group=group, places=places)
            text = _prepare_text(
                experiment,
                data_folder,
                output,
                start_from=start_from,
                is_vocabulary_there=resume or not group.is_first,
                is_resumed=resume,
                cache=cache,
                places=places,
                should_stop=should_stop if group.is_first else never,
            )
    except StoppedError:
        return False
    transformer = _begin(experiment, text, device, start_from=start_from, group=group)
    parts = _prepare(experiment, text, transformer, output=output, resume=resume, group=group)
    trainer = parts.trainer
    if not group.is_first:
        trainer.train(SilentObserver())
        group.leave()
        return trainer.fraction() >= 1.0
    _tell_text(text, transformer, max_length=experiment.data.max_length)
    write_experiment(output, experiment)
    update = trainer.progress.update
    with RunRecorder(output, update=update, is_resumed=resume, clock=time.time) as recorder:
        recorder.note("start", update=update, fields=describe_start(device, command=command))
        scored = None
        if _train(experiment, parts, recorder, group=group, should_stop=should_stop):
            scored = finish_run(
                experiment,
                folder=output,
                directory=output / CHECKPOINT_FOLDER,
                text=text,
                transformer=transformer,
                progress=trainer.progress,
                command=recorder.first_command(),
                should_stop=should_stop,
            )
        _end(experiment, output, text, trainer.progress, recorder, scored=scored)
    return scored is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    """What trains a network, and what is done with it meanwhile."""

    transformer: Transformer
    trainer: Trainer
    files: RunFiles
    validator: Validator


def _begin(
    experiment: Experiment,
    text: RunText,
    device: torch.device,
    *,
    start_from: Path | None,
    group: Group,
) -> Transformer:
    """The network as a new run begins with it: the same weights on all workers."""
    torch.manual_seed(experiment.run.seed)
    transformer = build_network(experiment, text.vocabularies).to(device)
    if start_from is not None:
        load_start_weights(start_from, transformer)
    group.share(transformer.state_dict().values())
    return transformer


def _tell_text(text: RunText, transformer: Transformer, *, max_length: int) -> None:
    """Say what is trained on what."""
    for report in text.reports:
        LOGGER.info("%s", report)
    for name, dev in text.dev.items():
        if dev.num_left_out:
            LOGGER.info(
                "%s: the dev loss leaves out %d of %d pairs, longer than data.max_length (%d)",
                name,
                dev.num_left_out,
                len(dev.text),
                max_length,
            )
    num_parameters = sum(parameter.numel() for parameter in transformer.parameters())
    device = next(transformer.parameters()).device
    LOGGER.info("%d pairs, %d parameters, %s", len(text.pairs), num_parameters, device)


def _train(
    experiment: Experiment,
    parts: _Parts,
    recorder: RunRecorder,
    *,
    group: Group,
    should_stop: ShouldStop,
) -> bool:
    """Train until the run is over or stopped, which of the two is returned, and save."""
    trainer = parts.trainer
    with ProgressReporter(
        stream=sys.stderr,
        progress=trainer.progress,
        fraction=trainer.fraction(),
        evaluate_every=experiment.run.snapshot_every_updates,
    ) as reporter:
        observer = RunObserver(
            experiment,
            files=parts.files,
            transformer=parts.transformer,
            validator=parts.validator,
            progress=trainer.progress,
            reporter=reporter,
            recorder=recorder,
        )
        observer.first(trainer.progress)
        trainer.train(
            observer,
            should_stop=lambda: should_stop() or observer.has_lost_patience(trainer.progress),
        )
        group.leave()
        is_over = trainer.fraction() >= 1.0 or observer.has_lost_patience(trainer.progress)
        trainer.progress = observer.last(trainer.progress, is_over=is_over)
    return is_over


def _end(
    experiment: Experiment,
    output: Path,
    text: RunText,
    progress: Progress,
    recorder: RunRecorder,
    *,
    scored: Mapping[str, Scored] | None,
) -> None:
    """Record the final scores, which are None when the run was stopped, and write the report."""
    for name, item in (scored or {}).items():
        fields = score_fields(name, item.evaluation)
        recorder.note("score", update=progress.update, fields=fields)
    facts = ReportFacts(
        progress=progress,
        records=recorder.records,
        reports=text.reports,
        has_curves=recorder.draw(),
        card=None if scored is None else read_card(output / CHECKPOINT_FOLDER),
        scored=scored or {},
    )
    write_report(output, experiment, facts)


def _check(
    experiment: Experiment,
    output: Path,
    device: torch.device,
    *,
    resume: bool,
    group: Group,
    places: KeyPlaces,
) -> None:
    """Refuse what can be refused before any work is done."""
    with naming_files(output):
        check_folder(output, has_state=has_state(output), resume=resume)
    if resume:
        _check_same_experiment(experiment, output / EXPERIMENT_FILE, places)
    with places.blame("run.bleu_tokenizer"):
        check_tokenizers(experiment)
    if experiment.run.compile:
        with places.blame("run.compile"):
            check_compiler(device)
    with places.blame("run.update_freq"):
        if experiment.run.update_freq < group.size:
            raise ConfigError(
                f"run.update_freq is {experiment.run.update_freq}; {group.size} workers need at"
                f" least {group.size}, a batch each"
            )
    with places.blame("network"):
        check_memory(experiment, memory_limit(device))


def _check_same_experiment(experiment: Experiment, path: Path, places: KeyPlaces) -> None:
    """Refuse to resume a run of another experiment, by the key that differs.

    A run whose own file is gone or cannot be read is left to the state's fingerprint.

    Raises:
        TrainingError: The message names the key and both values.
    """
    try:
        of_run = read_experiment(path)
    except ConfigError as error:
        LOGGER.warning("%s; it is not compared with the experiment", error)
        return
    difference = fixed_difference(experiment, of_run)
    if difference is not None:
        key, values = difference
        with places.blame(key):
            raise TrainingError(
                f"{key} {values} ({path}); resume with the experiment it began with"
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
    places: KeyPlaces,
    should_stop: ShouldStop,
) -> RunText:
    if start_from is not None:
        check_start(start_from, experiment, places)
    with naming_files(output):
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
        places=places,
        should_stop=should_stop,
    )


def build_network(experiment: Experiment, vocabularies: Vocabularies) -> Transformer:
    """The experiment's network with fresh weights."""
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
) -> _Parts:
    """A trainer where the run begins or goes on, and what it is watched with."""
    optimiser = build_optimiser(transformer, experiment.optimiser)
    average = None
    if experiment.optimiser.ema_decay:
        average = MovingAverage(transformer, decay=experiment.optimiser.ema_decay)
    files = RunFiles(
        output,
        transformer=transformer,
        optimiser=optimiser,
        average=average,
        fingerprint=fingerprint(experiment),
        num_snapshots=experiment.run.num_snapshots,
    )
    progress = Progress()
    if resume:
        with group.first_goes_first(next(transformer.parameters()).device):
            progress = files.restore()
        if group.is_first:
            files.forget_later(progress)
    validator = Validator(experiment, text.vocabularies, text.dev)
    if group.is_first:
        progress = comparable(progress, scoring=validator.scoring())
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
        average=average,
    )
    return _Parts(transformer=transformer, trainer=trainer, files=files, validator=validator)
