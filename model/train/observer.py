"""What happens around the updates of a run: lines of progress, snapshots, dev scores, saves.

Owns when each of them happens. How they are done is `progress`, `state` and `validation`.
"""

import hashlib
from dataclasses import replace
from pathlib import Path

import torch

from model.nn.transformer import Transformer
from model.train.experiment import Experiment
from model.train.progress import ProgressReporter
from model.train.state import (
    Progress,
    prune_snapshots,
    save_snapshot,
    save_state,
    snapshot_path,
)
from model.train.trainer import UpdateResult
from model.train.validation import DevScore, Validator


def fingerprint(experiment: Experiment) -> str:
    """Identifies what must not change between a save and a resume.

    A longer run, another schedule, other intervals of saving or other dev text do not change it.
    """
    run = experiment.run
    fixed = (
        experiment.data.trained_on(),
        experiment.vocabulary,
        experiment.network,
        experiment.optimiser,
        (run.batch_tokens, run.update_freq, run.seed),
    )
    return hashlib.sha256(repr(fixed).encode()).hexdigest()[:16]


class RunObserver:
    """Watches one run.

    Args:
        experiment: Its intervals are used.
        folder: Of the run.
        transformer: Saved and scored.
        optimiser: Saved.
        validator: Scores the network.
        progress: Where the run begins.
    """

    def __init__(
        self,
        experiment: Experiment,
        *,
        folder: Path,
        transformer: Transformer,
        optimiser: torch.optim.Optimizer,
        validator: Validator,
        progress: Progress,
    ) -> None:
        self._experiment = experiment
        self._folder = folder
        self._transformer = transformer
        self._optimiser = optimiser
        self._validator = validator
        self._saved_seconds = progress.elapsed_seconds
        self._reporter: ProgressReporter | None = None

    def bind(self, reporter: ProgressReporter) -> "RunObserver":
        """Say what happens through `reporter` from now on; returns itself."""
        self._reporter = reporter
        return self

    def after_update(self, result: UpdateResult, progress: Progress, fraction: float) -> Progress:
        """Report, snapshot and save, where one of them is due."""
        run = self._experiment.run
        if self._reporter is not None:
            self._reporter.add(loss=result.loss, num_target_tokens=result.num_target_tokens)
            if result.update % run.log_every_updates == 0:
                self._reporter.report(
                    progress, fraction=fraction, learning_rate=result.learning_rate
                )
        if result.update % run.snapshot_every_updates == 0:
            progress = self._snapshot(progress)
        if progress.elapsed_seconds - self._saved_seconds >= 60.0 * run.save_every_minutes:
            self._save(progress)
        return progress

    def last(self, progress: Progress, *, is_over: bool) -> Progress:
        """Leave a state and, if the run is over, a snapshot of its last update.

        A run that was only stopped gets no snapshot that it would not have had otherwise.
        """
        if is_over and not snapshot_path(self._folder, progress.update).exists():
            progress = self._snapshot(progress)
        self._save(progress)
        return progress

    def has_lost_patience(self, progress: Progress) -> bool:
        """Whether so many snapshots in a row were no better that the run should end."""
        run = self._experiment.run
        if not run.patience or progress.best_update is None:
            return False
        num_updates = progress.update - progress.best_update
        return num_updates >= run.patience * run.snapshot_every_updates

    def _save(self, progress: Progress) -> None:
        save_state(
            self._folder,
            transformer=self._transformer,
            optimiser=self._optimiser,
            progress=progress,
            fingerprint=fingerprint(self._experiment),
        )
        self._saved_seconds = progress.elapsed_seconds

    def _snapshot(self, progress: Progress) -> Progress:
        save_snapshot(self._folder, self._transformer, progress.update)
        scores = self._validator.score(self._transformer)
        if self._reporter is not None:
            listed = ", ".join(f"{name} {_format(score)}" for name, score in scores.items())
            self._reporter.say(f"dev at update {progress.update}: {listed}")
        progress = _with_best(progress, self._validator.choosing(scores))
        assert progress.best_update is not None
        prune_snapshots(
            self._folder,
            num_kept=self._experiment.run.num_snapshots,
            keep=frozenset({snapshot_path(self._folder, progress.best_update)}),
        )
        return progress


def _with_best(progress: Progress, found: DevScore) -> Progress:
    metric, value = ("loss", -found.loss) if found.bleu is None else ("BLEU", found.bleu)
    is_comparable = progress.best_score is not None and progress.metric == metric
    if is_comparable and progress.best_score is not None and value <= progress.best_score:
        return progress
    return replace(progress, metric=metric, best_score=value, best_update=progress.update)


def _format(score: DevScore) -> str:
    bleu = "" if score.bleu is None else f" BLEU {score.bleu:.2f}"
    return f"loss {score.loss:.3f}{bleu}"
