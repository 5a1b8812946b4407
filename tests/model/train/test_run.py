"""Whole runs on generated text: to the end, stopped and resumed, refused."""

import shutil
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from model.checkpoint.weights import load_checkpoint
from model.errors import TrainingError
from model.offline.translator import Translator
from model.train.config.data import DataConfig
from model.train.config.experiment import read_experiment
from model.train.config.optimiser import OptimiserConfig
from model.train.config.regularisation import RegularisationConfig
from model.train.config.run import Metric
from model.train.config.schedule import ScheduleConfig
from model.train.records.journal import Journal, read_journal
from model.train.saved.state import (
    STATE_FILE,
    has_state,
    list_snapshots,
    load_snapshot,
    snapshot_path,
)
from support.logged import events_of, fields_of
from support.tiny_checkpoint import EN_ZH
from support.tiny_runs import EXPERIMENT, run


def test_a_run_leaves_a_checkpoint_that_translates(whole_run: Path) -> None:
    checkpoint = load_checkpoint(whole_run / "checkpoint")
    assert checkpoint.manifest.name == "tiny"
    assert checkpoint.manifest.pairs == (EN_ZH,)
    assert checkpoint.manifest.licences[0].url == "https://example.org"
    assert {entry.dtype for entry in checkpoint.manifest.tensors.values()} == {"int8", "float32"}
    (translation,) = Translator(checkpoint).translate(["The cat waits."], EN_ZH)
    assert translation.num_source_tokens > 0


def test_the_card_says_where_the_checkpoint_comes_from_and_what_it_is_worth(
    whole_run: Path,
) -> None:
    card = (whole_run / "checkpoint" / "card.md").read_text(encoding="utf-8")
    for part in (
        "Good for nothing.",
        "| [talk](https://example.org) | 100 | 2 | CC0-1.0 |",
        "dragoman train tiny.yaml",
        "12 updates in ",
        "| dev/held-out |",
        "| test/held-out |",
        "tok:zh",
    ):
        assert part in card


def test_a_run_leaves_a_report_and_a_journal_that_agree_with_the_card(whole_run: Path) -> None:
    report = (whole_run / "report.md").read_text(encoding="utf-8")
    card = (whole_run / "checkpoint" / "card.md").read_text(encoding="utf-8")
    scores = card[card.index("| corpus | BLEU") :]
    assert scores.strip() in report
    assert "| [talk](https://example.org) | 100 | 2 | CC0-1.0 |" in report
    records = read_journal(whole_run)
    assert [(record.event, record.update) for record in records] == [
        ("start", 0),
        ("evaluation", 4),
        ("evaluation", 8),
        ("progress", 12),  # the end; `log_every_updates` is further away
        ("evaluation", 12),
        ("score", 12),
        ("score", 12),
    ]
    assert records[1].number("chrf") is not None
    assert [f"{record.number('bleu'):.2f}" in scores for record in records[-2:]] == [True, True]
    assert (whole_run / "curves.png").is_file()
    events = EventAccumulator(str(whole_run / "tensorboard")).Reload()
    assert [item.step for item in events.Scalars("bleu/held-out")] == [4, 8, 12]
    assert [item.step for item in events.Scalars("loss/train")] == [12]
    assert read_experiment(whole_run / "experiment.yaml") == EXPERIMENT
    hypotheses = whole_run / "translations" / "test" / "held-out.hypothesis.txt"
    assert len(hypotheses.read_text(encoding="utf-8").splitlines()) == 10


def test_a_resumed_run_keeps_its_journal_and_tells_nothing_twice(
    data_folder: Path, whole_run: Path, tmp_path: Path
) -> None:
    assert not run(data_folder, tmp_path, num_updates=7)
    assert "Stopped" in (tmp_path / "report.md").read_text(encoding="utf-8")
    # Beyond the state, as a killed process leaves it.
    with Journal(tmp_path, update=7, is_resumed=True) as journal:
        journal.append("evaluation", update=8, time=0.0, fields={"corpus": "lost"})
    assert run(data_folder, tmp_path, resume=True)
    found = read_journal(tmp_path)
    dev = [
        (record.update, record.number("loss"), record.number("bleu"))
        for record in found
        if record.event == "evaluation"
    ]
    assert dev == [
        (record.update, record.number("loss"), record.number("bleu"))
        for record in read_journal(whole_run)
        if record.event == "evaluation"
    ]
    starts = [record.update for record in found if record.event == "start"]
    assert starts == [0, 7]


