"""Descriptions of decoder cells against the cells of the network."""

from typing import get_args

import pytest

from model.cells import describe_cell
from model.config import DecoderCell, ModelConfig
from model.nn.layers import DecoderLayer
from model.nn.transformer import CELLS, Transformer


@pytest.mark.parametrize("name", get_args(DecoderCell))
@pytest.mark.parametrize("has_bias", [True, False])
def test_a_description_is_that_of_the_networks_cell(name: DecoderCell, *, has_bias: bool) -> None:
    config = ModelConfig(
        vocab_size=9,
        d_model=8,
        num_heads=2,
        d_k=6,
        d_v=10,
        num_encoder_layers=0,
        num_decoder_layers=1,
        decoder_cell=name,
        attention_bias=has_bias,
    )
    layer = Transformer(config).decoder.layers[0]
    assert isinstance(layer, DecoderLayer)
    assert isinstance(layer.cell, CELLS[name])
    described = describe_cell(config)
    assert layer.cell.name == described.name
    assert layer.cell.state_shapes() == described.states
    expected = {}
    for item in described.projections:
        expected[f"{item.name}.weight"] = (item.num_outputs, item.num_inputs)
        if item.has_bias:
            expected[f"{item.name}.bias"] = (item.num_outputs,)
    found = {key: tuple(value.shape) for key, value in layer.cell.state_dict().items()}
    assert list(found.items()) == list(expected.items())
    matrices = (value for value in layer.cell.parameters() if value.dim() == 2)
    assert described.num_weights == sum(value.numel() for value in matrices)
