"""A session that many callers share: each hands over a pile of texts and has a future of it.

Owns the thread that owns the session, and what becomes of the piles when that thread fails: nobody
waits for ever, and whoever comes later is told the same. Piles take turns and fill each other's
batches up, so several on their way keep the session full.
"""

import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

from model.errors import DecodingError
from model.offline.bulk.task import Method
from model.offline.stream import TranslationStream
from model.offline.translator import Translator
from model.text.drafts.segments import Translation

Found = list[Translation | DecodingError]
"""Of each text of a pile, what became of it."""

_Stream = TranslationStream[tuple[int, int]]


@dataclass(slots=True, kw_only=True, eq=False)
class _Pile:
    texts: Sequence[str]
    future: Future[Found] = field(default_factory=Future)
    found: dict[int, Translation | DecodingError] = field(default_factory=dict)


class SharedSession:
    """A thread with a translator of its own, which other threads and event loops hand texts to.

    Args:
        opened: Opens the translator, on the thread that has it from then on.
        method: How all texts are translated.

    Raises:
        DragomanError: As of `opened`.
    """

    def __init__(self, opened: Callable[[], Translator], method: Method) -> None:
        self._inbox: queue.SimpleQueue[_Pile | None] = queue.SimpleQueue()
        self._piles: dict[int, _Pile] = {}
        self._num_piles = 0
        self._is_closed = False
        is_ready: Future[None] = Future()
        self._thread = threading.Thread(
            target=self._run, args=(opened, method, is_ready), daemon=True
        )
        self._thread.start()
        is_ready.result()

    def translate(self, texts: Sequence[str]) -> Future[Found]:
        """Have texts translated; from any thread, and without waiting.

        The future has whatever ended the session, if something did. One that is cancelled before
        its texts were begun costs nothing.
        """
        assert not self._is_closed, "nobody would answer"
        pile = _Pile(texts=texts)
        self._inbox.put(pile)
        return pile.future

    def close(self) -> None:
        """End, once what was handed over is done."""
        self._is_closed = True
        self._inbox.put(None)
        self._thread.join()

    def _run(
        self, opened: Callable[[], Translator], method: Method, is_ready: "Future[None]"
    ) -> None:
        try:
            stream: _Stream = TranslationStream(
                opened(), method.pair, method.search, method.control
            )
        except BaseException as error:  # whoever waits would wait for ever
            is_ready.set_exception(error)
            return
        is_ready.set_result(None)
        try:
            while self._take(stream):
                self._give(stream.step())
        except BaseException as error:  # same; it is theirs to raise
            for pile in self._piles.values():
                pile.future.set_exception(error)
            while (late := self._inbox.get()) is not None:
                if late.future.set_running_or_notify_cancel():
                    late.future.set_exception(error)

    def _take(self, stream: _Stream) -> bool:
        """Begin what was handed over; wait where there is nothing to do. False at the end."""
        while True:
            try:
                pile = self._inbox.get(block=not self._piles)
            except queue.Empty:
                return True
            if pile is None:
                while self._piles:
                    self._give(stream.step())
                return False
            self._begin(stream, pile)

    def _begin(self, stream: _Stream, pile: _Pile) -> None:
        if not pile.future.set_running_or_notify_cancel():
            return
        if not pile.texts:
            pile.future.set_result([])
            return
        number, self._num_piles = self._num_piles, self._num_piles + 1
        self._piles[number] = pile
        for place, text in enumerate(pile.texts):
            stream.put(number, (number, place), text)

    def _give(self, whole: Sequence[tuple[tuple[int, int], Translation | DecodingError]]) -> None:
        for (number, place), found in whole:
            pile = self._piles[number]
            pile.found[place] = found
            if len(pile.found) == len(pile.texts):
                del self._piles[number]
                pile.future.set_result([pile.found[rank] for rank in range(len(pile.texts))])
