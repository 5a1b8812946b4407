"""Runs that begin with the vocabulary and the weights of another."""

import contextlib
import errno
import json
import logging
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import torch

from model.checkpoint.files.checksums import CHECKSUMS_FILE, format_checksums
from model.checkpoint.manifest import CONFIG_FILE
from model.checkpoint.weights import load_checkpoint
from model.errors import ConfigError, DataError, TrainingError
from model.train.config.data import DataConfig
from model.train.config.experiment import read_placed_experiment
from model.train.config.schedule import ScheduleConfig
from model.train.config.yaml_lines import KeyPlaces
from model.train.data.vocabulary import vocabulary_paths
from model.train.loop.distributed import Group
from model.train.loop.trainer import Trainer
from model.train.records.report import EXPERIMENT_FILE, format_experiment
from model.train.run import build_network
from model.train.saved.state import list_snapshots, load_snapshot, save_snapshot, snapshot_path
from model.train.start import check_start
from support.forked import Send, run_workers
from support.logged import fields_of
from support.tiny_runs import EXPERIMENT, run

FROZEN = replace(
    EXPERIMENT,
    schedule=ScheduleConfig(peak=1e-12, warmup_updates=1),
    run=replace(EXPERIMENT.run, max_updates=2),
)


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
        TrainingError, match=r"of another network: network\.d_ff is 32, the run's is 16"
    ):
        run(data_folder, tmp_path / "two", experiment=wider, start_from=whole_run)
    bare = tmp_path / "bare"
    shutil.copytree(whole_run, bare)
    (bare / EXPERIMENT_FILE).unlink()
    with pytest.raises(
        TrainingError, match=r"of another network: .*feed_forward.* is \[16, 32\] in"
    ):
        run(data_folder, tmp_path / "two", experiment=wider, start_from=bare)
    assert not (tmp_path / "two").exists()


def test_a_beginning_whose_name_cannot_be_is_one_error(data_folder: Path, tmp_path: Path) -> None:
    start = tmp_path / ("a" * 300)
    with pytest.raises(DataError, match=r"/a{300}: File name too long$"):
        run(data_folder, tmp_path / "run", start_from=start)
    assert not (tmp_path / "run").exists()


