"""The end of a run: the choice of weights, their scores, the checkpoint.

Owns the choice between the best snapshot, averages of the latest ones and the moving average, on
dev text, and the final scores. Scores are of the stored int8 weights, read back from the disk.
"""

import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch

from model.config import SearchConfig
from model.errors import DecodingError, TrainingError
from model.float_loading import as_served
from model.loading import load_for_decoding
from model.nn.transformer import Transformer
from model.offline.evaluate import Evaluation, evaluate
from model.offline.translator import Translator
from model.train.config.experiment import Experiment
from model.train.config.run import Metric
from model.train.data.reading import ReportText, RunText, choosing_names
from model.train.loop.memory import naming_corpus, naming_dev_loss
from model.train.loop.validation import DevScore, dev_loss
from model.train.records.card import CardFacts, write_card
from model.train.records.report import Scored
from model.train.saved.averaging import average_snapshots, last_snapshots
from model.train.saved.export import export_checkpoint, memory_checkpoint
from model.train.saved.state import (
    Progress,
    average_path,
    list_averages,
    snapshot_path,
    update_of,
)
from model.train.stopping import ShouldStop, StoppedError, never, raise_if_stopped

_LOGGER = logging.getLogger("dragoman.train")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Evaluator:
    """Final scoring: one search for all corpora, on the network's device.

    Attributes:
        experiment: What was run.
        search: For all scores.
        should_stop: Checked after every segment, and before every batch of a dev loss.
        device: Of the network.
    """

    experiment: Experiment
    search: SearchConfig
    should_stop: ShouldStop
    device: torch.device

    def evaluate(self, translator: Translator, name: str, item: ReportText) -> Evaluation:
        """Scores of a corpus.

        Raises:
            StoppedError: `should_stop` returned true.
            TrainingError: There was not enough memory.
        """
        with naming_corpus(
            name, key="final_beam_size", beam_size=self.search.beam_size, device=self.device
        ):
            return evaluate(
                translator,
                item.pair,
                item.text.source,
                item.text.target,
                search=self.search,
                tokenizer=self.experiment.run.bleu_tokenizer,
                on_finished=lambda _: raise_if_stopped(self.should_stop),
            )


def finish_run(
    experiment: Experiment,
    *,
    folder: Path,
    directory: Path,
    text: RunText,
    transformer: Transformer,
    progress: Progress,
    command: str,
    should_stop: ShouldStop = never,
) -> dict[str, Scored] | None:
    """Choose weights, store them, score what was stored, write the card.

    Args:
        experiment: What was run.
        folder: Of the run, with its snapshots.
        directory: Where the checkpoint goes.
        text: Of the run. The first dev corpus of each direction chooses the weights; what else is
            reported is scored only after that choice.
        transformer: Gets the chosen weights.
        progress: Of the run.
        command: For the card.
        should_stop: Checked often; a stopped end can be done again.

    Returns:
        The final evaluations by corpus, in the card's order; None if it was stopped.

    Raises:
        TrainingError: No snapshot is left that can be read, none has a finite score, or there was
            not enough memory.
    """
    evaluator = _Evaluator(
        experiment=experiment,
        search=SearchConfig(beam_size=experiment.run.final_beam_size),
        should_stop=should_stop,
        device=transformer.target_embedding.weight.device,  # where a large network is trained
    )
    try:
        return _finish(
            evaluator,
            folder=folder,
            directory=directory,
            text=text,
            transformer=transformer,
            progress=progress,
            command=command,
        )
    except StoppedError:
        return None


def _finish(
    evaluator: _Evaluator,
    *,
    folder: Path,
    directory: Path,
    text: RunText,
    transformer: Transformer,
    progress: Progress,
    command: str,
) -> dict[str, Scored]:
    transformer.eval()
    experiment = evaluator.experiment
    candidates = _candidates(experiment, folder, progress)
    if not candidates:
        raise TrainingError(f"{folder}: holds no snapshot to choose the weights from")
    weights = _choose(evaluator, candidates, text=text, transformer=transformer)
    transformer.load_state_dict(average_snapshots(candidates[weights]))
    scored: dict[str, Scored] = {}

    def write(compute_type: str) -> None:
        facts = CardFacts(
            progress=progress,
            reports=text.reports,
            copies=text.pairs.copies,
            weights=weights,
            scores={name: item.evaluation.scores for name, item in scored.items()},
            beam_size=evaluator.search.beam_size,
            compute_type=compute_type,
        )
        export_checkpoint(
            directory,
            experiment=experiment,
            vocabularies=text.vocabularies,
            transformer=transformer,
            card=write_card(experiment, transformer, facts, command=command),
        )

    write("")  # without scores; these are of the weights as they are read back
    # As many threads as the run has; by default every core is taken.
    num_threads = torch.get_num_threads()
    runnable = load_for_decoding(directory, device=evaluator.device, num_threads=num_threads)
    translator = Translator(runnable)
    for name, item in text.report.items():
        found = evaluator.evaluate(translator, name, item)
        scored[name] = Scored(text=item.text, evaluation=found)
        fields = {
            "corpus": name,
            "bleu": str(found.scores.bleu),
            "chrf": str(found.scores.chrf),
        }
        _LOGGER.info("checkpoint_scored", extra={"fields": fields})
    write(runnable.compute_type)
    return scored


