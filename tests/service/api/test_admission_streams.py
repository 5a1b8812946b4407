"""Admission of what is told while it is made, and of large replies."""

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, asynccontextmanager

from msgspec import structs
from starlette.requests import Request
from starlette.responses import Response

from service.api.admission import Admission
from service.http.events import Event
from service.models.requests.translation import (
    AddedText,
    DoneSegment,
    GrowingSentence,
    OnSegment,
    TranslatedText,
    TranslationRequest,
)
from service.models.translating.several_routes import unchanged
from service.telemetry.request_context import RequestContext, attach_context
from support.admission_parts import TEXT, Parts, Streamed, answer_of, never


class Written(Parts):
    """The same with a translator that writes one text word by word, whether anybody reads or not.

    Attributes:
        is_written: Set when it is done.
        is_dropped: It was cancelled first.
    """

    def __init__(self, *, num_words: int) -> None:
        super().__init__(body=TEXT, query={})
        self._num_words = num_words
        self.is_written = asyncio.Event()
        self.is_dropped = False

    async def translate(
        self, job: TranslationRequest, on_segment: OnSegment | None
    ) -> list[TranslatedText]:
        assert on_segment is not None
        words: list[str] = []

        def take() -> AddedText | None:
            text = "".join(words)
            words.clear()
            return AddedText(text_index=0, index=0, text=text) if text else None

        try:
            for number in range(self._num_words):
                words.append(f"{number} ")
                on_segment(GrowingSentence(text_index=0, index=0, take=take))
                await asyncio.sleep(0)
        except asyncio.CancelledError:
            self.is_dropped = True
            raise
        on_segment(
            DoneSegment(text_index=0, index=0, start=0, source="s", text="done", segments=())
        )
        self.is_written.set()
        return [unchanged(text) for text in job.texts]


@asynccontextmanager
async def _events(
    parts: Parts, contract: Streamed | None = None
) -> AsyncIterator[AsyncGenerator[bytes, None]]:
    request = Request({"type": "http", "headers": []}, receive=never)
    attach_context(request.scope, RequestContext(request_id="r"))
    admission = Admission(front=parts, access=parts, readers=parts)  # type: ignore[arg-type]
    async with aclosing(await admission.events(request, contract or Streamed())) as events:
        yield events


def test_a_reader_that_is_behind_holds_nothing_up_and_gets_what_it_missed_in_one_piece() -> None:
    async def scenario() -> None:
        parts = Written(num_words=1_000)
        async with _events(parts) as events:
            first = await anext(events)
            await parts.is_written.wait()  # though nobody reads
            rest = [block async for block in events]
        others = "".join(f"{number} " for number in range(1, 1_000))
        assert first == Event(name="token", data="0 ").encoded
        assert rest == [
            Event(name="token", data=others).encoded + Event(name="segment", data="done").encoded,
            Event(name="result", data="asked").encoded,
        ]

    asyncio.run(scenario())


def test_a_reader_that_leaves_takes_the_work_with_it() -> None:
    async def scenario() -> None:
        parts = Written(num_words=1_000)
        async with _events(parts) as events:
            assert (await anext(events)).startswith(b"event: token\n")
        assert parts.is_dropped

    asyncio.run(scenario())


class Long(Parts):
    """The same with a translator that makes many segments of a text, and threads that are noted."""

    def __init__(self) -> None:
        super().__init__(body=TEXT, query={})
        self.strangers_thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="strangers")

    async def translate(
        self, job: TranslationRequest, on_segment: OnSegment | None
    ) -> list[TranslatedText]:
        (result,) = await super().translate(job, on_segment)
        return [structs.replace(result, hypotheses=(None,) * 1_000)]


def test_a_large_reply_is_written_off_the_event_loop() -> None:
    threads: list[str] = []

    class Noted(Streamed):
        def reply(self, results: Sequence[TranslatedText], asked: str) -> Response:
            threads.append(threading.current_thread().name)
            return super().reply(results, asked)

        def result(self, results: Sequence[TranslatedText], asked: str) -> Event:
            threads.append(threading.current_thread().name)
            return super().result(results, asked)

    async def stream(parts: Parts) -> list[bytes]:
        async with _events(parts, Noted()) as events:
            return [block async for block in events]

    for parts in (Long(), Parts(body=TEXT, query={})):
        answer_of(parts, Noted())
        assert asyncio.run(stream(parts)) == [Event(name="result", data="asked").encoded]
    assert threads == ["strangers_0"] * 2 + [threading.current_thread().name] * 2
