"""The report of a run: experiment, machine, scores and samples.

Owns `report.md`, `experiment.yaml` and the files that outside scorers read. It quotes dev text, so
it stays in the run's folder; the card, which it repeats, goes with the checkpoint.
"""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import yaml

from model.checkpoint.manifest import CheckpointFiles
from model.errors import TrainingError
from model.offline.evaluate import Evaluation
from model.train.config.experiment import Experiment
from model.train.data.filtering import CorpusReport
from model.train.data.parallel import ParallelText
from model.train.data.reading import choosing_names
from model.train.files import unwritable, write_whole
from model.train.records.card import markdown_table
from model.train.records.journal import JournalEntry, Value
from model.train.saved.state import Progress

REPORT_FILE = "report.md"
EXPERIMENT_FILE = "experiment.yaml"
TRANSLATIONS_FOLDER = "translations"
NUM_SAMPLES = 10

_VERSIONS = ("python", "dragoman", "torch", "numpy", "sentencepiece", "sacrebleu")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """A corpus and the evaluation of the stored weights on it."""

    text: ParallelText
    evaluation: Evaluation


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportFacts:
    """Facts of a report beside its experiment.

    Attributes:
        progress: How far the run came.
        entries: The run's journal.
        reports: Counts of each training corpus.
        has_curves: Whether there is a picture of them.
        card: The checkpoint's card; None when the run did not come to its end.
        scored: The final evaluations by split and corpus, such as "test/newstest2019".
        error: Message of the error that ended the run; None when it was stopped or completed.
    """

    progress: Progress
    entries: Sequence[JournalEntry]
    reports: Sequence[CorpusReport]
    has_curves: bool
    card: str | None
    scored: Mapping[str, Scored]
    error: str | None = None


def score_fields(name: str, evaluation: Evaluation) -> dict[str, Value]:
    """Fields of a "score" event."""
    bleu, chrf = evaluation.scores.bleu, evaluation.scores.chrf
    return {
        "corpus": name,
        "bleu": bleu.value,
        "bleu_signature": bleu.signature,
        "chrf": chrf.value,
        "chrf_signature": chrf.signature,
    }


def read_card(directory: Path) -> str:
    """The card of a checkpoint that was just written.

    Raises:
        TrainingError: It cannot be read.
    """
    path = directory / CheckpointFiles().card
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise TrainingError(f"{path}: cannot be read: {error.strerror or error}") from error


def write_experiment(folder: Path, experiment: Experiment) -> None:
    """Write the experiment as it is run, defaults included; `read_experiment` reads it again.

    Raises:
        TrainingError: It cannot be written; the file that stood there still does.
    """
    _write(folder / EXPERIMENT_FILE, format_experiment(experiment))


def format_experiment(experiment: Experiment) -> str:
    """The experiment as YAML, every key with its value."""
    # By way of JSON, which makes lists of tuples.
    return _as_yaml(json.loads(json.dumps(dataclasses.asdict(experiment))))


def is_as_written(text: str, experiment: Experiment) -> bool:
    """Whether a file with this text may be replaced by the written experiment without loss.

    It may be one that a run has written; it is not one with comments, or in another order.
    """
    found = yaml.safe_load(text)
    return text == _as_yaml(found) and found == yaml.safe_load(format_experiment(experiment))


def _as_yaml(plain: object) -> str:
    return yaml.safe_dump(plain, sort_keys=False, allow_unicode=True, width=100)


def write_translations(folder: Path, scored: Mapping[str, Scored]) -> None:
    """Write sources, translations and references of every scored corpus for outside scorers.

    One segment a line: `translations/SPLIT/CORPUS.{source,hypothesis,reference}.txt`, below the
    folder of a language pair that is not the direction's own, and below one for each direction
    where those are listed; `comet-score -s … -t … -r …` reads them.

    Raises:
        TrainingError: A file cannot be written.
    """
    for name, item in scored.items():
        sides = {
            "source": item.text.source,
            "hypothesis": item.evaluation.hypotheses,
            "reference": item.text.target,
        }
        base = folder / TRANSLATIONS_FOLDER / name
        for side, lines in sides.items():
            # A carriage return inside a segment would be a line's end to readers of text files.
            whole = "".join(f"{line.replace(chr(13), ' ')}\n" for line in lines)
            _write(base.with_name(f"{base.name}.{side}.txt"), whole)


