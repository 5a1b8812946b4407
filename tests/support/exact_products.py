"""Products of the kernels against the same sums of integers, through a network without layers."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from support.token_chains import likeliest, open_session, product_network

_UNIT = 2.0**-14
_NUM_TOKENS = 37


def factors(
    width: int, num_outputs: int, seed: int
) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.int8]]:
    """Rows of activations and a matrix, (T, I) and (O, I), both with numbers down to -127."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(-127, 128, (_NUM_TOKENS, width), dtype=np.int8)
    # The largest stands in the last place or near it, where a remainder would lose it.
    tokens = np.arange(_NUM_TOKENS)
    rows[tokens, width - 1 - tokens % min(width, 5)] = np.where(tokens % 2, 127, -127)
    return rows, rng.integers(-127, 128, (num_outputs, width), dtype=np.int8)


def assert_products_are_exact(
    rows: npt.NDArray[np.int8],
    matrix: npt.NDArray[np.int8],
    row_counts: Sequence[int],
    *,
    num_threads: int = 1,
) -> None:
    """Compare what the kernels find likely after so many rows at once with exact logits.

    Args:
        rows: (T, I); the largest of each is 127 in size.
        matrix: (O, I).
        row_counts: Rows that are multiplied together.
        num_threads: Of the kernels.
    """
    session = open_session(
        product_network(rows, matrix, unit=_UNIT),
        num_threads=num_threads,
        max_rows=max(row_counts),
    )
    logits = rows.astype(np.float64) @ matrix.T.astype(np.float64) * _UNIT
    log_probs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    for num_rows in row_counts:
        # In another order each time: what an earlier call has left is not what belongs there.
        tokens = (7 * np.arange(num_rows) + num_rows) % len(rows)
        found, best = likeliest(session, tokens.tolist(), len(matrix))
        assert (np.sort(best, axis=1) == np.arange(len(matrix))).all()
        wanted = np.take_along_axis(log_probs[tokens], best, axis=1)
        assert np.abs(found - wanted).max() < 2e-5, f"{num_rows} rows"
