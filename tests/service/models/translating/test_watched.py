"""Requests that somebody watches while they are translated: what a reader is told, and when."""

import asyncio
from collections.abc import Sequence
from typing import Any, ClassVar

from msgspec import structs

from service.engine.client.client import EngineClient
from service.engine.client.submission import OnWritten, SegmentBatch, SegmentJob
from service.models.requests.translation import (
    AddedText,
    DoneSegment,
    GrowingSentence,
    TranslationRequest,
)
from service.models.translating.segment_cache import SegmentCache
from service.models.translating.translator import OnlineTranslator
from support.online_translation import MARKED, TEXT, Echo, request_of, translator_over


def _watched(texts: Sequence[str], **options: Any) -> TranslationRequest:
    return structs.replace(request_of(texts, beam_size=1, **options), is_watched=True)


class _Reader:
    """A reader that takes what is new of each sentence at once."""

    def __init__(self) -> None:
        self.told: list[DoneSegment | AddedText] = []
        self.shown: dict[tuple[int, int], str] = {}

    def __call__(self, news: DoneSegment | GrowingSentence) -> None:
        told = news if isinstance(news, DoneSegment) else news.added
        if told is None:
            return
        self.told.append(told)
        if isinstance(told, AddedText):
            key = (told.text_index, told.index)
            before = "" if told.is_restart else self.shown.get(key, "")
            self.shown[key] = before + told.text

    @property
    def done(self) -> list[tuple[int, int]]:
        return [(one.text_index, one.index) for one in self.told if isinstance(one, DoneSegment)]


def test_a_watched_request_is_shown_the_raw_text_of_what_it_ends_with(
    runner: asyncio.Runner, translator: OnlineTranslator
) -> None:
    reader = _Reader()
    texts = [TEXT, f"7.30\n{TEXT}", "She sells. They run."]
    request = _watched(texts, max_length=30)
    results = runner.run(translator.translate(request, reader))
    raw = {
        (place, index): translator.pipeline.raw_text(found.token_ids, is_whole=True)
        for place, result in enumerate(results)
        for index, found in enumerate(result.hypotheses)
        if found is not None
    }
    assert reader.shown == {key: text for key, text in raw.items() if text}
    assert sorted(reader.done) == [(0, 0), (1, 0), (1, 1), (2, 0), (2, 1)]
    assert results == runner.run(
        translator.translate(request_of(texts, beam_size=1, max_length=30))
    )


def test_of_a_request_that_nobody_watches_the_engine_is_asked_for_no_tokens(
    translator: OnlineTranslator,
) -> None:
    class Listening(Echo):
        watchers: ClassVar[list[object]] = []

        def submit(
            self,
            jobs: Sequence[SegmentJob],
            *,
            client: int = 0,
            on_written: OnWritten | None = None,
        ) -> SegmentBatch:
            self.watchers.append(on_written)
            return super().submit(jobs, client=client)

    async def scenario() -> None:
        reader = _Reader()
        own = translator_over(translator, Listening(keeps_all=True))
        for request in (request_of(["She sells."]), _watched(["She sells."])):
            await own.translate(request)
            await own.translate(request, reader)
        assert [one is not None for one in Listening.watchers] == [False, False, False, True]
        assert reader.shown == {(0, 0): "She sells."}, "what was answered at once is told at once"

    asyncio.run(scenario())


def test_what_was_in_the_cache_is_told_as_it_is_done_alone(
    runner: asyncio.Runner, translator: OnlineTranslator, engine: EngineClient
) -> None:
    cached = translator_over(translator, engine, cache=SegmentCache(1 << 20))
    first, second = _Reader(), _Reader()
    runner.run(cached.translate(_watched([TEXT], max_length=30), first))
    runner.run(cached.translate(_watched([TEXT, "She sells."], max_length=30), second))
    assert set(first.shown) == {(0, 0)}
    assert set(second.shown) == {(1, 0)}
    assert sorted(second.done) == [(0, 0), (1, 0)]


def test_what_is_tried_again_is_withdrawn_before_it_is_done(translator: OnlineTranslator) -> None:
    reader = _Reader()
    own = translator_over(translator, Echo())
    asyncio.run(own.translate(_watched([MARKED]), reader))
    *_, withdrawn, done = reader.told
    assert isinstance(withdrawn, AddedText)
    assert (withdrawn.text, withdrawn.is_restart) == ("", True)
    assert isinstance(done, DoneSegment)
    assert done.segments[0].quality.num_tries > 0
    assert reader.shown == {(0, 0): ""}
