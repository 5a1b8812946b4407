"""The SSRU: its equation written out, its steps against whole sequences, and what it may see."""

import copy

import pytest
import torch
from torch import Tensor

from model.cells import StateShape
from model.config import ModelConfig, PositionKind
from model.errors import ConfigError
from model.nn.ssru import SSRU
from model.nn.transformer import Transformer

CONFIG = ModelConfig(vocab_size=9, d_model=12, num_heads=2, d_ff=24, decoder_cell="ssru")


class OneState:
    """The last state of one layer."""

    def __init__(self, state: Tensor) -> None:
        self.state = state

    def attend(self, layer: int, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        raise AssertionError("an SSRU attends to nothing")

    def last(self, layer: int) -> tuple[Tensor, ...]:
        assert layer == 1
        return (self.state,)

    def replace(self, layer: int, states: tuple[Tensor, ...]) -> None:
        assert layer == 1
        (self.state,) = states


def cell() -> SSRU:
    torch.manual_seed(0)
    built = SSRU(CONFIG).double()
    with torch.no_grad():
        built.forget_proj.bias.normal_()
    return built


def by_the_equation(built: SSRU, x: Tensor) -> Tensor:
    state, outputs = torch.zeros_like(x[:, 0]), []
    for position in range(x.shape[1]):
        gate = torch.sigmoid(x[:, position] @ built.forget_proj.weight.T + built.forget_proj.bias)
        state = gate * state + (1 - gate) * (x[:, position] @ built.candidate_proj.weight.T)
        outputs.append(state.clamp(min=0))
    return torch.stack(outputs, dim=1)


@pytest.mark.parametrize("length", [1, 2, 3, 8, 21])
@torch.no_grad()
def test_over_a_sequence_it_is_its_equation(length: int) -> None:
    x = torch.randn(3, length, 12, dtype=torch.float64)
    built = cell()
    torch.testing.assert_close(built.over_sequence(x), by_the_equation(built, x))


@torch.no_grad()
def test_step_by_step_it_computes_what_it_computes_over_the_sequence() -> None:
    built, x = cell(), torch.randn(3, 6, 12, dtype=torch.float64)
    step, past = built.fuse(), OneState(torch.zeros(3, 1, 12, dtype=torch.float64))
    stepped = torch.stack([step(1, x[:, t], past) for t in range(6)], dim=1)
    torch.testing.assert_close(stepped, built.over_sequence(x))
    assert built.state_shapes() == (StateShape(num_heads=1, width=12, grows=False),)
    assert past.state.shape == (3, 1, 12)


def test_gates_that_are_shut_or_open_for_long_stay_finite_forwards_and_backwards() -> None:
    built = SSRU(CONFIG)
    for bias in (-200.0, 200.0):
        with torch.no_grad():
            built.forget_proj.bias.fill_(bias)
        x = torch.randn(2, 300, 12, requires_grad=True)
        output = built.over_sequence(x)
        output.sum().backward()
        assert output.isfinite().all()
        assert x.grad is not None
        assert x.grad.isfinite().all()


@torch.no_grad()
def test_a_position_is_the_same_to_the_bit_whatever_follows() -> None:
    built, x = SSRU(CONFIG), torch.randn(2, 23, 12)
    whole = built.over_sequence(x)
    for length in (1, 7, 16, 22):
        changed = x.clone()
        changed[:, length:].normal_()
        other = built.over_sequence(changed)
        assert torch.equal(other[:, :length], whole[:, :length])
        assert not torch.equal(other, whole)


@torch.no_grad()
def test_in_bfloat16_a_long_average_does_not_drift() -> None:
    """Its inputs are rounded, and what they add up to is not rounded again at every position."""
    built = SSRU(CONFIG).bfloat16()
    built.forget_proj.bias.fill_(5.0)  # gates near 0.993
    x = torch.randn(1, 400, 12).bfloat16() + 1
    exact = copy.deepcopy(built).double()
    step, past = built.fuse(), OneState(torch.zeros(1, 1, 12))
    stepped = torch.stack([step(1, x[:, t], past) for t in range(400)], dim=1)
    expected = exact.over_sequence(x.double())
    assert expected[:, -1].max() > 0.3
    for output in (stepped, built.over_sequence(x)):
        assert output.dtype is torch.bfloat16
        torch.testing.assert_close(output.double(), expected, atol=4e-3, rtol=2**-7)


@torch.no_grad()
def test_hidden_positions_are_passed_over() -> None:
    built, x = cell(), torch.randn(2, 5, 12, dtype=torch.float64)
    mask = torch.tensor([True, False, True, False, True]).expand(2, 1, 1, 5)
    passed_over = built.over_sequence(x, mask=mask)[:, ::2]
    torch.testing.assert_close(passed_over, built.over_sequence(x[:, ::2]))


def test_its_weights_stand_under_its_name() -> None:
    names = Transformer(CONFIG).decoder.layers[0].state_dict()
    assert [name for name in names if name.startswith("ssru")] == [
        "ssru.candidate_proj.weight",
        "ssru.forget_proj.weight",
        "ssru.forget_proj.bias",
        "ssru_norm.weight",
        "ssru_norm.bias",
    ]


@pytest.mark.parametrize("position", ["rope", "alibi", "relative"])
def test_positions_inside_self_attention_are_refused_by_name(position: PositionKind) -> None:
    message = f"position is '{position}'; it acts inside self-attention, and decoder_cell is 'ssru'"
    with pytest.raises(ConfigError, match=message):
        ModelConfig(vocab_size=9, decoder_cell="ssru", position=position)
