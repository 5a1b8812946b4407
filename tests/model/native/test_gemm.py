"""Products of every size around the blocks they are cut into, against the same sums of integers."""

import numpy as np
import pytest

from model.native import kernels
from support.exact_products import assert_products_are_exact, factors

pytestmark = pytest.mark.skipif(
    kernels.find_problem() is not None, reason=f"no kernels here: {kernels.find_problem()}"
)


@pytest.mark.parametrize("num_threads", [1, 3])
def test_no_row_is_lost_around_any_multiple_of_a_block_or_a_chunk(num_threads: int) -> None:
    """Blocks are 6 rows, chunks 48: every count up to three chunks and some more."""
    rows, matrix = factors(8, 70, seed=1)
    counts = [*range(1, 150), 191, 192, 193, 287, 288, 289]
    assert_products_are_exact(rows, matrix, counts, num_threads=num_threads)


@pytest.mark.parametrize(
    "num_outputs",
    [*range(1, 18), 31, 32, 33, *range(47, 50), *range(62, 67), *range(126, 131), 191, 192, 193,
     959, 960, 961, 1023, 1024, 1025, 1087, 1089],
)  # fmt: skip
def test_no_column_is_lost_around_a_vector_a_panel_or_sixteen_panels(num_outputs: int) -> None:
    rows, matrix = factors(3, num_outputs, seed=num_outputs)
    assert_products_are_exact(rows, matrix, [1, 7])


@pytest.mark.parametrize(
    "width", [*range(1, 20), *range(31, 34), *range(60, 69), 127, 128, 129, 255, 257]
)
def test_no_input_is_lost_whatever_the_depth(width: int) -> None:
    rows, matrix = factors(width, 40, seed=width)
    assert_products_are_exact(rows, matrix, [1, 5, 6, 7])


LARGE = [
    (127, 127),
    (-127, -127),
    (127, -127),
    (127, 2),
    (2, 127),
    (64, 65),
    (-64, -65),
    (64, 64),
    (0, 0),
]


@pytest.mark.parametrize("level", kernels.usable())
@pytest.mark.parametrize("width", [2, 7, 64, 130])
def test_sums_of_two_products_that_16_bits_do_not_hold(
    level: str, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Instructions that add two products in 16 bits saturate where neighbours are large."""
    monkeypatch.setenv(kernels.VARIABLE, level)
    rng = np.random.default_rng(width)
    rows = np.zeros((37, width), np.int8)
    for token, row in enumerate(rows):
        pairs = [LARGE[token]] if token < len(LARGE) else rng.choice(LARGE, width)
        row[:] = np.resize(pairs, width)
        row[-1] = -127
    matrix = rng.choice(np.array([-127, -126, 126, 127], np.int8), (70, width))
    matrix[:4] = [[127], [-127], [126], [-126]]
    assert_products_are_exact(rows, matrix, [1, 2, 3, 6, 13, 36])
