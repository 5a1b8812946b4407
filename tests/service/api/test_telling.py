"""What a reader is told, however far behind it is."""

import asyncio
from collections.abc import Coroutine

from service.api.telling import MAX_NEWS, Telling
from service.models.requests.translation import AddedText, DoneSegment, GrowingSentence


class Writing:
    """A sentence whose text waits to be taken."""

    def __init__(self, index: int, *, text_index: int = 0) -> None:
        self.text = ""
        self.num_taken = 0
        self._index = index
        self._text_index = text_index

    def grown(self, text: str) -> GrowingSentence:
        self.text += text
        return GrowingSentence(text_index=self._text_index, index=self._index, take=self._take)

    def _take(self) -> AddedText | None:
        self.num_taken += 1
        text, self.text = self.text, ""
        return _added(self._index, text) if text else None


def _added(index: int, text: str, *, text_index: int = 0) -> AddedText:
    return AddedText(text_index=text_index, index=index, text=text)


def _done(index: int, *, text_index: int = 0) -> DoneSegment:
    return DoneSegment(
        text_index=text_index, index=index, start=0, source="s", text="t", segments=()
    )


async def _told(telling: Telling) -> list[AddedText | DoneSegment]:
    told: list[AddedText | DoneSegment] = []
    while news := await telling.next():
        told += news
    return told


def _run(scenario: Coroutine[None, None, None]) -> None:
    asyncio.run(scenario)


def test_a_sentence_that_waits_keeps_its_place_and_is_told_before_its_end() -> None:
    async def scenario() -> None:
        telling, one, other = Telling(), Writing(0), Writing(1)
        telling.put(one.grown("a"))
        telling.put(other.grown("x"))
        telling.put(one.grown("b"))
        telling.put(_done(1))
        telling.put(one.grown("c"))
        telling.put(_done(0))
        telling.end()
        assert await _told(telling) == [_added(0, "abc"), _added(1, "x"), _done(1), _done(0)]
        assert (one.num_taken, other.num_taken) == (1, 1)

    _run(scenario())


def test_a_sentence_that_was_told_and_grows_is_told_again() -> None:
    async def scenario() -> None:
        telling, one = Telling(), Writing(0)
        told = []
        for text in ("a", "", "b"):
            telling.put(one.grown(text))
            if text:
                told += await telling.next()
        telling.end()
        assert told == [_added(0, "a"), _added(0, "b")]
        assert await telling.next() == []

    _run(scenario())


def test_a_sentence_in_another_text_is_another_sentence_and_is_told_where_it_is() -> None:
    async def scenario() -> None:
        telling = Telling()
        telling.put(Writing(0).grown("a"))
        telling.put(Writing(0, text_index=3).grown("b"))
        telling.end()
        assert await _told(telling) == [_added(0, "a"), _added(0, "b", text_index=3)]

    _run(scenario())


def test_a_reader_that_waits_is_woken_by_news_and_by_the_end() -> None:
    async def scenario() -> None:
        telling = Telling()
        reading = asyncio.create_task(_told(telling))
        await asyncio.sleep(0)
        telling.put(Writing(0).grown(""))
        telling.put(_done(0))
        await asyncio.sleep(0)
        assert not reading.done()
        telling.end()
        assert await reading == [_done(0)]
        assert await telling.next() == []

    _run(scenario())


def test_what_waits_is_told_together_as_much_as_is_written_at_once() -> None:
    async def scenario() -> None:
        telling = Telling()
        for index in range(MAX_NEWS + 6):
            telling.put(_done(index))
        telling.end()
        assert await telling.next() == [_done(index) for index in range(MAX_NEWS)]
        assert await telling.next() == [_done(MAX_NEWS + index) for index in range(6)]
        assert await telling.next() == []

    _run(scenario())


def test_a_reader_that_never_reads_leaves_two_entries_a_sentence_at_most() -> None:
    telling = Telling()
    sentences = [Writing(index) for index in range(7)]
    for number in range(5_000):
        telling.put(sentences[number % 7].grown("word "))
    for index in range(7):
        telling.put(_done(index))
    assert repr(telling) == "<Telling 14 waiting>"
    assert not any(sentence.num_taken for sentence in sentences)
