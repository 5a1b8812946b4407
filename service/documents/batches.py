"""Texts of a document as batches: how much of one is in work at once, so that others have room.

Owns how long texts are parted, and how parts become batches and texts again. Pure.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

MAX_PART_CHARACTERS = 2_000
MAX_BATCH_CHARACTERS = 4_000
MAX_BATCH_TEXTS = 32

_SENTENCE_END = re.compile(r"[.!?…][\"')\]»”’]*\s+|[。！？]+[」』”’]*")
_SPACE = re.compile(r"\s+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Texts that are translated together.

    Attributes:
        parts: What is translated: every text whole, or in parts.
        counts: How many parts each text has.
    """

    parts: tuple[str, ...]
    counts: tuple[int, ...]

    def joined(self, translations: Sequence[str]) -> list[str]:
        """The texts' translations, of those of the parts."""
        found = iter(translations)
        return ["".join(next(found) for _ in range(count)) for count in self.counts]


def batches(texts: Sequence[str]) -> Iterator[Batch]:
    """Texts, in order, as batches of a few thousand characters; a long text is one by itself."""
    parts: list[str] = []
    counts: list[int] = []
    num_characters = 0
    for text in texts:
        is_full = (
            num_characters + len(text) > MAX_BATCH_CHARACTERS or len(counts) >= MAX_BATCH_TEXTS
        )
        if counts and is_full:
            yield Batch(parts=tuple(parts), counts=tuple(counts))
            parts, counts, num_characters = [], [], 0
        own = list(parted(text))
        parts += own
        counts.append(len(own))
        num_characters += len(text)
    if counts:
        yield Batch(parts=tuple(parts), counts=tuple(counts))


def groups(parts: Sequence[str], max_characters: int | None = None) -> Iterator[list[str]]:
    """Parts, in order, as many at a time as one request has.

    Args:
        parts: Of any texts.
        max_characters: Of one request, where its caller may have fewer; a longer part is alone.
    """
    most = min(MAX_BATCH_CHARACTERS, max_characters or MAX_BATCH_CHARACTERS)
    group: list[str] = []
    num_characters = 0
    for part in parts:
        is_full = num_characters + len(part) > most
        if group and (is_full or len(group) >= MAX_BATCH_TEXTS):
            yield group
            group, num_characters = [], 0
        group.append(part)
        num_characters += len(part)
    if group:
        yield group


def parted(text: str, max_characters: int = MAX_PART_CHARACTERS) -> Iterator[str]:
    """Parts of a text that together are the text, at ends of sentences where there are any."""
    done = 0
    while len(text) - done > max_characters:
        end = _end(text, done, done + max_characters)
        yield text[done:end]
        done = end
    yield text[done:]


def _end(text: str, start: int, limit: int) -> int:
    for pattern in (_SENTENCE_END, _SPACE):
        ends = [found.end() for found in pattern.finditer(text, start, limit)]
        if ends:
            return ends[-1]
    return limit
