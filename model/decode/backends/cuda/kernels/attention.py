"""Triton programs of attention: over the tree of a sentence's past, and over its source.

Owns both, with the softmax made block by block (Milakov and Gimelshein 2018, "Online normalizer
calculation for softmax"). A program is one sentence and one head, its rows are the sentence's
beams, so that keys and values are read once for all of them. It reads to the sentence's own length,
whatever the length of others; nodes that are nobody's ancestor are not read at all.
"""

import triton
import triton.language as tl


@triton.jit
def tree_attention(
    projected_ptr,
    keys_ptr,
    values_ptr,
    ancestors_ptr,
    positions_ptr,
    bias_ptr,
    out_ptr,
    num_columns,
    SCALE: tl.constexpr,
    H: tl.constexpr,
    K: tl.constexpr,
    DK: tl.constexpr,
    DV: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    BLOCK_K: tl.constexpr,
    BLOCK_T: tl.constexpr,
    BLOCK_DK: tl.constexpr,
    BLOCK_DV: tl.constexpr,
    WIDE: tl.constexpr,
):
    """Write this step's nodes and let every row attend to itself and to its ancestors.

    Args:
        projected_ptr: (S·K, H·d_k + H·d_k + H·d_v), queries, keys and values of the rows.
        keys_ptr: (S, H, T, K, d_k) of the layer.
        values_ptr: (S, H, T, K, d_v) of the layer.
        ancestors_ptr: (S, K, T, K) uint8, nodes before the position that each row continues.
        positions_ptr: (S,) int64.
        bias_ptr: (H, T), what a distance adds to scores; only with `HAS_BIAS`.
        out_ptr: (S·K, H·d_v).
        num_columns: T.
        SCALE: Of the scores.
        BLOCK_T: Nodes that are looked at together.
    """
    slot = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    position = tl.load(positions_ptr + slot)
    beam = tl.arange(0, BLOCK_K)[:, None]
    is_beam = beam < K
    row = slot * K + beam
    of_key = tl.arange(0, BLOCK_DK)[None, :]
    of_value = tl.arange(0, BLOCK_DV)[None, :]
    is_key = is_beam & (of_key < DK)
    is_value = is_beam & (of_value < DV)
    own_ptr = projected_ptr + row * (H * (2 * DK + DV))
    queries = tl.load(own_ptr + head * DK + of_key, mask=is_key, other=0.0)
    new_keys = tl.load(own_ptr + (H + head) * DK + of_key, mask=is_key, other=0.0)
    new_values = tl.load(own_ptr + 2 * H * DK + head * DV + of_value, mask=is_value, other=0.0)
    first_node = (slot * H + head) * (num_columns * K)
    own_node = first_node + position * K + beam
    tl.store(keys_ptr + own_node * DK + of_key, new_keys, mask=is_key)
    tl.store(values_ptr + own_node * DV + of_value, new_values, mask=is_value)

    # Every row begins with itself, so that no sum is ever empty.
    highest = tl.sum(queries.to(WIDE) * new_keys.to(WIDE), axis=1, keep_dims=True) * SCALE
    if HAS_BIAS:
        highest += tl.load(bias_ptr + head * num_columns).to(WIDE)
    total = tl.sum(tl.zeros((BLOCK_K, BLOCK_DV), WIDE), axis=1, keep_dims=True) + 1.0
    context = new_values.to(WIDE)
    num_nodes = (position * K).to(tl.int32)
    for first in range(0, num_nodes, BLOCK_T):
        node = first + tl.arange(0, BLOCK_T)
        is_node = node < num_nodes
        is_ancestor = tl.load(
            ancestors_ptr + row * (num_columns * K) + node[None, :],
            mask=is_beam & is_node[None, :],
            other=0,
        )
        is_alive = tl.max(is_ancestor.to(tl.int32), axis=0) > 0
        place = (first_node + node)[:, None]
        keys = tl.load(
            keys_ptr + place * DK + of_key, mask=is_alive[:, None] & (of_key < DK), other=0.0
        )
        scores = tl.dot(queries, tl.trans(keys), input_precision="ieee", out_dtype=WIDE) * SCALE
        if HAS_BIAS:
            distance = position - node // K
            added = tl.load(bias_ptr + head * num_columns + distance, mask=is_node, other=0.0)
            scores += added.to(WIDE)[None, :]
        scores = tl.where(is_ancestor > 0, scores, float("-inf"))
        higher = tl.maximum(highest, tl.max(scores, axis=1, keep_dims=True))
        weights = tl.exp(scores - higher)
        shrunk = tl.exp(highest - higher)
        values = tl.load(
            values_ptr + place * DV + of_value, mask=is_alive[:, None] & (of_value < DV), other=0.0
        )
        total = total * shrunk + tl.sum(weights, axis=1, keep_dims=True)
        context = context * shrunk + tl.dot(
            weights.to(values.dtype), values, input_precision="ieee", out_dtype=WIDE
        )
        highest = higher
    context = (context / total).to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + row * (H * DV) + head * DV + of_value, context, mask=is_value)


