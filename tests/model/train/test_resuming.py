"""Which runs can be resumed, with which experiments, and what is said of those that cannot."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from model.errors import TrainingError
from model.train.config.data import CorpusConfig
from model.train.config.experiment import read_placed_experiment
from model.train.config.optimiser import OptimiserConfig
from model.train.config.regularisation import RegularisationConfig
from model.train.observer import fingerprint
from model.train.records.report import format_experiment
from support.tiny_runs import EXPERIMENT, run


def test_a_key_at_its_default_does_not_change_what_a_state_fits() -> None:
    said = fingerprint(EXPERIMENT)
    assert fingerprint(replace(EXPERIMENT, optimiser=OptimiserConfig(beta1=0.9))) == said
    assert fingerprint(replace(EXPERIMENT, optimiser=OptimiserConfig(beta1=0.8))) != said
    assert fingerprint(replace(EXPERIMENT, run=replace(EXPERIMENT.run, max_updates=99))) == said
    corpus = replace(EXPERIMENT.data.train[0], copies=3)
    data = replace(EXPERIMENT.data, train=(corpus,))
    assert fingerprint(replace(EXPERIMENT, data=data)) != said


@pytest.mark.parametrize(
    ("section", "values", "message"),
    [
        ("run", {"seed": 2}, r"run\.seed is 2, the run's is 1"),
        ("network", {"d_ff": 32}, r"network\.d_ff is 32, the run's is 16"),
        ("optimiser", {"beta1": 0.5}, r"optimiser\.beta1 is 0\.5, the run's is 0\.9"),
        (
            "vocabulary",
            {"user_symbols": ("<ph>",)},
            r"vocabulary\.user_symbols is \['<ph>'\], the run's is \[\]",
        ),
        (
            "data",
            {"regularisation": RegularisationConfig()},
            r"data\.regularisation is set, the run's is not set",
        ),
        (
            "data",
            {"train": (replace(EXPERIMENT.data.train[0], copies=3),)},
            r"data\.train\[0\]\.copies is 3(\.0)?, the run's is 2\.0",
        ),
        (
            "data",
            {"train": (*EXPERIMENT.data.train, CorpusConfig(name="more", licence="MIT"))},
            r"data\.train has 2 entries, the run's has 1",
        ),
    ],
)
def test_another_experiment_does_not_resume_a_run_and_no_text_is_read_to_find_out(
    whole_run: Path, tmp_path: Path, section: str, values: dict[str, Any], message: str
) -> None:
    changed = replace(getattr(EXPERIMENT, section), **values)
    other = replace(EXPERIMENT, **{section: changed})
    with pytest.raises(TrainingError, match=rf"^{message} \(.*whole/experiment\.yaml\)"):
        run(tmp_path / "no text", whole_run, experiment=other, resume=True)


def test_what_keeps_a_run_from_being_resumed_is_named_with_its_line(
    data_folder: Path, whole_run: Path, tmp_path: Path
) -> None:
    path = tmp_path / "wider.yaml"
    text = format_experiment(EXPERIMENT).replace("d_ff: 16", "d_ff: 32")
    path.write_text(text, encoding="utf-8")
    line = text.splitlines().index("  d_ff: 32") + 1
    experiment, places = read_placed_experiment(path)
    with pytest.raises(TrainingError, match=rf"wider\.yaml:{line}: network\.d_ff is 32, the run's"):
        run(data_folder, whole_run, experiment=experiment, resume=True, places=places)


def test_a_run_may_be_resumed_with_what_changes_no_update_so_far(
    data_folder: Path, tmp_path: Path
) -> None:
    assert not run(data_folder, tmp_path, num_updates=1)
    corpus = replace(EXPERIMENT.data.train[0], licence="MIT", url=None)
    other = replace(
        EXPERIMENT,
        data=replace(EXPERIMENT.data, train=(corpus,), report=()),
        schedule=replace(EXPERIMENT.schedule, peak=1e-3),
        run=replace(EXPERIMENT.run, max_updates=24),
    )
    assert not run(data_folder, tmp_path, experiment=other, resume=True, num_updates=1)


@pytest.mark.parametrize("content", [None, "name: [", "unknown: key\n"])
def test_without_the_runs_own_experiment_the_state_refuses_another(
    data_folder: Path, whole_run: Path, tmp_path: Path, content: str | None
) -> None:
    folder = shutil.copytree(whole_run, tmp_path / "copy")
    path = folder / "experiment.yaml"
    path.unlink()
    if content is not None:
        path.write_text(content, encoding="utf-8")
    other = replace(EXPERIMENT, run=replace(EXPERIMENT.run, seed=2))
    with pytest.raises(TrainingError, match="belongs to another experiment"):
        run(data_folder, folder, experiment=other, resume=True)


def test_a_resumed_run_refuses_other_text(data_folder: Path, tmp_path: Path) -> None:
    assert not run(data_folder, tmp_path / "run", num_updates=1)
    folder = tmp_path / "data"
    shutil.copytree(data_folder, folder)
    path = folder / "en-zh" / "train" / "talk.zh"
    path.write_text(path.read_text(encoding="utf-8").replace("。", "！"), encoding="utf-8")
    with pytest.raises(TrainingError, match=r"changed: en-zh talk, target$"):
        run(folder, tmp_path / "run", resume=True)


def test_a_run_killed_while_its_checkpoint_was_written_is_resumed(
    data_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Kill(BaseException):
        pass

    def die(_: object) -> None:
        raise Kill

    with monkeypatch.context() as patch:
        patch.setattr("model.checkpoint.weights.format_checksums", die)
        patch.setattr("model.checkpoint.files.replacement.shutil.rmtree", lambda *_, **__: None)
        with pytest.raises(Kill):
            run(data_folder, tmp_path)
    assert [path.is_dir() for path in tmp_path.glob(".checkpoint.*.partial")] == [True]
    assert run(data_folder, tmp_path, resume=True)
    assert not list(tmp_path.glob("*.partial"))
