"""The whole network: what it may see, what it is made of, and that it learns."""

import copy
from dataclasses import replace
from typing import get_args

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from model.config import ModelConfig, NormPlacement, PositionKind
from model.errors import InputError
from model.nn.masks import padding_mask, target_padding_mask
from model.nn.transformer import Decoder, Encoder, Transformer

PAD = 0
SOURCE = torch.tensor([[5, 6, 7, 8, 9, 1], [10, 11, 1, PAD, PAD, PAD]])
TARGET = torch.tensor([[PAD, 4, 5, 6, 7], [PAD, 8, 9, PAD, PAD]])
SOURCE_LENGTHS, TARGET_LENGTHS = (6, 3), (5, 3)
CONFIG = ModelConfig(
    vocab_size=13,
    d_model=16,
    num_heads=4,
    d_ff=24,
    num_encoder_layers=2,
    num_decoder_layers=3,
    dropout=0.1,
    attention_dropout=0.1,
    activation_dropout=0.1,
)
EVERY_POSITION = pytest.mark.parametrize("position", get_args(PositionKind))
BOTH_PLACEMENTS = pytest.mark.parametrize("placement", ["post", "pre"])


def build(config: ModelConfig = CONFIG, **changes: object) -> Transformer:
    torch.manual_seed(0)
    return Transformer(replace(config, **changes)).eval()


