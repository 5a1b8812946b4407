"""The common task of all engines: token ids, limits of length, options of the search.

Owns the generated workloads and how lengths are rounded. Imports no torch; equal seeds give equal
work. Real text is `benchmarks.peers.text`.
"""

import math
import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from model.config import StoppingRule

SOURCE_LENGTH = 25
TARGET_LENGTH = 32
NUM_SPECIALS = 3
EOS_ID = 1
# The few lengths that a forced target may have. CTranslate2 has one length for a whole call, so
# sentences of one length go to it together, which wastes nothing there.
TARGET_LENGTHS = (6, 9, 12, 15, 18, 22, 27, 34, 44, 60)
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

    def largest_group(self, num_sentences: int) -> "Work":
        """Sentences of the most frequent length of answers, so many at most."""
        chosen = max(self.groups(), key=len)[:num_sentences]
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

    Lengths are log-normal, median 18 tokens, mean about 20.
    """
    rng = random.Random(seed)
    lengths = [
        round(rng.lognormvariate(math.log(_MEDIAN_LENGTH), _LENGTH_SPREAD))
        for _ in range(num_sentences)
    ]
    lengths = [min(max(length, _MIN_LENGTH), _MAX_LENGTH) for length in lengths]
    return Work(
        sources=tuple(_random_ids(rng, length, vocab_size) for length in lengths),
        max_lengths=tuple(nearest_target_length(length) for length in lengths),
        beam_size=beam_size,
        is_forced=True,
    )


def nearest_target_length(source_length: int) -> int:
    """The forced target length that is nearest."""
    return min(TARGET_LENGTHS, key=lambda length: abs(length - source_length))


def rounded_cap(cap: int, limit: int) -> int:
    """A cap rounded up to one of few, so that sentences can share a call of CTranslate2."""
    return min(limit, math.ceil(cap / _CAP_STEP) * _CAP_STEP)


def _random_ids(rng: random.Random, length: int, vocab_size: int) -> tuple[int, ...]:
    return (*(rng.randrange(NUM_SPECIALS, vocab_size) for _ in range(length - 1)), EOS_ID)
