"""Layers against torch's own, with the same weights."""

import pytest
import torch
from torch import Tensor, nn

from model.config import Activation, ModelConfig, NormPlacement
from model.errors import UnsupportedVariantError
from model.nn.attention import MultiHeadAttention
from model.nn.layers import DecoderLayer, EncoderLayer, FeedForward, known_decoder_layers
from model.nn.masks import causal_mask, key_mask
from model.nn.self_attention import SelfAttention

BOTH_PLACEMENTS = pytest.mark.parametrize("placement", ["post", "pre"])
PADDING = torch.arange(7) >= torch.tensor([[7], [4]])  # (B, S), True = padding, as torch has it


def config(placement: NormPlacement = "post", **changes: object) -> ModelConfig:
    shape = {"vocab_size": 5, "d_model": 16, "num_heads": 4, "d_ff": 24, "dropout": 0.0}
    return ModelConfig(**shape | {"norm_placement": placement} | changes)


def decoder_layer(shape: ModelConfig) -> DecoderLayer:
    return DecoderLayer(shape, SelfAttention(shape))


def randomise(part: nn.Module) -> None:
    torch.manual_seed(0)
    for parameter in part.parameters():
        nn.init.normal_(parameter, std=0.3)


def copy_attention(ours: MultiHeadAttention, theirs: nn.MultiheadAttention) -> None:
    parts = (ours.q_proj, ours.k_proj, ours.v_proj)
    for part, weight, bias in zip(
        parts, theirs.in_proj_weight.chunk(3), theirs.in_proj_bias.chunk(3), strict=True
    ):
        part.load_state_dict({"weight": weight, "bias": bias})
    ours.out_proj.load_state_dict(theirs.out_proj.state_dict())


def copy_feed_forward(ours: FeedForward, theirs: nn.Module) -> None:
    ours.up_proj.load_state_dict(theirs.linear1.state_dict())
    ours.down_proj.load_state_dict(theirs.linear2.state_dict())


@BOTH_PLACEMENTS
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_the_encoder_layer_is_that_of_torch(
    placement: NormPlacement, activation: Activation
) -> None:
    reference = nn.TransformerEncoderLayer(
        16, 4, 24, 0.0, activation, batch_first=True, norm_first=placement == "pre"
    )
    randomise(reference)
    layer = EncoderLayer(config(placement, activation=activation))
    copy_attention(layer.self_attention, reference.self_attn)
    copy_feed_forward(layer.feed_forward, reference)
    layer.self_attention_norm.load_state_dict(reference.norm1.state_dict())
    layer.feed_forward_norm.load_state_dict(reference.norm2.state_dict())
    x = torch.randn(2, 7, 16)
    expected = reference(x, src_key_padding_mask=PADDING)
    torch.testing.assert_close(layer(x, key_mask(~PADDING)), expected, atol=1e-5, rtol=1e-4)


@BOTH_PLACEMENTS
def test_the_decoder_layer_is_that_of_torch(placement: NormPlacement) -> None:
    reference = nn.TransformerDecoderLayer(
        16, 4, 24, 0.0, batch_first=True, norm_first=placement == "pre"
    )
    randomise(reference)
    layer = decoder_layer(config(placement))
    copy_attention(layer.self_attention, reference.self_attn)
    copy_attention(layer.cross_attention, reference.multihead_attn)
    copy_feed_forward(layer.feed_forward, reference)
    layer.self_attention_norm.load_state_dict(reference.norm1.state_dict())
    layer.cross_attention_norm.load_state_dict(reference.norm2.state_dict())
    layer.feed_forward_norm.load_state_dict(reference.norm3.state_dict())
    x, encoded = torch.randn(2, 5, 16), torch.randn(2, 7, 16)
    expected = reference(
        x, encoded, tgt_mask=~causal_mask(5), tgt_is_causal=True, memory_key_padding_mask=PADDING
    )
    output = layer(x, encoded, encoder_mask=key_mask(~PADDING))
    torch.testing.assert_close(output, expected, atol=1e-5, rtol=1e-4)


@BOTH_PLACEMENTS
def test_a_decoder_layer_without_encoder_output_skips_cross_attention(
    placement: NormPlacement,
) -> None:
    layer = decoder_layer(config(placement))
    randomise(layer)
    alike = EncoderLayer(config(placement))
    alike.load_state_dict(
        {name: weight for name, weight in layer.state_dict().items() if "cross" not in name}
    )
    x = torch.randn(2, 5, 16)
    torch.testing.assert_close(layer(x), alike(x, causal_mask(5)))


