"""One training run, from an experiment file to a checkpoint that can be served.

Owns the order: checks, text, vocabulary, network, resume, loop, end. Each of them is in a file of
its own.
"""

import logging
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import torch

from model.errors import ConfigError, TrainingError
from model.float_loading import warn_if_slow
from model.nn.transformer import Transformer
from model.train.agreement import require_same_run, require_same_state, require_same_text
from model.train.checks import check_run
from model.train.config.experiment import Experiment, read_experiment
from model.train.config.yaml_lines import KeyPlaces
from model.train.data.batching import BatchStream
from model.train.data.reading import RunText, read_text
from model.train.data.vocabulary import PAD_ID, START_ID, Vocabularies, load_pieces
from model.train.finish import finish_run
from model.train.loop.distributed import Group
from model.train.loop.precision import common_precision
from model.train.loop.trainer import SilentObserver, Trainer, build_optimiser
from model.train.loop.validation import Validator
from model.train.observer import RunObserver, comparable, fingerprint
from model.train.outcome import RunOutcome
from model.train.records.progress import ProgressReporter
from model.train.records.provenance import describe_start
from model.train.records.recorder import RunRecorder
from model.train.records.report import EXPERIMENT_FILE, write_experiment
from model.train.records.time_left import TimeLeft
from model.train.saved.averaging import MovingAverage
from model.train.saved.retention import CHECKPOINT_FOLDER, RunFiles, opened_folder, remove_retired
from model.train.saved.state import Progress
from model.train.start import copy_start_vocabularies, load_start_weights
from model.train.stopping import ShouldStop, StoppedError, never

