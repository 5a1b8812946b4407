"""Lexically constrained beam search over tensors: phrases that a hypothesis has to contain.

Owns the automata of a step's sentences as tensors, the states of hypotheses, and which
continuations go on where a sentence has phrases. It is dynamic beam allocation (Post and Vilar
2018, section 3) in the vectorised form of Hu et al. 2019 (section 4): of every row the best tokens
and all tokens that its phrases want are candidates; these are banked, and the beam takes the best
of each bank in turn, the bank that has come furthest first. A bank is a number of tokens of phrases
that are met or begun, so whatever a phrase costs, the hypothesis that goes on with it is not
dropped for one that has just begun it. The same search in C++ is `native/src/search.cpp`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from model.decode.beam_search import Candidates, Decision, RowContinuations, RowGroups
from model.phrases import MAX_PHRASE_TOKENS, MAX_PHRASES, Alternatives, automaton_of

_IMPOSSIBLE = float("-inf")
_NO_TOKEN = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Automata:
    """The automata of S sentences, padded to N nodes and W words; without phrases all zero.

    Attributes:
        words: (S, W) int64; −1 where a sentence has fewer.
        go: (S, N, W + 1) int64.
        ends: (S, N) int64 of bits.
        goals: (S, N) int64 of bits.
        depths: (S, N) int64, tokens from the root.
        weights: (S, P) int64, tokens of the longest alternative of each phrase.
        full: (S,) int64 of bits; 0 where a sentence has no phrases.
    """

    words: Tensor
    go: Tensor
    ends: Tensor
    goals: Tensor
    depths: Tensor
    weights: Tensor
    full: Tensor

    def first(self, num_sentences: int, num_tokens: int) -> "Automata":
        """Those of the first sentences, none of which has more tokens of phrases than said."""
        return Automata(
            words=self.words[:num_sentences, :num_tokens],
            go=self.go[:num_sentences, : num_tokens + 1, : num_tokens + 1],
            ends=self.ends[:num_sentences, : num_tokens + 1],
            goals=self.goals[:num_sentences, : num_tokens + 1],
            depths=self.depths[:num_sentences, : num_tokens + 1],
            weights=self.weights[:num_sentences],
            full=self.full[:num_sentences],
        )

    def write(self, index: Tensor, others: "Automata") -> None:
        """Put others, as large as these, in the place of some; `index` is (N,) int64."""
        for name in ("words", "go", "ends", "goals", "depths", "weights", "full"):
            getattr(self, name).index_copy_(0, index, getattr(others, name))

    def words_of(self, groups: RowGroups) -> Tensor:
        """(R, W) int64, the words of every row's sentence; 0 where there are fewer."""
        width = groups.rows.shape[1]
        return self.words.clamp(min=0)[groups.position // width]

    def step(self, nodes: Tensor, met: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Nodes and phrases met after tokens, all (S, X) int64."""
        is_word = tokens.unsqueeze(2) == self.words.unsqueeze(1)  # (S, X, W)
        num_words = self.words.shape[1]
        column = torch.where(is_word.any(2), is_word.to(torch.int8).argmax(2), num_words)
        nodes = self.go.flatten(1).gather(1, nodes * (num_words + 1) + column)
        new = self.ends.gather(1, nodes) & ~met
        return nodes.masked_fill(new != 0, 0), met | (new & -new)

    def is_begun(self, nodes: Tensor, met: Tensor) -> Tensor:
        """Where a phrase is begun that is not met: (S, X) bool."""
        return (self.goals.gather(1, nodes) & ~met) != 0

    def banks(self, nodes: Tensor, met: Tensor) -> Tensor:
        """Tokens of phrases that are met or begun, (S, X) int64; fewer than twice the limit."""
        bits = torch.arange(MAX_PHRASES, device=met.device)
        is_met = (met.unsqueeze(2) >> bits) & 1  # (S, X, P)
        of_begun = self.depths.gather(1, nodes) * self.is_begun(nodes, met)
        return (is_met * self.weights.unsqueeze(1)).sum(2) + of_begun


def automata_of(
    phrases: Sequence[Sequence[Alternatives]], device: torch.device, *, num_tokens: int = 1
) -> Automata:
    """The automata of sentences, some of which may have no phrases.

    Args:
        phrases: Of each sentence.
        device: Where they are needed.
        num_tokens: What there is room for: so many tokens of all phrases of a sentence.
    """
    every = [automaton_of(own) for own in phrases]
    num_words = max([num_tokens, *(len(one.words) for one in every)])
    num_nodes = max([num_tokens + 1, *(len(one.go) for one in every)])
    size = len(every)
    words = torch.full((size, num_words), _NO_TOKEN, dtype=torch.int64)
    go = torch.zeros(size, num_nodes, num_words + 1, dtype=torch.int64)
    ends, goals, depths = torch.zeros(3, size, num_nodes, dtype=torch.int64)
    weights = torch.zeros(size, MAX_PHRASES, dtype=torch.int64)
    full = torch.tensor([one.full for one in every], dtype=torch.int64)
    for index, one in enumerate(every):
        own = len(one.words)
        words[index, :own] = torch.tensor(one.words, dtype=torch.int64)
        go[index, : len(one.go), :own] = torch.tensor(one.go, dtype=torch.int64)[:, :own]
        ends[index, : len(one.ends)] = torch.tensor(one.ends, dtype=torch.int64)
        goals[index, : len(one.goals)] = torch.tensor(one.goals, dtype=torch.int64)
        depths[index, : len(one.depths)] = torch.tensor(one.depths, dtype=torch.int64)
        weights[index, : len(one.weights)] = torch.tensor(one.weights, dtype=torch.int64)
    return Automata(
        words=words.to(device),
        go=go.to(device),
        ends=ends.to(device),
        goals=goals.to(device),
        depths=depths.to(device),
        weights=weights.to(device),
        full=full.to(device),
    )


_NUM_BANKS = 2 * MAX_PHRASE_TOKENS


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pool:
    """Pool of all continuations of S sentences that may go on, (S, X) each."""

    sums: Tensor
    log_probs: Tensor
    beams: Tensor
    tokens: Tensor
    banks: Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class LexicalStep:
    """Phrases in one step of S sentences with R rows.

    Attributes:
        automata: Of the sentences.
        nodes: (R,) int64, where each row is in its sentence's automaton.
        met: (R,) int64 of bits, the phrases that it has met.
    """

    automata: Automata
    nodes: Tensor
    met: Tensor

    def candidates(
        self,
        candidates: Candidates,
        scores: Tensor,
        continuations: RowContinuations,
        groups: RowGroups,
        *,
        forced: Tensor | None,
        eos_id: int,
    ) -> Candidates:
        """The candidates of sentences with phrases put in the place of those without regard.

        Those of such a sentence are in the order in which its banks take turns.

        Args:
            candidates: Of all sentences by their sums alone, (S, C).
            scores: (R,) sums of log probabilities so far.
            continuations: Of every row, with the log probabilities of `Automata.words_of`.
            groups: Which rows belong together.
            forced: (R,) int64, the only token that a row may add, or −1; None: all are free.
            eos_id: The token that no hypothesis takes before it has met all its phrases.
        """
        is_forced = torch.zeros_like(groups.widths, dtype=torch.bool)
        if forced is not None:
            is_forced = forced[groups.rows[:, 0]] >= 0
        pool = self._pool(scores, continuations, groups, is_forced, eos_id)
        index = _in_turn(pool.sums, pool.banks)[:, : candidates.scores.shape[1]]
        has_phrases = (self.automata.full != 0).unsqueeze(1)

        def chosen(own: Tensor, others: Tensor) -> Tensor:
            return torch.where(has_phrases, own.gather(1, index), others)

        return Candidates(
            scores=chosen(pool.sums, candidates.scores),
            log_probs=chosen(pool.log_probs, candidates.log_probs),
            beams=chosen(pool.beams, candidates.beams),
            tokens=chosen(pool.tokens, candidates.tokens),
        )

    def after(
        self, decision: Decision, groups: RowGroups, *, in_prefix: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """`nodes` and `met` of the rows once every row has added its token.

        Args:
            decision: What the rows become.
            groups: Which rows belong together.
            in_prefix: (S,) bool, where tokens of the prefix are added, which are in no phrase;
                None: nowhere.
        """
        nodes, met = (own[decision.parents][groups.rows] for own in (self.nodes, self.met))
        to_nodes, to_met = self.automata.step(nodes, met, decision.tokens[groups.rows])
        if in_prefix is not None:
            stays = in_prefix.unsqueeze(1)
            to_nodes, to_met = torch.where(stays, nodes, to_nodes), torch.where(stays, met, to_met)
        return to_nodes.flatten()[groups.position], to_met.flatten()[groups.position]

    def _pool(
        self,
        scores: Tensor,
        continuations: RowContinuations,
        groups: RowGroups,
        is_forced: Tensor,
        eos_id: int,
    ) -> _Pool:
        """Every row's best tokens and those that its phrases want, none of them twice."""
        rows, width = groups.rows, groups.rows.shape[1]
        tokens, log_probs = self._tokens(continuations, groups, is_forced)  # (S, K, M + W)
        per_row = tokens.shape[2]
        sums = (scores[rows].unsqueeze(2) + log_probs).masked_fill(
            ~groups.live.unsqueeze(2), _IMPOSSIBLE
        )
        place = torch.arange(width * per_row, device=rows.device)
        beams = (place // per_row).expand(len(rows), -1)
        nodes, met = (own[rows].gather(1, beams) for own in (self.nodes, self.met))
        to_nodes, to_met = self.automata.step(nodes, met, tokens.flatten(1))
        is_begun = self.automata.is_begun(to_nodes, to_met)
        is_extra = place % per_row >= continuations.tokens.shape[1]
        is_idle = is_extra & ~is_begun & (to_met == met)
        is_early = (tokens.flatten(1) == eos_id) & (met != self.automata.full.unsqueeze(1))
        is_early &= ~is_forced.unsqueeze(1)
        return _Pool(
            sums=sums.flatten(1).masked_fill(is_idle | is_early, _IMPOSSIBLE),
            log_probs=log_probs.flatten(1),
            beams=beams,
            tokens=tokens.flatten(1),
            banks=self.automata.banks(to_nodes, to_met),
        )

    def _tokens(
        self, continuations: RowContinuations, groups: RowGroups, is_forced: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Tokens of every row and their log probabilities; impossible: a row's second time."""
        assert continuations.wanted is not None
        best = continuations.tokens[groups.rows]  # (S, K, M)
        rank = torch.arange(best.shape[2], device=best.device)
        is_own = (rank < groups.num_candidates.unsqueeze(1)).unsqueeze(1)  # (S, 1, M)
        words = self.automata.words.unsqueeze(1).expand(-1, best.shape[1], -1)  # (S, K, W)
        shown = best.masked_fill(~is_own, _NO_TOKEN)
        is_known = (words.unsqueeze(3) == shown.unsqueeze(2)).any(3) | (words < 0)
        is_known |= is_forced.view(-1, 1, 1)
        return torch.cat((best, words.clamp(min=0)), dim=2), torch.cat(
            (
                continuations.log_probs[groups.rows].masked_fill(~is_own, _IMPOSSIBLE),
                continuations.wanted[groups.rows].masked_fill(is_known, _IMPOSSIBLE),
            ),
            dim=2,
        )


def _in_turn(sums: Tensor, banks: Tensor) -> Tensor:
    """Places of (S, X) in the order in which banks take turns; impossible ones at the end."""
    order = sums.argsort(dim=1, descending=True, stable=True)
    banks = banks.gather(1, order)
    every = torch.arange(_NUM_BANKS, device=banks.device)
    members = banks.unsqueeze(2) == every  # (S, X, banks)
    turn = members.cumsum(1).gather(2, banks.unsqueeze(2)).squeeze(2)
    key = turn * _NUM_BANKS - banks
    key = key.masked_fill(sums.gather(1, order) == _IMPOSSIBLE, torch.iinfo(key.dtype).max)
    return order.gather(1, key.argsort(dim=1, stable=True))
