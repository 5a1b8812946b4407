"""Work on texts: on the text thread, a few thousand characters at a time; a line or two at once.

Owns the pieces in which it is handed over, so that one long request does not keep the others
waiting, and which texts are so short that handing them over costs more than the work. What is done
to a text is its caller's.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import nullcontext
from typing import TypeVar

from service.priority import Priority

_CHARACTERS_PER_PIECE = 4_000
_SHORT_CHARACTERS = 256
"""Of texts that the event loop has the time for: a third of a millisecond in all its steps, three
of what is nothing but marks or line breaks. Another thread would keep it waiting for as long, as
one of them runs at a time."""
_CHARACTERS_PER_TEXT = 16
"""What every text counts besides its own: an empty one is work too."""

T = TypeVar("T")
U = TypeVar("U")


class TextWork:
    """Functions of texts, run on a thread.

    Args:
        thread: Where they run.
        bulk_turn: Held while bulk hands it a piece: with one at a time, an interactive request
            never waits there for more than one.
    """

    def __init__(self, thread: Executor, bulk_turn: asyncio.Semaphore) -> None:
        self._thread = thread
        self._bulk_turn = bulk_turn

    async def map(
        self,
        function: Callable[[T], U],
        items: Sequence[T],
        sizes: Sequence[int],
        priority: Priority,
        *,
        is_quick: bool = False,
    ) -> AsyncIterator[U]:
        """`function` of every item, in order.

        Args:
            function: Called on the thread.
            items: What it is called with.
            sizes: Characters of each.
            priority: The class of the request.
            is_quick: Its time depends on the characters alone: where they are few, it is called
                here.
        """
        if is_quick and are_short(sum(sizes), len(sizes)):
            for item in items:
                yield function(item)
            return
        loop = asyncio.get_running_loop()
        for piece in _pieces(items, sizes):
            async with self._bulk_turn if priority == "bulk" else nullcontext():
                done = await loop.run_in_executor(self._thread, _map_all, function, piece)
            for result in done:
                yield result


def are_short(num_characters: int, num_texts: int) -> bool:
    """Whether texts of so many characters in all are prepared sooner than handed to a thread."""
    return num_characters + _CHARACTERS_PER_TEXT * num_texts <= _SHORT_CHARACTERS


def _map_all(function: Callable[[T], U], items: Sequence[T]) -> list[U]:
    return [function(item) for item in items]


def _pieces(items: Sequence[T], sizes: Sequence[int]) -> Iterator[list[T]]:
    piece: list[T] = []
    size = 0
    for item, item_size in zip(items, sizes, strict=True):
        piece.append(item)
        size += item_size + _CHARACTERS_PER_TEXT
        if size >= _CHARACTERS_PER_PIECE:
            yield piece
            piece, size = [], 0
    if piece:
        yield piece