_LOGGER = logging.getLogger("dragoman.train")


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
            journal and the report; created if missing.
        resume: Go on from `output`'s state; otherwise `output` must hold none. A run that was
            over is only finished again.
        device: Where to train.
        command: What was typed, for the report; the card has the one that began the run.
        start_from: Folder of another run, or a checkpoint directory, whose vocabulary and
            (latest) weights this one begins with; the optimiser begins anew. Ignored when
            resuming, which is logged.
        cache: Folder that keeps tokenised text, for other runs too; None for the run's own.
        group: The workers that train together; None is a single worker.
        places: Where the experiment's keys stand, for errors to name.
        should_stop: Checked often on the first worker: while text is prepared, where there may be
            no state to resume from yet, and between updates and while dev text is scored,
            where the state is saved first.

    Returns:
        Whether the run came to its end and there is a checkpoint.

    Raises:
        ConfigError: BLEU's tokenizer or a compiler that the run needs is not installed, what the
            run begins with has another vocabulary, an update has fewer batches than there are
            workers, or the network cannot fit into memory.
        DataError: Text is missing, misaligned or empty.
        TrainingError: The run diverged, its state does not fit, another process trains in
            `output`, a worker is not about to do the same, an update runs out of memory, or a file
            cannot be written; on the others (`FirstWorkerError`), the first worker failed and
            reports why.
    """
    group, places = group or Group(), places or KeyPlaces()
    require_same_run(group, device, experiment, resume=resume)
    experiment = _on_device(experiment, device, group, of_run=output if resume else None)
    start_from = _first_weights(start_from, resume=resume, is_first=group.is_first)
    with ExitStack() as held:
        try:
            with group.first_worker_first(device):
                if group.is_first:
                    check_run(
                        experiment,
                        output,
                        device,
                        resume=resume,
                        start_from=start_from,
                        num_workers=group.size,
                        places=places,
                    )
                    held.enter_context(opened_folder(output))
                compare = partial(require_same_text, group, device)
                text = _prepare_text(
                    experiment,
                    data_folder,
                    output,
                    start_from=start_from,
                    is_vocabulary_there=resume or not group.is_first,
                    is_resumed=resume,
                    cache=cache,
                    places=places,
                    compare=None if group.is_first else compare,
                    should_stop=should_stop if group.is_first else never,
                )
        except StoppedError:
            return False
        if group.is_first:
            compare(text.ingredients)  # what the others do before they open the stored text
        transformer = _begin(experiment, text, device, start_from=start_from, group=group)
        parts = _prepare(experiment, text, transformer, output=output, resume=resume, group=group)
        trainer = parts.trainer
        if not group.is_first:
            trainer.train(SilentObserver())
            group.leave()
            return trainer.fraction() >= 1.0
        _log_start(experiment, text, transformer)
        write_experiment(output, experiment)
        update = trainer.progress.update
        with RunRecorder(output, update=update, is_resumed=resume, clock=time.time) as recorder:
            recorder.note("start", update=update, fields=describe_start(device, command=command))
            return _run(
                experiment, parts, recorder, output, text=text, group=group, should_stop=should_stop
            )


def _on_device(
    experiment: Experiment, device: torch.device, group: Group, *, of_run: Path | None
) -> Experiment:
    """The experiment with the precision that it is run in, for the report and the card to name.

    A run that is resumed goes on in what was chosen for it where it began.
    """
    name = experiment.run.precision
    if name == "auto" and of_run is not None and group.is_first:
        with suppress(ConfigError):  # it is said when the two are compared
            name = read_experiment(of_run / EXPERIMENT_FILE).run.precision
    precision = common_precision(group, device, name)
    return replace(experiment, run=replace(experiment.run, precision=precision))


def _first_weights(start_from: Path | None, *, resume: bool, is_first: bool) -> Path | None:
    """What this worker's network begins with: nothing where the run goes on from a state.

    The other workers get their weights from the first.
    """
    if resume and start_from is not None and is_first:
        fields = {
            "start_from": str(start_from),
            "reason": "with --resume a run goes on from its own state",
        }
        _LOGGER.info("start_from_ignored", extra={"fields": fields})
    return start_from if is_first and not resume else None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    """The parts of a run: network, trainer, files, dev scoring."""

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
    """The network of a new run, with the same weights on all workers."""
    torch.manual_seed(experiment.run.seed)
    transformer = build_network(experiment, text.vocabularies).to(device)
    if start_from is not None:
        load_start_weights(start_from, transformer)
    group.broadcast(transformer.state_dict().values())
    return transformer


def _log_start(experiment: Experiment, text: RunText, transformer: Transformer) -> None:
    """Log the text and the network of the run."""
    for report in text.reports:
        fields = {
            "direction": report.direction,
            "corpus": report.name,
            "num_pairs": report.num_pairs,
            "num_kept": report.num_kept,
            "left_out": dict(report.dropped),
        }
        _LOGGER.info("corpus_read", extra={"fields": fields})
    for name, dev in text.dev.items():
        if dev.num_left_out:
            fields = {
                "corpus": name,
                "num_left_out": dev.num_left_out,
                "num_pairs": len(dev.text),
                "reason": "a side is empty when normalised, or has more tokens than"
                f" data.max_length ({experiment.data.max_length}); the dev loss is of the others",
            }
            _LOGGER.info("dev_pairs_left_out", extra={"fields": fields})
    num_parameters = sum(parameter.numel() for parameter in transformer.parameters())
    fields = {
        "num_pairs": len(text.pairs),
        "num_parameters": num_parameters,
        "device": str(next(transformer.parameters()).device),
    }
    _LOGGER.info("run_prepared", extra={"fields": fields})
    warn_if_slow(transformer.config, experiment.name)


def _run(
    experiment: Experiment,
    parts: _Parts,
    recorder: RunRecorder,
    output: Path,
    *,
    text: RunText,
    group: Group,
    should_stop: ShouldStop,
) -> bool:
    """Train, choose weights, record the outcome; whether the run completed."""
    outcome = RunOutcome(experiment, output, reports=text.reports, recorder=recorder)
    scored = None
    try:
        if _train(experiment, parts, recorder, group=group, should_stop=should_stop):
            scored = finish_run(
                experiment,
                folder=output,
                directory=output / CHECKPOINT_FOLDER,
                text=text,
                transformer=parts.transformer,
                progress=parts.trainer.progress,
                command=recorder.first_command(),
                should_stop=should_stop,
            )
        outcome.write(parts.trainer.progress, scored=scored)
    except Exception as error:
        outcome.write_error(parts.trainer.progress, error)
        raise
    try:
        remove_retired(output)
    except TrainingError as error:
        # The run is over all the same.
        _LOGGER.warning("retired_not_removed", extra={"fields": {"reason": str(error)}})
    return scored is not None


def _train(
    experiment: Experiment,
    parts: _Parts,
    recorder: RunRecorder,
    *,
    group: Group,
    should_stop: ShouldStop,
) -> bool:
    """Train until the run is over or stopped, and save; whether it is over.

    A run that was stopped before its last update was scored is not over.
    """
    trainer = parts.trainer
    progress, fraction = trainer.progress, trainer.fraction()
    time_left = TimeLeft(experiment.run, progress=progress, fraction=fraction, clock=time.monotonic)
    with ProgressReporter(
        stream=sys.stderr, progress=progress, fraction=fraction, time_left=time_left
    ) as reporter:
        observer = RunObserver(
            experiment,
            files=parts.files,
            transformer=parts.transformer,
            validator=parts.validator,
            progress=progress,
            reporter=reporter,
            recorder=recorder,
            time_left=time_left,
            should_stop=should_stop,
        )
        trainer.progress = observer.first(progress)
        trainer.train(
            observer,
            should_stop=lambda: should_stop() or observer.has_lost_patience(trainer.progress),
        )
        group.leave()
        is_over = trainer.fraction() >= 1.0 or observer.has_lost_patience(trainer.progress)
        trainer.progress = observer.last(trainer.progress, is_over=is_over)
    return is_over and trainer.progress.scored_update == trainer.progress.update


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
    compare: Callable[[Mapping[str, str]], None] | None,
    should_stop: ShouldStop,
) -> RunText:
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
        compare=compare,
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
    """The parts of a run, at its beginning or where it is resumed."""
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
        with group.first_worker_first(next(transformer.parameters()).device):
            progress = files.restore()
        require_same_state(
            group, progress, transformer=transformer, optimiser=optimiser, average=average
        )
        if group.is_first:
            files.remove_later(progress)
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
    progress = replace(progress, position=stream.position)
    trainer = Trainer(
        transformer,
        optimiser,
        stream,
        optimiser_config=experiment.optimiser,
        schedule=experiment.schedule,
        run=experiment.run,
        clock=time.process_time if experiment.run.time == "processor" else time.monotonic,
        progress=progress,
        group=group,
        average=average,
    )
    return _Parts(transformer=transformer, trainer=trainer, files=files, validator=validator)
