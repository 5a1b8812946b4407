"""A Triton program for one step of beam search: from the best tokens of rows to their next ones.

Owns the step of one sentence as `model.decode.beam_search` and `cuda.search` define it, which are
its oracles: what is forced, the best candidates, who ended, who goes on in which row, and the
ancestors of those. Where scores tie, the lower row and then the better token comes first.
"""

import triton
import triton.language as tl


@triton.jit
def first_of(values, is_chosen):
    """What the one chosen element of each row holds; 0 where none is: (A, B) → (A,)."""
    return tl.sum(tl.where(is_chosen, values, 0), axis=1)


@triton.jit
def candidates_of(
    sums, C: tl.constexpr, PER_ROW: tl.constexpr, BLOCK_C: tl.constexpr, WIDE: tl.constexpr
):
    """The best `C` sums, best first: (B,) in `WIDE` → (BLOCK_C,) sums and (BLOCK_C,) places."""
    place = tl.arange(0, PER_ROW)
    rank = tl.arange(0, BLOCK_C)
    scores = tl.full((BLOCK_C,), float("-inf"), WIDE)
    places = tl.zeros((BLOCK_C,), tl.int32)
    is_taken = place < 0
    for index in range(C):
        left = tl.where(is_taken, float("-inf"), sums)
        best = tl.max(left, axis=0)
        where = tl.argmax(left, axis=0).to(tl.int32)
        scores = tl.where(rank == index, best, scores)
        places = tl.where(rank == index, where, places)
        is_taken = is_taken | (place == where)
    return scores, places


@triton.jit
def places_of(beams, is_alive, width, BLOCK_K: tl.constexpr):
    """The row of each survivor: its parent's if it is the first to claim it, else one left over.

    Args:
        beams: (K,) int32, the beam each survivor extends, best first.
        is_alive: (K,) int32, 0 for survivors that do not exist.
        width: Beams of the sentence; rows behind them are given away last.

    Returns:
        (K,) int32, a permutation, and (K,) int32, 1 for who moved.
    """
    down = tl.arange(0, BLOCK_K)[:, None]
    across = tl.arange(0, BLOCK_K)[None, :]
    # (K,) as columns and as rows: sums over a diagonal, as a transposition of vectors.
    is_diagonal = down == across
    beams_down = tl.sum(tl.where(is_diagonal, beams[None, :], 0), axis=1, keep_dims=True)
    alive_down = tl.sum(tl.where(is_diagonal, is_alive[None, :], 0), axis=1, keep_dims=True)
    is_same = (beams_down == beams[None, :]) & (alive_down > 0) & (down < across)
    has_earlier = tl.max(is_same.to(tl.int32), axis=0)  # (K,)
    stays = is_alive * (1 - has_earlier)
    stays_down = tl.sum(tl.where(is_diagonal, stays[None, :], 0), axis=1, keep_dims=True)
    claims = (beams_down == across) & (stays_down > 0)
    row = tl.arange(0, BLOCK_K)
    cost = 2 * tl.max(claims.to(tl.int32), axis=0) + (row >= width).to(tl.int32)  # (K,)
    order = cost * BLOCK_K + row
    order_down = tl.sum(tl.where(is_diagonal, order[None, :], 0), axis=1, keep_dims=True)
    turn_of_row = tl.sum((order_down < order[None, :]).to(tl.int32), axis=0)  # (K,)
    turn = tl.cumsum(1 - stays, axis=0) - 1
    turn_down = tl.sum(tl.where(is_diagonal, turn[None, :], 0), axis=1, keep_dims=True)
    moved = first_of(across, turn_down == turn_of_row[None, :])
    return tl.where(stays > 0, beams, moved), 1 - stays


