"""Diverse beam search as slowly and plainly as possible: the oracle of `model.decode.choice`.

Vijayakumar et al. 2016, "Diverse Beam Search", algorithm 1, with Hamming diversity: groups choose
one after another, and a token costs the penalty for every beam of the groups before that has just
chosen it. Sums and scores are the network's own.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from model.config import SearchConfig, SpecialTokens
from model.nn.transformer import Transformer
from support.reference_search import (
    NextLogProbs,
    ReferenceHypothesis,
    may_stop,
    of_transformer,
    repeated,
)

Running = tuple[float, list[int], list[float]]
"""Sum, tokens and log probabilities."""


@dataclass
class _Group:
    """Beams that are searched by themselves, behind the groups before them."""

    search: SearchConfig
    running: list[Running]
    finished: list[ReferenceHypothesis]
    is_over: bool = False

    def take(self, ranked: list[Running], eos_id: int) -> None:
        """Keep what ends, and go on with the best of the rest."""
        search, self.running = self.search, []
        for rank, (total, tokens, history) in enumerate(ranked[: search.candidates]):
            if tokens[-1] != eos_id:
                if len(self.running) < search.beam_size:
                    self.running.append((total, tokens, history))
            elif rank < search.beam_size and not self.is_over:
                score = total / len(tokens) ** search.length_penalty
                is_truncated = len(tokens) == search.max_length
                self.finished.append(ReferenceHypothesis(tokens[:-1], score, history, is_truncated))
        self.finished.sort(key=lambda hypothesis: -hypothesis.score)
        del self.finished[search.beam_size :]

    def end(self) -> None:
        """It is over where what runs cannot matter any more; it runs on beside the others."""
        if not self.running:
            self.is_over = True
            return
        best, length = max(total for total, _, _ in self.running), len(self.running[0][1])
        if may_stop(self.search, self.finished, best, length):
            self.is_over = True


@torch.inference_mode()
def reference_groups(
    network: Transformer | NextLogProbs,
    tokens: SpecialTokens,
    source: list[int],
    prefix: list[int],
    search: SearchConfig,
    *,
    suppressed_ids: Sequence[int] = (),
    forced_ids: Sequence[int] = (),
) -> list[ReferenceHypothesis]:
    next_log_probs = of_transformer(network) if isinstance(network, Transformer) else network
    first = () if tokens.forced_first_id is None else (tokens.forced_first_id,)
    forced, never = [*first, *forced_ids], {*tokens.suppressed_ids, *suppressed_ids}

    def allowed(generated: list[int]) -> dict[int, float]:
        if len(generated) == search.max_length - 1:
            return {tokens.eos_id: 0.0}
        if len(generated) < len(forced):
            return {forced[len(generated)]: 0.0}
        values = enumerate(next_log_probs(source, prefix + generated))
        impossible = never | repeated(generated, search.no_repeat_ngram)
        return {t: value for t, value in values if value > -math.inf and t not in impossible}

    num_groups = search.num_groups
    alone = replace(
        search,
        beam_size=search.beam_size // num_groups,
        num_candidates=search.candidates // num_groups,
        num_hypotheses=-(-search.num_hypotheses // num_groups),
        num_groups=1,
        diversity_penalty=0.0,
    )
    groups = [_Group(alone, [(0.0, [], [])], []) for _ in range(num_groups)]
    while not all(group.is_over for group in groups):
        chosen: list[int] = []
        for group in groups:
            ranked: list[tuple[float, Running]] = []
            for total, generated, history in group.running:
                for token, log_prob in allowed(generated).items():
                    longer = (total + log_prob, [*generated, token], [*history, log_prob])
                    loss = search.diversity_penalty * chosen.count(token)
                    ranked.append((longer[0] - loss, longer))
            ranked.sort(key=lambda item: -item[0])
            group.take([longer for _, longer in ranked], tokens.eos_id)
            group.end()
            chosen += [generated[-1] for _, generated, _ in group.running]
    return in_turn([group.finished for group in groups])[: search.num_hypotheses]


def in_turn(groups: list[list[ReferenceHypothesis]]) -> list[ReferenceHypothesis]:
    """The best of each group, the best of these first; then the second of each; none twice."""
    found: list[ReferenceHypothesis] = []
    for rank in range(max(map(len, groups), default=0)):
        turn = [group[rank] for group in groups if rank < len(group)]
        for hypothesis in sorted(turn, key=lambda one: -one.score):
            if hypothesis.tokens not in [other.tokens for other in found]:
                found.append(hypothesis)
    return found
