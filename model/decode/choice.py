"""Choice of a step over tensors: from the likeliest next tokens of rows to what each row becomes.

Owns the order in which beams, phrases and groups of beams have their say, and what groups are:
diverse beam search (Vijayakumar et al. 2016, section 4). Groups choose one after another. In the
choice of each a token costs the penalty for every hypothesis of the groups before it that has just
chosen it (Hamming diversity); what is summed up is the network's own log probability. A step
without groups has one, which is all there is to pay for them. The choice within a group is
`beam_search`, phrases are `lexical`; the same in C++ is `native/src/search.cpp`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from model.config import SearchConfig
from model.decode.beam_search import (
    Candidates,
    Decision,
    RowContinuations,
    RowGroups,
    best_candidates,
    decide,
)
from model.decode.lexical import LexicalStep

_IMPOSSIBLE = float("-inf")
_NO_TOKEN = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Diversity:
    """Groups that the beams of a step's sentences are divided into.

    Attributes:
        sizes: (S,) int64, beams of each group; a sentence without groups has one, of all its beams.
        penalties: (S,) λ, in the precision of scores.
        num_groups: Of the sentence that has most, G.
    """

    sizes: Tensor
    penalties: Tensor
    num_groups: int

    def owners(self, groups: RowGroups) -> Tensor:
        """(S, K) int64, the group of each beam."""
        width = groups.rows.shape[1]
        return torch.arange(width, device=self.sizes.device) // self.sizes.unsqueeze(1)

    def only(self, number: int, groups: RowGroups) -> RowGroups:
        """The rows of each sentence's group of this number; none where it has fewer groups."""
        is_own = self.owners(groups) == number
        num_groups = groups.widths // self.sizes
        return replace(
            groups,
            live=groups.live & is_own,
            widths=torch.minimum(groups.widths, self.sizes),
            num_candidates=groups.num_candidates // num_groups,
        )

    def costs(self, continuations: RowContinuations, groups: RowGroups, chosen: Tensor) -> Tensor:
        """(R, M), what each continuation loses by tokens that were chosen, (S, K)."""
        sentence = groups.position // groups.rows.shape[1]
        is_chosen = continuations.tokens.unsqueeze(2) == chosen[sentence].unsqueeze(1)
        return is_chosen.sum(2) * self.penalties[sentence].unsqueeze(1)


def diversity_of(
    searches: Sequence[SearchConfig], *, device: torch.device, dtype: torch.dtype
) -> Diversity | None:
    """How beams are divided; None where no sentence asks for it.

    Args:
        searches: Of each sentence.
        device: Where it is needed.
        dtype: Of scores.
    """
    num_groups = max(search.num_groups for search in searches)
    if num_groups == 1:
        return None
    penalties = [search.diversity_penalty for search in searches]
    return Diversity(
        sizes=torch.tensor([search.group_size for search in searches], device=device),
        penalties=torch.tensor(penalties, device=device, dtype=dtype),
        num_groups=num_groups,
    )


def choose(
    scores: Tensor,
    continuations: RowContinuations,
    groups: RowGroups,
    *,
    eos_id: int,
    forced: Tensor | None,
    endless: Tensor | None,
    lexical: LexicalStep | None,
    diversity: Diversity | None,
) -> tuple[Candidates, Decision]:
    """What every row becomes, and the candidates of which some have ended.

    Args:
        scores: (R,) sums of log probabilities so far.
        continuations: The best tokens of each row.
        groups: Which rows belong together.
        eos_id: The token that ends a hypothesis.
        forced: (R,) int64, the only token that a row may add, or −1; None: all are free.
        endless: (S,) bool, sentences within their prefix; None: none is.
        lexical: What phrases do in the step; None: no sentence has any.
        diversity: How beams are divided; None: no sentence has groups.
    """
    first = groups if diversity is None else diversity.only(0, groups)
    candidates = best_candidates(scores, continuations, first)
    if lexical is not None:
        candidates = lexical.candidates(
            candidates, scores, continuations, first, forced=forced, eos_id=eos_id
        )
    decision = decide(candidates, first, eos_id=eos_id, endless=endless)
    if diversity is None:
        return candidates, decision
    chosen = _chosen(decision, first)
    for number in range(1, diversity.num_groups):
        own = diversity.only(number, groups)
        costs = diversity.costs(continuations, groups, chosen)
        found = best_candidates(scores, continuations, own, costs)
        decided = decide(found, own, eos_id=eos_id, endless=endless)
        chosen = torch.where(own.live, _chosen(decided, own), chosen)
        is_own = own.live.flatten()[groups.position]
        columns = _columns(number, diversity, groups, num=found.scores.shape[1])
        candidates = _joined_candidates(candidates, found, columns)
        decision = _joined_decision(decision, decided, is_own, columns)
    return candidates, decision


def _chosen(decision: Decision, own: RowGroups) -> Tensor:
    """(S, K) tokens that the beams of a group have chosen; −1 where there is none."""
    is_alive = (decision.scores[own.rows] > _IMPOSSIBLE) & own.live
    return decision.tokens[own.rows].masked_fill(~is_alive, _NO_TOKEN)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Columns:
    """Columns of the best candidates of a group, as many as it has beams: those of its beams.

    Attributes:
        are_own: (S, C) bool.
        index: (S, C) int64, which of the group's candidates.
    """

    are_own: Tensor
    index: Tensor


def _columns(number: int, diversity: Diversity, groups: RowGroups, *, num: int) -> _Columns:
    column = torch.arange(num, device=diversity.sizes.device)
    sizes = diversity.sizes.unsqueeze(1)
    is_beam = column < groups.widths.unsqueeze(1)
    return _Columns(
        are_own=(column // sizes == number) & is_beam,
        index=(column - number * sizes).clamp_(min=0),
    )


def _joined_candidates(before: Candidates, own: Candidates, columns: _Columns) -> Candidates:
    def joined(name: str) -> Tensor:
        values: Tensor = getattr(own, name).gather(1, columns.index)
        return torch.where(columns.are_own, values, getattr(before, name))

    return Candidates(
        scores=joined("scores"),
        log_probs=joined("log_probs"),
        beams=joined("beams"),
        tokens=joined("tokens"),
    )


def _joined_decision(
    before: Decision, own: Decision, is_own: Tensor, columns: _Columns
) -> Decision:
    def joined(name: str) -> Tensor:
        return torch.where(is_own, getattr(own, name), getattr(before, name))

    ends = torch.where(columns.are_own, own.ends.gather(1, columns.index), before.ends)
    return Decision(
        ends=ends,
        best=torch.cat((before.best, own.best), dim=1),
        parents=joined("parents"),
        is_copy=joined("is_copy"),
        tokens=joined("tokens"),
        log_probs=joined("log_probs"),
        scores=joined("scores"),
    )