@triton.jit
def source_attention(
    queries_ptr,
    keys_ptr,
    values_ptr,
    lengths_ptr,
    out_ptr,
    num_places,
    SCALE: tl.constexpr,
    H: tl.constexpr,
    K: tl.constexpr,
    DK: tl.constexpr,
    DV: tl.constexpr,
    BLOCK_K: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_DK: tl.constexpr,
    BLOCK_DV: tl.constexpr,
    WIDE: tl.constexpr,
):
    """Let every row attend to its sentence's source.

    Args:
        queries_ptr: (S·K, H·d_k).
        keys_ptr: (S, H, M, d_k) of the layer.
        values_ptr: (S, H, M, d_v) of the layer.
        lengths_ptr: (S,) int64, source tokens, at least 1.
        out_ptr: (S·K, H·d_v).
        num_places: M.
        SCALE: Of the scores.
        BLOCK_M: Source positions that are looked at together.
    """
    slot = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    length = tl.load(lengths_ptr + slot).to(tl.int32)
    beam = tl.arange(0, BLOCK_K)[:, None]
    is_beam = beam < K
    row = slot * K + beam
    of_key = tl.arange(0, BLOCK_DK)[None, :]
    of_value = tl.arange(0, BLOCK_DV)[None, :]
    own_ptr = queries_ptr + row * (H * DK) + head * DK + of_key
    queries = tl.load(own_ptr, mask=is_beam & (of_key < DK), other=0.0)
    total = tl.sum(tl.zeros((BLOCK_K, BLOCK_DV), WIDE), axis=1, keep_dims=True)
    highest = total + float("-inf")
    context = tl.zeros((BLOCK_K, BLOCK_DV), WIDE)
    for first in range(0, length, BLOCK_M):
        position = first + tl.arange(0, BLOCK_M)
        is_token = (position < length)[:, None]
        place = ((slot * H + head) * num_places + position)[:, None]
        keys = tl.load(keys_ptr + place * DK + of_key, mask=is_token & (of_key < DK), other=0.0)
        scores = tl.dot(queries, tl.trans(keys), input_precision="ieee", out_dtype=WIDE) * SCALE
        scores = tl.where(tl.trans(is_token), scores, float("-inf"))
        higher = tl.maximum(highest, tl.max(scores, axis=1, keep_dims=True))
        weights = tl.exp(scores - higher)
        shrunk = tl.exp(highest - higher)
        values = tl.load(
            values_ptr + place * DV + of_value, mask=is_token & (of_value < DV), other=0.0
        )
        total = total * shrunk + tl.sum(weights, axis=1, keep_dims=True)
        context = context * shrunk + tl.dot(
            weights.to(values.dtype), values, input_precision="ieee", out_dtype=WIDE
        )
        highest = higher
    context = (context / total).to(out_ptr.dtype.element_ty)
    is_value = is_beam & (of_value < DV)
    tl.store(out_ptr + row * (H * DV) + head * DV + of_value, context, mask=is_value)
