from pathlib import Path

import pytest

from model.config import ModelConfig
from model.errors import ConfigError
from model.train.config.experiment import read_experiment
from model.train.config.network import NetworkConfig
from model.train.config.presets import NETWORK_PRESETS, preset_network

FILE = """
name: named
licence: CC0-1.0
data: {folder: a, source_language: en, target_language: zh, train: [{name: b, licence: c}],
  dev: [d]}
run: {max_updates: 10}
network: %s
"""


def network(tmp_path: Path, text: str) -> NetworkConfig:
    path = tmp_path / "named.yaml"
    path.write_text(FILE % text, encoding="utf-8")
    return read_experiment(path).network


@pytest.mark.parametrize("name", NETWORK_PRESETS)
def test_every_preset_is_a_network_that_can_be_built(tmp_path: Path, name: str) -> None:
    found = network(tmp_path, f"{{preset: {name}}}")
    assert found == NetworkConfig(**NETWORK_PRESETS[name])  # type: ignore[arg-type]
    layers = f"{found.num_encoder_layers}-{found.num_decoder_layers}"
    assert name in {"base", "tiny"} or name.endswith(layers)


@pytest.mark.parametrize("name", NETWORK_PRESETS)
def test_a_preset_is_the_same_network_with_and_without_a_file(tmp_path: Path, name: str) -> None:
    built = network(tmp_path, f"{{preset: {name}}}").build(
        source_size=9, target_size=9, is_joint=True
    )
    assert built == preset_network(name, vocab_size=9)


@pytest.mark.parametrize(
    ("name", "published"),
    [("base", (512, 8, 2048, 6, 6, 0.1)), ("tiny", (128, 4, 256, 4, 4, 0.3))],
)
def test_published_shapes_are_those_of_the_network(
    name: str, published: tuple[int, int, int, int, int, float]
) -> None:
    d_model, num_heads, d_ff, num_encoder_layers, num_decoder_layers, dropout = published
    assert preset_network(name, vocab_size=9) == ModelConfig(
        vocab_size=9,
        d_model=d_model,
        num_heads=num_heads,
        d_ff=d_ff,
        num_encoder_layers=num_encoder_layers,
        num_decoder_layers=num_decoder_layers,
        dropout=dropout,
    )


def test_what_is_said_besides_wins_wherever_it_stands(tmp_path: Path) -> None:
    deep = network(tmp_path, "{d_model: 64, preset: base-12-1, num_heads: 2}")
    assert (deep.d_model, deep.num_heads, deep.num_encoder_layers) == (64, 2, 12)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{preset: huge}", r"named.yaml:7: network.preset is 'huge'; it must be one of base, "),
        ("{preset: [tiny]}", r"network.preset is \['tiny'\]; it must be one of base, "),
        ("{presets: tiny}", r"network.presets is unknown; known here: .*preset, .*tie_output"),
        ("{preset: tiny, d_model: 6}", r"network.d_model"),
    ],
)
def test_a_preset_that_is_not_there_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        network(tmp_path, text)
