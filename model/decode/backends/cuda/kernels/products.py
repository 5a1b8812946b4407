"""A Triton program for products of few rows: the norm before them, the residual behind them.

Owns the products of steps with at most 64 rows, in which weights are read once and a launch costs
as much as the arithmetic. Products of more rows are cuBLAS's.
"""

import triton
import triton.language as tl


@triton.jit
def row_moments(
    x_ptr,
    row,
    is_row,
    EPSILON: tl.constexpr,
    D: tl.constexpr,
    IS_RMS: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_D: tl.constexpr,
    WIDE: tl.constexpr,
):
    """What normalises rows: (M, 1) mean (zeros with RMSNorm) and (M, 1) 1/√(variance + ε).

    Args:
        x_ptr: (R, D).
        row: (M, 1) int64, the rows.
        is_row: (M, 1) bool, which of them there are.
        EPSILON: Inside the root.
    """
    column = tl.arange(0, BLOCK_D)[None, :]
    mean = tl.sum(tl.zeros((BLOCK_M, BLOCK_D), WIDE), axis=1, keep_dims=True)
    square = mean
    if not IS_RMS:
        for first in range(0, D, BLOCK_D):
            is_there = is_row & (first + column < D)
            x = tl.load(x_ptr + row * D + first + column, mask=is_there, other=0.0).to(WIDE)
            mean += tl.sum(x, axis=1, keep_dims=True)
        mean = mean / D
    for first in range(0, D, BLOCK_D):
        is_there = is_row & (first + column < D)
        x = tl.load(x_ptr + row * D + first + column, mask=is_there, other=0.0).to(WIDE)
        x = tl.where(is_there, x - mean, 0.0)
        square += tl.sum(x * x, axis=1, keep_dims=True)
    return mean, 1.0 / tl.sqrt(square / D + EPSILON)


@triton.jit
def activate(x, ACTIVATION: tl.constexpr):
    """The activation of that name (`model.nn.layers.ACTIVATIONS`), element by element."""
    if ACTIVATION == "relu":
        x = tl.where(x < 0.0, 0.0, x)  # NaN stays NaN
    elif ACTIVATION == "gelu":
        x = x * 0.5 * (1.0 + tl.erf(x * 0.7071067811865476))
    elif ACTIVATION == "gelu-tanh":
        x = x / (1.0 + tl.exp(-1.5957691216057308 * (x + 0.044715 * x * x * x)))
    elif ACTIVATION == "gelu-sigmoid":
        x = x / (1.0 + tl.exp(-1.702 * x))
    elif ACTIVATION == "silu":
        x = x / (1.0 + tl.exp(-x))
    return x


@triton.jit
def product(
    x_ptr,
    weight_ptr,
    bias_ptr,
    gain_ptr,
    offset_ptr,
    residual_ptr,
    residual_gain_ptr,
    residual_offset_ptr,
    out_ptr,
    num_rows,
    EPSILON: tl.constexpr,
    D: tl.constexpr,
    N: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    HAS_NORM: tl.constexpr,
    HAS_RESIDUAL: tl.constexpr,
    HAS_RESIDUAL_NORM: tl.constexpr,
    IS_RMS: tl.constexpr,
    ACTIVATION: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
    WIDE: tl.constexpr,
):
    """activation(norm(x) Wᵀ + b) + norm(residual): one tile of (R, N).

    Args:
        x_ptr: (R, D).
        weight_ptr: (N, D).
        bias_ptr: (N,); only with `HAS_BIAS`.
        gain_ptr: (D,), of the norm before the product; only with `HAS_NORM`.
        offset_ptr: (D,), likewise; only with LayerNorm.
        residual_ptr: (R, N); only with `HAS_RESIDUAL`.
        residual_gain_ptr: (N,), of the norm that the residual gets; only with `HAS_RESIDUAL_NORM`.
        residual_offset_ptr: (N,), likewise; only with LayerNorm.
        out_ptr: (R, N).
        num_rows: R.
        EPSILON: Of both norms.
    """
    row = (tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)).to(tl.int64)[:, None]
    output = (tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N))[None, :]
    is_row = row < num_rows
    column = tl.arange(0, BLOCK_D)[None, :]
    kind = weight_ptr.dtype.element_ty
    sums = tl.zeros((BLOCK_M, BLOCK_N), WIDE)
    if HAS_NORM:
        mean, inverse = row_moments(x_ptr, row, is_row, EPSILON, D, IS_RMS, BLOCK_M, BLOCK_D, WIDE)
    for first in range(0, D, BLOCK_D):
        is_there = first + column < D
        x = tl.load(x_ptr + row * D + first + column, mask=is_row & is_there, other=0.0)
        if HAS_NORM:
            gain = tl.load(gain_ptr + first + column, mask=is_there, other=0.0).to(WIDE)
            wide = (x.to(WIDE) - mean) * inverse * gain
            if not IS_RMS:
                wide += tl.load(offset_ptr + first + column, mask=is_there, other=0.0).to(WIDE)
            x = wide.to(kind)
        place = tl.trans(output) * D + first + column  # (N, D)
        weight = tl.load(weight_ptr + place, mask=(tl.trans(output) < N) & is_there, other=0.0)
        sums += tl.dot(x, tl.trans(weight), input_precision="ieee", out_dtype=WIDE)
    if HAS_BIAS:
        sums += tl.load(bias_ptr + output, mask=output < N, other=0.0).to(WIDE)
    sums = activate(sums, ACTIVATION)
    is_out = is_row & (output < N)
    if HAS_RESIDUAL:
        residual = tl.load(residual_ptr + row * N + output, mask=is_out, other=0.0).to(WIDE)
        if HAS_RESIDUAL_NORM:
            mean, inverse = row_moments(
                residual_ptr, row, is_row, EPSILON, N, IS_RMS, BLOCK_M, BLOCK_D, WIDE
            )
            gain = tl.load(residual_gain_ptr + output, mask=output < N, other=0.0).to(WIDE)
            residual = (residual - mean) * inverse * gain
            if not IS_RMS:
                offset = tl.load(residual_offset_ptr + output, mask=output < N, other=0.0)
                residual += offset.to(WIDE)
            residual = residual.to(kind).to(WIDE)
        sums += residual
    tl.store(out_ptr + row * N + output, sums.to(kind), mask=is_out)
