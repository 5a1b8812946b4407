"""`python -m benchmarks.trials FOLDER`: what the trials of `experiments/trials.py` came to.

Reads the journals of the runs in a folder; prints a table, of dev text alone, and writes
benchmarks/results/trials-<time>.json. Measures nothing itself: how fast shapes decode is
`benchmarks.shapes`.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import yaml

from benchmarks.machine import describe_command, describe_machine
from benchmarks.results_file import RESULTS, write_result
from model.train.records.journal import JOURNAL_FILE, read_journal


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A run that came to its end.

    Attributes:
        name: Of the trial.
        minutes: Of the processor, as planned.
        num_updates: Done in them.
        num_tokens: Read in them, source and target.
        bleu: By corpus; of a network for several directions, in the first.
        loss: On the first dev corpus, of the last snapshot.
    """

    name: str
    minutes: float
    num_updates: int
    num_tokens: int
    bleu: dict[str, float]
    loss: float


def main() -> None:
    """Read, write, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="runs/trials/GROUP")
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    runs = sorted(path.parent for path in arguments.folder.glob(f"*/{JOURNAL_FILE}"))
    trials = [trial for run in runs if (trial := read_trial(run)) is not None]
    if not trials:
        parser.error(f"{arguments.folder} has no trial that came to its end")
    started = datetime.now(UTC)
    result = {
        "benchmark": "trials",
        "command": describe_command("benchmarks.trials", sys.argv[1:]),
        "started": started.isoformat(timespec="seconds"),
        "machine": describe_machine(),
        "trials": [asdict(trial) for trial in trials],
    }
    path = write_result(arguments.results, "trials", started, result)
    print(table(trials))
    print(f"\n{path}")


def read_trial(run: Path) -> Trial | None:
    """What a run's journal says; None of one without final scores."""
    entries = read_journal(run)
    scores = {
        entry.text("corpus"): round(value, 2)
        for entry in entries
        if entry.event == "score" and (value := entry.number("bleu")) is not None
    }
    progress = [entry for entry in entries if entry.event == "progress"]
    losses = [entry for entry in entries if entry.event == "evaluation"]
    if not scores or not progress or not losses:
        return None
    first = [entry for entry in losses if entry.text("corpus") == losses[0].text("corpus")]
    experiment = yaml.safe_load((run / "experiment.yaml").read_text(encoding="utf-8"))
    last = progress[-1]
    return Trial(
        name=run.name,
        minutes=experiment["run"]["max_minutes"],
        num_updates=last.update,
        num_tokens=int(
            (last.number("num_source_tokens") or 0) + (last.number("num_target_tokens") or 0)
        ),
        bleu=of_first_direction(scores),
        loss=round(first[-1].number("loss") or 0.0, 4),
    )


def of_first_direction(scores: Mapping[str, float]) -> dict[str, float]:
    """Scores by `split/corpus`, from those or from scores by `direction/split/corpus`."""
    *direction, _split, _corpus = next(iter(scores)).split("/")
    first = f"{direction[0]}/" if direction else ""
    return {
        name.removeprefix(first): value for name, value in scores.items() if name.startswith(first)
    }


def table(trials: Sequence[Trial]) -> str:
    """The trials, the best on the first corpus first, in Markdown."""
    corpora = [*trials[0].bleu]
    lines = [
        f"| trial | minutes | updates | million tokens | {' | '.join(corpora)} | dev loss |",
        f"| --- | --: | --: | --: |{' --: |' * len(corpora)} --: |",
    ]
    for one in sorted(trials, key=lambda trial: trial.bleu[corpora[0]], reverse=True):
        cells = [
            one.name,
            f"{one.minutes:g}",
            f"{one.num_updates:,}",
            f"{one.num_tokens / 1e6:.1f}",
            *(f"{one.bleu[corpus]:.1f}" for corpus in corpora),
            f"{one.loss:.3f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
