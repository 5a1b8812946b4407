"""Positions against the formulas of their papers."""

import copy
import math

import pytest
import torch
from transformers.models.m2m_100.modeling_m2m_100 import M2M100SinusoidalPositionalEmbedding
from transformers.models.marian.modeling_marian import MarianSinusoidalPositionalEmbedding
from transformers.models.t5.modeling_t5 import T5Attention

from model.config import ModelConfig, PositionKind
from model.errors import ConfigError, InputError
from model.nn.positions import (
    AlibiBias,
    LearnedPositions,
    NoPositions,
    RelativeBias,
    RotaryPositions,
    SinusoidalPositions,
    alibi_slopes,
    build_absolute_positions,
    build_position_bias,
    relative_buckets,
    sinusoidal_table,
)

SINUSOIDAL: tuple[PositionKind, ...] = (
    "sinusoidal-interleaved",
    "sinusoidal-marian",
    "sinusoidal-m2m100",
)
WIDTH = 16


def config(position: PositionKind, **changes: int) -> ModelConfig:
    return ModelConfig(vocab_size=5, d_model=WIDTH, num_heads=2, position=position, **changes)


def direct_sinusoid(kind: PositionKind, position: int, column: int, width: int) -> float:
    """One entry, straight from the definition, in Python floats."""
    half = width // 2
    if kind == "sinusoidal-interleaved":
        pair, is_sine = column // 2, column % 2 == 0
    else:
        pair, is_sine = column % half, column < half
    exponent = pair / (half - 1) if kind == "sinusoidal-m2m100" else 2 * pair / width
    angle = position / 10000**exponent
    return math.sin(angle) if is_sine else math.cos(angle)


@pytest.mark.parametrize("kind", SINUSOIDAL)
@pytest.mark.parametrize("width", [4, 16, 512])
def test_sinusoids_match_the_direct_formula(kind: PositionKind, width: int) -> None:
    positions = [0, 1, 2, 17, 511, 5000]
    expected = [[direct_sinusoid(kind, p, c, width) for c in range(width)] for p in positions]
    table = sinusoidal_table(kind, torch.tensor(positions), width, dtype=torch.float64)
    torch.testing.assert_close(
        table, torch.tensor(expected, dtype=torch.float64), atol=1e-12, rtol=0
    )


@pytest.mark.parametrize("kind", SINUSOIDAL)
def test_float32_sinusoids_are_rounded_once_even_far_out(kind: PositionKind) -> None:
    positions = torch.tensor([[9999], [123456]])
    exact = sinusoidal_table(kind, positions, WIDTH, dtype=torch.float64)
    table = sinusoidal_table(kind, positions, WIDTH)
    assert table.shape == (2, 1, WIDTH)
    assert table.dtype is torch.float32
    assert torch.equal(table, exact.float())


def test_the_marian_form_is_that_of_transformers() -> None:
    reference = MarianSinusoidalPositionalEmbedding(50, WIDTH).create_weight()
    table = sinusoidal_table("sinusoidal-marian", torch.arange(50), WIDTH)
    torch.testing.assert_close(table, reference, atol=1e-6, rtol=0)


