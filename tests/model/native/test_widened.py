"""Products of AVX2 with weights that are widened once for many rows: exact for every shape."""

import pytest

from model.native import kernels
from support.exact_products import assert_products_are_exact, factors

_LEVEL = "avx2"
_MISSING = kernels.missing_features().get(_LEVEL)
pytestmark = pytest.mark.skipif(_MISSING != [], reason="no kernels for AVX2 here")


@pytest.fixture(autouse=True)
def level(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(kernels.VARIABLE, _LEVEL)


@pytest.mark.parametrize("num_threads", [1, 2])
def test_no_row_is_lost_around_any_number_that_is_widened_for(num_threads: int) -> None:
    """From 24 rows on weights are widened, for 64 at a time; blocks have 4, chunks 48."""
    counts = [*range(1, 150), 191, 192, 193]
    assert_products_are_exact(*factors(8, 70, seed=1), counts, num_threads=num_threads)


@pytest.mark.parametrize("width", [*range(1, 10), 63, 64, 65, 509, 511, 512, 513, 517, 1024, 1031])
def test_no_input_is_lost_around_the_number_that_is_widened_together(width: int) -> None:
    """512 are: sums of what comes behind are added to those before."""
    assert_products_are_exact(*factors(width, 40, seed=width), [3, 23, 24, 25, 64, 67, 88])


@pytest.mark.parametrize("num_outputs", [1, 15, 16, 17, 31, 33, 63, 64, 65, 128, 130])
def test_no_output_is_lost_around_the_number_that_is_widened_together(num_outputs: int) -> None:
    assert_products_are_exact(*factors(65, num_outputs, seed=num_outputs), [24, 66])
