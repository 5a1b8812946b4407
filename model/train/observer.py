"""Work around the updates of a run: progress lines, journal, snapshots, dev scores, saves.

Owns when each is done. How they are done is `records.progress`, `records.recorder`,
`saved.retention` and `loop.validation`.
"""

import hashlib
import logging
import math
from collections.abc import Mapping
from dataclasses import replace

from model.nn.transformer import Transformer
from model.train.config.comparison import differences, explicit_values
from model.train.config.experiment import Experiment
from model.train.config.run import Metric
from model.train.loop.trainer import UpdateResult
from model.train.loop.validation import DevScore, Validator
from model.train.records.journal import Value, perplexity
from model.train.records.progress import ProgressReporter
from model.train.records.recorder import RunRecorder
from model.train.records.time_left import TimeLeft
from model.train.saved.retention import RunFiles
from model.train.saved.state import Progress
from model.train.stopping import ShouldStop, StoppedError, raise_if_stopped

_LOGGER = logging.getLogger("dragoman.train")

_CHANGES_NO_BATCH = frozenset({"licence", "url", "dev", "report"})
"""Keys of `data`, at any depth, that a resumed run may change."""

_FIXED = ("data", "vocabulary", "network", "optimiser")
_FIXED_OF_RUN = ("batch_tokens", "update_freq", "seed")


def fingerprint(experiment: Experiment) -> str:
    """Hash of the settings that must not change between a save and a resume.

    A longer run, another schedule, other intervals of saving or other dev text do not change it.
    The contents of text files are not part of it: `model.train.data.corpora` compares them.
    """
    run = experiment.run
    fixed = (
        *(
            explicit_values(getattr(experiment, name), left_out=_CHANGES_NO_BATCH)
            for name in _FIXED
        ),
        tuple(getattr(run, name) for name in _FIXED_OF_RUN),
    )
    return hashlib.sha256(repr(fixed).encode()).hexdigest()[:16]


def fixed_difference(experiment: Experiment, of_run: Experiment) -> tuple[str, str] | None:
    """The first key of `fingerprint` whose value differs from that of the run's own experiment.

    Returns:
        The key and the two values in words; None if there is no such key.
    """
    for name in _FIXED:
        pair = getattr(experiment, name), getattr(of_run, name)
        for found in differences(*pair, name, left_out=_CHANGES_NO_BATCH):
            return found
    for name in _FIXED_OF_RUN:
        pair = getattr(experiment.run, name), getattr(of_run.run, name)
        for found in differences(*pair, f"run.{name}"):
            return found
    return None


def comparable(progress: Progress, *, scoring: str) -> Progress:
    """The progress to resume with: without a best score that was measured in another way.

    A score that was measured with other text, another metric or another search is dropped, with a
    warning; patience begins anew. The snapshot it was of is kept for the choice at the end,
    which scores it once more, until a snapshot has a score of the new kind.

    Args:
        progress: Of the state.
        scoring: What scores are measured with from now on, from `Validator.scoring`.
    """
    current = replace(progress, scoring=scoring)
    if progress.best_score is None or progress.scoring == scoring:
        return current
    fields = {
        "best_score": round(progress.best_score, 4),
        "best_update": progress.best_update,
        "measured_with": progress.scoring,
        "now_measured_with": scoring,
        "reason": "scores of two kinds are not compared; run.patience counts anew",
    }
    _LOGGER.warning("best_score_forgotten", extra={"fields": fields})
    return replace(current, best_score=None, best_ties=(), num_snapshots_since_best=0)


