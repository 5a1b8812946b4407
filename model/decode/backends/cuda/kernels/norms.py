"""Triton programs around the norms: what enters the first layer, and a residual connection.

Owns LayerNorm (Ba et al. 2016) and RMSNorm (Zhang and Sennrich 2019) of whole rows. Sums are made
in `WIDE`, and rounded to the network's precision where torch rounds them. Arguments end in `_ptr`
where they are tensors; capitals are known when a program is compiled.
"""

import triton
import triton.language as tl


@triton.jit
def normalise(
    values, is_there, gain, offset, EPSILON: tl.constexpr, SIZE: tl.constexpr, IS_RMS: tl.constexpr
):
    """Norm of rows that are in registers.

    Args:
        values: (M, D') in `WIDE`, zeros where `is_there` is False.
        is_there: (1, D') bool, the columns there are.
        gain: (1, D').
        offset: (1, D'), zeros with RMSNorm.
        EPSILON: Inside the root.
        SIZE: Columns there are, D.
        IS_RMS: RMSNorm, which centres nothing.

    Returns:
        (M, D') in `WIDE`.
    """
    if not IS_RMS:
        mean = tl.sum(values, axis=1, keep_dims=True) / SIZE
        values = tl.where(is_there, values - mean, 0.0)
    variance = tl.sum(values * values, axis=1, keep_dims=True) / SIZE
    return values / tl.sqrt(variance + EPSILON) * gain + offset


@triton.jit
def embed(
    tokens_ptr,
    positions_ptr,
    table_ptr,
    position_table_ptr,
    gain_ptr,
    offset_ptr,
    ancestors_ptr,
    out_ptr,
    last_position,
    num_columns,
    SCALE: tl.constexpr,
    EPSILON: tl.constexpr,
    D: tl.constexpr,
    K: tl.constexpr,
    HAS_POSITIONS: tl.constexpr,
    HAS_NORM: tl.constexpr,
    IS_RMS: tl.constexpr,
    BLOCK_D: tl.constexpr,
    BLOCK_K: tl.constexpr,
    WIDE: tl.constexpr,
):
    """What enters the first layer, of one row; its new node becomes its own ancestor.

    Args:
        tokens_ptr: (S, K) int64.
        positions_ptr: (S,) int64.
        table_ptr: (V, D).
        position_table_ptr: (P, D); only with `HAS_POSITIONS`.
        gain_ptr: (D,); only with `HAS_NORM`.
        offset_ptr: (D,); only with `HAS_NORM` of LayerNorm.
        ancestors_ptr: (S, K, T, K) uint8; column `position` is written.
        out_ptr: (S·K, D).
        last_position: P − 1.
        num_columns: T.
        SCALE: Of the embeddings.
        EPSILON: Of the norm.
    """
    row = tl.program_id(0).to(tl.int64)
    slot = row // K
    position = tl.load(positions_ptr + slot)
    column = tl.arange(0, BLOCK_D)[None, :]
    is_there = column < D
    token = tl.load(tokens_ptr + row)
    values = tl.load(table_ptr + token * D + column, mask=is_there, other=0.0)
    values = (values.to(WIDE) * SCALE).to(out_ptr.dtype.element_ty)
    if HAS_POSITIONS:
        place = tl.minimum(position, last_position)
        added = tl.load(position_table_ptr + place * D + column, mask=is_there, other=0.0)
        values = (values.to(WIDE) + added.to(WIDE)).to(out_ptr.dtype.element_ty)
    if HAS_NORM:
        gain = tl.load(gain_ptr + column, mask=is_there, other=0.0).to(WIDE)
        offset = tl.zeros((1, BLOCK_D), WIDE)
        if not IS_RMS:
            offset = tl.load(offset_ptr + column, mask=is_there, other=0.0).to(WIDE)
        values = normalise(values.to(WIDE), is_there, gain, offset, EPSILON, D, IS_RMS)
    tl.store(out_ptr + row * D + column, values.to(out_ptr.dtype.element_ty), mask=is_there)
    beam = tl.arange(0, BLOCK_K)
    is_own = (beam == row % K).to(tl.uint8)
    tl.store(ancestors_ptr + (row * num_columns + position) * K + beam, is_own, mask=beam < K)


@triton.jit
def add_norm(
    hidden_ptr,
    change_ptr,
    gain_ptr,
    offset_ptr,
    total_ptr,
    out_ptr,
    EPSILON: tl.constexpr,
    D: tl.constexpr,
    HAS_CHANGE: tl.constexpr,
    KEEPS_TOTAL: tl.constexpr,
    IS_RMS: tl.constexpr,
    BLOCK_D: tl.constexpr,
    WIDE: tl.constexpr,
):
    """norm(hidden + change) of one row.

    Args:
        hidden_ptr: (R, D).
        change_ptr: (R, D); only with `HAS_CHANGE`.
        gain_ptr: (D,).
        offset_ptr: (D,); only with LayerNorm.
        total_ptr: (R, D), where the sum goes; only with `KEEPS_TOTAL`.
        out_ptr: (R, D), where its norm goes.
        EPSILON: Of the norm.
    """
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK_D)[None, :]
    is_there = column < D
    place = row * D + column
    values = tl.load(hidden_ptr + place, mask=is_there, other=0.0)
    if HAS_CHANGE:
        change = tl.load(change_ptr + place, mask=is_there, other=0.0)
        values = (values.to(WIDE) + change.to(WIDE)).to(out_ptr.dtype.element_ty)
    if KEEPS_TOTAL:
        tl.store(total_ptr + place, values, mask=is_there)
    gain = tl.load(gain_ptr + column, mask=is_there, other=0.0).to(WIDE)
    offset = tl.zeros((1, BLOCK_D), WIDE)
    if not IS_RMS:
        offset = tl.load(offset_ptr + column, mask=is_there, other=0.0).to(WIDE)
    values = normalise(values.to(WIDE), is_there, gain, offset, EPSILON, D, IS_RMS)
    tl.store(out_ptr + place, values.to(out_ptr.dtype.element_ty), mask=is_there)
