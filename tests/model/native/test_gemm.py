"""Products of every size around the blocks they are cut into, against the same sums of integers."""

import numpy as np
import numpy.typing as npt
import pytest

from model.native import kernels
from support.token_chains import likeliest, open_session, product_network

pytestmark = pytest.mark.skipif(
    kernels.find_problem() is not None, reason=f"no kernels here: {kernels.find_problem()}"
)
_UNIT = 2.0**-14
_NUM_TOKENS = 37


def factors(
    width: int, num_outputs: int, seed: int
) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.int8]]:
    """Rows of activations and a matrix, (T, I) and (O, I)."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(-127, 128, (_NUM_TOKENS, width), dtype=np.int8)
    # The largest stands in the last place or near it, where a remainder would lose it.
    rows[np.arange(_NUM_TOKENS), width - 1 - np.arange(_NUM_TOKENS) % min(width, 5)] = 127
    return rows, rng.integers(-127, 128, (num_outputs, width), dtype=np.int8)


def assert_products_are_exact(
    rows: npt.NDArray[np.int8],
    matrix: npt.NDArray[np.int8],
    row_counts: list[int],
    *,
    num_threads: int = 1,
) -> None:
    session = open_session(
        product_network(rows, matrix, unit=_UNIT),
        num_threads=num_threads,
        max_rows=max(row_counts),
    )
    logits = rows.astype(np.float64) @ matrix.T.astype(np.float64) * _UNIT
    log_probs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    for num_rows in row_counts:
        # In another order each time: what an earlier call has left is not what belongs there.
        tokens = (7 * np.arange(num_rows) + num_rows) % _NUM_TOKENS
        found, best = likeliest(session, tokens.tolist(), len(matrix))
        assert (np.sort(best, axis=1) == np.arange(len(matrix))).all()
        wanted = np.take_along_axis(log_probs[tokens], best, axis=1)
        assert np.abs(found - wanted).max() < 2e-5, f"{num_rows} rows"


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
