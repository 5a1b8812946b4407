"""The common task of all engines: token ids, limits of length, options of the search.

Owns the generated workloads and how lengths are rounded. Imports no torch; equal seeds give equal
work. Real text is `benchmarks.peers.text`.
"""

import math
import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise

from model.config import StoppingRule

SOURCE_LENGTH = 25
TARGET_LENGTH = 32
NUM_SPECIALS = 3
EOS_ID = 1
# The few lengths that a forced target may have. CTranslate2 has one length for a whole call, so
# sentences of one length go to it together, which wastes little where they are many.
TARGET_LENGTHS = (6, 9, 12, 15, 18, 22, 27, 34, 44, 60)
LEAST_MEAN_GROUP = 16
"""Sentences of one forced length, on average: with fewer, calls of CTranslate2 are no batches."""
_MEDIAN_LENGTH, _LENGTH_SPREAD, _MIN_LENGTH, _MAX_LENGTH = 18.0, 0.5, 4, 80
_CAP_STEP = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Sentences that are handed over at once.

    Attributes:
        sources: Token ids with EOS, one tuple a sentence.
        max_lengths: Target tokens with EOS, at most; exactly so many if `is_forced`.
        is_forced: The network never ends by itself.
    """

    sources: tuple[tuple[int, ...], ...]
    max_lengths: tuple[int, ...]
    beam_size: int
    is_forced: bool
    stopping: StoppingRule = "first"

    def message(self) -> dict[str, object]:
        """As JSON has it."""
        return asdict(self)

    def sample(self, num_sentences: int) -> "Work":
        """Every n-th sentence, so that a sorted file gives all lengths."""
        step = max(1, len(self.sources) // num_sentences)
        chosen = slice(0, step * num_sentences, step)
        return replace(self, sources=self.sources[chosen], max_lengths=self.max_lengths[chosen])

    def tuning_group(self, num_sentences: int) -> "Work":
        """So many sentences of the most frequent length of answers; all of the work without them.

        A smaller group leaves nothing of batches, and one of two workers idle, which all of a file
        does not: its groups are translated side by side.
        """
        chosen = max(self.groups(), key=len)[:num_sentences]
        if len(chosen) < num_sentences:
            return self
        return replace(
            self,
            sources=tuple(self.sources[index] for index in chosen),
            max_lengths=tuple(self.max_lengths[index] for index in chosen),
        )

    def shortened(self, max_length: int) -> "Work":
        """The same sentences with shorter answers."""
        lengths = tuple(min(length, max_length) for length in self.max_lengths)
        return replace(self, max_lengths=lengths)

    def groups(self) -> list[list[int]]:
        """Indices of sentences whose answers may be equally long, the longest first."""
        found: defaultdict[int, list[int]] = defaultdict(list)
        for index, length in enumerate(self.max_lengths):
            found[length].append(index)
        return [found[length] for length in sorted(found, reverse=True)]


def read_work(message: Mapping[str, object]) -> Work:
    """What `Work.message` said, after a way through JSON."""
    values = dict(message)
    sources = values.pop("sources")
    lengths = values.pop("max_lengths")
    assert isinstance(sources, list)
    assert isinstance(lengths, list)
    return Work(sources=tuple(map(tuple, sources)), max_lengths=tuple(lengths), **values)  # type: ignore[arg-type]  # our own message


def count_tokens(targets: Sequence[Sequence[int]]) -> int:
    """Target tokens with one EOS a sentence, whoever wrote them and however it ended."""
    return sum(len(target) + 1 for target in targets)


def equal_work(
    num_sentences: int,
    *,
    vocab_size: int,
    beam_size: int,
    source_length: int = SOURCE_LENGTH,
    target_length: int = TARGET_LENGTH,
    seed: int = 1,
) -> Work:
    """Random sentences of one length, EOS included, and answers of one forced length."""
    rng = random.Random(seed)
    sources = [_random_ids(rng, source_length, vocab_size) for _ in range(num_sentences)]
    return Work(
        sources=tuple(sources),
        max_lengths=(target_length,) * num_sentences,
        beam_size=beam_size,
        is_forced=True,
    )


def file_work(num_sentences: int, *, vocab_size: int, beam_size: int, seed: int = 1) -> Work:
    """Random sentences of the lengths that a text has; answers are about as long.

    Lengths are log-normal, median 18 tokens, mean about 20. Answers have so few lengths that those
    of one are `LEAST_MEAN_GROUP` on average: all of `TARGET_LENGTHS` from 160 sentences on.
    """
    rng = random.Random(seed)
    lengths = _file_lengths(rng, num_sentences)
    most = max(1, num_sentences // LEAST_MEAN_GROUP)
    targets = (
        [nearest_target_length(length) for length in lengths]
        if most >= len(TARGET_LENGTHS)
        else _few_lengths(lengths, most)
    )
    return Work(
        sources=tuple(_random_ids(rng, length, vocab_size) for length in lengths),
        max_lengths=tuple(targets),
        beam_size=beam_size,
        is_forced=True,
    )


def num_nearest_lengths(num_sentences: int) -> int:
    """Target lengths of a file in which every sentence has the nearest, as all files once had."""
    lengths = _file_lengths(random.Random(1), num_sentences)
    return len({nearest_target_length(length) for length in lengths})


def _file_lengths(rng: random.Random, num_sentences: int) -> list[int]:
    lengths = [
        round(rng.lognormvariate(math.log(_MEDIAN_LENGTH), _LENGTH_SPREAD))
        for _ in range(num_sentences)
    ]
    return [min(max(length, _MIN_LENGTH), _MAX_LENGTH) for length in lengths]


def _few_lengths(lengths: Sequence[int], most: int) -> list[int]:
    """The nearest target length to the mean of each of so many parts, the shortest first."""
    by_length = sorted(range(len(lengths)), key=lambda index: lengths[index])
    bounds = [len(lengths) * part // most for part in range(most + 1)]
    targets = [0] * len(lengths)
    for start, stop in pairwise(bounds):
        mean = sum(lengths[index] for index in by_length[start:stop]) / (stop - start)
        for index in by_length[start:stop]:
            targets[index] = nearest_target_length(mean)
    return targets


def nearest_target_length(source_length: float) -> int:
    """The forced target length that is nearest."""
    return min(TARGET_LENGTHS, key=lambda length: abs(length - source_length))


def rounded_cap(cap: int, limit: int) -> int:
    """A cap rounded up to one of few, so that sentences can share a call of CTranslate2."""
    return min(limit, math.ceil(cap / _CAP_STEP) * _CAP_STEP)


def _random_ids(rng: random.Random, length: int, vocab_size: int) -> tuple[int, ...]:
    return (*(rng.randrange(NUM_SPECIALS, vocab_size) for _ in range(length - 1)), EOS_ID)