def test_a_run_that_falls_back_to_the_save_before_takes_its_journal_back_with_it(
    data_folder: Path, tmp_path: Path
) -> None:
    often = replace(
        EXPERIMENT, run=replace(EXPERIMENT.run, save_every_updates=3, log_every_updates=1)
    )
    assert not run(data_folder, tmp_path, experiment=often, num_updates=7)
    (tmp_path / STATE_FILE).write_bytes(b"")
    assert run(data_folder, tmp_path, experiment=often, resume=True)
    found = read_journal(tmp_path)
    starts = [record.update for record in found if record.event == "start"]
    assert starts == [0, 6]
    updates = [record.update for record in found if record.event == "progress"]
    assert updates == list(range(1, 13))
    evaluated = [record.update for record in found if record.event == "evaluation"]
    assert evaluated == [4, 8, 12]


def test_only_the_latest_snapshots_and_the_best_are_kept(data_folder: Path, tmp_path: Path) -> None:
    changed = replace(
        EXPERIMENT,
        run=replace(EXPERIMENT.run, snapshot_every_updates=1, num_snapshots=2, average_counts=()),
    )
    assert run(data_folder, tmp_path, experiment=changed)
    assert 2 <= len(list_snapshots(tmp_path)) <= 3


def test_a_stopped_run_goes_on_as_if_it_had_never_stopped(
    data_folder: Path, whole_run: Path, tmp_path: Path
) -> None:
    assert not run(data_folder, tmp_path, num_updates=7)
    assert not (tmp_path / "checkpoint").exists()
    assert run(data_folder, tmp_path, resume=True)
    snapshots = [list_snapshots(folder) for folder in (whole_run, tmp_path)]
    assert [path.name for path in snapshots[0]] == [path.name for path in snapshots[1]]
    for expected, found in zip(*(map(load_snapshot, paths) for paths in snapshots), strict=True):
        for name, value in expected.items():
            assert torch.equal(found[name], value), name


def test_a_run_that_draws_its_segments_and_mixes_directions_resumes_exactly(
    data_folder: Path, tmp_path: Path
) -> None:
    there = EXPERIMENT.data.directions[0]
    back = replace(
        there,
        source_language="zh",
        target_language="en",
        source_tag="zh-Hans",
        target_tag=None,
        train=(replace(there.train[0], copies=0.5),),
    )
    data = DataConfig(
        pairs=(there, back), temperature=2.0, regularisation=RegularisationConfig(alpha=0.2)
    )
    experiment = replace(
        EXPERIMENT,
        data=data,
        run=replace(EXPERIMENT.run, max_updates=6, snapshot_every_updates=6, average_counts=()),
    )
    cache = tmp_path / "cache"
    assert run(data_folder, tmp_path / "whole", experiment=experiment, cache=cache)
    part = tmp_path / "part"
    assert not run(data_folder, part, experiment=experiment, num_updates=4, cache=cache)
    assert run(data_folder, part, experiment=experiment, resume=True, cache=cache)
    assert len(list(cache.iterdir())) == 1
    expected, found = (
        load_snapshot(list_snapshots(tmp_path / name)[-1]) for name in ("whole", "part")
    )
    for name, value in expected.items():
        assert torch.equal(found[name], value), name
    checkpoint = load_checkpoint(part / "checkpoint")
    assert [(pair.source, pair.target) for pair in checkpoint.manifest.pairs] == [
        ("en", "zh-Hans"),
        ("zh-Hans", "en"),
    ]
    translator = Translator(checkpoint)
    for pair, line in zip(checkpoint.manifest.pairs, ("The cat waits.", "猫等待。"), strict=True):
        (translation,) = translator.translate([line], pair)
        assert translation.num_source_tokens > 2
    card = (part / "checkpoint" / "card.md").read_text(encoding="utf-8")
    for row in (
        "| en-zh: [talk](https://example.org) | 100 | 1.67 |",
        "| zh-en: [talk](https://example.org) | 100 | 0.833 |",
        "| en-zh/dev/held-out |",
        "| zh-en/test/held-out |",
    ):
        assert row in card
    assert read_experiment(part / "experiment.yaml") == experiment
    records = read_journal(part)
    for event, corpora in (
        ("evaluation", ["en-zh/held-out", "zh-en/held-out"]),
        (
            "score",
            [f"{way}/{name}/held-out" for way in ("en-zh", "zh-en") for name in ("dev", "test")],
        ),
    ):
        found = [record.text("corpus") for record in records if record.event == event]
        assert found == corpora
    tokenizers = [
        record.text("bleu_signature").partition("tok:")[2].partition("|")[0]
        for record in records
        if record.event == "score"
    ]
    assert tokenizers == ["zh", "zh", "13a", "13a"]
    report = (part / "report.md").read_text(encoding="utf-8")
    for line in (
        "10 of the 10 sentences of zh-en/dev/held-out",
        "- zh-en talk: 100 of 100 pairs",
    ):
        assert line in report
    hypotheses = part / "translations" / "zh-en" / "test" / "held-out.hypothesis.txt"
    assert len(hypotheses.read_text(encoding="utf-8").splitlines()) == 10


