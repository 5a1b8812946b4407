"""Work on texts, off the event loop: on the text thread, a few thousand characters at a time.

Owns the pieces in which it is handed over, so that one long request does not keep the others
waiting. What is done to a text is its caller's.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import nullcontext
from typing import TypeVar

from service.priority import Priority

_CHARACTERS_PER_PIECE = 4_000

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
    ) -> AsyncIterator[U]:
        """`function` of every item, in order.

        Args:
            function: Called on the thread.
            items: What it is called with.
            sizes: Characters of each.
            priority: The class of the request.
        """
        loop = asyncio.get_running_loop()
        for piece in _pieces(items, sizes):
            async with self._bulk_turn if priority == "bulk" else nullcontext():
                done = await loop.run_in_executor(self._thread, _map_all, function, piece)
            for result in done:
                yield result


def _map_all(function: Callable[[T], U], items: Sequence[T]) -> list[U]:
    return [function(item) for item in items]


def _pieces(items: Sequence[T], sizes: Sequence[int]) -> Iterator[list[T]]:
    piece: list[T] = []
    size = 0
    for item, item_size in zip(items, sizes, strict=True):
        piece.append(item)
        size += item_size
        if size >= _CHARACTERS_PER_PIECE:
            yield piece
            piece, size = [], 0
    if piece:
        yield piece
