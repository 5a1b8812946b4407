"""Segmentation of a word into the pieces of a SentencePiece model, sampled or best.

Owns the two algorithms: merges that may be left out (BPE-dropout, Provilkov et al. 2020), and the
lattice of a unigram model, its samples and its best paths (Kudo 2018). Without
sampling both give what SentencePiece gives. Does not own the random numbers or how a line becomes
words.
"""

import heapq
import math
import random
from collections.abc import Callable, Mapping, Sequence

import sentencepiece

_UNKNOWN_PENALTY = 10.0  # SentencePiece's: an unknown character is so much worse than any piece


class PieceTable:
    """Ids and scores of a model's text pieces, by their text.

    Attributes:
        ids: Piece → id, without special, byte and user pieces.
        scores: Piece → score: minus the rank of a merge, or a log-probability.
        longest: Characters of the longest piece.
        unknown_score: Of a character that is no piece.

    Args:
        pieces: The model.
        user_symbols: Pieces that are no one's part.
    """

    def __init__(
        self, pieces: sentencepiece.SentencePieceProcessor, user_symbols: Sequence[str]
    ) -> None:
        self.ids: dict[str, int] = {}
        self.scores: dict[str, float] = {}
        self._bytes: dict[int, int] = {}
        self._unknown: int = pieces.unk_id()
        for index in range(pieces.get_piece_size()):
            piece = pieces.id_to_piece(index)
            if pieces.is_byte(index):
                self._bytes[int(piece[3:5], 16)] = index  # <0xE7>
            elif not (
                pieces.is_control(index)
                or pieces.is_unknown(index)
                or pieces.is_unused(index)
                or piece in user_symbols
            ):
                self.ids[piece] = index
                self.scores[piece] = pieces.get_score(index)
        self.longest = max(map(len, self.ids), default=1)
        self.unknown_score = min(self.scores.values(), default=0.0) - _UNKNOWN_PENALTY

    def numbers(self, parts: Sequence[str]) -> list[int]:
        """Ids of parts of a word; one that is no piece is spelt in bytes, or unknown."""
        found: list[int] = []
        for part in parts:
            index = self.ids.get(part)
            if index is not None:
                found.append(index)
            elif self._bytes:
                found += [self._bytes[value] for value in part.encode("utf-8")]
            elif not found or found[-1] != self._unknown:  # a run of them is one
                found.append(self._unknown)
        return found


def merge_pieces(
    word: str, scores: Mapping[str, float], is_left_out: Callable[[], bool]
) -> list[str]:
    """Cut a word by merges, the best first, the left one of equal ones.

    Args:
        word: Not empty.
        scores: Of the pieces.
        is_left_out: Called before each merge.
    """
    parts: list[str] = list(word)
    after = [*range(1, len(parts)), -1]
    before = list(range(-1, len(parts) - 1))
    agenda: list[tuple[float, int, str]] = []

    def offer(left: int, right: int) -> None:
        piece = parts[left] + parts[right]
        if piece in scores:
            heapq.heappush(agenda, (-scores[piece], left, piece))

    for left in range(len(parts) - 1):
        offer(left, left + 1)
    while agenda:
        _, left, piece = heapq.heappop(agenda)
        right = after[left]
        # A part that was merged away is empty, and one that grew makes another piece.
        if right < 0 or not parts[left] or parts[left] + parts[right] != piece:
            continue
        if is_left_out():
            continue
        parts[left], parts[right] = piece, ""
        after[left] = after[right]
        if after[left] >= 0:
            before[after[left]] = left
            offer(left, after[left])
        if before[left] >= 0:
            offer(before[left], left)
    return [part for part in parts if part]


def sample_path(word: str, table: PieceTable, alpha: float, source: random.Random) -> list[str]:
    """A path of the lattice, drawn in proportion to its probability to the power alpha.

    Forward sums of weights, then choices from the end (Kudo 2018, section 3.3).
    """
    edges = _lattice(word, table)
    sums = [0.0] + [-math.inf] * len(word)
    for end in range(1, len(word) + 1):
        sums[end] = _log_sum([sums[begin] + alpha * score for begin, score in edges[end]])
    parts, end = [], len(word)
    while end:
        weights = [math.exp(sums[begin] + alpha * score - sums[end]) for begin, score in edges[end]]
        ((begin, _),) = source.choices(edges[end], weights)
        parts.append(word[begin:end])
        end = begin
    return parts[::-1]


def best_paths(word: str, table: PieceTable, count: int) -> list[tuple[float, list[str]]]:
    """The `count` best paths of the lattice, or all there are, with their scores, best first."""
    edges = _lattice(word, table)
    found: list[list[tuple[float, list[str]]]] = [[(0.0, [])]]
    for end in range(1, len(word) + 1):
        longer = [
            (total + score, [*parts, word[begin:end]])
            for begin, score in edges[end]
            for total, parts in found[begin]
        ]
        found.append(heapq.nlargest(count, longer, key=lambda path: path[0]))
    return found[-1]


def _lattice(word: str, table: PieceTable) -> list[list[tuple[int, float]]]:
    """For each end in a word, where pieces that end there begin, with their scores."""
    edges: list[list[tuple[int, float]]] = [[]]
    for end in range(1, len(word) + 1):
        own = [
            (begin, table.scores[word[begin:end]])
            for begin in range(max(0, end - table.longest), end)
            if word[begin:end] in table.scores
        ]
        if not own or own[-1][0] != end - 1:
            own.append((end - 1, table.unknown_score))
        edges.append(own)
    return edges


def _log_sum(values: Sequence[float]) -> float:
    highest = max(values)
    return highest + math.log(sum(math.exp(value - highest) for value in values))
