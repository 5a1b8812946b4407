"""Alternatives that differ: which hypotheses of a beam stand beside the best one.

Owns the choice among hypotheses that were found; it searches for none. The next one is that with
the best balance of how likely it is and how little it shares with those that were chosen: maximal
marginal relevance (Carbonell and Goldstein 1998, section 2), over tokens and pairs of them.
"""

import math
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import TypeVar

from model.text.drafts.segments import SegmentOutput

OutputT = TypeVar("OutputT", bound=SegmentOutput)


def differing(found: Sequence[OutputT], num: int, diversity: float) -> tuple[OutputT, ...]:
    """The best hypothesis, and of the others those that differ, in the order of their choice.

    Args:
        found: Of a segment, best first; at least one.
        num: How many are wanted.
        diversity: From 0, by score alone, to 1, by difference alone.
    """
    parts = [_parts(output.token_ids) for output in found]
    likelihoods = [math.exp(min(output.score - found[0].score, 0.0)) for output in found]
    chosen = [0]
    nearest = [0.0] * len(found)  # to those that were chosen
    while len(chosen) < min(num, len(found)):
        last = parts[chosen[-1]]
        nearest = [max(near, _shared(last, own)) for near, own in zip(nearest, parts, strict=True)]
        others = [index for index in range(len(found)) if index not in chosen]
        values = {
            index: (1.0 - diversity) * likelihoods[index] - diversity * nearest[index]
            for index in others
        }
        chosen.append(max(others, key=values.__getitem__))
    return tuple(found[index] for index in chosen)


def _parts(token_ids: Sequence[int]) -> Counter[tuple[int, ...]]:
    """Tokens and pairs of neighbours."""
    return Counter([*((token,) for token in token_ids), *pairwise(token_ids)])


def _shared(one: Counter[tuple[int, ...]], other: Counter[tuple[int, ...]]) -> float:
    """Twice what two have in common by what they have: from 0 to 1 (Dice)."""
    size = one.total() + other.total()
    return 2 * (one & other).total() / size if size else 1.0