def assert_near(actual: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(actual, expected, atol=1e-5, rtol=1e-4)


@EVERY_POSITION
@BOTH_PLACEMENTS
def test_a_sentence_in_a_padded_batch_gets_what_it_gets_alone(
    position: PositionKind, placement: NormPlacement
) -> None:
    transformer = build(position=position, norm_placement=placement)
    together = transformer(SOURCE, TARGET)
    for row, (source, target) in enumerate(zip(SOURCE_LENGTHS, TARGET_LENGTHS, strict=True)):
        alone = transformer(SOURCE[row : row + 1, :source], TARGET[row : row + 1, :target])
        assert_near(together[row : row + 1, :target], alone)


@EVERY_POSITION
def test_what_stands_in_the_padding_never_reaches_a_real_position(position: PositionKind) -> None:
    transformer = build(position=position)
    source_mask, target_mask = padding_mask(SOURCE, PAD), target_padding_mask(TARGET, PAD)
    encoded = transformer.encode(SOURCE, source_mask)
    logits = transformer.decode(TARGET, encoded, source_mask, target_mask)
    source, target = SOURCE.clone(), TARGET.clone()
    source[1, 3:], target[1, 3:] = 12, 12
    other_encoded = transformer.encode(source, source_mask)
    assert torch.equal(other_encoded[source_mask], encoded[source_mask])
    other_encoded[~source_mask] = 1e3
    other = transformer.decode(target, other_encoded, source_mask, target_mask)
    assert torch.equal(other[target_mask], logits[target_mask])


@EVERY_POSITION
@BOTH_PLACEMENTS
def test_right_padding_needs_no_target_mask(
    position: PositionKind, placement: NormPlacement
) -> None:
    transformer = build(position=position, norm_placement=placement)
    source_mask, target_mask = padding_mask(SOURCE, PAD), target_padding_mask(TARGET, PAD)
    encoded = transformer.encode(SOURCE)
    masked = transformer.decode(TARGET, encoded, source_mask, target_mask)
    causal = transformer.decode(TARGET, encoded, source_mask)
    assert_near(causal[target_mask], masked[target_mask])


@EVERY_POSITION
def test_a_target_mask_also_hides_what_stands_before_real_tokens(position: PositionKind) -> None:
    transformer = build(position=position)
    source_mask = padding_mask(SOURCE, PAD)
    target_mask = torch.tensor([[True, False, True, False, True]] * 2)
    encoded = transformer.encode(SOURCE)
    logits = transformer.decode(TARGET, encoded, source_mask, target_mask)
    other = transformer.decode(
        TARGET.masked_fill(~target_mask, 12), encoded, source_mask, target_mask
    )
    assert torch.equal(other[target_mask], logits[target_mask])


@EVERY_POSITION
@pytest.mark.parametrize("has_target_mask", [False, True])
def test_the_decoder_never_sees_the_future(position: PositionKind, has_target_mask: bool) -> None:
    transformer = build(position=position)
    source_mask = padding_mask(SOURCE, PAD)
    target_mask = torch.ones_like(TARGET, dtype=torch.bool) if has_target_mask else None
    encoded = transformer.encode(SOURCE)
    logits = transformer.decode(TARGET, encoded, source_mask, target_mask)
    for last in range(4):
        changed = TARGET.clone()
        changed[:, last + 1 :] = 12
        other = transformer.decode(changed, encoded, source_mask, target_mask)
        assert torch.equal(other[:, : last + 1], logits[:, : last + 1])
        assert not torch.allclose(other[:, last + 1], logits[:, last + 1])


@EVERY_POSITION
def test_order_matters(position: PositionKind) -> None:
    transformer = build(position=position)
    encoded = transformer.encode(SOURCE[:1])
    reversed_encoded = transformer.encode(SOURCE[:1].flip(1)).flip(1)
    assert not torch.allclose(encoded, reversed_encoded, atol=1e-3)


@EVERY_POSITION
def test_cross_attention_knows_no_positions(position: PositionKind) -> None:
    decoder = build(position=position).decoder
    x, encoded = torch.randn(2, 5, 16), torch.randn(2, 6, 16)
    order = torch.tensor([3, 0, 5, 1, 4, 2])
    assert_near(decoder(x, encoded[:, order]), decoder(x, encoded))


def test_relative_buckets_see_both_sides_in_the_encoder_and_only_the_past_in_the_decoder() -> None:
    transformer = build(position="relative")
    encoder, decoder = (
        stack.position_bias(40, 40, torch.device("cpu"))
        for stack in (transformer.encoder, transformer.decoder)
    )
    assert not torch.equal(encoder[:, 0, 3], encoder[:, 3, 0])
    assert torch.equal(encoder[:, 11, 0], encoder[:, 10, 0]), "8 exact distances on each side"
    assert not torch.equal(decoder[:, 11, 0], decoder[:, 10, 0]), "16 exact distances behind"


@pytest.mark.parametrize("norm", ["layernorm", "rmsnorm"])
@BOTH_PLACEMENTS
def test_a_source_of_nothing_but_padding_is_harmless(norm: str, placement: NormPlacement) -> None:
    transformer = build(norm=norm, norm_placement=placement)
    source = torch.stack((SOURCE[0], torch.full_like(SOURCE[0], PAD)))
    logits = transformer(source, TARGET)
    logits.sum().backward()
    assert logits.isfinite().all()
    assert all(p.grad.isfinite().all() for p in transformer.parameters() if p.grad is not None)
    assert_near(logits[:1], transformer(source[:1], TARGET[:1]))


def test_dropout_acts_in_training_only() -> None:
    transformer = build()
    assert torch.equal(transformer(SOURCE, TARGET), transformer(SOURCE, TARGET))
    transformer.train()
    assert not torch.equal(transformer(SOURCE, TARGET), transformer(SOURCE, TARGET))


def test_dropout_falls_on_the_sum_of_embedding_and_position() -> None:
    encoder = Encoder(replace(CONFIG, num_encoder_layers=0, dropout=0.5)).train()
    torch.manual_seed(0)
    kept = encoder(torch.ones(4, 5, 16)).unique().tolist()
    assert kept == [0.0, 2.0]


@pytest.mark.parametrize("share", [True, False])
@pytest.mark.parametrize("tie", [True, False])
def test_weights_are_named_once_and_shared_as_configured(share: bool, tie: bool) -> None:
    transformer = build(share_embeddings=share, tie_output=tie)
    names = set(transformer.state_dict())
    assert "source_embedding.weight" in names
    assert ("target_embedding.weight" in names) is not share
    assert ("output_projection.weight" in names) is not tie
    assert (transformer.target_embedding is transformer.source_embedding) is share
    clone = copy.deepcopy(transformer)
    assert (clone.target_embedding is clone.source_embedding) is share
    with torch.no_grad():
        transformer.target_embedding.weight[4] += 1.0
    hidden = torch.randn(16)
    assert torch.equal(transformer.project(hidden), clone.project(hidden)) is not tie


def test_the_state_dict_has_the_names_of_the_architecture() -> None:
    attention = [
        f"{part}_proj.{kind}" for part in ["q", "k", "v", "out"] for kind in ("weight", "bias")
    ]
    feed_forward = [
        f"feed_forward.{p}_proj.{k}" for p in ("up", "down") for k in ("weight", "bias")
    ]
    sublayers = {
        "encoder": ("self_attention", "feed_forward"),
        "decoder": ("self_attention", "cross_attention", "feed_forward"),
    }
    expected = {"source_embedding.weight", "output_bias"}
    for side, names in sublayers.items():
        expected |= {f"{side}.final_norm.{kind}" for kind in ("weight", "bias")}
        for layer in range(2 if side == "encoder" else 3):
            parts = [f"{name}_norm.{kind}" for name in names for kind in ("weight", "bias")]
            parts += [
                f"{name}.{part}" for name in names if "attention" in name for part in attention
            ]
            expected |= {f"{side}.layers.{layer}.{part}" for part in parts + feed_forward}
    assert set(build(norm_placement="pre").state_dict()) == expected
    assert {name for name in expected if "final" not in name} == set(build().state_dict())


def test_the_base_model_has_the_size_of_the_paper() -> None:
    with torch.device("meta"):
        transformer = Transformer(ModelConfig(vocab_size=37000, output_bias=False))
    num_weights = sum(parameter.numel() for parameter in transformer.parameters())
    assert 62e6 < num_weights < 65.5e6
    assert (len(transformer.encoder.layers), len(transformer.decoder.layers)) == (6, 6)


def test_vocabularies_may_differ() -> None:
    transformer = build(share_embeddings=False, target_vocab_size=9)
    assert transformer(SOURCE, TARGET.clamp(max=8)).shape == (2, 5, 9)


def test_logits_are_the_target_embedding_times_the_hidden_state_plus_the_bias() -> None:
    transformer = build()
    assert transformer.output_bias is not None
    torch.nn.init.normal_(transformer.output_bias)
    hidden = torch.randn(2, 3, 16)
    expected = hidden @ transformer.source_embedding.weight.T + transformer.output_bias
    assert_near(transformer.project(hidden), expected)
    with torch.no_grad():
        assert_near(transformer.project(hidden), expected)
    assert build(output_bias=False).output_bias is None


def test_the_padding_row_gets_no_gradient_even_when_it_is_tied_to_the_output() -> None:
    transformer = build()
    F.cross_entropy(transformer(SOURCE, TARGET).flatten(0, 1), TARGET.flatten()).backward()
    gradient = transformer.source_embedding.weight.grad
    assert gradient is not None
    assert not gradient[PAD].any()
    assert gradient[PAD + 1 :].any(dim=1).all()
    assert transformer.output_bias is not None
    assert transformer.output_bias.grad is not None
    assert transformer.output_bias.grad[PAD] != 0


@pytest.mark.parametrize("position", ["sinusoidal-marian", "sinusoidal-m2m100", "learned"])
def test_any_position_of_the_target_can_be_embedded_by_itself(position: PositionKind) -> None:
    transformer = build(position=position)
    whole = transformer.embed_target(TARGET)
    for step in range(5):
        one = transformer.embed_target(TARGET[:, step : step + 1], torch.tensor([step]))
        assert torch.equal(one, whole[:, step : step + 1])
    uneven = transformer.embed_target(TARGET[:, :1], torch.tensor([[3], [1]]))
    rows = torch.stack(
        (
            transformer.embed_target(TARGET[:1, :1].expand(1, 5))[0, 3],
            transformer.embed_target(TARGET[1:, :1].expand(1, 5))[0, 1],
        )
    )
    assert torch.equal(uneven[:, 0], rows)


def test_sources_longer_than_a_learned_table_name_the_limit() -> None:
    transformer = build(position="learned", max_positions=5)
    with pytest.raises(InputError, match="6 positions") as caught:
        transformer.encode(SOURCE)
    assert caught.value.limit == 5


@EVERY_POSITION
def test_attention_maps_are_the_weights_that_made_the_output(position: PositionKind) -> None:
    transformer = build(position=position)
    maps = transformer.attention_maps(SOURCE, TARGET)
    assert [m.shape for m in maps.encoder] == [(2, 4, 6, 6)] * 2
    assert [m.shape for m in maps.decoder] == [(2, 4, 5, 5)] * 3
    assert [m.shape for m in maps.cross] == [(2, 4, 5, 6)] * 3
    for weights in (*maps.encoder, *maps.decoder, *maps.cross):
        assert_near(weights.sum(-1), torch.ones(weights.shape[:-1]))
        assert not weights.requires_grad
    for weights in (*maps.encoder, *maps.cross):
        assert not weights[1, :, :, 3:].any()
    for weights in maps.decoder:
        assert not weights.triu(1).any()


@EVERY_POSITION
def test_the_path_of_the_maps_gives_the_output_of_the_fused_path(position: PositionKind) -> None:
    transformer = build(position=position)
    mask = padding_mask(SOURCE, PAD)
    embeddings = transformer.embed_source(SOURCE)
    encoded = transformer.encoder(embeddings, mask)
    assert_near(transformer.encoder(embeddings, mask, maps=[]), encoded)
    target = transformer.embed_target(TARGET)
    hidden = transformer.decoder(target, encoded, mask)
    assert_near(transformer.decoder(target, encoded, mask, maps=[], cross_maps=[]), hidden)


def test_an_encoder_alone_needs_no_tokens() -> None:
    encoder = Encoder(CONFIG).eval()
    assert encoder(torch.randn(2, 6, 16)).shape == (2, 6, 16)


def test_a_decoder_alone_is_a_causal_language_model() -> None:
    decoder = Decoder(CONFIG).eval()
    x = torch.randn(1, 5, 16, requires_grad=True)
    decoder(x)[0, 2].sum().backward()
    assert x.grad is not None
    assert not x.grad[0, 3:].any()
    assert not any("cross" in name for name, p in decoder.named_parameters() if p.grad is not None)


@EVERY_POSITION
def test_every_weight_gets_a_gradient(position: PositionKind) -> None:
    transformer = build(position=position, norm_placement="pre", share_embeddings=False)
    transformer(SOURCE, TARGET).square().sum().backward()
    for name, parameter in transformer.named_parameters():
        # A key bias shifts all scores of a query alike and so cancels in the softmax.
        assert parameter.grad is not None, name
        assert name.endswith("k_proj.bias") or parameter.grad.any(), name


@EVERY_POSITION
@BOTH_PLACEMENTS
def test_bfloat16_stays_near_float32(position: PositionKind, placement: NormPlacement) -> None:
    transformer = build(position=position, norm_placement=placement)
    expected = transformer(SOURCE, TARGET)
    logits = transformer.bfloat16()(SOURCE, TARGET)
    assert logits.dtype is torch.bfloat16
    torch.testing.assert_close(logits.float(), expected, atol=0.15, rtol=0.1)


@pytest.mark.parametrize(
    "kind",
    [
        {"norm_placement": "post"},
        {"norm_placement": "pre"},
        {"decoder_cell": "ssru"},
        {
            "norm": "rmsnorm",
            "norm_placement": "pre",
            "position": "relative",
            "gated_feed_forward": True,
            "feed_forward_bias": False,
            "activation": "gelu-tanh",
        },
        {"embedding_norm": True, "decoder_d_ff": 48},
    ],
    ids=["post", "pre", "ssru", "gated-relative", "embedding-norm"],
)
def test_it_learns_to_copy(kind: dict[str, object]) -> None:
    torch.manual_seed(0)
    transformer = Transformer(
        replace(
            CONFIG,
            **kind,
            dropout=0.0,
            attention_dropout=0.0,
            activation_dropout=0.0,
            d_model=32,
            d_ff=64,
        )
    )
    optimiser = torch.optim.Adam(transformer.parameters(), lr=3e-3)
    source = torch.randint(2, 13, (16, 6))
    target = torch.cat((torch.full((16, 1), PAD), source[:, :-1]), dim=1)
    for _ in range(150):
        loss = F.cross_entropy(transformer(source, target).flatten(0, 1), source.flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert loss.item() < 0.05
    assert torch.equal(transformer.eval()(source, target).argmax(-1), source)