def _candidates(experiment: Experiment, folder: Path, progress: Progress) -> dict[str, list[Path]]:
    """Snapshots to average, by their description."""
    found: dict[str, list[Path]] = {}
    averages = {update_of(path) for path in list_averages(folder)[-1:]}
    if progress.best_update is not None:
        best = snapshot_path(folder, progress.best_update)
        if experiment.optimiser.ema_decay:  # dev text has scored the average, not the snapshot
            averages.add(progress.best_update)
        elif best.exists():
            found[f"the snapshot of update {progress.best_update:,}"] = [best]
    for update in sorted(averages):
        path = average_path(folder, update)
        if path.exists():
            found[f"the moving average at update {update:,}"] = [path]
    run = experiment.run
    # Not what the folder holds: an older one may be there, kept as the best.
    updates = progress.snapshot_updates[-run.num_snapshots :]
    kept = [snapshot_path(folder, update) for update in updates]
    latest = last_snapshots(kept, run.average_counts)
    for count, paths in latest.items():
        found[f"the average of the last {count} snapshots"] = paths
    return found


def _choose(
    evaluator: _Evaluator,
    candidates: Mapping[str, list[Path]],
    *,
    text: RunText,
    transformer: Transformer,
) -> str:
    """The candidate that is best by the run's metric, the mean over the directions.

    One whose files cannot be read, or whose value is not finite, is not chosen. Ties are broken as
    between snapshots (`DevScore.rank`), then by the latest update.

    Raises:
        TrainingError: None can be read, or no value is finite.
    """
    ranks: dict[str, tuple[float, float, float]] = {}
    failures: list[TrainingError] = []
    metric = evaluator.experiment.run.metric or "bleu"
    scores_of = _dev_losses if metric == "loss" else _dev_scores
    for name, paths in candidates.items():
        try:
            tensors = average_snapshots(paths)
        except TrainingError as error:
            fields = {"candidate": name, "reason": str(error)}
            _LOGGER.warning("candidate_left_out", extra={"fields": fields})
            failures.append(error)
            continue
        transformer.load_state_dict(tensors)
        try:
            scores = scores_of(evaluator, name, text=text, transformer=transformer)
            ranks[name] = DevScore.mean_of(scores).rank(metric)
        except DecodingError as error:
            fields = {"candidate": name, "reason": str(error)}
            _LOGGER.warning("candidate_not_scored", extra={"fields": fields})
            ranks[name] = (-math.inf, -math.inf, -math.inf)
    if not ranks:
        raise failures[0]
    values = [value for value, *_ in ranks.values()]
    if max(values) == -math.inf:
        raise TrainingError(
            f"{', '.join(ranks)}: none has a finite score on dev text; the run has diverged"
        )
    chosen = max(ranks, key=lambda name: (ranks[name], max(map(update_of, candidates[name]))))
    if len(values) > 1 and len(set(values)) == 1:
        _warn_of_equals(metric, abs(values[0]), chosen)
    return chosen


def _warn_of_equals(metric: Metric, value: float, chosen: str) -> None:
    fields = {
        "metric": metric,
        "value": round(value, 4),
        "chosen": chosen,
        "reason": f"all candidates have the same {metric} on dev text; what chose is chrF where it"
        " was computed, then the latest update"
        + ("; run.metric: chrf or loss may tell more" if metric == "bleu" else ""),
    }
    _LOGGER.warning("candidates_equal", extra={"fields": fields})


def _dev_losses(
    evaluator: _Evaluator, candidate: str, *, text: RunText, transformer: Transformer
) -> list[DevScore]:
    """Of each direction, the loss alone.

    Raises:
        StoppedError: `should_stop` returned true.
        TrainingError: There was not enough memory.
    """
    run = evaluator.experiment.run
    found = []
    for name in choosing_names(evaluator.experiment):
        pairs = text.report[name].pairs
        assert pairs is not None  # the metric is the loss
        with naming_dev_loss(name, run, evaluator.device):
            loss = dev_loss(transformer, pairs, run, evaluator.should_stop)
        fields = {"candidate": candidate, "corpus": name, "loss": round(loss, 4)}
        _LOGGER.info("candidate_scored", extra={"fields": fields})
        found.append(DevScore(loss=loss))
    return found


def _dev_scores(
    evaluator: _Evaluator, candidate: str, *, text: RunText, transformer: Transformer
) -> list[DevScore]:
    """BLEU and chrF of each direction, without the loss."""
    experiment = evaluator.experiment
    checkpoint = memory_checkpoint(experiment, text.vocabularies, transformer)
    translator = Translator(as_served(checkpoint))
    found = []
    for name in choosing_names(experiment):
        scores = evaluator.evaluate(translator, name, text.report[name]).scores
        metric = experiment.run.metric or "bleu"
        chosen = scores.chrf if metric == "chrf" else scores.bleu
        fields = {"candidate": candidate, "corpus": name, metric: str(chosen)}
        _LOGGER.info("candidate_scored", extra={"fields": fields})
        found.append(DevScore(loss=math.nan, bleu=scores.bleu.value, chrf=scores.chrf.value))
    return found
