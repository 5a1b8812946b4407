"""The likeliest tokens where many are equally likely: the smaller token first, at every place."""

import importlib
import itertools

import numpy as np
import numpy.typing as npt
import pytest

from model.native import kernels
from support.token_chains import LOGIT, chain_network, likeliest, open_session

pytestmark = pytest.mark.skipif(
    kernels.find_problem() is not None, reason=f"no kernels here: {kernels.find_problem()}"
)
_NUM_TOKENS = 200  # four panels, the last of them not full
_SUPPRESSED = (0, 5, 63, 64, 130, 199)


def levels(num_rows: int, seed: int, choices: list[int]) -> npt.NDArray[np.int8]:
    """Logits of few values, (T, V)."""
    rng = np.random.default_rng(seed)
    return rng.choice(np.array(choices, dtype=np.int8), (num_rows, _NUM_TOKENS))


def ranked(logits: npt.NDArray[np.int8], suppressed: tuple[int, ...]) -> list[int]:
    """Tokens by falling logit, the smaller first."""
    tokens = (token for token in range(len(logits)) if token not in suppressed)
    return sorted(tokens, key=lambda token: (-int(logits[token]), token))


@pytest.mark.parametrize("suppressed", [(), _SUPPRESSED], ids=["all", "some suppressed"])
@pytest.mark.parametrize("choices", [[0], [0, 1], [-2, 0, 3]], ids=["one", "two", "three"])
def test_among_equals_the_smaller_token_comes_first_however_many_are_asked_for(
    choices: list[int], suppressed: tuple[int, ...]
) -> None:
    logits = levels(9, 3, choices)
    session = open_session(chain_network(logits, suppressed=suppressed), num_threads=1, max_rows=9)
    expected = [ranked(row, suppressed) for row in logits]
    widened = logits.astype(np.float64) * LOGIT
    log_probs = widened - np.log(np.exp(widened).sum(axis=1, keepdims=True))
    for count in [*range(1, 20), 63, 64, 65, 128, 193, 194, 195, 199, 200, 203]:
        found, best = likeliest(session, range(9), count)
        for row in range(9):
            wanted = expected[row][:count]
            missing = count - len(wanted)
            assert best[row].tolist() == wanted + [0] * missing
            assert found[row, : len(wanted)] == pytest.approx(log_probs[row, wanted], abs=1e-5)
            assert np.isneginf(found[row, len(wanted) :]).all()


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 7])
def test_a_ranking_is_the_same_in_whatever_order_its_tokens_come(size: int) -> None:
    """Threads take panels as it happens, and their lists are merged: any order is possible."""
    rank = importlib.import_module(kernels.EXTENSION).rank
    logits = {4: 1.0, 9: 1.0, 2: 0.0, 7: 1.0, 3: 2.0}
    expected = [3, 4, 7, 9, 2, 0, 0][:size]
    for order in itertools.permutations(logits):
        assert rank([logits[token] for token in order], list(order), size) == expected


@pytest.mark.parametrize("num_threads", [2, 4])
def test_equals_that_several_threads_have_found_come_in_the_same_order(num_threads: int) -> None:
    """A row's few best stand in many panels, so whatever thread takes which, lists cross."""
    rng = np.random.default_rng(7)
    logits = np.zeros((120, _NUM_TOKENS * 8), dtype=np.int8)
    for row in logits:
        row[rng.choice(len(row), 12, replace=False)] = 9
    session = open_session(chain_network(logits), num_threads=num_threads, max_rows=120)
    expected = [ranked(row, ()) for row in logits]
    for count in (1, 2, 5, 8, 11, 12, 13, 20):
        for _ in range(4):
            _, best = likeliest(session, range(120), count)
            assert best.tolist() == [row[:count] for row in expected]