@triton.jit
def take_over(
    ancestors_ptr,
    position,
    parent,
    is_copy,
    num_columns,
    K: tl.constexpr,
    BLOCK_K: tl.constexpr,
    BLOCK_T: tl.constexpr,
):
    """Rows that moved take over their parents' ancestors, up to the position.

    Args:
        ancestors_ptr: (K, T, K) uint8 of the sentence.
        position: The step's.
        parent: (K,) int32.
        is_copy: (K,) int32, the rows that moved.
        num_columns: T.
    """
    row = tl.arange(0, BLOCK_K)
    num_nodes = ((position + 1) * K).to(tl.int32)
    for first in range(0, num_nodes, BLOCK_T):
        node = first + tl.arange(0, BLOCK_T)[None, :]
        is_there = (row < K)[:, None] & (node < num_nodes)
        theirs = tl.load(
            ancestors_ptr + parent[:, None] * (num_columns * K) + node, mask=is_there, other=0
        )
        tl.debug_barrier()  # nobody writes before all have read
        is_new = is_there & (is_copy[:, None] > 0)
        tl.store(ancestors_ptr + row[:, None] * (num_columns * K) + node, theirs, mask=is_new)


@triton.jit
def search(
    log_probs_ptr,
    continuations_ptr,
    scores_ptr,
    tokens_ptr,
    positions_ptr,
    widths_ptr,
    num_candidates_ptr,
    max_lengths_ptr,
    prefix_lengths_ptr,
    forced_ptr,
    ancestors_ptr,
    sources_ptr,
    report_ptr,
    eos_id,
    num_columns,
    K: tl.constexpr,
    M: tl.constexpr,
    C: tl.constexpr,
    HAS_SOURCES: tl.constexpr,
    BLOCK_K: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_C: tl.constexpr,
    BLOCK_T: tl.constexpr,
    WIDE: tl.constexpr,
    WHOLE: tl.constexpr,
):
    """One sentence's step, from continuations to tables and report.

    Args:
        log_probs_ptr: (S·K, M) in `WIDE`, best first.
        continuations_ptr: (S·K, M) int32, the tokens.
        scores_ptr: (S, K) in `WIDE`; replaced.
        tokens_ptr: (S, K) int64; replaced.
        positions_ptr: (S,) int64; one more, at most T − 1.
        widths_ptr: (S,) int64.
        num_candidates_ptr: (S,) int64.
        max_lengths_ptr: (S,) int64.
        prefix_lengths_ptr: (S,) int64.
        forced_ptr: (S, T) int64, −1 where nothing is.
        ancestors_ptr: (S, K, T, K) uint8; rows change places.
        sources_ptr: (S, K) int64; only with `HAS_SOURCES`.
        report_ptr: (S, 4·K + 1 + 4·C) in `WHOLE`, as `cuda.search.unpack` reads it.
        eos_id: The token that ends a hypothesis.
        num_columns: T.
        WHOLE: The integer that is as wide as `WIDE`.
    """
    slot = tl.program_id(0).to(tl.int64)
    position = tl.load(positions_ptr + slot)
    width = tl.load(widths_ptr + slot).to(tl.int32)
    num_generated = position - tl.load(prefix_lengths_ptr + slot) + 1
    following = tl.minimum(position + 1, num_columns - 1)
    forced = tl.load(forced_ptr + slot * num_columns + following).to(tl.int32)
    is_at_cap = num_generated == tl.load(max_lengths_ptr + slot) - 1
    forced = tl.where(is_at_cap, eos_id, forced)

    # The sums of all continuations, row by row, in one vector.
    flat = tl.arange(0, BLOCK_K * BLOCK_M)
    beam, index = flat // BLOCK_M, flat % BLOCK_M
    is_there = (beam < K) & (index < M)
    place = (slot * K + beam) * M + index
    log_probs = tl.load(log_probs_ptr + place, mask=is_there, other=float("-inf"))
    tokens = tl.load(continuations_ptr + place, mask=is_there, other=0)
    alone = tl.where(index == 0, 0.0, float("-inf")).to(WIDE)
    log_probs = tl.where(forced >= 0, alone, log_probs)
    tokens = tl.where((forced >= 0) & (index == 0), forced, tokens)
    before = tl.load(scores_ptr + slot * K + beam, mask=beam < K, other=float("-inf"))
    sums = tl.where(is_there & (beam < width), before + log_probs, float("-inf"))
    is_poisoned = tl.max((sums != sums).to(tl.int32), axis=0)  # noqa: PLR0124  # is NaN
    scores, places = candidates_of(sums, C, BLOCK_K * BLOCK_M, BLOCK_C, WIDE)

    is_of = places[:, None] == flat[None, :]  # (C, K·M)
    gained = tl.sum(tl.where(is_of, log_probs[None, :], 0.0), axis=1)
    added = first_of(tokens[None, :], is_of)
    beams = places // BLOCK_M
    rank = tl.arange(0, BLOCK_C)
    num_candidates = tl.minimum(tl.load(num_candidates_ptr + slot), C)
    is_possible = (scores > float("-inf")) & (rank < num_candidates)
    is_eos = (added == eos_id) & (num_generated >= 0)
    is_end = is_possible & is_eos & (rank < width)
    is_running = is_possible & (is_eos == 0)
    turn = tl.cumsum(is_running.to(tl.int32), axis=0)
    is_running = is_running & (turn <= width)

    # Survivors, best first: (K,) each, nothing where fewer go on.
    survivor = tl.arange(0, BLOCK_K)
    is_of = (turn[None, :] - 1 == survivor[:, None]) & is_running[None, :]  # (K, C)
    is_alive = tl.max(is_of.to(tl.int32), axis=1)
    scores_on = tl.sum(tl.where(is_of, scores[None, :], 0.0), axis=1)
    scores_on = tl.where(is_alive > 0, scores_on, float("-inf"))
    beams_on = first_of(beams[None, :], is_of)
    rows, has_moved = places_of(beams_on, is_alive, width, BLOCK_K)

    # The same by the row in which they go on.
    is_of = rows[None, :] == survivor[:, None]  # (K by row, K by rank)
    is_copy = first_of((has_moved * is_alive)[None, :], is_of)
    parents = tl.where(is_copy > 0, first_of(beams_on[None, :], is_of), survivor)
    is_here = first_of(is_alive[None, :], is_of)
    # A row and the candidate it becomes: (K, C).
    order = first_of(survivor[None, :], is_of)
    is_of = (turn[None, :] - 1 == order[:, None]) & is_running[None, :]
    is_of = is_of & (is_here[:, None] > 0)
    new_tokens = first_of(added[None, :], is_of)
    new_log_probs = tl.sum(tl.where(is_of, gained[None, :], 0.0), axis=1)
    new_scores = tl.sum(tl.where(is_of, scores[None, :], 0.0), axis=1)
    new_scores = tl.where(is_here > 0, new_scores, float("-inf"))

    is_row = survivor < K
    take_over(
        ancestors_ptr + slot * K * num_columns * K,
        position,
        parents,
        is_copy,
        num_columns,
        K,
        BLOCK_K,
        BLOCK_T,
    )
    tl.store(tokens_ptr + slot * K + survivor, new_tokens.to(tl.int64), mask=is_row)
    tl.store(scores_ptr + slot * K + survivor, new_scores, mask=is_row)
    tl.store(positions_ptr + slot, following)

    report_ptr += slot * (4 * K + 1 + 4 * C)
    is_candidate = rank < C
    scores = tl.where(is_poisoned > 0, float("nan"), scores)  # which ranks first in torch
    tl.store(report_ptr + survivor, new_tokens.to(WHOLE), mask=is_row)
    tl.store(report_ptr + K + survivor, parents.to(WHOLE), mask=is_row)
    attended = tl.zeros((BLOCK_K,), WHOLE)
    if HAS_SOURCES:
        # A token was chosen by what its parent attended to, whatever row it comes to.
        attended = tl.load(sources_ptr + slot * K + parents, mask=is_row, other=0).to(WHOLE)
    tl.store(report_ptr + 2 * K + survivor, attended, mask=is_row)
    tl.store(report_ptr + 3 * K + rank, is_end.to(WHOLE), mask=is_candidate)
    tl.store(report_ptr + 3 * K + C + rank, beams.to(WHOLE), mask=is_candidate)
    report_ptr += 3 * K + 2 * C
    tl.store(report_ptr + survivor, new_log_probs.to(WHOLE, bitcast=True), mask=is_row)
    best = tl.max(scores_on, axis=0)
    tl.store(report_ptr + K, best.to(WHOLE, bitcast=True))
    report_ptr += K + 1
    tl.store(report_ptr + rank, scores.to(WHOLE, bitcast=True), mask=is_candidate)
    tl.store(report_ptr + C + rank, gained.to(WHOLE, bitcast=True), mask=is_candidate)