@BOTH_PLACEMENTS
def test_a_decoder_layer_never_sees_the_future_with_or_without_encoder_output(
    placement: NormPlacement,
) -> None:
    layer = decoder_layer(config(placement))
    randomise(layer)
    for encoded in (None, torch.randn(1, 3, 16)):
        x = torch.randn(1, 5, 16, requires_grad=True)
        layer(x, encoded)[0, 2].sum().backward()
        assert x.grad is not None
        assert not x.grad[0, 3:].any()
        assert x.grad[0, :3].any(dim=-1).all()


@pytest.mark.parametrize(
    ("activation", "formula"),
    [
        ("relu", lambda x: x.clamp(min=0)),
        ("gelu", lambda x: x * 0.5 * (1 + torch.erf(x / 2**0.5))),
        (
            "gelu-tanh",
            lambda x: x * 0.5 * (1 + torch.tanh((2 / torch.pi) ** 0.5 * (x + 0.044715 * x**3))),
        ),
        ("gelu-sigmoid", lambda x: x / (1 + torch.exp(-1.702 * x))),
        ("silu", lambda x: x / (1 + torch.exp(-x))),
    ],
)
def test_the_feed_forward_is_two_matrices_around_its_activation(
    activation: Activation, formula: object
) -> None:
    feed_forward = FeedForward(config(activation=activation), inner_width=24)
    x = torch.randn(2, 3, 16)
    up, down = feed_forward.up_proj, feed_forward.down_proj
    expected = formula(x @ up.weight.T + up.bias) @ down.weight.T + down.bias
    torch.testing.assert_close(feed_forward(x), expected)


@pytest.mark.parametrize("has_bias", [True, False])
def test_a_gated_feed_forward_multiplies_its_activation_by_a_linear_half(has_bias: bool) -> None:
    shape = config(activation="silu", gated_feed_forward=True, feed_forward_bias=has_bias)
    feed_forward = FeedForward(shape, inner_width=10)
    randomise(feed_forward)
    x = torch.randn(2, 3, 16)
    gate, up, down = (
        getattr(feed_forward, name).weight for name in ("gate_proj", "up_proj", "down_proj")
    )
    biases = dict(feed_forward.named_parameters()) if has_bias else {}
    of_gate, of_up, of_down = (
        biases.get(f"{name}_proj.bias", torch.tensor(0.0)) for name in ("gate", "up", "down")
    )
    gated = x @ gate.T + of_gate
    inner = gated * gated.sigmoid() * (x @ up.T + of_up)
    torch.testing.assert_close(feed_forward(x), inner @ down.T + of_down)
    assert (feed_forward.down_proj.bias is not None) == has_bias


def test_activations_are_dropped_in_training_only() -> None:
    feed_forward = FeedForward(config(activation_dropout=0.5), inner_width=24)
    x = torch.randn(2, 3, 16)
    assert not torch.equal(feed_forward(x), feed_forward(x))
    feed_forward.eval()
    assert torch.equal(feed_forward(x), feed_forward(x))


def test_every_sub_layer_is_dropped_out_before_it_is_added() -> None:
    layer = decoder_layer(config("pre", dropout=0.999999))
    x, encoded = torch.randn(2, 5, 16), torch.randn(2, 7, 16)
    torch.manual_seed(0)
    assert torch.equal(layer(x, encoded), x), "with everything dropped only the residual is left"
    layer.eval()
    assert not torch.allclose(layer(x, encoded), x)


def test_maps_are_filled_with_the_weights_of_both_attentions() -> None:
    layer = decoder_layer(config())
    maps: list[Tensor] = []
    cross_maps: list[Tensor] = []
    x, encoded = torch.randn(2, 5, 16), torch.randn(2, 7, 16)
    output = layer(x, encoded, maps=maps, cross_maps=cross_maps)
    torch.testing.assert_close(output, layer(x, encoded))
    assert [m.shape for m in maps] == [(2, 4, 5, 5)]
    assert [m.shape for m in cross_maps] == [(2, 4, 5, 7)]


def test_a_layer_of_another_kind_is_refused_with_its_place_and_who_refuses_it() -> None:
    layers = [decoder_layer(config()), EncoderLayer(config())]
    assert known_decoder_layers(layers[:1], by="a toy") == layers[:1]
    with pytest.raises(UnsupportedVariantError, match="layer 1 is a EncoderLayer; a toy knows"):
        known_decoder_layers(layers, by="a toy")
