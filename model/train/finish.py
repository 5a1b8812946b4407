"""The end of a run: which weights, what they are worth, the checkpoint.

Owns the choice between the best snapshot and averages of the latest ones, on dev text, and the
final scores. Scores are of the stored int8 weights, read back from the disk.
"""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean

from model.config import SearchConfig
from model.evaluate import Scores, evaluate
from model.loading import as_served, load_for_decoding
from model.nn.transformer import Transformer
from model.train.averaging import average_snapshots, last_snapshots
from model.train.card import CardFacts, write_card
from model.train.experiment import Experiment
from model.train.export import export_checkpoint, memory_checkpoint
from model.train.filtering import CorpusReport
from model.train.reading import ReportText, held_out_name
from model.train.state import Progress, list_snapshots, snapshot_path
from model.train.vocabulary import Vocabularies
from model.translator import Translator

LOGGER = logging.getLogger("dragoman.train")


def finish_run(
    experiment: Experiment,
    *,
    folder: Path,
    directory: Path,
    vocabularies: Vocabularies,
    transformer: Transformer,
    progress: Progress,
    reports: Sequence[CorpusReport],
    report: Mapping[str, ReportText],
    command: str,
) -> dict[str, Scores]:
    """Choose weights, store them, score what was stored, write the card.

    Args:
        experiment: What was run.
        folder: Of the run, with its snapshots.
        directory: Where the checkpoint goes.
        vocabularies: Of the run.
        transformer: Gets the chosen weights.
        progress: Of the run.
        reports: What became of each training corpus.
        report: Text by split and corpus; the first corpus of each direction's dev split chooses
            the weights, the others are looked at only when they are chosen.
        command: For the card.

    Returns:
        Scores by corpus, as in the card.
    """
    transformer.eval()
    search = SearchConfig(beam_size=experiment.run.final_beam_size)
    candidates = _candidates(experiment, folder, progress)
    weights = _choose(
        experiment,
        candidates,
        vocabularies=vocabularies,
        transformer=transformer,
        texts={
            name: report[name]
            for name in (
                held_out_name(experiment, direction, f"dev/{direction.dev[0]}")
                for direction in experiment.data.directions
            )
        },
        search=search,
    )
    transformer.load_state_dict(average_snapshots(candidates[weights]))
    scores: dict[str, Scores] = {}

    def write(compute_type: str) -> None:
        facts = CardFacts(
            progress=progress,
            reports=reports,
            weights=weights,
            scores=scores,
            beam_size=search.beam_size,
            compute_type=compute_type,
        )
        export_checkpoint(
            directory,
            experiment=experiment,
            vocabularies=vocabularies,
            transformer=transformer,
            card=write_card(experiment, transformer, facts, command=command),
        )

    write("")  # without scores; these are of the weights as they are read back
    runnable = load_for_decoding(directory)
    translator = Translator(runnable)
    for name, item in report.items():
        found = evaluate(translator, item.pair, item.text.source, item.text.target, search=search)
        scores[name] = found.scores
        LOGGER.info("%s: %s, %s", name, found.scores.bleu, found.scores.chrf)
    write(runnable.compute_type)
    return scores


def _candidates(experiment: Experiment, folder: Path, progress: Progress) -> dict[str, list[Path]]:
    """Snapshots to average, by a description in words."""
    found: dict[str, list[Path]] = {}
    if progress.best_update is not None:
        best = snapshot_path(folder, progress.best_update)
        if best.exists():
            found[f"the snapshot of update {progress.best_update:,}"] = [best]
    averages = last_snapshots(list_snapshots(folder), experiment.run.average_counts)
    for count, paths in averages.items():
        found[f"the average of the last {count} snapshots"] = paths
    return found


def _choose(
    experiment: Experiment,
    candidates: Mapping[str, list[Path]],
    *,
    vocabularies: Vocabularies,
    transformer: Transformer,
    texts: Mapping[str, ReportText],
    search: SearchConfig,
) -> str:
    """The candidate with the highest BLEU, the mean over `texts`."""
    values: dict[str, float] = {}
    for candidate, paths in candidates.items():
        transformer.load_state_dict(average_snapshots(paths))
        translator = Translator(as_served(memory_checkpoint(experiment, vocabularies, transformer)))
        found = {
            name: evaluate(
                translator, item.pair, item.text.source, item.text.target, search=search
            ).scores.bleu
            for name, item in texts.items()
        }
        values[candidate] = mean(bleu.value for bleu in found.values())
        for name, bleu in found.items():
            LOGGER.info("%s: %s %s", candidate, name, bleu)
    return max(values, key=values.__getitem__)