class RunObserver:
    """Observer of one run on the first worker.

    Args:
        experiment: Its intervals are used.
        files: Of the run.
        transformer: Scored.
        validator: Scores the network.
        progress: Where the run begins.
        reporter: Gets the progress.
        recorder: Gets the journal's entries.
        time_left: Gets the duration of scores and saves.
        should_stop: Checked often while dev text is scored.
    """

    def __init__(
        self,
        experiment: Experiment,
        *,
        files: RunFiles,
        transformer: Transformer,
        validator: Validator,
        progress: Progress,
        reporter: ProgressReporter,
        recorder: RunRecorder,
        time_left: TimeLeft,
        should_stop: ShouldStop,
    ) -> None:
        self._experiment = experiment
        self._files = files
        self._transformer = transformer
        self._validator = validator
        self._saved = progress
        self._reporter = reporter
        self._recorder = recorder
        self._time_left = time_left
        self._should_stop = should_stop

    def after_update(self, result: UpdateResult, progress: Progress, fraction: float) -> Progress:
        """Report, snapshot and save, where one of them is due."""
        run = self._experiment.run
        if result.is_skipped:
            self._reporter.say(
                f"update {result.update} skipped: loss {result.loss}, gradient norm"
                f" {result.gradient_norm}",
                event="update_skipped",
                fields={
                    "update": result.update,
                    "loss": result.loss,
                    "gradient_norm": result.gradient_norm,
                },
            )
        self._reporter.add(result, progress, fraction=fraction)
        if result.update % run.log_every_updates == 0 or fraction >= 1.0:
            fields = self._reporter.report(progress, fraction=fraction)
            self._recorder.note("progress", update=progress.update, fields=fields)
        if self._is_snapshot_due(progress):
            progress = self._snapshot(progress)
        if self._is_save_due(progress):
            self._save(progress)
        return progress

    def first(self, progress: Progress) -> Progress:
        """Save a state before the first update, so that a run can be resumed from then on.

        A run that was stopped while it scored a snapshot makes it again, before anything else.
        """
        if progress.update == 0:
            self._save(progress)
        elif self._is_snapshot_due(progress):
            progress = self._snapshot(progress)
        return progress

    def last(self, progress: Progress, *, is_over: bool) -> Progress:
        """Save a state and, if the run is over, a snapshot of its last update.

        A run that was only stopped gets no snapshot that it would not have had otherwise. One
        that is there and was not scored comes from a run that ended while it scored it; if this
        one is stopped, it stays so too.
        """
        is_scored = progress.scored_update == progress.update
        if is_over and not (is_scored and self._files.has_snapshot(progress.update)):
            progress = self._snapshot(progress)
        self._save(progress)
        return progress

    def has_lost_patience(self, progress: Progress) -> bool:
        """Whether so many snapshots in a row were no better that the run should end."""
        patience = self._experiment.run.patience
        return 0 < patience <= progress.num_snapshots_since_best

    def _is_save_due(self, progress: Progress) -> bool:
        run = self._experiment.run
        num_updates = progress.update - self._saved.update
        if run.save_every_updates and num_updates >= run.save_every_updates:
            return True
        seconds = progress.elapsed_seconds - self._saved.elapsed_seconds
        return 0.0 < 60.0 * run.save_every_minutes <= seconds

    def _save(self, progress: Progress) -> None:
        with self._time_left.saving():
            self._files.save(progress)
        self._saved = progress

    def _is_snapshot_due(self, progress: Progress) -> bool:
        is_scored = progress.scored_update == progress.update
        return progress.update % self._experiment.run.snapshot_every_updates == 0 and not is_scored

    def _snapshot(self, progress: Progress) -> Progress:
        """Write a snapshot and score it; if it is stopped, the progress stays as it was."""
        try:
            with self._time_left.evaluating():
                raise_if_stopped(self._should_stop)
                self._files.snapshot(progress.update)
                with self._files.scored_weights():
                    scores = self._validator.score(self._transformer, self._should_stop)
        except StoppedError:
            return progress
        self._note_scores(progress, scores)
        run = self._experiment.run
        updates = sorted({*progress.snapshot_updates, progress.update})
        progress = replace(
            _with_best(progress, self._validator.choosing(scores), run.snapshot_metric),
            scored_update=progress.update,
            snapshot_updates=tuple(updates[-run.num_snapshots :]),
        )
        self._files.prune(progress)
        return progress

    def _note_scores(self, progress: Progress, scores: Mapping[str, DevScore]) -> None:
        known = {
            entry.text("corpus")
            for entry in self._recorder.entries
            if entry.event == "evaluation" and entry.update == progress.update
        }
        for name, score in scores.items():
            fields: dict[str, Value] = {
                "corpus": name,
                "loss": score.loss,
                "perplexity": perplexity(score.loss),
                "bleu": score.bleu,
                "chrf": score.chrf,
            }
            if name not in known:  # a run that was killed before it saved has scored this too
                self._recorder.note("evaluation", update=progress.update, fields=fields)
            self._reporter.say(
                f"dev/{name} at update {progress.update}: {_format(score)}",
                event="evaluation",
                fields={"update": progress.update, **fields},
            )
        self._recorder.draw_if_due()


def _with_best(progress: Progress, found: DevScore, metric: Metric) -> Progress:
    """The progress with the score of its update, which may have been scored before.

    Of snapshots that are equal in everything the last is the best, and patience counts on.
    """
    value, *ties = rank = found.rank(metric)
    best = None if progress.best_score is None else (progress.best_score, *progress.best_ties)
    if math.isfinite(value) and (best is None or rank > best):
        return replace(
            progress,
            best_score=value,
            best_ties=tuple(ties),
            best_update=progress.update,
            num_snapshots_since_best=0,
        )
    if best is None or progress.scored_update == progress.update:
        return progress
    return replace(
        progress,
        best_update=progress.update if rank == best else progress.best_update,
        num_snapshots_since_best=progress.num_snapshots_since_best + 1,
    )


def _format(score: DevScore) -> str:
    bleu = "" if score.bleu is None else f" BLEU {score.bleu:.2f}"
    chrf = "" if score.chrf is None else f" chrF {score.chrf:.2f}"
    return f"loss {score.loss:.3f}{bleu}{chrf}"
