"""The shape of a network in an experiment file."""

import re
from pathlib import Path

import pytest

from model.config import ModelConfig
from model.errors import ConfigError
from model.exchange.export.marian.network import MARIAN_NATIVE_FIELDS
from model.honoured import unsupported_fields
from model.train.config.comparison import explicit_values
from model.train.config.network import NetworkConfig
from model.train.config.yaml_config import read_section

ROOT = Path(__file__).parents[4]


def built(network: NetworkConfig) -> ModelConfig:
    return network.build(source_size=8, target_size=8, is_joint=True)


def test_the_network_that_the_documentation_trains_for_marian_is_one_of_marians(
    tmp_path: Path,
) -> None:
    page = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```\n(network:\n.*?)^```$", page, flags=re.MULTILINE | re.DOTALL)
    path = tmp_path / "experiment.yaml"
    path.write_text(block, encoding="utf-8")
    network = read_section(path, "network", NetworkConfig)
    assert unsupported_fields(built(network), MARIAN_NATIVE_FIELDS) == []
    assert unsupported_fields(built(NetworkConfig()), MARIAN_NATIVE_FIELDS)


def test_the_epsilon_of_norms_reaches_the_network_and_by_itself_is_in_no_fingerprint() -> None:
    assert built(NetworkConfig(norm_epsilon=1e-6)).norm_epsilon == 1e-6
    assert built(NetworkConfig()).norm_epsilon == ModelConfig(vocab_size=8).norm_epsilon
    assert explicit_values(NetworkConfig()) == []


@pytest.mark.parametrize("value", [0.0, -1e-6, 1.0, float("inf"), float("nan")])
def test_an_epsilon_that_cannot_be_is_refused(value: float) -> None:
    with pytest.raises(ConfigError, match=rf"^network\.norm_epsilon is {value}; it must be"):
        NetworkConfig(norm_epsilon=value)
