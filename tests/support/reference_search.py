"""Beam search, and sampling, as slowly and plainly as possible: the oracle of `model.decode`.

No cache but of the encoded source, no batch, no tensor arithmetic beyond the network itself; every
hypothesis is a list and the whole prefix goes through the decoder at every step. Give it a float64
network.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import zip_longest

import torch

from model.config import Sampling, SearchConfig, SpecialTokens
from model.nn.masks import padding_mask
from model.nn.transformer import Transformer


@dataclass(frozen=True)
class ReferenceHypothesis:
    tokens: list[int]
    score: float
    log_probs: list[float]
    is_truncated: bool
    num_missed: int = 0


NextLogProbs = Callable[[list[int], list[int]], list[float]]
"""Source and prefix to the log probability of every next token."""


def of_transformer(transformer: Transformer) -> NextLogProbs:
    @cache  # a search asks for every prefix of one source
    def encoded(source: tuple[int, ...]) -> torch.Tensor:
        return transformer.encode(torch.tensor([source]))

    def next_log_probs(source: list[int], prefix: list[int]) -> list[float]:
        mask = padding_mask(torch.tensor([source]), transformer.config.pad_id)
        logits = transformer.decode(torch.tensor([prefix]), encoded(tuple(source)), mask)[0, -1]
        return torch.log_softmax(logits.double(), dim=-1).tolist()

    return next_log_probs


def repeated(generated: list[int], size: int) -> set[int]:
    """Tokens that would end so many in a row that are there already."""
    if size == 0:
        return set()
    there = [generated[at : at + size] for at in range(len(generated) - size + 1)]
    own = generated[len(generated) - size + 1 :] if size > 1 else []
    return {ngram[-1] for ngram in there if ngram[:-1] == own}


def continuations(
    network: Transformer | NextLogProbs,
    tokens: SpecialTokens,
    source: list[int],
    prefix: list[int],
    search: SearchConfig,
    *,
    suppressed_ids: Sequence[int],
    forced_ids: Sequence[int],
    narrowed: Callable[[dict[int, float], list[int]], dict[int, float]] = lambda free, _: free,
) -> Callable[[list[int]], dict[int, float]]:
    """Tokens that may follow what was generated, with their log probabilities: one if it is forced.

    `narrowed` leaves some of them, where there is a choice.
    """
    next_log_probs = of_transformer(network) if isinstance(network, Transformer) else network
    first = () if tokens.forced_first_id is None else (tokens.forced_first_id,)
    forced, never = [*first, *forced_ids], {*tokens.suppressed_ids, *suppressed_ids}

    def after(generated: list[int]) -> dict[int, float]:
        if len(generated) == search.max_length - 1:
            return {tokens.eos_id: 0.0}
        if len(generated) < len(forced):
            return {forced[len(generated)]: 0.0}
        values = enumerate(next_log_probs(source, prefix + generated))
        impossible = never | repeated(generated, search.no_repeat_ngram)
        free = {t: value for t, value in values if value > -math.inf and t not in impossible}
        return narrowed(free, generated)

    return after


def ended(
    search: SearchConfig,
    total: float,
    generated: list[int],
    history: list[float],
    *,
    num_missed: int = 0,
) -> ReferenceHypothesis:
    """What a hypothesis is whose last token is EOS."""
    return ReferenceHypothesis(
        tokens=generated[:-1],
        score=total / len(generated) ** search.length_penalty,
        log_probs=history,
        is_truncated=len(generated) == search.max_length,
        num_missed=num_missed,
    )


def may_stop(
    search: SearchConfig, finished: list[ReferenceHypothesis], running_sum: float, length: int
) -> bool:
    """Whether a running hypothesis with `length` tokens and this sum cannot matter any more."""
    alpha = search.length_penalty
    rule = "first" if search.beam_size == 1 else search.stopping
    if rule == "exact":
        if len(finished) < search.num_hypotheses:
            return False
        reachable = [running_sum / n**alpha for n in range(length + 1, search.max_length + 1)]
        return max(reachable, default=-math.inf) <= finished[search.num_hypotheses - 1].score
    if len(finished) < search.beam_size:
        return False
    if rule == "first":
        return True
    far = search.max_length if rule == "bound" and alpha > 0 else length
    return running_sum / far**alpha <= finished[-1].score


Phrases = Sequence[Sequence[Sequence[int]]]


def phrases_met(phrases: Phrases, generated: list[int]) -> tuple[int, bool, int]:
    """Phrases that are in a hypothesis, a token counting once; whether one is begun; its bank."""
    order = sorted(range(len(phrases)), key=lambda i: -max(map(len, phrases[i])))
    missing, seen = order, list[int]()
    for token in generated:
        seen.append(token)
        while seen and not any(seen == list(path[: len(seen)]) for own in phrases for path in own):
            del seen[0]
        for phrase in missing:
            if any(seen[-len(path) :] == list(path) for path in phrases[phrase]):
                missing = [other for other in missing if other != phrase]
                seen = []
                break
    ends = [seen[start:] for start in range(len(seen))]
    is_begun = any(
        end == list(path[: len(end)]) and len(end) < len(path)
        for phrase in missing
        for path in phrases[phrase]
        for end in ends
    )
    weights = [max(map(len, phrases[i])) for i in order if i not in missing]
    bank = sum(weights) + (len(seen) if is_begun else 0)
    return len(phrases) - len(missing), is_begun, bank


def _held(
    candidates: list[tuple[float, list[int], list[float]]], phrases: Phrases
) -> list[tuple[float, list[int], list[float]]]:
    """Candidates, best first, in the order in which banks of phrases take turns."""
    banks: dict[int, list[tuple[float, list[int], list[float]]]] = {}
    for candidate in candidates:
        banks.setdefault(phrases_met(phrases, candidate[1])[2], []).append(candidate)
    by_rank = zip_longest(*(banks[bank] for bank in sorted(banks, reverse=True)))
    return [candidate for turn in by_rank for candidate in turn if candidate is not None]


def _may_choose(
    values: dict[int, float], generated: list[int], phrases: Phrases, num_best: int, eos_id: int
) -> dict[int, float]:
    """The best tokens, and those that a phrase wants; EOS only behind all phrases."""
    if not phrases:
        return values
    best = sorted(values, key=lambda token: -values[token])[:num_best]
    met, _, _ = phrases_met(phrases, generated)
    for token in {token for phrase in phrases for path in phrase for token in path}:
        num, is_begun, _ = phrases_met(phrases, [*generated, token])
        if token in values and token not in best and (num > met or is_begun):
            best.append(token)
    return {token: values[token] for token in best if token != eos_id or met == len(phrases)}


@torch.inference_mode()
def reference_search(
    network: Transformer | NextLogProbs,
    tokens: SpecialTokens,
    source: list[int],
    prefix: list[int],
    search: SearchConfig,
    *,
    suppressed_ids: Sequence[int] = (),
    forced_ids: Sequence[int] = (),
    phrases: Phrases = (),
) -> list[ReferenceHypothesis]:
    def narrowed(free: dict[int, float], generated: list[int]) -> dict[int, float]:
        return _may_choose(free, generated, phrases, search.candidates, tokens.eos_id)

    after = continuations(
        network,
        tokens,
        source,
        prefix,
        search,
        suppressed_ids=suppressed_ids,
        forced_ids=forced_ids,
        narrowed=narrowed,
    )
    running: list[tuple[float, list[int], list[float]]] = [(0.0, [], [])]
    finished: list[ReferenceHypothesis] = []
    while True:
        length = len(running[0][1]) + 1
        candidates = []
        for total, generated, history in running:
            for token, log_prob in after(generated).items():
                candidates.append((total + log_prob, [*generated, token], [*history, log_prob]))
        candidates.sort(key=lambda candidate: -candidate[0])
        if phrases:
            candidates = _held(candidates, phrases)
        running = []
        for rank, candidate in enumerate(candidates[: search.candidates]):
            total, generated, history = candidate
            if generated[-1] != tokens.eos_id:
                if len(running) < search.beam_size:
                    running.append(candidate)
            elif rank < search.beam_size:
                num_missed = len(phrases) - phrases_met(phrases, generated[:-1])[0]
                finished.append(ended(search, total, generated, history, num_missed=num_missed))
        running.sort(key=lambda hypothesis: -hypothesis[0])
        finished.sort(key=lambda hypothesis: (hypothesis.num_missed, -hypothesis.score))
        del finished[search.beam_size :]
        if not running or may_stop(search, finished, running[0][0], length):
            return finished[: search.num_hypotheses]


def reference_draw(
    log_probs: dict[int, float], sampling: Sampling, *, beam: int, step: int
) -> tuple[int, float]:
    """The token that is drawn, and its own log probability."""
    ranked = sorted(log_probs.items(), key=lambda item: -item[1])[: sampling.top_k]
    weights = [math.exp(value / sampling.temperature) for _, value in ranked]
    shares = [weight / sum(weights) for weight in weights]
    kept = [
        (token, value)
        for rank, (token, value) in enumerate(ranked)
        if rank == 0 or sampling.top_p == 1.0 or sum(shares[:rank]) < sampling.top_p
    ]
    return max(
        kept,
        key=lambda item: (
            item[1] / sampling.temperature + gumbel_noise(sampling.seed, beam, step, item[0])
        ),
    )


def gumbel_noise(*numbers: int) -> float:
    """Of the first number, a seed, stirred with each of the others."""
    state, *counters = numbers
    for counter in counters:
        state = (state + (counter + 1) * 0x9E3779B97F4A7C15) % 2**64
        state = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        state = (state ^ state >> 27) * 0x94D049BB133111EB % 2**64
        state ^= state >> 31
    return -math.log(-math.log(((state >> 12) + 0.5) / 2**52))


@torch.inference_mode()
def reference_sample(
    network: Transformer | NextLogProbs,
    tokens: SpecialTokens,
    source: list[int],
    prefix: list[int],
    search: SearchConfig,
    *,
    suppressed_ids: Sequence[int] = (),
    forced_ids: Sequence[int] = (),
) -> list[ReferenceHypothesis]:
    """Each hypothesis drawn alone, one after another; the best of them."""
    after = continuations(
        network,
        tokens,
        source,
        prefix,
        search,
        suppressed_ids=suppressed_ids,
        forced_ids=forced_ids,
    )
    drawn = []
    assert search.sampling is not None
    for beam in range(search.beam_size):
        generated: list[int] = []
        history: list[float] = []
        while not generated or generated[-1] != tokens.eos_id:
            token, log_prob = reference_draw(
                after(generated), search.sampling, beam=beam, step=len(generated)
            )
            generated.append(token)
            history.append(log_prob)
        drawn.append(ended(search, sum(history), generated, history))
    drawn.sort(key=lambda hypothesis: -hypothesis.score)
    return drawn[: search.num_hypotheses]
