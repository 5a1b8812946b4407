"""Runs that begin with the vocabulary and the weights of another."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from model.checkpoint.checksums import CHECKSUMS_FILE, format_checksums
from model.checkpoint.weights import load_checkpoint
from model.errors import DataError, TrainingError
from model.train.schedule import ScheduleConfig
from model.train.state import list_snapshots, load_snapshot
from support.tiny_runs import EXPERIMENT, run, write_text

FROZEN = replace(
    EXPERIMENT,
    schedule=ScheduleConfig(peak=1e-12, warmup_updates=1),
    run=replace(EXPERIMENT.run, max_updates=2),
)


@pytest.fixture(scope="module")
def data_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_text(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def whole_run(data_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("runs") / "whole"
    assert run(data_folder, output)
    return output


def test_a_run_can_begin_with_another_runs_vocabulary_and_weights(
    data_folder: Path, whole_run: Path, tmp_path: Path
) -> None:
    assert run(data_folder, tmp_path, experiment=FROZEN, start_from=whole_run)
    vocabularies = [(folder / "joint.spm").read_bytes() for folder in (tmp_path, whole_run)]
    assert vocabularies[0] == vocabularies[1]
    expected = load_snapshot(list_snapshots(whole_run)[-1])
    for name, value in load_snapshot(list_snapshots(tmp_path)[-1]).items():
        torch.testing.assert_close(value, expected[name], rtol=0, atol=1e-8)


def test_a_run_cannot_begin_with_nothing_or_with_another_shape(
    data_folder: Path, whole_run: Path, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=r"joint\.spm: No such file"):
        run(data_folder, tmp_path / "one", start_from=tmp_path)
    wider = replace(EXPERIMENT, network=replace(EXPERIMENT.network, d_ff=32))
    with pytest.raises(
        TrainingError, match=r"of another network: .*feed_forward.* is \[16, 32\] in"
    ):
        run(data_folder, tmp_path / "two", experiment=wider, start_from=whole_run)
    assert not (tmp_path / "two").exists()


def test_a_run_can_begin_with_a_checkpoint(
    data_folder: Path, whole_run: Path, tmp_path: Path
) -> None:
    checkpoint = whole_run / "checkpoint"
    assert run(data_folder, tmp_path, experiment=FROZEN, start_from=checkpoint)
    assert (tmp_path / "joint.spm").read_bytes() == (checkpoint / "source.spm").read_bytes()
    expected = load_checkpoint(checkpoint).transformer.state_dict()
    for name, value in load_snapshot(list_snapshots(tmp_path)[-1]).items():
        torch.testing.assert_close(value, expected[name], rtol=0, atol=1e-8)


def test_a_checkpoint_of_another_kind_is_no_beginning(
    data_folder: Path, whole_run: Path, tmp_path: Path
) -> None:
    checkpoint = whole_run / "checkpoint"
    wider = replace(EXPERIMENT, network=replace(EXPERIMENT.network, d_ff=32))
    with pytest.raises(
        TrainingError, match=r"of another network: network\.d_ff is 32, the checkpoint's is 16"
    ):
        run(data_folder, tmp_path / "one", experiment=wider, start_from=checkpoint)
    assert not (tmp_path / "one").exists()
    apart = replace(EXPERIMENT, vocabulary=replace(EXPERIMENT.vocabulary, is_joint=False))
    with pytest.raises(DataError, match="a vocabulary for each side, the checkpoint has not"):
        run(data_folder, tmp_path / "two", experiment=apart, start_from=checkpoint)
    renumbered = tmp_path / "renumbered"
    shutil.copytree(checkpoint, renumbered)
    table = renumbered / "vocabulary.json"
    pieces = json.loads(table.read_text(encoding="utf-8"))
    one, two = list(pieces)[10:12]
    pieces[one], pieces[two] = pieces[two], pieces[one]
    table.write_text(json.dumps(pieces), encoding="utf-8")
    listing = renumbered / CHECKSUMS_FILE
    listing.unlink()
    listing.write_bytes(format_checksums(renumbered.iterdir()))
    with pytest.raises(DataError, match="not the SentencePiece file's own numbers"):
        run(data_folder, tmp_path / "three", start_from=renumbered)
