"""Norms against their formulas."""

import pytest
import torch

from model.config import ModelConfig, NormKind
from model.nn.norms import build_norm

EPSILON = 0.1  # large, so that where it stands shows


def config(norm: NormKind) -> ModelConfig:
    return ModelConfig(vocab_size=4, d_model=8, num_heads=2, norm=norm, norm_epsilon=EPSILON)


def test_layernorm_has_biased_variance_and_epsilon_inside_the_root() -> None:
    x = torch.randn(3, 8, generator=torch.Generator().manual_seed(0))
    centred = x - x.mean(-1, keepdim=True)
    expected = centred / torch.sqrt(centred.square().mean(-1, keepdim=True) + EPSILON)
    torch.testing.assert_close(build_norm(config("layernorm"))(x), expected)


def test_rmsnorm_divides_by_the_root_of_the_mean_square_plus_epsilon() -> None:
    x = torch.randn(3, 8, generator=torch.Generator().manual_seed(0))
    expected = x / torch.sqrt(x.square().mean(-1, keepdim=True) + EPSILON)
    torch.testing.assert_close(build_norm(config("rmsnorm"))(x), expected)


@pytest.mark.parametrize("norm", ["layernorm", "rmsnorm"])
def test_a_constant_input_stays_finite(norm: NormKind) -> None:
    assert build_norm(config(norm))(torch.zeros(2, 8)).isfinite().all()