def write_report(folder: Path, experiment: Experiment, facts: ReportFacts) -> None:
    """Write `report.md`, and the translations if the run came to its end.

    Raises:
        TrainingError: A file cannot be written.
    """
    write_translations(folder, facts.scored)
    sections = [
        f"# {experiment.name}: report of a run",
        _outcome(facts),
        _pairs(facts),
        _curves(facts),
        _samples(experiment, facts),
        _outside_scores(facts),
        _machines(facts),
        "" if facts.card is None else f"## Model card\n\n{_demoted(facts.card)}",
        f"## Configuration\n\n```yaml\n{format_experiment(experiment)}```",
    ]
    _write(folder / REPORT_FILE, "\n\n".join(part for part in sections if part) + "\n")


def _outcome(facts: ReportFacts) -> str:
    progress = facts.progress
    length = f"{progress.update:,} updates, {progress.elapsed_seconds / 60:.0f} minutes of training"
    num_pairs = sum(report.num_kept for report in facts.reports)
    length += f", {num_pairs:,} pairs of sentences"
    if facts.error is not None:
        return f"Ended with an error after {length}: {_quoted(' '.join(facts.error.split()))}"
    if facts.card is None:
        return f"Stopped after {length}."
    rows = [
        (
            name,
            f"{item.evaluation.scores.bleu.value:.2f}",
            f"{item.evaluation.scores.chrf.value:.2f}",
        )
        for name, item in facts.scored.items()
    ]
    return (
        f"{length}. The checkpoint is in `checkpoint/`; its card, which is repeated below, has the"
        f" scores' signatures.\n\n{markdown_table(('corpus', 'BLEU', 'chrF2'), rows)}"
    )


def _pairs(facts: ReportFacts) -> str:
    listed = "\n".join(f"- {report}" for report in facts.reports)
    return f"## Pairs of sentences\n\n{listed}"


def _outside_scores(facts: ReportFacts) -> str:
    if not facts.scored:
        return ""
    base = f"{TRANSLATIONS_FOLDER}/{next(iter(facts.scored))}"
    return (
        "## Other scorers\n\nThey read one segment a line; COMET, for one, is asked so:\n\n"
        f"```\ncomet-score -s {base}.source.txt -t {base}.hypothesis.txt"
        f" -r {base}.reference.txt\n```"
    )


def _curves(facts: ReportFacts) -> str:
    picture = "![Curves of the run](curves.png)\n\n" if facts.has_curves else ""
    return (
        f"## Curves\n\n{picture}Every figure is in `metrics.jsonl`; `tensorboard --logdir .` shows"
        " the same, if the run could write its events. The training loss is label-smoothed; dev"
        " losses and perplexities are not."
    )


def _samples(experiment: Experiment, facts: ReportFacts) -> str:
    """Samples of the texts that chose the weights."""
    if not facts.scored:
        return ""
    found = [_samples_of(name, facts.scored[name]) for name in choosing_names(experiment)]
    return "\n\n".join(("## Sample translations", *found))


def _samples_of(name: str, item: Scored) -> str:
    text, hypotheses = item.text, item.evaluation.hypotheses
    count = min(NUM_SAMPLES, len(text))
    chosen = [index * len(text) // count for index in range(count)]
    blocks = [
        "\n".join(
            (
                f"{number}. {_quoted(text.source[index])}",
                f"   - translation: {_quoted(hypotheses[index])}",
                f"   - reference: {_quoted(text.target[index])}",
            )
        )
        for number, index in enumerate(chosen, start=1)
    ]
    return (
        f"{count} of the {len(text):,} sentences of {name}, evenly spaced, by the stored"
        " weights.\n\n" + "\n".join(blocks)
    )


def _machines(facts: ReportFacts) -> str:
    rows = []
    for entry in facts.entries:
        if entry.event != "start":
            continue
        machine = (
            f"{entry.text('device')}, {entry.text('processor')},"
            f" {entry.number('num_cores') or 0:.0f} cores,"
            f" {entry.number('num_threads') or 0:.0f} threads"
        )
        versions = ", ".join(f"{name} {entry.text(name) or '?'}" for name in _VERSIONS)
        started = datetime.fromtimestamp(entry.time, UTC).isoformat(" ", "minutes")
        commit = entry.text("commit") or "not known"
        command = f"`{entry.text('command')}`"
        rows.append((f"{entry.update:,}", started, commit, machine, versions, command))
    head = ("from update", "when", "git commit", "machine", "versions", "command")
    return f"## Where and with what\n\n{markdown_table(head, rows)}"


def _demoted(card: str) -> str:
    """The card without its title, its sections a level deeper."""
    _, _, rest = card.partition("\n")
    return rest.strip().replace("\n## ", "\n### ")


def _quoted(line: str) -> str:
    """Text as code, so that Markdown takes none of it for itself."""
    fence = "`"
    while fence in line:
        fence += "`"
    return f"{fence} {line} {fence}" if "`" in line else f"`{line}`"


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(path, error) from error
    write_whole(path, text.encode())
