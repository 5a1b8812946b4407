from pathlib import Path
from typing import get_args

import pytest

from model.errors import ConfigError
from model.evaluate import TOKENIZERS
from model.train.experiment import BleuTokenizer, Experiment, read_experiment

MINIMAL = """
name: tiny
licence: CC0-1.0
data:
  folder: en-zh
  source_language: en
  target_language: zh
  train: [{name: talk, licence: CC0-1.0, copies: 2}]
  dev: [held-out]
run: {max_updates: 10}
"""


def read(tmp_path: Path, text: str) -> Experiment:
    path = tmp_path / "tiny.yaml"
    path.write_text(text, encoding="utf-8")
    return read_experiment(path)


def test_a_minimal_file_is_an_experiment(tmp_path: Path) -> None:
    experiment = read(tmp_path, MINIMAL)
    assert experiment.data.train[0].copies == 2
    assert experiment.data.dev == ("held-out",)
    assert experiment.run.max_updates == 10
    assert experiment.optimiser.beta2 == 0.98


def test_numbers_that_yaml_reads_as_text_are_numbers(tmp_path: Path) -> None:
    experiment = read(tmp_path, MINIMAL + "schedule: {peak: 1e-3}\noptimiser: {epsilon: 1e-9}\n")
    assert experiment.schedule.peak == 1e-3
    assert experiment.optimiser.epsilon == 1e-9


@pytest.mark.parametrize(
    ("addition", "message"),
    [
        ("nmae: x", "unknown key nmae; known here: data, description"),
        ("network: {d_mdoel: 8, heads: 2}", "unknown key network.d_mdoel, network.heads"),
        ("vocabulary: {size: many}", "vocabulary.size is 'many'; it must be of type int"),
        ("vocabulary: {size: true}", "vocabulary.size is True; it must be of type int"),
        ("vocabulary: {is_joint: 1}", "vocabulary.is_joint is 1; it must be of type bool"),
        ("vocabulary: {kind: word}", "vocabulary.kind is 'word'; it must be one of bpe, unigram"),
        ("schedule: {peak: fast}", "schedule.peak is 'fast'; it must be of type float"),
        ("schedule: [1]", r"schedule is \[1\]; it must be a mapping"),
        ("optimiser: {label_smoothing: 1.0}", "optimiser.label_smoothing is 1.0; it must be in"),
        ("optimiser: {ema_decay: 1.0}", r"optimiser.ema_decay is 1.0; it must be in \[0, 1\)"),
        ("optimiser: {rdrop_alpha: -1}", "optimiser.rdrop_alpha is -1.0; it must be at least 0"),
        ("optimiser: {rdrop_alpha: .inf}", "optimiser.rdrop_alpha is inf; it must be at least 0"),
        ("schedule: {kind: linear}", "schedule.kind is 'linear'; it must be one of noam"),
        ("schedule: {floor: 1}", "schedule.floor is 1.0; it must be from 0 to schedule.peak"),
        ("description: [a]", r"description is \['a'\]; it must be of type str"),
    ],
)
def test_a_wrong_value_is_named_with_its_file(tmp_path: Path, addition: str, message: str) -> None:
    with pytest.raises(ConfigError, match=rf"tiny\.yaml:\d+: {message}"):
        read(tmp_path, MINIMAL + addition)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("name: tiny\n", "", "missing key name"),
        ("  folder: en-zh\n", "", "missing key data.folder"),
        ("licence: CC0-1.0, copies", "copies", r"missing key data.train\[0\].licence"),
        ("copies: 2", "copies: 0", "data.train.copies is 0; it must be above 0"),
        ("[{name: talk, licence: CC0-1.0, copies: 2}]", "[]", "data.train names no corpus"),
        ("[held-out]", "held-out", "data.dev is 'held-out'; it must be a list"),
        ("max_updates: 10", "max_updates: 0", "the run has no end"),
        ("max_updates: 10", "max_updates: -1", "run.max_updates is -1; it must be at least 0"),
        (
            "max_updates: 10",
            "max_updates: 10, max_skipped_updates: -1",
            "run.max_skipped_updates is -1; it must be at least 0",
        ),
        (
            "max_updates: 10",
            "max_updates: 10, save_every_updates: -1",
            "run.save_every_updates is -1; it must be at least 0",
        ),
        (
            "max_updates: 10",
            "max_updates: 10, metric: ter",
            "run.metric is 'ter'; it must be one of bleu, chrf, loss",
        ),
        (
            "max_updates: 10",
            "max_updates: 10, metric: chrf, score_dev: false",
            "run.metric is 'chrf'; it must be loss when run.score_dev is false",
        ),
        (
            "max_updates: 10",
            "max_updates: 10, bleu_tokenizer: moses",
            "run.bleu_tokenizer is 'moses'; it must be one of 13a, intl",
        ),
        (
            "max_updates: 10",
            "max_updates: 10, compile: 1",
            "run.compile is 1; it must be of type bool",
        ),
    ],
)
def test_a_file_that_lacks_something_is_refused(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    assert old in MINIMAL
    with pytest.raises(ConfigError, match=message):
        read(tmp_path, MINIMAL.replace(old, new))


def test_snapshots_go_by_bleu_or_else_by_loss_unless_the_file_says_so(tmp_path: Path) -> None:
    metrics = [
        read(tmp_path, MINIMAL.replace("max_updates: 10", f"max_updates: 10{more}"))
        for more in ("", ", score_dev: false", ", metric: chrf", ", metric: loss")
    ]
    assert [experiment.run.snapshot_metric for experiment in metrics] == [
        "bleu",
        "loss",
        "chrf",
        "loss",
    ]


def test_the_tokenizers_are_those_of_the_scores() -> None:
    assert get_args(BleuTokenizer) == TOKENIZERS


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ("  dev: [held-out]\n", "  dev: [held-out]\n  dve: [x]\n", "10: unknown key data.dve"),
        ("copies: 2", "copies: -1", "8: data.train.copies is -1"),
        ("  folder: en-zh\n", "", "4: missing key data.folder"),
        ("licence: CC0-1.0, copies", "copies", "8: missing key"),
        ("max_updates: 10", "max_updates: ten", "10: run.max_updates is 'ten'"),
        ("name: tiny\n", "name: tiny\nname: small\n", " name is written twice, on lines 2 and 3"),
        ("name: tiny\n", "", " missing key name"),
    ],
)
def test_the_line_of_a_wrong_key_is_named(tmp_path: Path, old: str, new: str, place: str) -> None:
    assert old in MINIMAL
    with pytest.raises(ConfigError, match=f"tiny\\.yaml:{place}"):
        read(tmp_path, MINIMAL.replace(old, new))


def test_a_missing_file_and_broken_yaml_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.yaml: No such file"):
        read_experiment(tmp_path / "none.yaml")
    with pytest.raises(ConfigError, match=r"tiny\.yaml: not YAML"):
        read(tmp_path, "name: [unclosed")


def test_a_joint_vocabulary_shares_one_table(tmp_path: Path) -> None:
    network = read(tmp_path, MINIMAL).network
    joint = network.build(source_size=50, target_size=50, is_joint=True)
    apart = network.build(source_size=50, target_size=60, is_joint=False)
    assert joint.share_embeddings
    assert joint.output_size == 50
    assert not apart.share_embeddings
    assert apart.output_size == 60


def test_every_experiment_of_the_project_can_be_read() -> None:
    folder = Path(__file__).parents[3] / "experiments"
    paths = sorted(folder.glob("*.yaml"))
    assert paths
    for path in paths:
        assert read_experiment(path).name
