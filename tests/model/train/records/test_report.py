import errno
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from model.errors import TrainingError
from model.offline.evaluate import Evaluation, score
from model.train.config.data import CorpusConfig, DataConfig
from model.train.config.experiment import Experiment, read_experiment
from model.train.config.run import RunConfig
from model.train.data.filtering import CorpusReport
from model.train.data.parallel import ParallelText
from model.train.records.journal import JournalEntry
from model.train.records.report import (
    EXPERIMENT_FILE,
    ReportFacts,
    Scored,
    read_card,
    write_experiment,
    write_report,
)
from model.train.saved.state import Progress

EXPERIMENT = Experiment(
    name="tiny",
    licence="CC0-1.0",
    description="A test",
    data=DataConfig(
        folder="en-zh",
        source_language="en",
        target_language="zh",
        train=(
            CorpusConfig(name="talk", licence="CC-BY-4.0", url="https://example.org", copies=2),
        ),
        dev=("talk",),
        report=("test/talk",),
    ),
    run=RunConfig(max_minutes=2.5, average_counts=(2, 3)),
)
TEXT = ParallelText(
    source=("One `tick` here.", "Two\rlines.", "Three."),
    target=("这里一下。", "两行。", "三。"),
)
HYPOTHESES = ("一个。", "两行。", "三。")
RECORDS = (
    JournalEntry(
        event="start",
        update=0,
        time=86_400.0,
        fields={
            "commit": "0123456789ab",
            "device": "cpu",
            "processor": "Abacus",
            "num_cores": 2,
            "num_threads": 1,
            "python": "3.11.0",
            "torch": "2.0",
            "command": "dragoman train tiny.yaml",
        },
    ),
    JournalEntry(event="progress", update=120, time=86_500.0, fields={"elapsed_seconds": 90.0}),
)


def facts(*, is_over: bool, entries: Sequence[JournalEntry] = RECORDS) -> ReportFacts:
    evaluation = Evaluation(
        scores=score(HYPOTHESES, TEXT.target, tokenizer="zh"), hypotheses=HYPOTHESES
    )
    scored = Scored(text=TEXT, evaluation=evaluation)
    return ReportFacts(
        progress=Progress(update=1200, elapsed_seconds=90.0),
        entries=entries,
        reports=(
            CorpusReport(
                direction="en-zh",
                name="talk",
                num_pairs=6000,
                num_kept=5678,
                dropped={"duplicate": 322},
            ),
        ),
        has_curves=is_over,
        card="# tiny\n\nA test\n\n## Network\n\nSmall.\n" if is_over else None,
        scored={"dev/talk": scored, "test/talk": scored} if is_over else {},
    )


@pytest.mark.parametrize(
    "experiment", [EXPERIMENT, replace(EXPERIMENT, notes="Zwei\nZeilen: 二", description="")]
)
def test_the_experiment_is_written_so_that_it_can_be_run_again(
    experiment: Experiment, tmp_path: Path
) -> None:
    write_experiment(tmp_path, experiment)
    assert read_experiment(tmp_path / EXPERIMENT_FILE) == experiment


def test_an_experiment_that_cannot_be_written_leaves_the_one_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fill(path: Path, data: bytes) -> int:
        with path.open("wb") as file:
            file.write(data[:10])
        raise OSError(errno.ENOSPC, "No space left on device")

    write_experiment(tmp_path, EXPERIMENT)
    monkeypatch.setattr(Path, "write_bytes", fill)
    with pytest.raises(TrainingError, match=r"experiment\.yaml: cannot be written: No space left"):
        write_experiment(tmp_path, replace(EXPERIMENT, name="other"))
    assert read_experiment(tmp_path / EXPERIMENT_FILE) == EXPERIMENT
    assert [path.name for path in tmp_path.iterdir()] == [EXPERIMENT_FILE]


def test_a_report_tells_what_was_run_on_what_where_and_what_came_of_it(tmp_path: Path) -> None:
    write_report(tmp_path, EXPERIMENT, facts(is_over=True))
    report = (tmp_path / "report.md").read_text(encoding="utf-8")
    for part in (
        "# tiny: report of a run",
        "1,200 updates, 2 minutes of training, 5,678 pairs of sentences.",
        f"| test/talk | {score(HYPOTHESES, TEXT.target, tokenizer='zh').bleu.value:.2f} | ",
        "- en-zh talk: 5,678 of 6,000 pairs; left out: duplicate 322",
        "![Curves of the run](curves.png)",
        "1. `` One `tick` here. ``\n   - translation: `一个。`\n   - reference: `这里一下。`",
        "3. `Three.`",
        "## Model card\n\nA test\n\n### Network\n\nSmall.",
        "licence: CC-BY-4.0",
        "| 0 | 1970-01-02 00:00+00:00 | 0123456789ab | cpu, Abacus, 2 cores, 1 threads |",
        "`dragoman train tiny.yaml`",
        "max_minutes: 2.5",
    ):
        assert part in report
    assert str(tmp_path) not in report


def test_outside_scorers_get_one_segment_a_line(tmp_path: Path) -> None:
    write_report(tmp_path, EXPERIMENT, facts(is_over=True))
    folder = tmp_path / "translations" / "test"
    found = {}
    for side in ("source", "hypothesis", "reference"):
        with (folder / f"talk.{side}.txt").open(encoding="utf-8") as file:  # as COMET opens it
            found[side] = [line.strip() for line in file]
    assert found == {
        "source": ["One `tick` here.", "Two lines.", "Three."],
        "hypothesis": list(HYPOTHESES),
        "reference": list(TEXT.target),
    }


def test_a_stopped_run_has_a_report_without_scores(tmp_path: Path) -> None:
    write_report(tmp_path, EXPERIMENT, facts(is_over=False))
    report = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "Stopped after 1,200 updates, 2 minutes of training, 5,678 pairs" in report
    assert "## Model card" not in report
    assert "## Sample translations" not in report
    assert "curves.png" not in report
    assert not (tmp_path / "translations").exists()


def test_a_run_outside_git_says_so(tmp_path: Path) -> None:
    start = replace(RECORDS[0], fields={**RECORDS[0].fields, "commit": None})
    write_report(tmp_path, EXPERIMENT, facts(is_over=True, entries=[start]))
    assert "| not known | cpu" in (tmp_path / "report.md").read_text(encoding="utf-8")


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "report.md").mkdir()
    with pytest.raises(TrainingError, match=r"report\.md: cannot be written: Is a directory"):
        write_report(tmp_path, EXPERIMENT, facts(is_over=False))
    (tmp_path / "translations").write_text("", encoding="utf-8")
    with pytest.raises(TrainingError, match=r"source\.txt: cannot be written: "):
        write_report(tmp_path, EXPERIMENT, facts(is_over=True))


def test_a_card_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match=r"card\.md: cannot be read: No such file"):
        read_card(tmp_path)
