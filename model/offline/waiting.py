"""Segments that wait for a session, of several piles: which of them join next, pure.

Owns the order: piles take turns, so that a long text of one never holds back another; within a turn
the longest segment goes first and the nearest in length, of whatever pile, join it, so that
neighbours in a batch are alike. It knows neither texts nor the session.
"""

from bisect import bisect_right, insort
from collections import deque
from dataclasses import dataclass
from typing import Generic, TypeVar

TicketT = TypeVar("TicketT")


@dataclass(frozen=True, slots=True)
class _Entry(Generic[TicketT]):
    num_tokens: int
    ticket: TicketT


def _length(entry: _Entry[TicketT]) -> int:
    return entry.num_tokens


class WaitingSegments(Generic[TicketT]):
    """Tickets of segments by their length, in piles.

    Args:
        max_tokens: Padded source tokens of a batch; one segment alone may have more.
    """

    def __init__(self, *, max_tokens: int) -> None:
        self._max_tokens = max_tokens
        self._piles: dict[int, list[_Entry[TicketT]]] = {}
        self._turns: deque[int] = deque()

    def __len__(self) -> int:
        return sum(map(len, self._piles.values()))

    def put(self, pile: int, num_tokens: int, ticket: TicketT) -> None:
        """Add a segment to a pile.

        Args:
            pile: Its number; one that is not known yet has its turn after all others.
            num_tokens: Source tokens of the segment.
            ticket: What `next_batch` gives back.
        """
        if pile not in self._piles:
            self._piles[pile] = []
            self._turns.append(pile)
        insort(self._piles[pile], _Entry(num_tokens, ticket), key=_length)

    def next_batch(self, max_segments: int) -> list[TicketT]:
        """Take what joins the session next; empty only if nothing waits, or nothing may join."""
        if not self._turns or max_segments < 1:
            return []
        longest = self._piles[self._turns[0]][-1].num_tokens
        ends = {pile: bisect_right(self._piles[pile], longest, key=_length) for pile in self._turns}
        chosen: list[TicketT] = []
        fitting = min(max_segments, max(1, self._max_tokens // max(1, longest)))
        while len(chosen) < fitting and (pile := self._pile_of_nearest(ends)) is not None:
            ends[pile] -= 1
            chosen.append(self._piles[pile].pop(ends[pile]).ticket)
        self._turns.rotate(-1)
        for pile in [pile for pile, entries in self._piles.items() if not entries]:
            del self._piles[pile]
            self._turns.remove(pile)
        return chosen

    def _pile_of_nearest(self, ends: dict[int, int]) -> int | None:
        """The pile with the longest segment before its end; of several the one whose turn it is."""
        fitting = [pile for pile in self._turns if ends[pile]]
        return max(
            fitting, key=lambda pile: self._piles[pile][ends[pile] - 1].num_tokens, default=None
        )
