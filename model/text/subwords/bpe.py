"""Byte pair encoding of words by ranked merges (Sennrich et al. 2016), without SentencePiece.

Owns merges files, the merging of one word's characters, and how pieces say where words end. It does
not own what a word is (`model.text.subwords.moses`) and does not learn merges.
"""

import heapq
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Literal

from model.errors import ConfigError, shown

PieceMarks = Literal["word-end", "continuation"]
"""How pieces say where a word ends: its last one has "</w>" (fairseq's WMT19 networks, XLM), or all
others have "@@" (subword-nmt)."""

MAX_MERGES_BYTES = 32 * 2**20
MAX_MERGES = 2**20
MAX_CACHED_CHARACTERS = 64
MAX_CACHED_WORDS = 2**15

_WORD_END = "</w>"
_CONTINUATION = "@@"
_VERSION = "#version:"

Pair = tuple[str, str]


class Merges:
    """Merges of pairs of symbols, the first learned first.

    A line is two symbols and perhaps a number, which is left out. In files of subword-nmt,
    "#version: 0.2" on the first line means that the end of a word is part of its last character;
    before, it was a symbol of its own. Where a pair stands twice, subword-nmt takes the first line
    and the tokenizer of fairseq's networks the last.

    Args:
        data: The file.
        marks: Which of the two programs' files it is.

    Raises:
        ConfigError: It is not a merges file, or is larger than any.
    """

    def __init__(self, data: bytes, marks: PieceMarks) -> None:
        lines = _lines(data)
        version = lines[0].removeprefix(_VERSION).strip() if lines[0].startswith(_VERSION) else None
        if version not in {None, "0.1", "0.2"}:
            raise ConfigError(f"is of version {shown(version)}; merges are of 0.1 or 0.2")
        first = int(version is not None)
        ranks: dict[Pair, int] = {}
        for rank, line in enumerate(lines[first:]):
            pair = _pair(line, rank + first + 1)
            if marks == "word-end" or pair not in ranks:
                ranks[pair] = rank
        self.ranks: Mapping[Pair, int] = ranks
        self.has_end_symbol = marks == "continuation" and version != "0.2"

    def __repr__(self) -> str:
        return f"<{len(self.ranks)} merges>"

    @property
    def data(self) -> bytes:
        """A file of the same merges, without a version and every pair once."""
        ranked = sorted(self.ranks, key=self.ranks.__getitem__)
        return "".join(f"{left} {right}\n" for left, right in ranked).encode()


def _lines(data: bytes) -> list[str]:
    if len(data) > MAX_MERGES_BYTES:
        raise ConfigError(f"has {len(data)} bytes; merges have at most {MAX_MERGES_BYTES}")
    num_lines = data.count(b"\n")
    if num_lines > MAX_MERGES:
        raise ConfigError(f"has {num_lines} lines; at most {MAX_MERGES} merges are read")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise ConfigError(f"is not UTF-8 at byte {error.start}") from error
    lines = text.removesuffix("\n").split("\n")
    if not lines[0]:
        raise ConfigError("has no merges")
    return lines


def _pair(line: str, number: int) -> Pair:
    symbols = line.rstrip("\r").split(" ")
    if len(symbols) not in {2, 3} or not all(symbols):
        raise ConfigError(f"has {shown(line)} on line {number}; a merge is two symbols")
    return symbols[0], symbols[1]


class WordPieces:
    """Words to pieces and back.

    Threads may share one: it changes nothing but a cache of short words.

    Args:
        merges: Ranked.
        marks: How the pieces say where words end.
    """

    def __init__(self, merges: Merges, marks: PieceMarks) -> None:
        self._merges = merges
        self._marks = marks
        self._of_short_word = lru_cache(maxsize=MAX_CACHED_WORDS)(self._of_word)

    def __repr__(self) -> str:
        return f"<WordPieces by {self._merges!r}>"

    def split(self, words: Sequence[str]) -> list[str]:
        """The pieces of some words, none of which is empty."""
        pieces: list[str] = []
        for word in words:
            is_short = len(word) <= MAX_CACHED_CHARACTERS
            pieces += self._of_short_word(word) if is_short else self._of_word(word)
        return pieces

    def join(self, pieces: Sequence[str]) -> list[str]:
        """The words of some pieces."""
        if self._marks == "word-end":
            return "".join(pieces).replace(_WORD_END, " ").split()
        text = " ".join(pieces).replace(f"{_CONTINUATION} ", "")
        return text.removesuffix(_CONTINUATION).split()

    def _of_word(self, word: str) -> tuple[str, ...]:
        if self._merges.has_end_symbol:
            symbols = [*word, _WORD_END]
        else:
            symbols = [*word[:-1], word[-1] + _WORD_END]
        symbols = merged(symbols, self._merges.ranks)
        if self._marks == "word-end":
            return tuple(symbols)
        if symbols[-1] == _WORD_END:
            symbols.pop()
        symbols[-1] = symbols[-1].removesuffix(_WORD_END)
        return (*(symbol + _CONTINUATION for symbol in symbols[:-1]), symbols[-1])


def merged(symbols: Sequence[str], ranks: Mapping[Pair, int]) -> list[str]:
    """The symbols after all merges (algorithm 1 of the paper).

    The pair of the best rank is merged wherever it stands, from the left, then the best of what
    there is now. A heap of places finds it, so a word of n characters takes n log n steps, and not
    n² as a search of all pairs at every merge.
    """
    texts: list[str | None] = list(symbols)
    after = list(range(1, len(texts) + 1))
    before = list(range(-1, len(texts) - 1))
    heap: list[tuple[int, int, Pair]] = []

    def offer(place: int) -> None:
        """Put the pair that begins at a place on the heap, if it has a merge."""
        if place >= 0 and after[place] < len(texts):
            left, right = texts[place], texts[after[place]]
            assert left is not None
            assert right is not None
            rank = ranks.get((left, right))
            if rank is not None:
                heapq.heappush(heap, (rank, place, (left, right)))

    for place in range(len(texts)):
        offer(place)
    while heap:
        best, changed = heap[0][0], []
        while heap and heap[0][0] == best:
            _, place, (left, right) = heapq.heappop(heap)
            second = after[place]
            if texts[place] != left or second == len(texts) or texts[second] != right:
                continue  # one of the two has been merged since
            texts[place], texts[second] = left + right, None
            after[place] = after[second]
            if after[place] < len(texts):
                before[after[place]] = place
            changed.append(place)
        for place in changed:
            if texts[place] is not None:
                offer(before[place])
                offer(place)
    return [text for text in texts if text is not None]
