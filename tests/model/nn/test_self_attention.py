"""The cell of self-attention: what it keeps, and a step against the whole sequence."""

import pytest
import torch
from torch import Tensor

from model.cells import StateShape
from model.config import ModelConfig
from model.nn.attention import plain_attention
from model.nn.self_attention import SelfAttention

CONFIG = {"vocab_size": 5, "d_model": 16, "num_heads": 2, "d_k": 6, "d_v": 10}


class ListPast:
    """Keys and values of one layer, step by step."""

    def __init__(self) -> None:
        self.kept: list[tuple[Tensor, Tensor]] = []

    def attend(self, layer: int, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        self.kept.append((keys, values))
        past_keys, past_values = (torch.stack(part, 2) for part in zip(*self.kept, strict=True))
        return plain_attention(queries.unsqueeze(2), past_keys, past_values)[0].flatten(1)

    def last(self, layer: int) -> tuple[Tensor, ...]:
        raise AssertionError("self-attention replaces nothing")

    def replace(self, layer: int, states: tuple[Tensor, ...]) -> None:
        raise AssertionError("self-attention replaces nothing")


@pytest.mark.parametrize("attention_bias", [True, False])
@torch.no_grad()
def test_step_by_step_it_computes_what_it_computes_over_the_sequence(attention_bias: bool) -> None:
    torch.manual_seed(0)
    cell = SelfAttention(ModelConfig(**CONFIG, attention_bias=attention_bias)).double()
    x = torch.randn(3, 5, 16, dtype=torch.float64)
    step, past = cell.fuse(), ListPast()
    stepped = torch.stack([step(0, x[:, t], past) for t in range(5)], dim=1)
    torch.testing.assert_close(stepped, cell.over_sequence(x))
    kept = past.kept[0]
    assert [tuple(state.shape[1:]) for state in kept] == [(2, 6), (2, 10)]


def test_it_keeps_a_key_and_a_value_of_every_position() -> None:
    assert SelfAttention(ModelConfig(**CONFIG)).state_shapes() == (
        StateShape(num_heads=2, width=6, grows=True),
        StateShape(num_heads=2, width=10, grows=True),
    )
