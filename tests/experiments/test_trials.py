"""Trials in equal time: each is an experiment that can be read, with the text it learns from."""

import gzip
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import trials

from model.checkpoint.files.checksums import CHECKSUMS_FILE
from model.train.config.experiment import Experiment, read_experiment
from model.train.data.parallel import read_lines

Commands = list[Sequence[str]]


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Commands:
    """What is run, of which translations leave a line, and nothing is trained."""
    for name in ("en-de/train/tatoeba-more.en", "en-zh/train/tatoeba.zh", "en-zh/train/tatoeba.en"):
        path = tmp_path / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("one\n", encoding="utf-8")
    for name in ("en-zh-small", "zh-en-small"):
        checksums = tmp_path / "checkpoints" / name / CHECKSUMS_FILE
        checksums.parent.mkdir(parents=True)
        checksums.write_text(name, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    found: Commands = []

    def run_all(commands: Sequence[Sequence[str]]) -> None:
        found.extend(commands)
        for words in commands:
            if words[0] == "translate":
                path = Path(words[words.index("--output") + 1])
                path.write_bytes(gzip.compress("一\n".encode()))

    monkeypatch.setattr(trials, "run_all", run_all)
    return found


def run(monkeypatch: pytest.MonkeyPatch, *words: str) -> None:
    monkeypatch.setattr(sys, "argv", ["trials.py", "data", *words])
    trials.main()


def experiments(group: str) -> dict[str, Experiment]:
    folder = trials.FOLDER / group
    return {path.stem: read_experiment(path) for path in folder.glob("*.yaml")}


@pytest.mark.parametrize("group", trials.GROUPS)
def test_every_trial_is_an_experiment_of_equal_time_that_no_test_set_has_a_say_in(
    group: str, commands: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(monkeypatch, group)
    found = experiments(group)
    assert found.keys() == trials.read_group(group)["trials"].keys()
    assert {(one.run.time, one.run.max_updates) for one in found.values()} == {("processor", 0)}
    for one in found.values():
        scored = (one.data.directions[0].dev_corpora, one.data.directions[0].report_corpora)
        assert {corpus.split for part in scored for corpus in part} == {"dev"}
    two_halves = {"general-first", "general-then-everyday"}
    minutes = {name: one.run.max_minutes for name, one in found.items() if name not in two_halves}
    assert len(set(minutes.values())) == 1
    trained = [words for words in commands if words[0] == "train"]
    assert len(trained) == len(found)


def test_a_trial_differs_from_the_plain_one_by_what_it_is_named_for(
    commands: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(monkeypatch, "recipes")
    found = experiments("recipes")
    assert found["smoothing-0"].optimiser.label_smoothing == 0.0
    assert found["r-drop"].optimiser.rdrop_alpha > 0.0
    assert found["bpe-dropout"].data.regularisation is not None
    assert found["plain"].data.regularisation is None
    names = {corpus.name for corpus in found["general-first"].data.directions[0].train}
    assert "tatoeba" not in names
    assert "python-docs" in names
    last = {words[words.index("--output") + 1]: words for words in commands if "--output" in words}
    words = last["runs/trials/recipes/general-then-everyday"]
    start = words[words.index("--start-from") + 1]
    assert start == "runs/trials/recipes/general-first/checkpoint"


def test_only_the_texts_that_a_trial_learns_from_are_translated_and_each_once(
    commands: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(monkeypatch, "recipes", "--only", "tagged-back-translation", "distillation")
    run(monkeypatch, "recipes", "--only", "tagged-back-translation")
    translated = [words for words in commands if words[0] == "translate"]
    assert [Path(words[1]).name for words in translated] == ["back.en.gz", "tatoeba.zh"]
    assert "--nearest-to" in translated[1]
    text = gzip.decompress((trials.FOLDER / "recipes" / "tagged.zh.gz").read_bytes()).decode()
    assert text == "* 一\n"
    (corpus,) = [
        one
        for one in experiments("recipes")["tagged-back-translation"].data.directions[0].train
        if one.source_file
    ]
    assert corpus.source_file == "runs/trials/recipes/tagged.zh.gz"
    assert corpus.target_file == "runs/trials/recipes/back.en.gz"


def test_no_trial_learns_what_is_held_out_of_the_pair_from_text_of_another(
    commands: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("data/en-de/train/tatoeba-more.en").write_text("one\nHeld out, so.\n", encoding="utf-8")
    path = Path("data/en-zh/dev/everyday.en")
    path.parent.mkdir()
    path.write_text("held out: so\n", encoding="utf-8")
    run(monkeypatch, "recipes")
    kept = Path("runs/trials/recipes/back.en.gz")
    assert read_lines(kept) == ["one"]
    translated = [Path(words[1]) for words in commands if words[0] == "translate"]
    assert [path for path in translated if "en-zh" not in path.parts] == [kept, kept]
    for name, one in experiments("recipes").items():
        for corpus in one.data.directions[0].train:
            files = [file for file in (corpus.source_file, corpus.target_file) if file]
            assert {Path(file).parent for file in files} <= {kept.parent}, name
    path.write_text("one\n", encoding="utf-8")  # held out since
    with pytest.raises(SystemExit, match=r"back\.zh\.gz was made with another text than"):
        run(monkeypatch, "recipes", "--only", "back-translation")


def test_a_trial_that_is_not_there_is_named(
    commands: Commands, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        run(monkeypatch, "shapes", "--only", "9+9")
    assert "no such trial: 9+9; there are ['3+2'," in capsys.readouterr().err
    assert commands == []


def test_one_network_for_both_directions_learns_the_same_text_there_and_back(
    commands: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(monkeypatch, "shapes", "--only", "3+2", "3+2-both-ways")
    found = experiments("shapes")
    (alone,) = found["3+2"].data.directions
    there, back = found["3+2-both-ways"].data.directions
    assert there == alone
    assert (back.source_language, back.target_language) == ("en", "zh")
    assert (back.target_tag, back.source_tag) == (alone.source_tag, alone.target_tag)
    assert (back.train, back.dev_corpora) == (alone.train, alone.dev_corpora)


@pytest.mark.parametrize(
    ("changed", "key"),
    [
        ("checkpoints/zh-en-small/checksums.sha256", "checkpoint"),
        ("data/en-zh/train/tatoeba.zh", "text"),
        ("data/en-zh/train/tatoeba.en", "other side"),
    ],
)
def test_texts_of_another_checkpoint_or_other_text_are_refused(
    commands: Commands, monkeypatch: pytest.MonkeyPatch, changed: str, key: str
) -> None:
    run(monkeypatch, "recipes", "--only", "distillation")
    Path(changed).write_text("another\n", encoding="utf-8")
    commands.clear()
    with pytest.raises(SystemExit, match=f"best.en.gz was made with another {key} than"):
        run(monkeypatch, "recipes", "--only", "distillation")
    assert commands == []


def test_files_of_a_corpus_change_sides_with_its_direction() -> None:
    there = {"source_language": "zh", "target_language": "en"}
    corpus = {"name": "made", "source_file": "made.zh.gz", "target_file": "real.en"}
    _, back = trials.both_ways(there | {"train": [corpus], "dev": []})["pairs"]
    assert back["train"] == [
        {"name": "made", "source_file": "real.en", "target_file": "made.zh.gz"}
    ]
