"""Triton programs from logits to the best next tokens of every row.

Owns two passes in place of bias, log-softmax, chunk maxima, two top-k and a gather: one reads the
logits once and leaves the largest logit of each chunk, which a token that may be chosen has, and
sums of e^x; the other picks from the chunks with the largest ones. What may not be chosen stays in
the sums. Where logits tie, the lower token comes first.
"""

import triton
import triton.language as tl


@triton.jit
def measure(
    logits_ptr,
    bias_ptr,
    choosable_ptr,
    maxima_ptr,
    highest_ptr,
    sums_ptr,
    row_stride,
    V: tl.constexpr,
    NUM_BLOCKS: tl.constexpr,
    CHUNK: tl.constexpr,
    CHUNKS: tl.constexpr,
    WIDE: tl.constexpr,
):
    """Chunk maxima and the sum of e^x of one row's block of `CHUNKS` chunks.

    Args:
        logits_ptr: (R, ≥ V), without the output layer's bias.
        bias_ptr: (V,) in `WIDE`.
        choosable_ptr: (V,) in `WIDE`, the same and −inf where a token may not be chosen.
        maxima_ptr: (R, NUM_BLOCKS · CHUNKS) in `WIDE`, of what may be chosen.
        highest_ptr: (R, NUM_BLOCKS) in `WIDE`, the largest logit of all.
        sums_ptr: (R, NUM_BLOCKS) in `WIDE`, Σ e^(logit − highest).
        row_stride: Of the logits.
    """
    row = tl.program_id(0).to(tl.int64)
    block = tl.program_id(1)
    chunk = block * CHUNKS + tl.arange(0, CHUNKS)
    token = chunk[:, None] * CHUNK + tl.arange(0, CHUNK)[None, :]
    is_token = token < V
    raw = tl.load(logits_ptr + row * row_stride + token, mask=is_token, other=0.0).to(WIDE)
    logits = raw + tl.load(bias_ptr + token, mask=is_token, other=float("-inf"))
    chosen = raw + tl.load(choosable_ptr + token, mask=is_token, other=float("-inf"))
    maxima = tl.max(chosen, axis=1)
    tl.store(maxima_ptr + row * (NUM_BLOCKS * CHUNKS) + chunk, maxima)
    highest = tl.max(tl.max(logits, axis=1), axis=0)
    total = tl.sum(tl.sum(tl.exp(logits - highest), axis=1), axis=0)
    tl.store(highest_ptr + row * NUM_BLOCKS + block, highest)
    tl.store(sums_ptr + row * NUM_BLOCKS + block, total)


@triton.jit
def pick(
    logits_ptr,
    choosable_ptr,
    maxima_ptr,
    highest_ptr,
    sums_ptr,
    log_probs_ptr,
    tokens_ptr,
    row_stride,
    V: tl.constexpr,
    NUM: tl.constexpr,
    NUM_BLOCKS: tl.constexpr,
    NUM_CHUNKS: tl.constexpr,
    CHUNK: tl.constexpr,
    BLOCK_BLOCKS: tl.constexpr,
    BLOCK_CHUNKS: tl.constexpr,
    WIDE: tl.constexpr,
):
    """The `NUM` likeliest tokens of one row, best first.

    The best of what is left lies in the chunk with the largest maximum; once it is taken, that
    chunk's maximum is that of what comes behind it.

    Args:
        logits_ptr: (R, ≥ V), without the output layer's bias.
        choosable_ptr: (V,), see `measure`.
        maxima_ptr: (R, NUM_CHUNKS), see `measure`.
        highest_ptr: (R, NUM_BLOCKS), see `measure`.
        sums_ptr: (R, NUM_BLOCKS), see `measure`.
        log_probs_ptr: (R, NUM) in `WIDE`.
        tokens_ptr: (R, NUM) int32.
        row_stride: Of the logits.
    """
    row = tl.program_id(0).to(tl.int64)
    block = tl.arange(0, BLOCK_BLOCKS)
    is_block = block < NUM_BLOCKS
    place = row * NUM_BLOCKS + block
    of_blocks = tl.load(highest_ptr + place, mask=is_block, other=float("-inf"))
    sums = tl.load(sums_ptr + place, mask=is_block, other=0.0)
    highest = tl.max(of_blocks, axis=0)
    # A block without a finite number is 0 · e^−∞, unless it has a NaN, which stays one.
    normaliser = tl.log(tl.sum(sums * tl.exp(of_blocks - highest), axis=0))

    chunk = tl.arange(0, BLOCK_CHUNKS)
    place = row * NUM_CHUNKS + chunk
    maxima = tl.load(maxima_ptr + place, mask=chunk < NUM_CHUNKS, other=float("-inf"))
    within = tl.arange(0, CHUNK)
    last = tl.max(maxima, axis=0)  # as large as the first pick, which stands behind no token
    taken = tl.min(chunk, axis=0) - 1
    for index in range(NUM):
        value = tl.max(maxima, axis=0)
        where = tl.argmax(maxima, axis=0)
        token = where * CHUNK + within
        is_token = token < V
        raw = tl.load(logits_ptr + row * row_stride + token, mask=is_token, other=0.0).to(WIDE)
        raw += tl.load(choosable_ptr + token, mask=is_token, other=float("-inf"))
        is_next = (raw == value) & ((raw < last) | (token > taken))
        taken = tl.min(tl.where(is_next, token, V - 1), axis=0)
        tl.store(log_probs_ptr + row * NUM + index, value - highest - normaliser)
        tl.store(tokens_ptr + row * NUM + index, taken)
        is_left = (raw < value) | ((raw == value) & (token > taken))
        left = tl.max(tl.where(is_left, raw, float("-inf")), axis=0)
        maxima = tl.where(chunk == where, left, maxima)
        last = value
