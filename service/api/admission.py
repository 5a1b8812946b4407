"""Admission: the one path of a translation request from its arrival to its answer.

Owns the steps and their order, which is the order of refusals: admit the caller, look for room,
read the body, let the contract parse it, check the texts, read those that have tags, detect their
languages where the request names none, translate, count. A contract
(`service.api.libretranslate`, `service.api.v1`) owns its wire alone: how its values become a
`TranslationRequest`, and results a reply. Errors are answered by the application.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeVar

from msgspec import structs
from starlette.requests import Request
from starlette.responses import Response

from model.text.languages.detection import Detection
from service.access.access import Access, Caller
from service.api.checks import check_texts
from service.api.detecting import detected_sources, ranked_languages
from service.api.languages import languages_by_likelihood
from service.api.telling import Telling
from service.front import Front
from service.http.body import BodyReaders
from service.http.disconnect import cancelled_on_disconnect
from service.http.events import Event
from service.models.deployments.holding import Held
from service.models.requests.markup import Pages
from service.models.requests.translation import (
    AddedText,
    DoneSegment,
    OnSegment,
    Origin,
    TranslatedText,
    TranslationRequest,
)
from service.models.translating.translator import within
from service.models.translating.two_hops import Translator
from service.priority import estimated_work, priority_of
from service.telemetry.request_context import context_of

OptionsT = TypeVar("OptionsT")
ReadT_co = TypeVar("ReadT_co", covariant=True)
T = TypeVar("T")

_FEW_SEGMENTS = 128
"""Of results that the event loop has the time to write: a millisecond or two."""


class Wire(Protocol[ReadT_co]):
    """Reading of the requests of one API.

    `ReadT_co` is what `parse` keeps of a request for the reply.
    """

    @property
    def takes_forms(self) -> bool:
        """Values may come as a form or in the query string; otherwise as a JSON object alone."""

    @property
    def key_name(self) -> str | None:
        """The value that may carry an API key; None where only the header does."""

    def parse(self, values: Mapping[str, object]) -> tuple[TranslationRequest, ReadT_co]:
        """What is to be translated, and what the reply needs to know of the request.

        Raises:
            RequestError: A 400 or 413 in the contract's words.
        """


class Contract(Wire[OptionsT], Protocol[OptionsT]):
    """Wire of one API: how a request of it is read, and how it is answered."""

    def reply(self, results: Sequence[TranslatedText], options: OptionsT) -> Response:
        """The answer, of one result per text, in order."""


class StreamContract(Wire[OptionsT], Protocol[OptionsT]):
    """Wire of one API that answers sentence by sentence."""

    def segment(self, done: DoneSegment) -> Event:
        """The event of a sentence."""

    def added(self, text: AddedText) -> Event:
        """The event of text that a sentence has got meanwhile; of requests that are watched."""

    def result(self, results: Sequence[TranslatedText], options: OptionsT) -> Event:
        """The last event, of one result per text, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """The path, over the parts of one server.

    Attributes:
        front: What says whether there is room, and what translates.
        access: What knows callers and their limits.
        readers: What reads bodies, by caller.
    """

    front: Front
    access: Access
    readers: BodyReaders

    async def answer(self, request: Request, contract: Contract[OptionsT]) -> Response:
        """The contract's reply to a request.

        Raises:
            RequestError: A 400, 401, 403, 408, 413, 429, 503 or 504.
            ClientGoneError: The client left first; its work was dropped.
        """
        caller, values = await self.read(request, contract)
        job, options = contract.parse(values)
        results = await self.translate(request, caller, job)
        return await self.reply(contract, results, options)

    async def reply(
        self, contract: Contract[OptionsT], results: Sequence[TranslatedText], options: OptionsT
    ) -> Response:
        """The contract's reply of results, one per text, in order."""
        return await self._written(results, partial(contract.reply, results, options))

    async def _written(self, results: Sequence[TranslatedText], write: Callable[[], T]) -> T:
        """What `write` makes of results: here where they are few, else off the event loop."""
        if sum(len(result.hypotheses) for result in results) <= _FEW_SEGMENTS:
            return write()
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.front.strangers_thread, write)

    async def events(
        self, request: Request, contract: StreamContract[OptionsT]
    ) -> AsyncGenerator[bytes, None]:
        """An event for each sentence of a request when it is done, and one of the whole result.

        If the request is watched, also events of what is written meanwhile. They come in blocks of
        those that there are, encoded. The request is read here; its work begins with the first
        block that is asked for, and closing the blocks drops what is unfinished.

        Raises:
            RequestError: As of `answer`; by the blocks what does not come of reading the request.
            ClientGoneError: Likewise.
        """
        caller, values = await self.read(request, contract)
        job, options = contract.parse(values)
        return self._blocks(request, contract, caller, job, options)

    async def _blocks(
        self,
        request: Request,
        contract: StreamContract[OptionsT],
        caller: Caller,
        job: TranslationRequest,
        options: OptionsT,
    ) -> AsyncGenerator[bytes, None]:
        """The events of a request that was read."""

        def event(news: AddedText | DoneSegment) -> Event:
            return contract.segment(news) if isinstance(news, DoneSegment) else contract.added(news)

        telling = Telling()
        work = asyncio.create_task(self.translate(request, caller, job, telling.put))
        work.add_done_callback(lambda _: telling.end())
        try:
            while news := await telling.next():
                yield b"".join(event(one).encoded for one in news)
            results = await work
            yield await self._written(results, lambda: contract.result(results, options).encoded)
        finally:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)

    async def ranked_languages(self, request: Request, texts: Sequence[str]) -> list[Detection]:
        """The loaded languages that a request's texts may be in, the likeliest first.

        Raises:
            RequestError: A 403 where detection is off, a 413, a 503, or a 504.
            ClientGoneError: The client left first.
        """
        context = context_of(request)
        context.num_texts = len(texts)
        context.num_characters = check_texts(texts, self.front.settings)
        languages = languages_by_likelihood(self.front.table)
        priority = priority_of(estimated_work(texts, beam_size=1), None)
        async with within(self.front.settings.timeout_seconds):
            work = ranked_languages(self.front.detection, texts, languages, priority)
            return await cancelled_on_disconnect(request, work)

    async def read(
        self, request: Request, contract: Wire[OptionsT], *, needs_room: bool = True
    ) -> tuple[Caller, dict[str, object]]:
        """The caller and the request's values.

        Whether there is room is told as soon as the caller is known: to one whose key may still
        come it is not.

        Args:
            request: Whose body was not read yet.
            contract: Its wire.
            needs_room: It is work for an engine or the text thread; else it is answered however
                much of that there is.

        Raises:
            RequestError: A 400, 401, 403, 408, 413, 429 or 503.
        """
        access = self.access
        admit = access.admit_by_header if contract.key_name is None else access.admit
        caller = await admit(request)
        if caller is not None and needs_room:
            self.front.in_flight.check_room()
        if not contract.takes_forms:
            values = await self.readers.of(caller).read_json(request)
        else:
            query = await self.readers.of(caller).read_query(request)
            if caller is None and _key(contract, query):
                caller = await self.access.admit_with(request, _key(contract, query))
                if needs_room:
                    self.front.in_flight.check_room()
            values = await self.readers.of(caller).read_values(request, query)
        if caller is None:
            caller = await self.access.admit_with(request, _key(contract, values))
        return caller, values

    async def translate(
        self,
        request: Request,
        caller: Caller,
        job: TranslationRequest,
        on_segment: OnSegment | None = None,
    ) -> list[TranslatedText]:
        """One result per text, in order; counted for the caller, the metrics and the log.

        Raises:
            RequestError: As of `answer`.
            ClientGoneError: Likewise.
        """
        context = context_of(request)
        context.num_texts = len(job.texts)
        if job.by_source is None:
            context.served = self.front.served(job.route)
        context.num_characters = check_texts(
            job.texts, self.front.settings, has_tags=job.markup is not None
        )
        job, (pages, origins) = await self._prepared(request, job)
        routes = [origin.route for origin in origins]
        if job.by_source is not None:
            context.served = self.front.served(*routes or [job.route])
        num_hops = max((len(route.hops) for route in routes), default=1)
        work = estimated_work(job.texts, beam_size=job.beam_size) * num_hops
        priority = priority_of(work, job.priority)
        context.priority = priority
        with Held() as held:
            if self.front.in_flight.needs_loading(*routes):
                job, _ = await _timed(request, job, self.front.in_flight.load(held, *routes))
            of_texts = routes if pages is None else pages.of_texts(routes)
            job = structs.replace(
                job,
                route=of_texts[0] if of_texts else job.route,
                priority=priority,
                client=caller.number,
                cache_scope=caller.identity if caller.has_key else "",
            )
            async with self.front.in_flight.accepted(of_texts, priority, held) as translator:
                await self.access.spend_characters(caller, context.num_characters)
                self.front.metrics.characters_accepted(context.num_characters, context.served)
                results = await self._translated(request, job, translator, pages, on_segment)
        context.num_segments = sum(len(result.hypotheses) for result in results)
        return [
            structs.replace(result, origin=origin)
            for result, origin in zip(results, origins, strict=True)
        ]

    async def _translated(
        self,
        request: Request,
        job: TranslationRequest,
        translator: Translator,
        pages: Pages | None,
        on_segment: OnSegment | None,
    ) -> list[TranslatedText]:
        """One result per text or page of a request that has its place."""
        on_sentence = on_segment if pages is None else None  # a page is reported whole
        results = await cancelled_on_disconnect(request, translator.translate(job, on_sentence))
        if pages is None:
            return results
        joining = self.front.pages.joined(pages, results, job.priority)
        return await cancelled_on_disconnect(request, joining)

    async def _prepared(
        self, request: Request, job: TranslationRequest
    ) -> tuple[TranslationRequest, tuple[Pages | None, list[Origin]]]:
        """A request with all texts of its pages; those, and the way of each text or page."""
        if job.by_source is None and job.markup is None:
            return job, (None, [Origin(route=job.route)] * len(job.texts))
        job, found = await _timed(request, job, self._found(job))
        pages, _ = found
        return job if pages is None else structs.replace(job, texts=pages.texts), found

    async def _found(self, job: TranslationRequest) -> tuple[Pages | None, list[Origin]]:
        """The pages of a request, if it has tags, and the way of each text or page."""
        texts, pages = job.texts, None
        priority = priority_of(estimated_work(texts, beam_size=job.beam_size), job.priority)
        if job.markup is not None:
            pages = await self.front.pages.read(texts, job.markup, priority)
            texts = pages.samples
        if job.by_source is None:
            return pages, [Origin(route=job.route)] * len(texts)
        found = await detected_sources(self.front.detection, texts, job.by_source, priority)
        return pages, [Origin(route=job.by_source[one.tag], detected=one) for one in found]


async def _timed(
    request: Request, job: TranslationRequest, work: Coroutine[Any, Any, T]
) -> tuple[TranslationRequest, T]:
    """The result of what precedes a translation, and the request with less of its time left.

    Raises:
        RequestError: A 504 after the request's deadline, or what the work raises.
        ClientGoneError: The client left first.
    """
    clock = asyncio.get_running_loop().time
    started = clock()
    async with within(job.timeout_seconds, spent_seconds=job.spent_seconds):
        result = await cancelled_on_disconnect(request, work)
    return structs.replace(job, spent_seconds=job.spent_seconds + clock() - started), result


def _key(contract: Wire[OptionsT], values: Mapping[str, object]) -> object:
    return None if contract.key_name is None else values.get(contract.key_name)
