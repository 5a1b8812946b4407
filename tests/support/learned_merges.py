"""Merges files and vocabularies as fairseq's and subword-nmt's tools leave them, learned here."""

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import pairwise
from pathlib import Path

WORD_END = "</w>"
FOLDER = Path(__file__).parent


def real_lines() -> list[str]:
    """Some hundred lines that people wrote: sentences, and pages with signs of every kind.

    The pages are a copy of documentation as it once was: networks of tests stay when it is edited.
    """
    lines = [
        line.strip()
        for name in ("sentences.en", "pages.txt")
        for line in (FOLDER / name).read_text(encoding="utf-8").split("\n")
    ]
    return [line for line in lines if line]


def learned_merges(words: Iterable[str], num_merges: int) -> list[tuple[str, str]]:
    """The most frequent pair of symbols, merged, again and again (Sennrich et al. 2016)."""
    counts = Counter(words)
    symbols = {word: [*word[:-1], word[-1] + WORD_END] for word in counts}
    merges: list[tuple[str, str]] = []
    for _ in range(num_merges):
        pairs: Counter[tuple[str, str]] = Counter()
        for word, parts in symbols.items():
            for pair in pairwise(parts):
                pairs[pair] += counts[word]
        if not pairs:
            break
        best = max(pairs, key=lambda pair: (pairs[pair], pair))
        merges.append(best)
        for parts in symbols.values():
            _merge(parts, best)
    return merges


def _merge(parts: list[str], pair: tuple[str, str]) -> None:
    place = 0
    while place < len(parts) - 1:
        if (parts[place], parts[place + 1]) == pair:
            parts[place : place + 2] = ["".join(pair)]
        place += 1


def merges_file(merges: Iterable[tuple[str, str]], *, header: str = "") -> bytes:
    return (header + "".join(f"{left} {right}\n" for left, right in merges)).encode()


def fairseq_vocabulary(
    words: Iterable[str], merges: Iterable[tuple[str, str]]
) -> Mapping[str, int]:
    """Every symbol that the merges can leave of the words, after fairseq's four special tokens."""
    characters = sorted({character for word in words for character in word})
    pieces = [*characters, *(item + WORD_END for item in characters), *map("".join, merges)]
    names = ["<s>", "<pad>", "</s>", "<unk>", *dict.fromkeys(pieces)]
    return {name: index for index, name in enumerate(names)}
