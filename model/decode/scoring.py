"""Scores of hypotheses, and when a sentence's search may stop.

Owns the arithmetic of length penalties, bounds and the four stopping rules; holds no tensor.
With s = Σ log p including EOS and n = target tokens including EOS, the score is s / n^α
(Hugging Face `generate`). Since s only falls, the best that a running hypothesis with t tokens
can still reach is s / n^α at the length n in t+1 … cap that flatters it most.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from model.config import SearchConfig, StoppingRule


def hypothesis_score(log_prob: float, length: int, length_penalty: float) -> float:
    """Score of a finished hypothesis.

    Args:
        log_prob: Sum of its tokens' log probabilities, EOS included.
        length: Its target tokens, EOS included.
        length_penalty: α; above 0 favours longer hypotheses.
    """
    return float(log_prob / length**length_penalty)


def stopping_rule(search: SearchConfig) -> StoppingRule:
    """The rule that applies, whatever was asked, where nothing waits for anything better.

    Greedy search, that of a group too, ends with its first EOS, and what is drawn when all of it
    has ended.
    """
    is_final = search.group_size == 1 or search.sampling is not None
    return "first" if is_final else search.stopping


def num_required(search: SearchConfig) -> int:
    """Finished hypotheses of each group without which no rule stops."""
    is_exact = stopping_rule(search) == "exact"
    return -(-search.num_hypotheses // search.num_groups) if is_exact else search.group_size


def stop_threshold(search: SearchConfig, finished: Sequence[float]) -> float:
    """What the running hypotheses of a group have to pass for its search to go on.

    Args:
        search: The sentence's search.
        finished: Scores of the kept finished hypotheses of the group, best first.

    Returns:
        Minus infinity while too few are finished, plus infinity once nothing can help.
    """
    required = num_required(search)
    if len(finished) < required:
        return -math.inf
    return math.inf if stopping_rule(search) == "first" else finished[required - 1]


def bound_length(search: SearchConfig, num_generated: int) -> int:
    """The length at which a running hypothesis is judged; its bound is s / length^α.

    Args:
        search: The sentence's search.
        num_generated: Tokens every running hypothesis has, t, at least 1.
    """
    at_none, each = bound_line(search)
    return at_none + each * num_generated


def bound_line(search: SearchConfig) -> tuple[int, int]:
    """`bound_length` at no token, and how much longer it is with each token."""
    rule = stopping_rule(search)
    if rule in ("exact", "bound") and search.length_penalty > 0:
        return search.max_length, 0
    return (1, 1) if rule == "exact" else (0, 1)


def running_bound(search: SearchConfig, best: float, num_generated: int) -> float:
    """The score that no running hypothesis of a sentence can pass any more.

    Args:
        search: The sentence's search.
        best: The best sum of log probabilities among its running hypotheses.
        num_generated: Tokens that each of them has, at least 1.
    """
    return float(best / bound_length(search, num_generated) ** search.length_penalty)


def running_bounds(
    best: NDArray[np.float64],
    num_generated: NDArray[np.int64],
    *,
    lines: NDArray[np.float64],
    penalties: NDArray[np.float64],
) -> NDArray[np.float64]:
    """`running_bound` of S sentences at once.

    Args:
        best: (S,).
        num_generated: (S,); what is returned for less than 1 means nothing.
        lines: (2, S), the `bound_line` of each sentence.
        penalties: (S,), each sentence's α.

    Returns:
        (S,) bounds.
    """
    at_none, each = lines
    lengths = np.maximum(at_none + each * num_generated, 1.0)
    return np.asarray(best / lengths**penalties, dtype=np.float64)
