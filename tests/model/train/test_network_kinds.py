"""Every kind of position, norm and activation, from an experiment file to a translation."""

import logging
import re
from dataclasses import fields, replace
from pathlib import Path
from typing import get_args

import pytest

from model.config import PositionKind
from model.loading import load_for_decoding
from model.offline.translator import Translator
from model.train.config.experiment import Experiment, read_experiment
from model.train.records.report import write_experiment
from support.logged import fields_of
from support.tiny_checkpoint import EN_ZH
from support.tiny_runs import EXPERIMENT, run

POSITIONS: tuple[PositionKind, ...] = get_args(PositionKind)
SHORT = replace(
    EXPERIMENT,
    run=replace(EXPERIMENT.run, max_updates=4, snapshot_every_updates=2, average_counts=(2,)),
)


def trained(folder: Path, data_folder: Path, choices: str) -> tuple[Experiment, Path]:
    """The experiment that a file with these network settings is, and its run's checkpoint."""
    write_experiment(folder, SHORT)
    path = folder / "experiment.yaml"
    text = path.read_text(encoding="utf-8")
    for choice in choices.split(", "):
        name = choice.split(":")[0]
        text, num_found = re.subn(rf"^  {name}: .*$", f"  {choice}", text, flags=re.MULTILINE)
        assert num_found == 1
    path.write_text(text, encoding="utf-8")
    experiment = read_experiment(path)
    assert run(data_folder, folder / "run", experiment=experiment)
    return experiment, folder / "run" / "checkpoint"


@pytest.mark.parametrize(
    "choices",
    [
        *(f"position: {position}" for position in POSITIONS),
        "norm: rmsnorm, activation: gelu, norm_epsilon: 1e-06",
        "norm_placement: pre, activation: silu",
        "decoder_cell: ssru, position: sinusoidal-m2m100",
        "gated_feed_forward: true, feed_forward_bias: false, norm: rmsnorm, position: relative",
        "scale_attention: false, scale_output: true, norm_placement: pre, activation: gelu-tanh",
        "embedding_norm: true, decoder_d_ff: 12, activation: gelu-sigmoid",
    ],
)
def test_a_network_of_each_kind_is_trained_saved_loaded_and_translates(
    data_folder: Path, tmp_path: Path, choices: str
) -> None:
    experiment, directory = trained(tmp_path, data_folder, choices)
    loaded = load_for_decoding(directory)
    for choice in choices.split(", "):
        name, value = choice.split(": ")
        assert str(getattr(experiment.network, name)).lower() == value
    for field in fields(experiment.network):
        chosen = getattr(experiment.network, field.name)
        assert getattr(loaded.manifest.network, field.name) == chosen
    (translation,) = Translator(loaded).translate(["The cat waits."], EN_ZH)
    assert translation.num_source_tokens > 0


@pytest.mark.parametrize("position", ["sinusoidal-marian", "relative", "rope"])
def test_a_run_says_at_its_start_whether_its_network_decodes_slowly(
    data_folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, position: PositionKind
) -> None:
    network = replace(SHORT.network, position=position)
    with caplog.at_level(logging.INFO):
        run(data_folder, tmp_path, experiment=replace(SHORT, network=network), num_updates=3)
    told = [str(fields["reason"]) for fields in fields_of(caplog, "slow_decoding")]
    assert 2 in [fields["update"] for fields in fields_of(caplog, "evaluation")]
    assert len(told) == (position == "rope")
    assert all(f"network.position is '{position}'" in reason for reason in told)
