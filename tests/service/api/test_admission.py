"""Admission, over parts that write down what they are asked; the contracts are tests/contract."""

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field

import pytest
from msgspec import structs
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from model.text.languages.detection import Detection
from model.text.languages.tags import LanguagePair
from service.access.access import Caller
from service.api.admission import Admission
from service.errors import RequestError, invalid, overloaded
from service.http.events import Event
from service.models.deployments.holding import Held
from service.models.requests.translation import (
    AddedText,
    DoneSegment,
    GrowingSentence,
    Markup,
    OnSegment,
    TranslatedText,
    TranslationRequest,
)
from service.models.routes.routing import Hop, Route
from service.models.translating.several_routes import unchanged
from service.settings import Settings
from service.telemetry.request_context import RequestContext, attach_context

ROUTE = Route(hops=(Hop(checkpoint="tiny", pair=LanguagePair(source="en", target="zh-Hans")),))
BACK = Route(hops=(Hop(checkpoint="back", pair=LanguagePair(source="de", target="zh-Hans")),))


@dataclass(frozen=True, slots=True, kw_only=True)
class Third:
    """A third contract: what it would take beside the two there are."""

    takes_forms: bool = False
    key_name: str | None = None
    steps: list[str] = field(default_factory=list)
    by_source: Mapping[str, Route] | None = None
    timeout_seconds: float = 1.0
    markup: Markup | None = None

    def parse(self, values: Mapping[str, object]) -> tuple[TranslationRequest, str]:
        self.steps.append("parse")
        if "text" not in values:
            raise invalid("text is missing")
        job = TranslationRequest(
            texts=(str(values["text"]),),
            route=ROUTE,
            by_source=self.by_source,
            markup=self.markup,
            beam_size=1,
            length_penalty=1.0,
            num_alternatives=0,
            max_length=None,
            with_alignment=False,
            timeout_seconds=self.timeout_seconds,
        )
        return job, "asked"

    def reply(self, results: Sequence[TranslatedText], asked: str) -> Response:
        self.steps.append("reply")
        origins = [result.origin for result in results]
        shown = [(one.route.source, one.detected) for one in origins if one is not None]
        return PlainTextResponse(f"{asked}: {shown}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Streamed(Third):
    """The same, sentence by sentence."""

    def segment(self, done: DoneSegment) -> Event:
        return Event(name="segment", data=done.text)

    def added(self, text: AddedText) -> Event:
        return Event(name="token", data=text.text)

    def result(self, _results: Sequence[TranslatedText], asked: str) -> Event:
        return Event(name="result", data=asked)


class Parts:
    """Access, front and readers of a server at once, and the steps that were taken there."""

    def __init__(
        self, *, key: str | None = None, body: Mapping[str, object], query: Mapping[str, object]
    ) -> None:
        self.steps: list[str] = []
        self.settings = Settings(max_text_characters=10)
        self.is_full = False
        self.has_to_load = False
        self._has_header = key == "header"
        self._is_guarded = key is not None
        self._body, self._query = body, query

    def _caller(self, *, has_key: bool) -> Caller:
        return Caller(
            identity="k", requests_per_minute=None, characters_per_minute=None, has_key=has_key
        )

    async def admit(self, _request: Request) -> Caller | None:
        self.steps.append("admit")
        if self._is_guarded and not self._has_header:
            return None
        return self._caller(has_key=self._has_header)

    async def admit_with(self, _request: Request, api_key: object) -> Caller:
        self.steps.append(f"admit with {api_key}")
        return self._caller(has_key=api_key is not None)

    async def spend_characters(self, _caller: Caller, num_characters: int) -> None:
        self.steps.append(f"spend {num_characters}")

    def check_room(self) -> None:
        self.steps.append("room")
        if self.is_full:
            raise overloaded("full", value=1, limit=1, seconds=1.0)

    def of(self, caller: Caller | None) -> "Parts":
        self.steps.append("keyless" if caller is None else f"reader {caller.has_key}")
        return self

    async def read_json(self, _request: Request) -> dict[str, object]:
        self.steps.append("json")
        return dict(self._body)

    async def read_query(self, _request: Request) -> dict[str, object]:
        self.steps.append("query")
        return dict(self._query)

    async def read_values(
        self, _request: Request, query: Mapping[str, object]
    ) -> dict[str, object]:
        self.steps.append("values")
        return {**query, **self._body}

    def served(self, *_routes: Route) -> None:
        return None

    @property
    def detection(self) -> "Parts":
        return self

    @property
    def is_on(self) -> bool:
        return True

    async def detect(
        self, texts: Sequence[str], tags: Sequence[str], priority: str
    ) -> list[Detection]:
        self.steps.append(f"detect {priority}")
        return [Detection(tag=tags[-1], confidence=7) for _ in texts]

    @property
    def metrics(self) -> "Parts":
        return self

    def characters_accepted(self, num_characters: int, _served: None) -> None:
        self.steps.append(f"count {num_characters}")

    @property
    def in_flight(self) -> "Parts":
        return self

    def needs_loading(self, *_routes: Route) -> bool:
        return self.has_to_load

    async def load(self, _held: Held, *_routes: Route) -> None:
        self.steps.append("load")

    @asynccontextmanager
    async def accepted(
        self, routes: Sequence[Route], priority: str, _held: Held
    ) -> AsyncIterator["Parts"]:
        self.steps.append(f"translator {priority}")
        self.routes = list(routes)
        yield self

    async def translate(
        self, job: TranslationRequest, on_segment: OnSegment | None
    ) -> list[TranslatedText]:
        self.steps.append("translate")
        self.job = job
        return [unchanged(text) for text in job.texts]


async def _never() -> dict[str, object]:
    await asyncio.Event().wait()
    return {}


def _answer(parts: Parts, contract: Third) -> Response:
    async def scenario() -> Response:
        request = Request({"type": "http", "headers": []}, receive=_never)
        attach_context(request.scope, RequestContext(request_id="r"))
        admission = Admission(front=parts, access=parts, readers=parts)  # type: ignore[arg-type]
        return await admission.answer(request, contract)

    return asyncio.run(scenario())


TEXT = {"text": "A cat."}
TRANSLATED = ["parse", "translator interactive", "spend 6", "count 6", "translate", "reply"]


@pytest.mark.parametrize(
    ("contract", "parts", "read"),
    [
        (
            {},
            {"body": TEXT, "query": {}},
            ["admit", "room", "reader False", "json"],
        ),
        (
            {},
            {"key": "body", "body": TEXT | {"key": "k"}, "query": {}},
            ["admit", "admit with None", "room", "reader False", "json"],
        ),
        (
            {"key_name": "key"},
            {"key": "body", "body": TEXT | {"key": "k"}, "query": {}},
            ["admit", "keyless", "json", "admit with k"],
        ),
        (
            {"takes_forms": True, "key_name": "key"},
            {"key": "header", "body": TEXT, "query": {"key": "other"}},
            ["admit", "room", "reader True", "query", "reader True", "values"],
        ),
        (
            {"takes_forms": True, "key_name": "key"},
            {"key": "query", "body": {}, "query": TEXT | {"key": "k"}},
            ["admit", "keyless", "query", "admit with k", "room", "reader True", "values"],
        ),
        (
            {"takes_forms": True, "key_name": "key"},
            {"key": "body", "body": TEXT | {"key": "k"}, "query": {}},
            ["admit", "keyless", "query", "keyless", "values", "admit with k"],
        ),
        (
            {"takes_forms": True},
            {"key": "body", "body": TEXT, "query": {}},
            ["admit", "admit with None", "room", "reader False", "query", "reader False", "values"],
        ),
    ],
)
def test_any_contract_takes_the_same_steps_in_the_same_order(
    contract: dict[str, object], parts: dict[str, object], read: list[str]
) -> None:
    server = Parts(**parts)  # type: ignore[arg-type]
    reply = _answer(server, Third(steps=server.steps, **contract))  # type: ignore[arg-type]
    assert bytes(reply.body) == b"asked: [('en', None)]"
    assert server.steps == [*read, *TRANSLATED]


@pytest.mark.parametrize(("key", "scope"), [("header", "k"), (None, "")])
def test_what_is_kept_of_a_request_belongs_to_its_key(key: str | None, scope: str) -> None:
    server = Parts(body=TEXT, query={}, key=key)
    _answer(server, Third(steps=server.steps))
    assert server.job.cache_scope == scope


def test_a_full_server_refuses_before_it_reads_a_body() -> None:
    server = Parts(body=TEXT, query={})
    server.is_full = True
    with pytest.raises(RequestError, match="full"):
        _answer(server, Third(steps=server.steps))
    assert server.steps == ["admit", "room"]


def test_what_translates_nothing_is_read_by_a_full_server() -> None:
    server = Parts(body=TEXT, query={"key": "k"}, key="query")
    server.is_full = True
    contract = Third(steps=server.steps, takes_forms=True, key_name="key")
    admission = Admission(front=server, access=server, readers=server)  # type: ignore[arg-type]
    request = Request({"type": "http", "headers": []}, receive=_never)
    _, values = asyncio.run(admission.read(request, contract, needs_room=False))
    assert values == TEXT | {"key": "k"}
    assert "room" not in server.steps


def test_a_source_that_is_not_named_is_detected_before_there_is_a_translator() -> None:
    server = Parts(body=TEXT, query={})
    reply = _answer(server, Third(steps=server.steps, by_source={"en": ROUTE, "de": BACK}))
    assert server.steps[3:] == ["json", "parse", "detect interactive", *TRANSLATED[1:]]
    assert (server.routes, server.job.route) == ([BACK], BACK)
    assert 0 < server.job.spent_seconds < server.job.timeout_seconds
    assert bytes(reply.body) == b"asked: [('de', Detection(tag='de', confidence=7))]"


@pytest.mark.parametrize("by_source", [None, {"en": ROUTE, "de": BACK}])
@pytest.mark.parametrize("body", [{}, {"text": "a" * 11}])
def test_what_is_refused_by_its_values_is_neither_spent_nor_translated(
    body: dict[str, object], by_source: dict[str, Route] | None
) -> None:
    server = Parts(body=body, query={})
    with pytest.raises(RequestError):
        _answer(server, Third(steps=server.steps, by_source=by_source))
    assert server.steps == ["admit", "room", "reader False", "json", "parse"]


def test_what_is_not_in_memory_is_loaded_once_the_request_has_passed_its_checks() -> None:
    server = Parts(body=TEXT, query={})
    server.has_to_load = True
    _answer(server, Third(steps=server.steps))
    assert server.steps[-7:] == ["parse", "load", *TRANSLATED[1:]]


class FirstSaysNothing(Parts):
    """The same with two pages, of which the second one alone has a text."""

    samples = ("", "B.")
    texts = ("B.",)

    @property
    def pages(self) -> "FirstSaysNothing":
        return self

    async def read(self, *_: object) -> "FirstSaysNothing":
        return self

    def of_texts(self, values: Sequence[Route]) -> list[Route]:
        return [values[1]]

    async def joined(
        self, _pages: object, results: list[TranslatedText], _priority: str
    ) -> list[TranslatedText]:
        return [unchanged(""), *results]

    async def detect(
        self, texts: Sequence[str], tags: Sequence[str], priority: str
    ) -> list[Detection]:
        return [Detection(tag=tags[bool(text)], confidence=7) for text in texts]


def test_a_page_without_a_text_has_no_say_in_how_the_others_are_translated() -> None:
    server = FirstSaysNothing(body=TEXT, query={})
    markup = Markup(kind="html")
    reply = _answer(server, Third(by_source={"en": ROUTE, "de": BACK}, markup=markup))
    assert (server.routes, server.job.route, server.job.texts) == ([BACK], BACK, ("B.",))
    assert b"'en'" in bytes(reply.body)


class SlowToLoad(Parts):
    """The same with a model that takes its time."""

    def __init__(self, *, seconds: float) -> None:
        super().__init__(body=TEXT, query={})
        self.has_to_load = True
        self._seconds = seconds

    async def load(self, _held: Held, *_routes: Route) -> None:
        await asyncio.sleep(self._seconds)


def test_the_time_of_a_request_is_also_that_of_loading_its_model() -> None:
    server = SlowToLoad(seconds=0.02)
    _answer(server, Third(by_source={"en": ROUTE, "de": BACK}))
    assert 0.02 <= server.job.spent_seconds < server.job.timeout_seconds
    server = SlowToLoad(seconds=60.0)
    with pytest.raises(RequestError) as caught:
        _answer(server, Third(timeout_seconds=0.05))
    assert (caught.value.problem.status, caught.value.problem.code) == (504, "deadline_exceeded")


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
    request = Request({"type": "http", "headers": []}, receive=_never)
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
        _answer(parts, Noted())
        assert asyncio.run(stream(parts)) == [Event(name="result", data="asked").encoded]
    assert threads == ["strangers_0"] * 2 + [threading.current_thread().name] * 2
