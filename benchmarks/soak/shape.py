"""Shape of the traffic that the simulation is held to: how long requests are, and when they come.

Owns the shape, pure; every draw is a seed's. It is made up, as no log of anybody's is here, of what
traffic of people has: most requests are a sentence, some a paragraph; a day in a few minutes, from
half of the mean to one and a half and back; and seconds that differ more than chance has them.
"""

import math
from collections.abc import Sequence
from random import Random

_SINGLE_SHARE = 0.7
_GO_ON_SHARE = 0.65
_MAX_SENTENCES = 12
_SWING = 0.5
_BURST_SHAPE = 8.0
"""Of the gamma distribution of a second's rate: it differs by a third."""


def shaped_texts(lines: Sequence[str], number: int, *, seed: int) -> list[str]:
    """Requests of one sentence, or of several that follow each other."""
    random = Random(seed)
    found = []
    for _ in range(number):
        num_sentences = 1
        if random.random() > _SINGLE_SHARE:
            num_sentences = 2
            while num_sentences < _MAX_SENTENCES and random.random() < _GO_ON_SHARE:
                num_sentences += 1
        start = random.randrange(len(lines) - num_sentences)
        found.append(" ".join(lines[start : start + num_sentences]))
    return found


def shaped_arrivals(rate: float, seconds: float, *, seed: int) -> list[float]:
    """When requests come, ascending.

    Args:
        rate: Requests a second, in the mean.
        seconds: The whole of it; a second is the unit of bursts.
        seed: Of all draws.
    """
    random, found = Random(seed), list[float]()
    for second in range(int(seconds)):
        day = 1 - _SWING * math.cos(2 * math.pi * (second + 0.5) / int(seconds))
        now = rate * day * random.gammavariate(_BURST_SHAPE, 1 / _BURST_SHAPE)
        at = second + random.expovariate(now)
        while at < second + 1:
            found.append(at)
            at += random.expovariate(now)
    return found
