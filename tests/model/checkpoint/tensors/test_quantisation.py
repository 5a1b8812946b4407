import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from model.checkpoint.tensors.int8_rows import MIN_SCALE
from model.checkpoint.tensors.quantisation import dequantise_rows, quantise_rows


def weights(shape: tuple[int, ...], *, seed: int = 0, spread: float = 1.0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)) * spread


@given(
    seed=st.integers(0, 2**31),
    rows=st.integers(1, 9),
    columns=st.integers(1, 33),
    exponent=st.integers(-60, 60),
)
@settings(max_examples=300, deadline=None)
def test_the_error_is_at_most_half_a_scale(
    seed: int, rows: int, columns: int, exponent: int
) -> None:
    weight = weights((rows, columns), seed=seed, spread=2.0**exponent)
    quanta, scale = quantise_rows(weight)
    error = (dequantise_rows(quanta, scale) - weight).abs().amax(dim=1)
    assert (error <= scale / 2 * (1 + 1e-5)).all()
    assert (error <= weight.abs().amax(dim=1) / 253.99).all()


@given(
    seed=st.integers(0, 2**31),
    rows=st.integers(1, 9),
    columns=st.integers(1, 33),
    exponent=st.integers(-140, 100),
)
@settings(max_examples=300, deadline=None)
def test_quantising_a_dequantised_tensor_gives_the_same_bytes(
    seed: int, rows: int, columns: int, exponent: int
) -> None:
    quanta, scale = quantise_rows(weights((rows, columns), seed=seed) * 2.0**exponent)
    again, scale_again = quantise_rows(dequantise_rows(quanta, scale))
    assert torch.equal(again, quanta)
    assert torch.equal(scale_again, scale)


def test_every_row_has_its_own_scale() -> None:
    weight = torch.tensor([[127.0, -64.2], [254.0, 62.0]])
    quanta, scale = quantise_rows(weight)
    assert quanta.tolist() == [[127, -64], [127, 31]]
    assert scale.tolist() == [1.0, 2.0]


def test_zeros_stay_zeros() -> None:
    quanta, scale = quantise_rows(torch.zeros(3, 5))
    assert not quanta.any()
    assert scale.tolist() == [MIN_SCALE] * 3
    assert not dequantise_rows(quanta, scale).any()


def test_tensors_of_more_dimensions_keep_their_shape() -> None:
    weight = weights((4, 3, 2))
    quanta, scale = quantise_rows(weight)
    assert quanta.shape == weight.shape
    assert quanta.dtype == torch.int8
    assert scale.shape == (4,)
    assert torch.allclose(dequantise_rows(quanta, scale), weight, atol=0.02)


def test_half_precision_weights_are_measured_in_single_precision() -> None:
    weight = weights((4, 6)).to(torch.bfloat16)
    assert torch.equal(quantise_rows(weight)[1], quantise_rows(weight.float())[1])


def test_the_largest_floats_do_not_overflow() -> None:
    weight = torch.full((1, 2), torch.finfo(torch.float32).max)
    assert torch.isfinite(dequantise_rows(*quantise_rows(weight))).all()


def test_a_matrix_of_many_blocks_is_quantised_row_by_row() -> None:
    weight = weights((70_000, 64))
    weight[::1000] *= 50.0
    quanta, scale = quantise_rows(weight)
    for begin in (0, 65_530, 69_990):
        some = slice(begin, begin + 10)
        expected_quanta, expected_scale = quantise_rows(weight[some])
        assert torch.equal(quanta[some], expected_quanta)
        assert torch.equal(scale[some], expected_scale)
