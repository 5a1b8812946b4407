"""Runs that are refused before anything is trained, each by one error."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from model.errors import ConfigError, DataError, TrainingError
from model.train.config.experiment import read_placed_experiment
from model.train.records.report import format_experiment
from support.tiny_runs import EXPERIMENT, run


def test_a_folder_with_a_run_is_not_overwritten(data_folder: Path, whole_run: Path) -> None:
    with pytest.raises(TrainingError, match="holds a run already"):
        run(data_folder, whole_run)


def test_missing_text_is_named_before_anything_is_trained(
    data_folder: Path, tmp_path: Path
) -> None:
    data = replace(EXPERIMENT.data, report=("test/elsewhere",))
    with pytest.raises(DataError, match=r"test/elsewhere\.en: no such file"):
        run(data_folder, tmp_path, experiment=replace(EXPERIMENT, data=data))
    assert not (tmp_path / "joint.spm").exists()


def test_a_folder_that_cannot_be_made_is_one_error(data_folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("not a folder")
    for output in (file, file / "run"):
        with pytest.raises(TrainingError, match=rf"^{re.escape(str(output))}: cannot be used: "):
            run(data_folder, output)


def test_a_tokenizer_that_is_not_installed_is_named_before_any_work(
    data_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(**_: object) -> None:
        raise RuntimeError("Please install the package.\n\nIt is not there.")

    monkeypatch.setattr("model.offline.evaluate.BLEU", fail)
    with pytest.raises(ConfigError, match=r"^run\.bleu_tokenizer: tokenizer 'zh' cannot be used"):
        run(data_folder, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_compiler_that_is_missing_is_named_with_its_line_before_any_work(
    data_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "tiny.yaml"
    compiled = replace(EXPERIMENT, run=replace(EXPERIMENT.run, compile=True))
    text = format_experiment(compiled)
    path.write_text(text, encoding="utf-8")
    line = text.splitlines().index("  compile: true") + 1
    experiment, places = read_placed_experiment(path)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    message = rf"tiny\.yaml:{line}: run\.compile is true, but there is no C\+\+ compiler"
    with pytest.raises(ConfigError, match=message):
        run(data_folder, tmp_path / "run", experiment=experiment, places=places)
    assert not (tmp_path / "run").exists()


def test_minutes_of_the_processor_are_refused_where_a_device_does_the_work(
    data_folder: Path, tmp_path: Path
) -> None:
    counted = replace(EXPERIMENT, run=replace(EXPERIMENT.run, time="processor"))
    with pytest.raises(ConfigError, match=r"^run\.time is 'processor', .* on cuda$"):
        run(data_folder, tmp_path / "run", experiment=counted, device=torch.device("cuda", 0))
    assert not (tmp_path / "run").exists()


def test_what_stands_where_the_checkpoint_goes_is_named_before_any_work(
    data_folder: Path, tmp_path: Path
) -> None:
    place = tmp_path / "checkpoint"
    place.mkdir()
    message = rf"^{re.escape(str(place))}: exists and is not a checkpoint"
    with pytest.raises(TrainingError, match=message):
        run(data_folder, tmp_path)
    assert list(tmp_path.iterdir()) == [place]
