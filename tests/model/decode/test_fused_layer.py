"""The fused layer, one token at a time, against the plain layer over whole sequences."""

import pytest
import torch
from torch import Tensor, nn

from model.decode.backends.cuda.backend import GridBackend
from model.decode.backends.cuda.recording import Rerun
from model.decode.backends.eager.backend import EagerBackend
from model.decode.fused_layer import fuse_layers
from model.errors import UnsupportedVariantError
from model.nn.attention import plain_attention
from model.nn.transformer import Transformer
from support.search_cases import LIMITS, TOKENS, small_transformer

SHAPES = [
    {},
    {"norm_placement": "pre", "activation": "gelu", "attention_bias": False},
    {"norm": "rmsnorm", "activation": "silu", "d_k": 6, "d_v": 10},
]


class ListPast:
    """Keys and values of every step so far, a list a layer."""

    def __init__(self) -> None:
        self._kept: dict[int, list[tuple[Tensor, Tensor]]] = {}

    def attend(self, layer: int, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        self._kept.setdefault(layer, []).append((keys, values))
        past_keys, past_values = (
            torch.stack(part, dim=2) for part in zip(*self._kept[layer], strict=True)
        )
        return plain_attention(queries.unsqueeze(2), past_keys, past_values)[0].flatten(1)

    def last(self, layer: int) -> tuple[Tensor, ...]:
        raise AssertionError("self-attention replaces nothing")

    def replace(self, layer: int, states: tuple[Tensor, ...]) -> None:
        raise AssertionError("self-attention replaces nothing")


class PlainOutputs:
    """A source of its own for every row."""

    def __init__(self, outputs: list[tuple[Tensor, Tensor]]) -> None:
        self._outputs = outputs

    def attend(self, layer: int, queries: Tensor) -> Tensor:
        return plain_attention(queries.unsqueeze(2), *self._outputs[layer])[0].flatten(1)


@pytest.mark.parametrize("shape", SHAPES, ids=["post", "pre", "rms-uneven"])
@torch.inference_mode()
def test_token_by_token_it_computes_what_the_plain_layers_compute(shape: dict[str, object]) -> None:
    decoder = small_transformer(**shape).decoder
    transformer = small_transformer(**shape)
    embeddings = torch.randn(3, 5, 16, dtype=torch.float64)
    encoded = torch.randn(3, 7, 16, dtype=torch.float64)
    expected = embeddings
    for layer in decoder.layers:
        expected = layer(expected, encoded)
    layers = fuse_layers(transformer).layers
    past, outputs = (
        ListPast(),
        PlainOutputs([layer.project_encoder_output(encoded) for layer in layers]),
    )
    for position in range(5):
        hidden = embeddings[:, position]
        for fused in layers:
            hidden = fused.step(hidden, past, outputs)
        torch.testing.assert_close(hidden, expected[:, position])


def transformer_with_a_stranger() -> Transformer:
    transformer = small_transformer()
    transformer.decoder.layers[1] = nn.Linear(16, 16, dtype=torch.float64)
    return transformer


def test_a_layer_of_an_unknown_kind_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedVariantError, match="decoder layer 1 is a Linear"):
        fuse_layers(transformer_with_a_stranger())
    with pytest.raises(UnsupportedVariantError, match="decoder layer 1 is a Linear"):
        EagerBackend(transformer_with_a_stranger(), tokens=TOKENS, limits=LIMITS)
    with pytest.raises(UnsupportedVariantError, match="decoder layer 1 is a Linear"):
        GridBackend(transformer_with_a_stranger(), tokens=TOKENS, limits=LIMITS, recorder=Rerun())
