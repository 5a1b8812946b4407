"""The report of a run, in its folder: what was run, on what, where, and what came of it.

Owns `report.md`, `experiment.yaml` and the files that outside scorers read. It quotes dev text, so
it stays in the run's folder; the card, which goes with the checkpoint, is `model.train.card`'s.
"""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import yaml

from model.errors import TrainingError
from model.train.card import CardFacts, markdown_table, scores_section
from model.train.data import ParallelText
from model.train.experiment import Experiment
from model.train.journal import Record
from model.train.state import Progress

REPORT_FILE = "report.md"
EXPERIMENT_FILE = "experiment.yaml"
TRANSLATIONS_FOLDER = "translations"
NUM_SAMPLES = 10

_VERSIONS = ("python", "dragoman", "torch", "numpy", "sentencepiece", "sacrebleu")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """What the end of a run found.

    Attributes:
        facts: As in the card.
        hypotheses: Translations of every scored corpus, such as "test/newstest2019".
    """

    facts: CardFacts
    hypotheses: Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportFacts:
    """What a report tells beside its experiment.

    Attributes:
        progress: How far the run came.
        records: The run's journal.
        num_pairs: Training pairs by corpus.
        num_trained: Training pairs that are short enough to be learnt from, all corpora.
        texts: Held-out text by split and corpus.
        has_curves: Whether there is a picture of them.
        finished: None when the run was stopped.
    """

    progress: Progress
    records: Sequence[Record]
    num_pairs: Mapping[str, int]
    num_trained: int
    texts: Mapping[str, ParallelText]
    has_curves: bool
    finished: Finished | None


def write_experiment(folder: Path, experiment: Experiment) -> None:
    """Write the experiment as it is run, defaults included; `read_experiment` reads it again."""
    _write(folder / EXPERIMENT_FILE, format_experiment(experiment))


def format_experiment(experiment: Experiment) -> str:
    """The experiment as YAML, every key with its value."""
    # By way of JSON, which makes lists of tuples.
    plain = json.loads(json.dumps(dataclasses.asdict(experiment)))
    return yaml.safe_dump(plain, sort_keys=False, allow_unicode=True, width=100)


def write_translations(folder: Path, texts: Mapping[str, ParallelText], finished: Finished) -> None:
    """Write sources, translations and references of every scored corpus for outside scorers.

    One segment a line: `translations/SPLIT/CORPUS.{source,hypothesis,reference}.txt`, which
    `comet-score -s … -t … -r …` reads.
    """
    for name, hypotheses in finished.hypotheses.items():
        text = texts[name]
        sides = {"source": text.source, "hypothesis": hypotheses, "reference": text.target}
        base = folder / TRANSLATIONS_FOLDER / name
        base.parent.mkdir(parents=True, exist_ok=True)
        for side, lines in sides.items():
            # A carriage return inside a segment would be a line's end to readers of text files.
            whole = "".join(f"{line.replace(chr(13), ' ')}\n" for line in lines)
            _write(base.with_name(f"{base.name}.{side}.txt"), whole)


def write_report(folder: Path, experiment: Experiment, facts: ReportFacts) -> None:
    """Write `report.md`, and the translations if the run came to its end.

    Raises:
        TrainingError: A file cannot be written.
    """
    if facts.finished is not None:
        write_translations(folder, facts.texts, facts.finished)
    sections = [
        f"# {experiment.name}: report of a run",
        experiment.description,
        _outcome(facts),
        "" if facts.finished is None else scores_section(facts.finished.facts),
        _outside_scores(facts),
        _curves(facts),
        _samples(experiment, facts),
        _data(experiment, facts),
        _machines(facts),
        f"## Configuration\n\n```yaml\n{format_experiment(experiment)}```",
    ]
    _write(folder / REPORT_FILE, "\n\n".join(part for part in sections if part) + "\n")


def _outcome(facts: ReportFacts) -> str:
    progress = facts.progress
    length = f"{progress.update:,} updates, {progress.elapsed_seconds / 60:.0f} minutes of training"
    if facts.finished is None:
        return f"Stopped after {length}."
    return (
        f"{length}. Weights: {facts.finished.facts.weights}. The checkpoint is in `checkpoint/`,"
        " its card in `checkpoint/card.md`."
    )


def _outside_scores(facts: ReportFacts) -> str:
    if facts.finished is None:
        return ""
    name = next(iter(facts.finished.hypotheses))
    base = f"{TRANSLATIONS_FOLDER}/{name}"
    return (
        "Other scorers read one segment a line; COMET, for one, is asked so:\n\n"
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
    if facts.finished is None:
        return ""
    name = f"dev/{experiment.data.dev[0]}"
    text, hypotheses = facts.texts[name], facts.finished.hypotheses[name]
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
        f"## Sample translations\n\n{count} of the {len(text):,} sentences of {name}, evenly"
        " spaced, by the stored weights.\n\n" + "\n".join(blocks)
    )


def _data(experiment: Experiment, facts: ReportFacts) -> str:
    rows = [
        (
            f"train/{corpus.name}",
            f"{facts.num_pairs[corpus.name]:,}",
            str(corpus.copies),
            corpus.licence,
            corpus.url or "",
        )
        for corpus in experiment.data.train
    ]
    held_out = dict.fromkeys((*(f"dev/{name}" for name in experiment.data.dev), *facts.texts))
    rows += [
        (name, f"{len(facts.texts[name]):,}" if name in facts.texts else "", "", "", "")
        for name in held_out
    ]
    table = markdown_table(("corpus", "pairs", "times an epoch", "licence", "from"), rows)
    return (
        f"## Data\n\n{table}\n\n{facts.num_trained:,} training pairs are short enough (at most"
        f" {experiment.data.max_length} tokens a side) and learnt from."
    )


def _machines(facts: ReportFacts) -> str:
    rows = []
    for record in facts.records:
        if record.event != "start":
            continue
        machine = (
            f"{record.text('device')}, {record.text('processor')},"
            f" {record.number('num_cores') or 0:.0f} cores,"
            f" {record.number('num_threads') or 0:.0f} threads"
        )
        versions = ", ".join(f"{name} {record.text(name) or '?'}" for name in _VERSIONS)
        started = datetime.fromtimestamp(record.time, UTC).isoformat(" ", "minutes")
        commit = record.text("commit") or "not known"
        command = f"`{record.text('command')}`"
        rows.append((f"{record.update:,}", started, commit, machine, versions, command))
    head = ("from update", "when", "git commit", "machine", "versions", "command")
    return f"## Where and with what\n\n{markdown_table(head, rows)}"


def _quoted(line: str) -> str:
    """Text as code, so that Markdown takes none of it for itself."""
    fence = "`"
    while fence in line:
        fence += "`"
    return f"{fence} {line} {fence}" if "`" in line else f"`{line}`"


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise TrainingError(f"{path}: cannot be written: {error.strerror or error}") from error
