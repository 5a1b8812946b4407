"""Shape of the traffic that the simulation is held to: when requests come, and how long they are.

Owns the shape, pure; every draw is a seed's. Both are what people did: `conversations-2023.csv.gz`
has, of one hour, when each of 19,366 requests came to a conversation service of Azure and how many
tokens its answer had (AzureLLMInferenceTrace_conv.csv of 2023, CC-BY-4.0; Patel et al., Splitwise,
ISCA 2024, section III). Times are to a hundredth of a second. What was said is not told there:
texts are sentences that follow each other, of such lengths.
"""

import csv
import gzip
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

TRACE = Path(__file__).with_name("conversations-2023.csv.gz")
_CHARACTERS_A_TOKEN = 4
"""Of English, by the vocabularies that the trace's models have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A request of the trace.

    Attributes:
        seconds: When it came, from the first one's time.
        num_tokens: Of its answer.
    """

    seconds: float
    num_tokens: int


def recorded_requests() -> list[Recorded]:
    """The trace, ascending in time."""
    with gzip.open(TRACE, "rt", encoding="utf-8", newline="") as file:
        return [
            Recorded(seconds=float(row["seconds"]), num_tokens=int(row["tokens"]))
            for row in csv.DictReader(file)
        ]


def text_lengths(recorded: Sequence[Recorded], number: int, *, seed: int) -> list[int]:
    """Tokens of so many texts that are as long as the trace's answers, in any order.

    Each stands for as many answers as every other: the middle one of its part of all of them.
    """
    all_lengths = sorted(one.num_tokens for one in recorded)
    each = len(all_lengths) / number
    lengths = [all_lengths[int((place + 0.5) * each)] for place in range(number)]
    Random(seed).shuffle(lengths)  # who takes the first ones only has short and long ones, too
    return lengths


def texts_of_lengths(lines: Sequence[str], lengths: Sequence[int], *, seed: int) -> list[str]:
    """Sentences that follow each other, until a text has its length; at least one.

    Args:
        lines: Sentences, one a line; after the last comes the first.
        lengths: Tokens of each text.
        seed: Of where in the lines each begins.
    """
    random = Random(seed)
    texts = []
    for length in lengths:
        place = random.randrange(len(lines))
        text = lines[place]
        while len(text) < length * _CHARACTERS_A_TOKEN:
            place = (place + 1) % len(lines)
            text += f" {lines[place]}"
        texts.append(text)
    return texts


def played(
    recorded: Sequence[Recorded], lengths: Sequence[int], *, rate: float, seconds: float, seed: int
) -> list[tuple[float, int]]:
    """The trace as requests to a server: when each comes, ascending, and its text.

    Time runs faster, so that the whole trace takes the seconds; of its requests as many are kept as
    the rate allows, each with the same chance. If it has too few, time runs faster still.

    Args:
        recorded: The trace.
        lengths: Tokens of each text.
        rate: Requests a second, in the mean.
        seconds: The whole of it, at most.
        seed: Of which requests are kept.
    """
    number = min(round(rate * seconds), len(recorded))
    kept = sorted(Random(seed).sample(range(len(recorded)), number))
    pace = number / rate / (recorded[-1].seconds or 1.0)
    texts = sorted(range(len(lengths)), key=lengths.__getitem__)
    ascending = [lengths[text] for text in texts]
    requests = []
    for one in map(recorded.__getitem__, kept):
        place = min(bisect_left(ascending, one.num_tokens), len(texts) - 1)
        requests.append((one.seconds * pace, texts[place]))
    return requests
