"""Parts of a server for admission, which write down what they are asked, and their contract."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from model.text.languages.detection import Detection
from model.text.languages.tags import LanguagePair
from service.access.access import Caller
from service.api.admission import Admission
from service.errors import invalid, overloaded
from service.http.events import Event
from service.models.deployments.holding import Held
from service.models.requests.translation import (
    AddedText,
    DoneSegment,
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

    async def admit_by_header(self, _request: Request) -> Caller:
        self.steps.append("admit by header")
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


async def never() -> dict[str, object]:
    await asyncio.Event().wait()
    return {}


def answer_of(parts: Parts, contract: Third) -> Response:
    async def scenario() -> Response:
        request = Request({"type": "http", "headers": []}, receive=never)
        attach_context(request.scope, RequestContext(request_id="r"))
        admission = Admission(front=parts, access=parts, readers=parts)  # type: ignore[arg-type]
        return await admission.answer(request, contract)

    return asyncio.run(scenario())


TEXT = {"text": "A cat."}
