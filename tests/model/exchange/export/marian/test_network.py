"""Options and parameters under Marian's names."""

from pathlib import Path

import pytest
import yaml

from model.config import ModelConfig
from model.exchange.export.marian.network import marian_options, marian_parameters
from model.exchange.imports.imported import ImportOptions
from model.exchange.imports.marian.importer import MARIAN
from model.exchange.imports.marian.npz import open_npz
from model.exchange.imports.marian.options import parse_shape
from model.exchange.imports.marian.opus_mt import OPUS_MT
from model.nn.transformer import Transformer
from support.exchange_cases import exchange_checkpoint
from support.marian_oracle import FIXTURES

FILES = {
    "student": "student/model.npz",
    "prenorm": "prenorm/model.npz",
    "opus": "opus/opus.spm32k-spm32k.transformer-align.model1.npz.best-perplexity.npz",
}


def config_of(name: str) -> ModelConfig:
    source = FIXTURES / name
    importer = OPUS_MT if name == "opus" else MARIAN
    options = ImportOptions(pairs=(("en", "fr"),)) if name == "opus" else ImportOptions()
    return importer.read(source, options).network


@pytest.mark.parametrize("name", FILES)
def test_options_mean_what_marians_own_did(name: str) -> None:
    file = open_npz(FIXTURES / FILES[name])
    shape, _ = parse_shape(file.options)
    assert shape is not None
    network = config_of(name)
    found, problems = parse_shape(yaml.safe_load(marian_options(network, rows=(7, 9))))
    assert problems == []
    assert found == shape


@pytest.mark.parametrize("name", FILES)
def test_parameters_have_the_names_that_marian_trained(name: str) -> None:
    file = open_npz(FIXTURES / FILES[name])
    whole = slice(None)
    parameters = dict(marian_parameters(Transformer(config_of(name)), rows=(whole, whole)))
    assert parameters.keys() == file.tensors.keys()
    for key, values in parameters.items():
        if "Wemb" not in key and "logit_out" not in key:  # whose rows are the vocabulary's
            assert tuple(values.shape) == file.tensors[key].shape


def test_the_impossible_have_the_least_bias_and_the_others_theirs(tmp_path: Path) -> None:
    transformer = exchange_checkpoint(tmp_path).transformer
    whole = slice(None)
    found = dict(marian_parameters(transformer, rows=(whole, whole), impossible=(0, 2)))
    bias, ours = found["decoder_ff_logit_out_b"], transformer.output_bias
    assert ours is not None
    assert bias.shape == (1, len(ours))
    assert bias[0, [0, 2]].tolist() == [-1e4, -1e4]
    assert bias[0, 3:].tolist() == ours[3:].tolist()
    assert ours[0].item() != -1e4  # the network's own is left alone
