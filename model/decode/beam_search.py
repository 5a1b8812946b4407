"""One step of beam search as pure functions of tensors: which hypotheses go on, and in which rows.

Owns the choice among continuations. Holds no state, runs no network, and knows nothing of
requests: `model.decode.session` does. Sentences of different beam sizes share a step, so
tensors are (S, K) with K the widest beam present and a mask for the rest.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from model.decode.constraints import suppress

_IMPOSSIBLE = float("-inf")
CHUNK = 64
"""Continuations that `wide_topk` takes together."""
_MAX_AT_ONCE = 2**24
"""Logits whose log probabilities exist at a time: of large vocabularies, those of a few rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowGroups:
    """Rows of each sentence.

    Attributes:
        rows: (S, K) int64, the row of each beam; 0 where a sentence has fewer beams.
        live: (S, K) bool, where `rows` means something.
        position: (R,) int64, s·K + k of each row: the inverse of `rows`.
        widths: (S,) int64, beams of each sentence.
        num_candidates: (S,) int64, continuations each sentence considers.
        max_candidates: The largest of them, C.
    """

    rows: Tensor
    live: Tensor
    position: Tensor
    widths: Tensor
    num_candidates: Tensor
    max_candidates: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RowContinuations:
    """The best next tokens of each row.

    Attributes:
        log_probs: (R, M) log probabilities, best first.
        tokens: (R, M) int64.
        wanted: (R, W) log probabilities of tokens that were asked for; None if none were.
    """

    log_probs: Tensor
    tokens: Tensor
    wanted: Tensor | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """The best continuations of each sentence, best first.

    Attributes:
        scores: (S, C) sums of log probabilities.
        log_probs: (S, C) what the last token contributed.
        beams: (S, C) int64, the beam each one extends.
        tokens: (S, C) int64, the token it adds.
    """

    scores: Tensor
    log_probs: Tensor
    beams: Tensor
    tokens: Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Decision of a step: what each row becomes, and which candidates ended.

    Attributes:
        ends: (S, C) bool, candidates that are finished hypotheses.
        best: (S, G) sum of log probabilities of the best running hypothesis of each group of beams,
            of which there is one if not `model.decode.choice` has divided them; -inf when none is.
        parents: (R,) int64, the row whose past this row continues; mostly itself.
        is_copy: (R,) bool, where `parents` is another row.
        tokens: (R,) int64, the token each row adds.
        log_probs: (R,) its log probability.
        scores: (R,) the new sums; -inf marks a row without hypothesis.
    """

    ends: Tensor
    best: Tensor
    parents: Tensor
    is_copy: Tensor
    tokens: Tensor
    log_probs: Tensor
    scores: Tensor


class End(NamedTuple):
    """A candidate that is a finished hypothesis.

    Attributes:
        sentence: Its place among the sentences, s.
        beam: The beam that it extends.
        log_prob_sum: Sum of its log probabilities.
        log_prob: What the last token contributed.
    """

    sentence: int
    beam: int
    log_prob_sum: float
    log_prob: float


def ends_of(candidates: Candidates, decision: Decision) -> Iterator[End]:
    """The candidates that ended, sentence by sentence, best first; on the host."""
    ended = decision.ends.nonzero()
    if not len(ended):
        return
    at = ended.unbind(1)
    columns = (at[0], candidates.beams[at], candidates.scores[at], candidates.log_probs[at])
    yield from map(End, *(column.tolist() for column in columns))


def row_continuations(
    logits: Tensor,
    num: int,
    suppressed: Tensor | None,
    mask: Tensor | None = None,
    *,
    words: Tensor | None = None,
) -> RowContinuations:
    """The `num` likeliest next tokens of every row.

    Args:
        logits: (R, V).
        num: How many a row, M; the best C of a sentence are among the best C of its rows.
        suppressed: (N,) int64 tokens never generated; their probability mass stays theirs.
        mask: (R, V) bool, tokens that single rows may not choose either; None where no sentence
            has any.
        words: (R, W) int64, tokens whose log probabilities are wanted besides; None: none.
    """
    num_rows, size = logits.shape
    at_once = max(1, _MAX_AT_ONCE // size)
    if num_rows <= at_once:
        return _continuations(logits, num, suppressed, mask, words)
    parts = [
        _continuations(
            logits[first : first + at_once],
            num,
            suppressed,
            None if mask is None else mask[first : first + at_once],
            None if words is None else words[first : first + at_once],
        )
        for first in range(0, num_rows, at_once)
    ]
    wanted = [part.wanted for part in parts if part.wanted is not None]
    return RowContinuations(
        log_probs=torch.cat([part.log_probs for part in parts]),
        tokens=torch.cat([part.tokens for part in parts]),
        wanted=torch.cat(wanted) if wanted else None,
    )


def _continuations(
    logits: Tensor,
    num: int,
    suppressed: Tensor | None,
    mask: Tensor | None,
    words: Tensor | None,
) -> RowContinuations:
    """`row_continuations` of rows whose log probabilities fit beside their logits."""
    log_probs = logits.log_softmax(dim=-1)
    if suppressed is not None:
        log_probs.index_fill_(1, suppressed, _IMPOSSIBLE)
    if mask is not None:
        suppress(log_probs, mask)
    best, tokens = wide_topk(log_probs, min(num, logits.shape[-1]))
    wanted = None if words is None else log_probs.gather(1, words)
    return RowContinuations(log_probs=best, tokens=tokens, wanted=wanted)


def wide_topk(values: Tensor, num: int) -> tuple[Tensor, Tensor]:
    """The `num` largest of every row and where they stand, as `topk`, faster where rows are long.

    The largest `num` lie in the `num` chunks with the largest maxima, so one pass finds these and
    everything after it is small.

    Args:
        values: (R, V).
        num: At most V.
    """
    num_rows, length = values.shape
    if length < CHUNK * num * 2:  # `num` chunks would do; the result is the same either way
        return values.topk(num, dim=-1)
    num_whole = length // CHUNK * CHUNK
    chunks = values[:, :num_whole].view(num_rows, num_whole // CHUNK, CHUNK)
    chosen = chunks.amax(dim=-1).topk(num, dim=-1).indices  # (R, num)
    index = chosen.unsqueeze(-1) * CHUNK + torch.arange(CHUNK, device=values.device)
    index = index.flatten(1)
    if num_whole < length:
        rest = torch.arange(num_whole, length, device=values.device).expand(num_rows, -1)
        index = torch.cat((index, rest), dim=1)
    best, place = values.gather(1, index).topk(num, dim=-1)
    return best, index.gather(1, place)


def force(continuations: RowContinuations, tokens: Tensor) -> RowContinuations:
    """Leave some rows one continuation each, which costs nothing.

    Args:
        continuations: The best tokens of each row.
        tokens: (R,) int64, the only token a row may add, or −1 where it is free.
    """
    is_forced = (tokens >= 0).unsqueeze(1)
    is_first = torch.arange(continuations.tokens.shape[1], device=tokens.device) == 0
    alone = torch.zeros_like(continuations.log_probs).masked_fill_(~is_first, _IMPOSSIBLE)
    return replace(
        continuations,
        log_probs=torch.where(is_forced, alone, continuations.log_probs),
        tokens=torch.where(is_forced & is_first, tokens.unsqueeze(1), continuations.tokens),
    )


def best_candidates(
    scores: Tensor,
    continuations: RowContinuations,
    groups: RowGroups,
    costs: Tensor | None = None,
) -> Candidates:
    """The best C continuations of every sentence over all its beams.

    Args:
        scores: (R,) sums of log probabilities so far.
        continuations: The best tokens of each row.
        groups: Which rows belong together.
        costs: (R, M), what continuations lose in the choice, but not in their sums; None: nothing.
    """
    num_sentences, width = groups.rows.shape
    per_row = continuations.tokens.shape[1]
    sums = scores.unsqueeze(1) + continuations.log_probs  # (R, M)
    values = sums if costs is None else sums - costs
    values = values[groups.rows].masked_fill_(~groups.live.unsqueeze(-1), _IMPOSSIBLE)
    num = min(groups.max_candidates, width * per_row)
    best, index = values.view(num_sentences, width * per_row).topk(num, dim=-1)  # (S, C)
    beams = index // per_row
    flat = groups.rows.gather(1, beams) * per_row + index % per_row
    if costs is not None:
        best = sums.flatten()[flat].masked_fill_(best == _IMPOSSIBLE, _IMPOSSIBLE)
    return Candidates(
        scores=best,
        log_probs=continuations.log_probs.flatten()[flat],
        beams=beams,
        tokens=continuations.tokens.flatten()[flat],
    )


def decide(
    candidates: Candidates, groups: RowGroups, *, eos_id: int, endless: Tensor | None = None
) -> Decision:
    """Split candidates into finished and running ones, and give every survivor a row.

    A candidate that ends in EOS is finished if it is among its sentence's K best, and dropped
    otherwise; the K best of the rest run on (Hugging Face `generate`, which 2K candidates make
    possible however many beams end).

    Args:
        candidates: The best continuations of each sentence.
        groups: Which rows belong together.
        eos_id: The token that ends a hypothesis.
        endless: (S,) bool, sentences in which EOS is a token like any other: those that are
            still being fed a prefix; None means none is.
    """
    rank = torch.arange(candidates.scores.shape[1], device=candidates.scores.device)
    possible = (candidates.scores > _IMPOSSIBLE) & (rank < groups.num_candidates.unsqueeze(1))
    is_eos = candidates.tokens == eos_id
    if endless is not None:
        is_eos &= ~endless.unsqueeze(1)
    widths = groups.widths.unsqueeze(1)
    ends = possible & is_eos & (rank < widths)
    running = possible & ~is_eos
    running &= running.cumsum(dim=1) <= widths

    width = groups.rows.shape[1]
    scores, index = _first(candidates.scores.masked_fill(~running, _IMPOSSIBLE), width)
    is_alive = scores > _IMPOSSIBLE
    beams = candidates.beams.gather(1, index)
    places, is_moved = _places(beams, is_alive, groups.live)
    child = torch.empty_like(places).scatter_(1, places, _beam_index(places))  # (S, K) by place
    flat = child.flatten()[groups.position] + groups.position // width * width  # (R,) into (S·K)
    is_copy = (is_moved & is_alive).flatten()[flat]
    parents = groups.rows.gather(1, beams).flatten()[flat]
    own = torch.arange(flat.shape[0], device=flat.device)
    return Decision(
        ends=ends,
        best=scores[:, :1],
        parents=torch.where(is_copy, parents, own),
        is_copy=is_copy,
        tokens=candidates.tokens.gather(1, index).flatten()[flat],
        log_probs=candidates.log_probs.gather(1, index).flatten()[flat],
        scores=scores.flatten()[flat],
    )


def _first(scores: Tensor, width: int) -> tuple[Tensor, Tensor]:
    """The `width` best of (S, C), padded with impossible ones if C is smaller."""
    missing = width - scores.shape[1]
    if missing > 0:
        scores = torch.nn.functional.pad(scores, (0, missing), value=_IMPOSSIBLE)
    best, index = scores.topk(width, dim=-1)
    return best, index.clamp_(max=scores.shape[1] - 1 - max(missing, 0))


def _places(beams: Tensor, is_alive: Tensor, live: Tensor) -> tuple[Tensor, Tensor]:
    """Row of each survivor: its parent's if it is the first child of that parent.

    Args:
        beams: (S, K) int64, the beam each survivor extends, best first.
        is_alive: (S, K) bool, False for survivors that do not exist.
        live: (S, K) bool, which places the sentence has.

    Returns:
        (S, K) int64, a permutation of places a sentence, and (S, K) bool, who had to move.
    """
    same = (beams.unsqueeze(2) == beams.unsqueeze(1)) & is_alive.unsqueeze(1)  # (S, K, K)
    is_later = same.tril(diagonal=-1).any(dim=2)
    stays = is_alive & ~is_later
    claims = (beams.unsqueeze(2) == _beam_index(beams).unsqueeze(1)) & stays.unsqueeze(2)
    cost = claims.any(dim=1).to(torch.int8) * 2 + (~live).to(torch.int8)
    # Unclaimed places first, then those past the beam: these have the highest numbers as well, so
    # either the order kept or what they cost would do, and both together tell it to a reader.
    free = cost.argsort(dim=1, stable=True)
    turn = (~stays).cumsum(dim=1) - 1
    moved = free.gather(1, turn.clamp_(min=0))
    return torch.where(stays, beams, moved), ~stays


def _beam_index(like: Tensor) -> Tensor:
    """(S, K) int64 holding 0 … K−1 in every row."""
    return torch.arange(like.shape[1], device=like.device).expand_as(like)