def test_a_vocabulary_of_another_number_of_files_is_no_beginning(
    data_folder: Path, whole_run: Path, tmp_path: Path
) -> None:
    apart = replace(EXPERIMENT, vocabulary=replace(EXPERIMENT.vocabulary, is_joint=False))
    message = r"^vocabulary\.is_joint: .* has a vocabulary for each side, the run has not"
    with pytest.raises(DataError, match=message):
        run(data_folder, tmp_path / "one", experiment=apart, start_from=whole_run)
    other = tmp_path / "other"
    other.mkdir()
    for name in ("source.spm", "target.spm"):
        shutil.copy(whole_run / "joint.spm", other / name)
    message = r"^vocabulary\.is_joint: .* has a joint vocabulary, the run has not"
    with pytest.raises(DataError, match=message):
        run(data_folder, tmp_path / "two", start_from=other)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_heads": 4}, r"network\.num_heads is 4, the run's is 2"),
        ({"activation": "gelu"}, r"network\.activation is 'gelu', the run's is 'relu'"),
        (
            {"position": "sinusoidal-interleaved"},
            r"network\.position is 'sinusoidal-interleaved', the run's is 'sinusoidal-marian'",
        ),
        ({"scale_output": True}, r"network\.scale_output is True, the run's is False"),
        ({"scale_attention": False}, r"network\.scale_attention is False, the run's is True"),
        ({"norm_epsilon": 1e-6}, r"network\.norm_epsilon is 1e-06, the run's is 1e-05"),
        ({"decoder_d_ff": 12}, r"network\.decoder_d_ff is 12, the run's is 16"),
        ({"embedding_norm": True}, r"network\.embedding_norm is True, the run's is False"),
        ({"feed_forward_bias": False}, r"network\.feed_forward_bias is False, the run's is True"),
        (
            {"decoder_cell": "ssru"},
            r"network\.decoder_cell is 'ssru', the run's is 'self-attention'",
        ),
    ],
)
def test_a_network_of_other_settings_is_no_beginning_even_where_its_tensors_are_equal(
    data_folder: Path, whole_run: Path, tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    other = replace(EXPERIMENT, network=replace(EXPERIMENT.network, **changes))
    for start, words in (
        (whole_run, message),
        (whole_run / "checkpoint", message.replace("the run's", "the checkpoint's")),
    ):
        with pytest.raises(TrainingError, match=words):
            run(data_folder, tmp_path / "run", experiment=other, start_from=start)
        assert not (tmp_path / "run").exists()


def test_a_network_of_the_same_meaning_in_other_words_is_a_beginning(whole_run: Path) -> None:
    network = replace(EXPERIMENT.network, decoder_d_ff=16, dropout=0.3, attention_dropout=0.1)
    same = replace(EXPERIMENT, network=network)
    for start in (whole_run, whole_run / "checkpoint"):
        check_start(start, same, KeyPlaces())


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("scale_embedding", False, r"network\.scale_embedding is True, the checkpoint's is False$"),
        ("position_offset", 2, r"network\.position_offset is 0, the checkpoint's is 2$"),
        ("max_positions", 99, None),
    ],
)
def test_a_checkpoint_of_a_network_that_no_experiment_describes_is_no_beginning(
    whole_run: Path, tmp_path: Path, field: str, value: object, message: str | None
) -> None:
    """As another program may have trained it; sinusoidal positions have no table to be long."""
    other = tmp_path / "other"
    shutil.copytree(whole_run / "checkpoint", other)
    config = json.loads((other / CONFIG_FILE).read_bytes())
    config["network"][field] = value
    (other / CONFIG_FILE).write_text(json.dumps(config), encoding="utf-8")
    (other / CHECKSUMS_FILE).unlink()
    (other / CHECKSUMS_FILE).write_bytes(format_checksums(other.iterdir()))
    refused = pytest.raises(TrainingError, match=message)
    with refused if message is not None else contextlib.nullcontext():
        check_start(other, EXPERIMENT, KeyPlaces())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "unigram"}, r"vocabulary\.kind is 'unigram', the file's is 'bpe'"),
        ({"size": 400}, r"vocabulary\.size is 400, the file's is 450"),
    ],
)
def test_another_vocabulary_is_no_beginning(
    data_folder: Path, whole_run: Path, tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    other = replace(EXPERIMENT, vocabulary=replace(EXPERIMENT.vocabulary, **changes))
    for start in (whole_run, whole_run / "checkpoint"):
        with pytest.raises(ConfigError, match=rf"\.spm: another vocabulary: {message}"):
            run(data_folder, tmp_path / "run", experiment=other, start_from=start)
        assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"denormalisation": {}}, r"vocabulary\.denormalisation is {}, the run's is {',': '，'}"),
        ({"byte_fallback": False}, r"vocabulary\.byte_fallback is False, the run's is True"),
        ({"user_symbols": ("<ph>",)}, r"vocabulary\.user_symbols is \['<ph>'\], the run's is \[\]"),
    ],
)
def test_a_run_whose_vocabulary_was_trained_otherwise_is_no_beginning(
    data_folder: Path, whole_run: Path, tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    other = replace(EXPERIMENT, vocabulary=replace(EXPERIMENT.vocabulary, **changes))
    with pytest.raises(ConfigError, match=f"another vocabulary: {message}"):
        run(data_folder, tmp_path / "run", experiment=other, start_from=whole_run)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("folder", ["", "checkpoint"])
def test_a_beginning_whose_tags_the_experiment_leaves_out_is_warned_of(
    data_folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, folder: str
) -> None:
    tagged = replace(FROZEN, data=DataConfig(pairs=EXPERIMENT.data.directions))
    assert run(data_folder, tmp_path / "run", experiment=tagged)
    check_start(tmp_path / "run" / folder, tagged, KeyPlaces())
    assert not fields_of(caplog, "direction_tags_left_out")
    check_start(tmp_path / "run" / folder, EXPERIMENT, KeyPlaces())
    [fields] = fields_of(caplog, "direction_tags_left_out")
    assert fields["pieces"] == ">>zh-Hans<<"
    assert "list the direction under data.pairs" in str(fields["reason"])


def test_a_beginning_without_tags_is_not_warned_of(
    whole_run: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for start in (whole_run, whole_run / "checkpoint"):
        check_start(start, EXPERIMENT, KeyPlaces())
    assert not fields_of(caplog, "direction_tags_left_out")


def test_a_beginning_that_is_not_there_is_named(data_folder: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="/none: there is no such folder to start from"):
        run(data_folder, tmp_path / "run", start_from=tmp_path / "none")


def test_a_vocabulary_that_cannot_be_copied_is_one_error(
    data_folder: Path, whole_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(path: Path, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", fail)
    for start in (whole_run, whole_run / "checkpoint"):
        with pytest.raises(TrainingError, match=r"joint\.spm: cannot be written: No space left"):
            run(data_folder, tmp_path / "run", start_from=start)


def test_a_run_can_begin_with_a_checkpoint(
    data_folder: Path, whole_run: Path, tmp_path: Path
) -> None:
    checkpoint = whole_run / "checkpoint"
    assert run(data_folder, tmp_path, experiment=FROZEN, start_from=checkpoint)
    assert (tmp_path / "joint.spm").read_bytes() == (checkpoint / "source.spm").read_bytes()
    expected = load_checkpoint(checkpoint).transformer.state_dict()
    for name, value in load_snapshot(list_snapshots(tmp_path)[-1]).items():
        torch.testing.assert_close(value, expected[name], rtol=0, atol=1e-8)


def test_a_run_that_goes_on_says_that_it_does_not_look_at_a_beginning(
    data_folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    short = replace(FROZEN, data=replace(EXPERIMENT.data, report=()))
    assert not run(data_folder, tmp_path, experiment=short, num_updates=1)
    caplog.set_level(logging.INFO, logger="dragoman.train")
    nothing = tmp_path / "nothing"
    assert run(data_folder, tmp_path, experiment=short, resume=True, start_from=nothing)
    [fields] = fields_of(caplog, "start_from_ignored")
    assert fields["start_from"] == str(nothing)


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
    path = tmp_path / "wide.yaml"
    text = format_experiment(wider)
    path.write_text(text, encoding="utf-8")
    line = text.splitlines().index("  d_ff: 32") + 1
    experiment, places = read_placed_experiment(path)
    with pytest.raises(
        TrainingError, match=rf"wide\.yaml:{line}: .* network\.d_ff is 32, the checkpoint's is 16$"
    ):
        run(
            data_folder,
            tmp_path / "one",
            experiment=experiment,
            start_from=checkpoint,
            places=places,
        )
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


def tell_weights(send: Send, group: Group, *, starts: list[Path], output: Path, data: Path) -> None:
    """Begin with what the worker finds in the folder it is given, and tell what that is."""

    def tell(self: Trainer, *_: object, **__: object) -> None:
        send({name: value.numpy() for name, value in self._transformer.state_dict().items()})
        raise TrainingError("told")

    shared = replace(EXPERIMENT, run=replace(EXPERIMENT.run, update_freq=2))
    with patch.object(Trainer, "train", tell), contextlib.suppress(TrainingError):
        run(data, output, experiment=shared, start_from=starts[group.rank], group=group)


def test_all_workers_begin_with_the_weights_that_the_first_finds(
    data_folder: Path, tmp_path: Path
) -> None:
    """A run that goes on has a later snapshot by the time the second worker looks for it."""
    before, later = tmp_path / "before", tmp_path / "later"
    assert not run(data_folder, before, num_updates=4)
    shutil.copytree(before, later)
    transformer = build_network(EXPERIMENT, vocabulary_paths(EXPERIMENT.vocabulary, before))
    save_snapshot(later, transformer, 8)
    begin = partial(tell_weights, starts=[before, later], output=tmp_path / "run", data=data_folder)
    sent, exits = run_workers(begin, size=2)
    assert exits == [0, 0]
    expected = load_snapshot(snapshot_path(before, 4))
    for found, _ in sent:
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            assert np.array_equal(found[name], value.numpy()), name