def test_a_finished_run_can_be_finished_again(data_folder: Path, tmp_path: Path) -> None:
    assert run(data_folder, tmp_path)
    first = (tmp_path / "checkpoint" / "model.safetensors").read_bytes()
    assert run(data_folder, tmp_path, resume=True)
    assert (tmp_path / "checkpoint" / "model.safetensors").read_bytes() == first


def test_a_run_without_a_better_snapshot_ends_early(data_folder: Path, tmp_path: Path) -> None:
    hopeless = replace(
        EXPERIMENT,
        schedule=ScheduleConfig(peak=1e-12, warmup_updates=1),
        run=replace(EXPERIMENT.run, max_updates=500, patience=2, average_counts=()),
    )
    assert run(data_folder, tmp_path, experiment=hopeless)
    card = (tmp_path / "checkpoint" / "card.md").read_text(encoding="utf-8")
    assert "500 updates" not in card


def test_minutes_of_the_processor_pass_only_while_it_works(
    data_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    length = {"max_updates": 0, "max_minutes": 0.1, "time": "processor", "average_counts": ()}
    counted = replace(EXPERIMENT, run=replace(EXPERIMENT.run, **length))
    seconds = count()  # every update takes one
    monkeypatch.setattr("time.process_time", lambda: next(seconds))
    assert run(data_folder, tmp_path, experiment=counted)
    card = (tmp_path / "checkpoint" / "card.md").read_text(encoding="utf-8")
    assert "6 updates in 0 minutes" in card


def test_the_card_names_the_precision_that_was_chosen_for_the_machine(
    data_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("model.train.loop.precision.has_feature", lambda _: False)
    chosen = replace(EXPERIMENT, run=replace(EXPERIMENT.run, precision="auto"))
    assert run(data_folder, tmp_path, experiment=chosen)
    card = (tmp_path / "checkpoint" / "card.md").read_text(encoding="utf-8")
    assert "; float32, seed 1" in card
    assert read_experiment(tmp_path / "experiment.yaml").run.precision == "float32"


def test_a_run_goes_on_in_the_precision_that_was_chosen_where_it_began(
    data_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = replace(EXPERIMENT, run=replace(EXPERIMENT.run, precision="auto"))
    for has_tiles, resume, longer in ((False, False, 0), (True, True, 2)):
        monkeypatch.setattr("model.train.loop.precision.has_feature", lambda _, has=has_tiles: has)
        settings = replace(chosen.run, max_updates=chosen.run.max_updates + longer)
        assert run(data_folder, tmp_path, experiment=replace(chosen, run=settings), resume=resume)
        assert read_experiment(tmp_path / "experiment.yaml").run.precision == "float32"


def test_the_moving_average_is_scored_and_competes_at_the_end(
    data_folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    averaged = replace(EXPERIMENT, optimiser=OptimiserConfig(ema_decay=0.9))
    assert run(data_folder, tmp_path, experiment=averaged)
    best = {str(fields["candidate"]) for fields in fields_of(caplog, "candidate_scored")}
    assert "the average of the last 2 snapshots" in best
    assert "the moving average at update 12" in best
    assert not any("the snapshot of" in name for name in best)


@pytest.mark.parametrize(("metric", "shown"), [("chrf", "chrF2 "), ("loss", ""), (None, "BLEU ")])
def test_the_metric_chooses_the_best_snapshot_and_the_weights(
    data_folder: Path,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    metric: Metric | None,
    shown: str,
) -> None:
    caplog.set_level("INFO")
    changed = replace(EXPERIMENT, run=replace(EXPERIMENT.run, metric=metric))
    assert run(data_folder, tmp_path, experiment=changed)
    progress = torch.load(tmp_path / STATE_FILE, weights_only=True)["progress"]
    key = metric or "bleu"
    assert progress["scoring"].split()[0] == key
    chosen_by = fields_of(caplog, "candidate_scored")
    assert [fields["corpus"] for fields in chosen_by] == ["dev/held-out"] * 3
    assert all(str(fields[key]).startswith(shown) for fields in chosen_by)


def test_text_that_is_tokenised_already_is_scored_as_it_stands(
    data_folder: Path, tmp_path: Path
) -> None:
    changed = replace(EXPERIMENT, run=replace(EXPERIMENT.run, bleu_tokenizer="none"))
    assert run(data_folder, tmp_path, experiment=changed)
    card = (tmp_path / "checkpoint" / "card.md").read_text(encoding="utf-8")
    assert "tok:none" in card
    assert "tok:zh" not in card


def test_the_end_of_a_run_can_be_stopped_and_done_again(data_folder: Path, tmp_path: Path) -> None:
    def is_over() -> bool:
        return snapshot_path(tmp_path, 12).exists() and has_state(tmp_path)

    assert not run(data_folder, tmp_path, should_stop=is_over)
    assert not (tmp_path / "checkpoint").exists()
    assert run(data_folder, tmp_path, resume=True)
    assert (tmp_path / "checkpoint").exists()


def test_a_run_stopped_before_there_is_a_state_begins_anew(
    data_folder: Path, tmp_path: Path
) -> None:
    def is_tokenising() -> bool:
        return any(tmp_path.glob("text/*.partial-*"))

    for should_stop in (lambda: True, is_tokenising):
        assert not run(data_folder, tmp_path, should_stop=should_stop)
        assert not has_state(tmp_path)
        assert not list(tmp_path.glob("text/*"))
    assert run(data_folder, tmp_path)


def test_a_resumed_run_that_is_stopped_while_it_reads_keeps_its_state(
    data_folder: Path, tmp_path: Path
) -> None:
    assert not run(data_folder, tmp_path, num_updates=2)
    assert not run(data_folder, tmp_path, resume=True, should_stop=lambda: True)
    assert has_state(tmp_path)
    assert run(data_folder, tmp_path, resume=True)


def test_a_run_can_be_resumed_from_its_first_moment(data_folder: Path, tmp_path: Path) -> None:
    assert not run(data_folder, tmp_path, num_updates=0)
    assert run(data_folder, tmp_path, resume=True)


def test_what_the_dev_loss_leaves_out_is_said(
    data_folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    folder = tmp_path / "data"
    shutil.copytree(data_folder, folder)
    for path in (folder / "en-zh" / "dev").iterdir():
        lines = path.read_text(encoding="utf-8").splitlines()
        odd = [" ".join(lines * 9), "\u200b"]  # too long; nothing that a vocabulary keeps
        path.write_text("\n".join([*odd, *lines]) + "\n", encoding="utf-8")
    assert not run(folder, tmp_path / "run", num_updates=0)
    [fields] = fields_of(caplog, "dev_pairs_left_out")
    assert (fields["corpus"], fields["num_left_out"], fields["num_pairs"]) == ("held-out", 2, 5)
    assert "data.max_length (128)" in str(fields["reason"])


@pytest.mark.parametrize(
    ("peak", "message"),
    [
        (1e10, "the run has diverged"),  # its updates are skipped, with snapshots among them
        (1e4, "none has a finite score on dev text; the run has diverged"),
    ],
)
def test_a_run_that_diverges_is_told_as_one_and_leaves_no_checkpoint(
    data_folder: Path,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    *,
    peak: float,
    message: str,
) -> None:
    experiment = replace(
        EXPERIMENT,
        schedule=ScheduleConfig(peak=peak, warmup_updates=1),
        run=replace(EXPERIMENT.run, max_updates=30, precision="float32"),
    )
    with pytest.raises(TrainingError, match=message):
        run(data_folder, tmp_path / "run", experiment=experiment)
    reasons = [str(fields.get("reason")) for _, fields in events_of(caplog)]
    assert any("the network gave no finite score for a segment" in reason for reason in reasons)
    assert not (tmp_path / "run" / "checkpoint").exists()
