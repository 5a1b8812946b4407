"""News of a request's sentences that its reader has still to be told.

Owns their order, and that they do not pile up: of a sentence that is written there is one entry at
most, however far behind the reader is, and what it is told of it is found when it is told. So a
slow reader takes no more memory than the result does, and nobody waits for it. What becomes of news
is `service.api.admission`'s.
"""

import asyncio
from collections import OrderedDict

from service.models.requests.translation import AddedText, DoneSegment, GrowingSentence

MAX_NEWS = 64
"""News that are told together: so many are written at once, in a millisecond or two."""

_Key = tuple[int, int, bool]  # text, sentence, and whether it is done


class Telling:
    """News between the task that translates and the one that writes to a client."""

    def __init__(self) -> None:
        # In the order of telling. A dict's first entry is the slower to find the more were before.
        self._waiting: OrderedDict[_Key, GrowingSentence | DoneSegment] = OrderedDict()
        self._has_news = asyncio.Event()
        self._is_over = False

    def __repr__(self) -> str:
        return f"<Telling {len(self._waiting)} waiting>"

    def put(self, news: GrowingSentence | DoneSegment) -> None:
        """Take news; a sentence that waits to be told already keeps its place."""
        key = (news.text_index, news.index, isinstance(news, DoneSegment))
        self._waiting.setdefault(key, news)
        self._has_news.set()

    def end(self) -> None:
        """No news come any more."""
        self._is_over = True
        self._has_news.set()

    async def next(self) -> list[AddedText | DoneSegment]:
        """What is to be told next, up to `MAX_NEWS` of what waits; none after the last."""
        while True:
            told: list[AddedText | DoneSegment] = []
            while self._waiting and len(told) < MAX_NEWS:
                _, news = self._waiting.popitem(last=False)
                one = news if isinstance(news, DoneSegment) else news.added
                if one is not None:
                    told.append(one)
            if told or self._is_over:
                return told
            self._has_news.clear()
            await self._has_news.wait()
