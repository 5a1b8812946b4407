"""The native search to the last tie: over chains whose logits are equal where a test wants it.

The oracle has the search's own order: among equal sums the lower row comes first, then the smaller
token; the first survivor of a row stays in it, the others take the lowest rows that are left; of
finished hypotheses with one score the earlier stays ahead.
"""

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pytest

from model.config import SearchConfig, StoppingRule
from model.decode.scoring import bound_length, hypothesis_score, stop_threshold
from model.native import kernels
from model.request import DecodeRequest
from support.token_chains import chain_network, likeliest, open_session

if TYPE_CHECKING:
    from model.native import _kernels

pytestmark = pytest.mark.skipif(
    kernels.find_problem() is not None, reason=f"no kernels here: {kernels.find_problem()}"
)
_START, _EOS = 0, 1
_FAR = -60


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Token ids, scores and caps of the hypotheses, and how many steps the search took."""

    hypotheses: list[tuple[tuple[int, ...], float, bool]]
    num_steps: int


def log_probs_of(network: "_kernels.Network", num_tokens: int) -> npt.NDArray[np.float32]:
    """(T, V) of every token after every token, as the kernels have them."""
    session = open_session(network, num_threads=1, max_rows=num_tokens)
    found, best = likeliest(session, range(num_tokens), num_tokens)
    table = np.empty_like(found)
    np.put_along_axis(table, best, found, axis=1)
    return table


def search_natively(network: "_kernels.Network", search: SearchConfig) -> Found:
    session = open_session(network, num_threads=1, max_rows=search.beam_size, eos_id=_EOS)
    request = DecodeRequest(source_ids=(_START,), prefix_ids=(_START,), search=search)
    session.admit(names=[0], slots=[0], rows=[range(search.beam_size)], requests=[request])
    for num_steps in range(1, search.max_length + 1):
        for finished in session.step():
            hypotheses = [
                (found.token_ids, found.score, found.is_truncated) for found in finished.hypotheses
            ]
            return Found(hypotheses=hypotheses, num_steps=num_steps)
    raise AssertionError("the search goes on behind its cap")


def search_plainly(log_probs: npt.NDArray[np.float32], search: SearchConfig) -> Found:
    table = log_probs.tolist()
    rows: list[tuple[float, tuple[int, ...]] | None] = [(0.0, ()), *[None] * (search.beam_size - 1)]
    finished: list[tuple[tuple[int, ...], float, bool]] = []
    for length in range(1, search.max_length + 1):
        ranked = []
        for row, hypothesis in enumerate(rows):
            if hypothesis is not None:
                total, tokens = hypothesis
                following = enumerate(table[tokens[-1] if tokens else _START])
                choices = [(_EOS, 0.0)] if length == search.max_length else following
                ranked += [(-(total + log_prob), row, token) for token, log_prob in choices]
        ranked.sort()
        survivors = []
        for rank, (loss, row, token) in enumerate(ranked[: search.candidates]):
            if token != _EOS:
                survivors.append((-loss, row, token))
            elif rank < search.beam_size:
                score = hypothesis_score(-loss, length, search.length_penalty)
                finished.append((path(rows, row), score, length == search.max_length))
                finished.sort(key=lambda hypothesis: -hypothesis[1])
                del finished[search.beam_size :]
        survivors = survivors[: search.beam_size]
        rows = seated(rows, survivors)
        best = survivors[0][0] if survivors else -np.inf
        bound = best / bound_length(search, length) ** search.length_penalty
        if bound <= stop_threshold(search, [score for _, score, _ in finished]):
            break
    return Found(hypotheses=finished[: search.num_hypotheses], num_steps=length)


def path(rows: list[tuple[float, tuple[int, ...]] | None], row: int) -> tuple[int, ...]:
    hypothesis = rows[row]
    assert hypothesis is not None
    return hypothesis[1]


def seated(
    rows: list[tuple[float, tuple[int, ...]] | None], survivors: list[tuple[float, int, int]]
) -> list[tuple[float, tuple[int, ...]] | None]:
    places: list[tuple[float, tuple[int, ...]] | None] = [None] * len(rows)
    movers = []
    for total, row, token in survivors:
        child = (total, (*path(rows, row), token))
        if places[row] is None:
            places[row] = child
        else:
            movers.append(child)
    for child in movers:
        places[places.index(None)] = child
    return places


@pytest.mark.parametrize("choices", [[0, 1], [0, 2, 3], [-40, 0, 1], [0]], ids=str)
@pytest.mark.parametrize("rule", ["exact", "first", "heuristic", "bound"])
def test_where_nearly_all_ties_the_search_is_the_plain_one_and_as_short(
    rule: StoppingRule, choices: list[int]
) -> None:
    rng = random.Random(f"{rule} {choices}")
    for seed in range(12):
        logits = np.random.default_rng(seed).choice(np.array(choices, np.int8), (11, 11))
        logits[:, _EOS] += rng.choice([-2, 0, 1, 4])  # at 4 nearly every beam ends each time
        network = chain_network(logits.astype(np.int8))
        log_probs = log_probs_of(network, len(logits))
        for penalty in (0.0, 1.0, -0.5, 0.6, -2.0):
            beam_size = rng.randint(1, 6)
            search = SearchConfig(
                beam_size=beam_size,
                num_hypotheses=rng.choice([1, beam_size, rng.randint(1, beam_size)]),
                num_candidates=rng.choice([None, 2 * beam_size + 1]),
                length_penalty=penalty,
                stopping=rule,
                max_length=rng.randint(1, 12),
            )
            assert search_natively(network, search) == search_plainly(log_probs, search)


def chain(**following: dict[int, int]) -> "_kernels.Network":
    """A chain of 16 tokens by what may follow each, as token → logit; all else is far away."""
    logits = np.full((16, 16), _FAR, dtype=np.int8)
    for name, choices in following.items():
        for token, logit in choices.items():
            logits[int(name.removeprefix("after_")), token] = logit
    return chain_network(logits)


def test_among_tied_candidates_the_lower_row_comes_first_and_then_the_smaller_token() -> None:
    ends = {f"after_{token}": {_EOS: 0} for token in range(3, 11)}
    network = chain(after_0=dict.fromkeys(range(3, 11), 0), **ends)
    search = SearchConfig(beam_size=4, num_hypotheses=4, max_length=6)
    found = search_natively(network, search)
    assert [tokens for tokens, _, _ in found.hypotheses] == [(3,), (4,), (5,), (6,)]
    assert len({score for _, score, _ in found.hypotheses}) == 1


def test_a_hypothesis_that_is_only_as_good_never_takes_the_place_of_one_that_ended_before() -> None:
    """Token 3 goes on for nothing, and ends at every length at one and the same cost."""
    network = chain(after_0={3: 0}, after_3={3: 0, _EOS: -20})
    search = SearchConfig(beam_size=2, num_hypotheses=2, length_penalty=0.0, stopping="bound",
                          max_length=9)  # fmt: skip
    found = search_natively(network, search)
    assert [tokens for tokens, _, _ in found.hypotheses] == [(3,) * 8, (3,)]
    search = SearchConfig(beam_size=3, num_hypotheses=3, length_penalty=0.0, stopping="bound",
                          max_length=9)  # fmt: skip
    found = search_natively(network, search)
    assert [tokens for tokens, _, _ in found.hypotheses] == [(3,) * 8, (3,), (3, 3)]


def test_with_a_negative_penalty_the_exact_rule_judges_at_one_token_more() -> None:
    """What runs costs nothing more, and can only end one token later than it is."""
    onwards = {f"after_{token}": {token + 1: 0} for token in range(4, 14)}
    network = chain(after_0={3: -1, 4: 0}, after_3={_EOS: 0}, **onwards)
    log_probs = log_probs_of(network, 16)
    ended, running = -2 * log_probs[0, 3], -log_probs[0, 4]
    assert 8 * running < ended < 9 * running
    search = SearchConfig(beam_size=2, length_penalty=-1.0, stopping="exact", max_length=16)
    found = search_natively(network, search)
    assert [tokens for tokens, _, _ in found.hypotheses] == [(3,)]
    assert found.num_steps == 8
