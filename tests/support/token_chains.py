"""Networks without layers, whose next token depends on the last one alone, by a table of logits.

The kernels' product is exact in integers, so that logits which are equal here are equal there to
the bit: ties stand where a test wants them.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from model.native import kernels

if TYPE_CHECKING:
    from model.native import _kernels

MAX_POSITIONS = 64
LOGIT = 127 / 128
"""What one unit of a chain's table is worth."""


def product_network(
    hidden: npt.NDArray[np.int8],
    weights: npt.NDArray[np.int8],
    *,
    unit: float,
    suppressed: Sequence[int] = (),
) -> "_kernels.Network":
    """Logits `hidden @ weights.T * unit` after token t, where `hidden` is its row t.

    Args:
        hidden: (T, D); the largest of each row must be 127 in size, so that quantisation keeps it.
        weights: (V, D).
        unit: A power of two.
        suppressed: Tokens that are never generated.
    """
    assert (np.abs(hidden.astype(int)).max(axis=1) == 127).all()
    made = kernels.load()
    table = made.matrix(hidden, np.ones(len(hidden), np.float32), None)
    scale = np.full(len(weights), unit, np.float32)
    positions = np.zeros((MAX_POSITIONS, hidden.shape[1]), np.float32)
    return made.network(
        d_model=hidden.shape[1],
        encoder_d_ff=16,
        decoder_d_ff=16,
        max_positions=MAX_POSITIONS,
        heads=(1, 16, 16, 1.0),
        is_pre_norm=False,
        activation="relu",
        is_gated=False,
        decoder_cell="self-attention",
        embedding_factor=1.0,
        output_factor=1.0,
        source_table=table,
        target_table=table,
        output=made.matrix(weights, scale, None, float("-inf")),
        source_positions=positions,
        target_positions=positions,
        encoder_bias=None,
        decoder_bias=None,
        suppressed=list(suppressed),
    )


def chain_network(
    logits: npt.NDArray[np.int8], *, suppressed: Sequence[int] = ()
) -> "_kernels.Network":
    """After token t the logits are `logits[t] * LOGIT`; `logits` is (T, V)."""
    one_hot = (127 * np.eye(len(logits))).astype(np.int8)
    weights = np.ascontiguousarray(logits.T)
    return product_network(one_hot, weights, unit=1 / 128, suppressed=suppressed)


def open_session(
    network: "_kernels.Network", *, num_threads: int, max_rows: int, eos_id: int = 1
) -> "_kernels.Session":
    """A session of one slot a row."""
    made = kernels.load()
    return made.session(
        network,
        made.team(num_threads),
        max_rows=max_rows,
        max_slots=max_rows,
        max_source_length=1,
        max_target_length=MAX_POSITIONS,
        eos_id=eos_id,
    )


def likeliest(
    session: "_kernels.Session", tokens: Sequence[int], count: int
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
    """(R, count) log probabilities and tokens that follow each of `tokens`, best first."""
    rows = np.arange(len(tokens), dtype=np.int64)
    log_probs = np.full((len(tokens), count), np.nan, dtype=np.float32)
    best = np.full((len(tokens), count), -1, dtype=np.int64)
    at = np.zeros_like(rows)
    session.feed(np.array(tokens, dtype=np.int64), rows, rows, at, log_probs, best, None)
    return log_probs, best
