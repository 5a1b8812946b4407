import pytest
import torch

from model.config import PositionKind
from model.exchange.imports.position_tables import recognised_table
from model.nn.positions import sinusoidal_table

KINDS: list[PositionKind] = ["sinusoidal-interleaved", "sinusoidal-marian", "sinusoidal-m2m100"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("offset", [0, 1, 2])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_every_form_is_known_again_in_every_type(
    kind: PositionKind, offset: int, dtype: torch.dtype
) -> None:
    table = sinusoidal_table(kind, torch.arange(offset, offset + 1000), 64).to(dtype)
    assert recognised_table(table) == (kind, offset)


def test_angles_of_float32_are_known_again() -> None:
    """As OpenNMT-py makes its table of 5,000 positions."""
    positions = torch.arange(5000.0)[:, None]
    divisors = torch.exp(torch.arange(0, 64, 2.0) * -(torch.log(torch.tensor(10000.0)) / 64))
    table = torch.zeros(5000, 64)
    table[:, 0::2], table[:, 1::2] = (positions * divisors).sin(), (positions * divisors).cos()
    assert recognised_table(table) == ("sinusoidal-interleaved", 0)


def test_a_table_that_differs_in_one_row_is_another() -> None:
    table = sinusoidal_table("sinusoidal-marian", torch.arange(300), 64)
    table[250, 3] += 0.02
    assert recognised_table(table) is None


@pytest.mark.parametrize("shape", [(20, 64), (1, 4), (20, 3), (20, 2)])
def test_random_tables_are_none_of_them(shape: tuple[int, int]) -> None:
    table = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    assert recognised_table(table) is None