def test_the_m2m100_form_with_its_offset_is_that_of_transformers() -> None:
    reference = M2M100SinusoidalPositionalEmbedding(50, WIDTH, padding_idx=1)
    positions = build_absolute_positions(config("sinusoidal-m2m100", position_offset=2))
    expected = reference(torch.full((1, 40), 7))
    torch.testing.assert_close(positions(torch.zeros(1, 40, WIDTH)), expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("kind", SINUSOIDAL)
def test_an_odd_width_is_refused_by_the_config(kind: PositionKind) -> None:
    with pytest.raises(ConfigError, match="d_model is 15"):
        ModelConfig(vocab_size=5, d_model=15, num_heads=3, position=kind)


@pytest.mark.parametrize("position", [*SINUSOIDAL, "learned"])
def test_explicit_positions_get_the_rows_of_those_positions(position: PositionKind) -> None:
    positions = build_absolute_positions(config(position, position_offset=2))
    whole = positions(torch.zeros(1, 30, WIDTH))[0]
    wanted = torch.tensor([[29, 0, 3], [7, 7, 1]])
    assert torch.equal(positions(torch.zeros(2, 3, WIDTH), wanted), whole[wanted])
    assert torch.equal(positions(torch.zeros(2, 3, WIDTH), wanted[0])[1], whole[wanted[0]])


def test_sinusoids_have_no_longest_length() -> None:
    positions = SinusoidalPositions(config("sinusoidal-marian", max_positions=8))
    short = positions(torch.zeros(1, 5, WIDTH))
    long = positions(torch.zeros(1, 3000, WIDTH))
    assert torch.equal(long[:, :5], short)
    expected = sinusoidal_table("sinusoidal-marian", torch.arange(3000), WIDTH)
    assert torch.equal(long[0], expected)


def test_sinusoids_follow_the_dtype_and_device_of_the_embeddings() -> None:
    positions = SinusoidalPositions(config("sinusoidal-marian"))
    exact = positions(torch.zeros(1, 9, WIDTH))
    half = positions.bfloat16()(torch.zeros(1, 9, WIDTH, dtype=torch.bfloat16))
    assert torch.equal(half, exact.bfloat16())
    assert positions(torch.zeros(1, 9, WIDTH, device="meta")).device.type == "meta"
    again = positions.float()(torch.zeros(1, 9, WIDTH))
    assert torch.equal(again, exact), "a round trip through bfloat16 must not cost accuracy"


@pytest.mark.parametrize("position", [*SINUSOIDAL, "rope", "alibi"])
def test_computed_positions_are_not_weights(position: PositionKind) -> None:
    absolute = build_absolute_positions(config(position))
    absolute(torch.zeros(1, 9, WIDTH))
    assert not absolute.state_dict()
    bias = build_position_bias(config(position), is_bidirectional=True)
    assert bias is None or not bias.state_dict()
    assert not RotaryPositions(WIDTH).state_dict()


def test_tables_made_under_inference_mode_can_train_afterwards() -> None:
    rotary = RotaryPositions(WIDTH)
    with torch.inference_mode():
        rotary(torch.zeros(1, 1, 5, WIDTH))
    heads = torch.ones(1, 1, 5, WIDTH, requires_grad=True)
    rotary(heads).sum().backward()
    assert heads.grad is not None


def test_a_copy_of_positions_is_independent() -> None:
    positions = SinusoidalPositions(config("sinusoidal-marian"))
    expected = positions(torch.zeros(1, 3, WIDTH))
    assert torch.equal(copy.deepcopy(positions)(torch.zeros(1, 3, WIDTH)), expected)


def test_learned_positions_start_at_the_offset() -> None:
    positions = LearnedPositions(config("learned", max_positions=10, position_offset=2))
    added = positions(torch.zeros(1, 8, WIDTH))
    assert torch.equal(added[0], positions.vectors.weight[2:])


def test_learned_positions_past_the_table_name_the_value_and_the_limit() -> None:
    positions = LearnedPositions(config("learned", max_positions=10, position_offset=2))
    with pytest.raises(InputError, match="9 positions") as caught:
        positions(torch.zeros(1, 9, WIDTH))
    assert (caught.value.value, caught.value.limit) == (9, 8)
    with pytest.raises(InputError, match="9 positions"):
        positions(torch.zeros(1, 1, WIDTH), torch.tensor([8]))


@pytest.mark.parametrize("position", ["rope", "alibi", "relative"])
def test_positions_inside_attention_add_nothing_to_the_embeddings(position: PositionKind) -> None:
    absolute = build_absolute_positions(config(position))
    assert isinstance(absolute, NoPositions)
    embeddings = torch.randn(2, 3, WIDTH)
    assert torch.equal(absolute(embeddings), embeddings)


def test_rotary_turns_each_pair_by_its_angle() -> None:
    heads = torch.randn(1, 1, 6, WIDTH, dtype=torch.float64)
    rotated = RotaryPositions(WIDTH)(heads)
    for position in range(6):
        for i in range(WIDTH // 2):
            angle = position / 10000 ** (2 * i / WIDTH)
            x, y = heads[0, 0, position, 2 * i : 2 * i + 2].tolist()
            turned = rotated[0, 0, position, 2 * i : 2 * i + 2].tolist()
            assert turned[0] == pytest.approx(x * math.cos(angle) - y * math.sin(angle))
            assert turned[1] == pytest.approx(x * math.sin(angle) + y * math.cos(angle))


def test_rotary_products_depend_on_distance_only() -> None:
    query, key = torch.randn(2, 1, 1, 1, WIDTH, dtype=torch.float64)
    rotary = RotaryPositions(WIDTH)
    scores = rotary(query.expand(1, 1, 12, WIDTH)) @ rotary(key.expand(1, 1, 12, WIDTH)).mT
    for distance in range(-11, 12):
        diagonal = scores[0, 0].diagonal(distance)
        torch.testing.assert_close(diagonal, diagonal[:1].expand_as(diagonal))
    assert scores[0, 0, 0].unique().numel() == 12


def test_alibi_slopes_of_a_power_of_two_are_a_geometric_sequence() -> None:
    assert alibi_slopes(8).tolist() == [2.0**-h for h in range(1, 9)]
    assert alibi_slopes(1).tolist() == [2.0**-8]


def test_alibi_slopes_between_powers_are_taken_from_the_power_above() -> None:
    above = [2 ** (-8 * h / 16) for h in range(1, 17)]
    expected = [2.0**-h for h in range(1, 9)] + above[0::2][:4]
    assert alibi_slopes(12).tolist() == pytest.approx(expected)


def test_alibi_falls_linearly_with_distance_and_twice_as_fast_ahead() -> None:
    bias = AlibiBias(8)(3, 4, torch.device("cpu"))
    assert bias.shape == (8, 3, 4)
    expected = [[0, -1, -2, -3], [-0.5, 0, -1, -2], [-1, -0.5, 0, -1]]
    assert bias[0].tolist() == expected
    torch.testing.assert_close(bias[1], bias[0] / 2)


@pytest.mark.parametrize("is_bidirectional", [True, False])
def test_relative_buckets_are_those_of_t5(is_bidirectional: bool) -> None:
    distances = torch.arange(-300, 301)
    expected = T5Attention._relative_position_bucket(
        distances, bidirectional=is_bidirectional, num_buckets=32, max_distance=128
    )
    buckets = relative_buckets(distances, is_bidirectional=is_bidirectional)
    assert torch.equal(buckets, expected)


def test_relative_scores_are_looked_up_by_key_minus_query() -> None:
    bias = RelativeBias(2, is_bidirectional=True)
    scores = bias(3, 3, torch.device("cpu"))
    table = bias.scores.weight
    assert scores.shape == (2, 3, 3)
    assert torch.equal(scores[:, 2, 0], table[2])  # the key two behind
    assert torch.equal(scores[:, 0, 2], table[16 + 2])  # the key two ahead


def test_scores_by_distance_are_those_of_the_last_query() -> None:
    bias = RelativeBias(2, is_bidirectional=False)
    last = bias(200, 200, torch.device("cpu"))[:, -1]
    assert torch.equal(bias.by_distance(200), last.flip(-1))


def test_the_decoder_puts_every_key_ahead_in_the_bucket_of_the_query_itself() -> None:
    bias = RelativeBias(2, is_bidirectional=False)
    scores = bias(3, 3, torch.device("cpu"))
    assert torch.equal(scores[:, 0, 2], scores[:, 1, 1])
    assert torch.equal(scores[:, 2, 0], bias.scores.weight[2])
