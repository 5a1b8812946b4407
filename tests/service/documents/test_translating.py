"""Patience of documents, over a front that answers as it is told to."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from model.text.languages.detection import Detection
from model.text.languages.tags import LanguagePair
from service.access.access import Caller
from service.documents.jobs import JobOptions, Owner
from service.documents.translating import (
    LEAVING,
    DocumentRoute,
    DocumentTranslator,
    Routes,
    UnfinishedError,
)
from service.engine.errors import EngineUnavailableError, QueueFullError, SegmentFailedError
from service.errors import RequestError, draining, overloaded, too_long, unavailable
from service.models.deployments.holding import Held
from service.models.requests.translation import TranslatedText, TranslationRequest
from service.models.routes.routing import Hop, Route
from service.models.translating.several_routes import unchanged
from service.settings import Settings
from support.document_jobs import ASKED, OWNER, STAYS

ROUTE = Route(hops=(Hop(checkpoint="tiny", pair=LanguagePair(source="en", target="de")),))
FULL = QueueFullError(value=9, limit=8, retry_after_seconds=7.0)
SLOW_DOWN = overloaded("Slowdown", value=1, limit=1, seconds=12.0)


class Parts:
    """Front, access and engine, which fail in turn as they are told, and then answer."""

    def __init__(
        self,
        *failures: Exception,
        spent: Sequence[Exception] = (),
        unready: Sequence[Exception | None] = (),
    ) -> None:
        self.settings = Settings()
        self.failures = list(failures)
        self.spent = list(spent)
        self.unready = list(unready)
        self.requests: list[TranslationRequest] = []
        self.characters: list[int] = []
        self.waits: list[float] = []
        self.priorities: list[str] = []
        self.table = "the table"
        self.detection = SimpleNamespace(is_on=True, detect=self.detect)
        self.metrics = SimpleNamespace(characters_accepted=lambda *_: None)
        self.samples: list[str] = []
        self.rests: list[int] = []

    def check_ready(self) -> None:
        if self.unready and (error := self.unready.pop(0)) is not None:
            raise error

    def served(self, *_routes: Route) -> None:
        pass

    @property
    def in_flight(self) -> "Parts":
        return self

    def needs_loading(self, *_routes: Route) -> bool:
        return False

    async def detect(
        self, texts: Sequence[str], tags: Sequence[str], priority: str
    ) -> list[Detection]:
        assert (list(tags), priority) == (["fr", "en"], "bulk")
        self.samples += texts
        return [Detection(tag="en", confidence=90)]

    @contextmanager
    def translator(self, _route: Route, priority: str, _held: Held) -> Iterator["Parts"]:
        self.priorities.append(priority)
        yield self

    async def translate(self, request: TranslationRequest) -> list[TranslatedText]:
        if self.failures:
            raise self.failures.pop(0)
        self.requests.append(request)
        return [unchanged(text.upper()) for text in request.texts]

    async def spend_characters(self, caller: Caller, num_characters: int) -> None:
        if self.spent:
            raise self.spent.pop(0)
        assert caller.identity == "address:1"
        self.characters.append(num_characters)

    @asynccontextmanager
    async def rest(self) -> AsyncIterator[None]:
        num_spent = len(self.spent)
        yield
        self.rests.append(num_spent - len(self.spent))

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)

    def find_routes(self, table: object, asked: JobOptions) -> Routes:
        assert table == self.table
        return ROUTE, {"fr": STAYS, "en": ROUTE} if asked.source == "auto" else None

    def driver(self) -> DocumentTranslator:
        made: Any = self
        return DocumentTranslator(made, made, self.find_routes, sleep=self.sleep)

    def translated(self, parts: Sequence[str], owner: Owner = OWNER) -> tuple[list[str], int]:
        return asyncio.run(
            self.driver().translate(parts, DocumentRoute(route=ROUTE), owner, self.rest)
        )


def test_texts_go_as_bulk_a_few_thousand_characters_at_a_time() -> None:
    parts = Parts()
    texts = ["a" * 1_500] * 7
    assert parts.translated(texts) == ([text.upper() for text in texts], 0)
    assert [len(request.texts) for request in parts.requests] == [2, 2, 2, 1]
    assert {request.priority for request in parts.requests} == {"bulk"}
    assert set(parts.priorities) == {"bulk"}
    assert parts.characters == [3_000, 3_000, 3_000, 1_500]


def test_what_is_full_is_asked_again_and_its_characters_count_once() -> None:
    parts = Parts(FULL, SLOW_DOWN, FULL, spent=[SLOW_DOWN])
    assert parts.translated(["a\U00100000b"]) == (["A\U00100000B"], 0)
    assert parts.waits == [12.0, 7.0, 14.0, 28.0]
    assert parts.characters == [2]


def test_a_document_rests_while_it_waits_for_its_callers_limit_alone() -> None:
    limited = RequestError(replace(SLOW_DOWN.problem, code="rate_limited"))
    parts = Parts(FULL, spent=[limited, limited, limited])
    assert parts.translated(["a"]) == (["A"], 0)
    assert parts.rests == [2]
    assert parts.waits == [12.0, 12.0, 24.0, 7.0]
    others = Parts(spent=[SLOW_DOWN])
    others.translated(["a"])
    assert (others.rests, others.waits) == ([], [12.0])


def test_a_document_waits_for_a_full_queue_however_long() -> None:
    parts = Parts(*[FULL] * 100)
    assert parts.translated(["a"]) == (["A"], 0)
    assert max(parts.waits) == 30.0


@pytest.mark.parametrize(
    "failure",
    [
        EngineUnavailableError(),
        SegmentFailedError(code="engine_error", message="no"),
        unavailable("loading", code="loading"),
    ],
)
def test_what_fails_is_tried_again_and_not_for_ever(failure: Exception) -> None:
    assert Parts(*[failure] * 9).translated(["a"]) == (["A"], 0)
    with pytest.raises(UnfinishedError, match="could not be finished"):
        Parts(*[failure] * 10).translated(["a"])


@pytest.mark.parametrize("code", ["booting", "restarting", "lost", "failed"])
def test_a_document_waits_for_an_engine_until_there_is_one_again(code: str) -> None:
    unready = [unavailable("x", code=code)] * 100
    parts = Parts(unready=unready)
    assert parts.translated(["a"]) == (["A"], 0)
    assert max(parts.waits) == 30.0
    in_work = Parts(EngineUnavailableError(), unready=[None, None, *unready])
    assert in_work.translated(["a"]) == (["A"], 0)
    assert in_work.characters == [1]


def test_a_document_that_its_engines_are_lost_with_is_not_tried_for_ever() -> None:
    with pytest.raises(UnfinishedError, match="could not be finished"):
        Parts(
            *[EngineUnavailableError()] * 10,
            unready=[None, *[None, unavailable("x", code="lost")] * 9],
        ).translated(["a"])


def test_a_server_that_leaves_keeps_a_document_whose_engine_was_lost() -> None:
    parts = Parts(unready=[unavailable("x", code="lost"), draining()])
    with pytest.raises(RequestError) as caught:
        parts.translated(["a"])
    assert caught.value.problem.code == LEAVING


@pytest.mark.parametrize("failure", [draining(), too_long("too long", value=2, limit=1)])
def test_what_will_never_go_is_not_tried_again(failure: RequestError) -> None:
    parts = Parts(failure)
    with pytest.raises(RequestError) as caught:
        parts.translated(["a"])
    assert caught.value is failure
    assert parts.waits == []


def test_a_callers_limit_of_characters_makes_batches_smaller() -> None:
    parts = Parts()
    owner = Owner(key_name="key:a", identity="address:1", characters_per_minute=2_000)
    parts.translated(["a" * 1_500] * 2, owner)
    assert parts.characters == [1_500, 1_500]
    assert {request.cache_scope for request in parts.requests} == {"address:1"}


def test_a_language_is_told_once_by_the_beginning_of_all_texts() -> None:
    parts = Parts()
    asked = JobOptions(kind="txt", name="a.txt", source="auto", target="de")
    texts = ["Hello \U00100000", "there", "x" * 5_000, "never looked at"]
    chosen = asyncio.run(parts.driver().choose_route(asked, texts))
    assert chosen == DocumentRoute(route=ROUTE, detected="en")
    assert parts.samples == ["Hello \nthere\n" + "x" * 2_000]
    assert asyncio.run(parts.driver().choose_route(ASKED, texts)) == DocumentRoute(route=ROUTE)
    assert asyncio.run(parts.driver().choose_route(asked, [])) == DocumentRoute(route=ROUTE)


def test_texts_that_are_in_the_target_language_stay() -> None:
    parts = Parts()
    done = asyncio.run(
        parts.driver().translate(["Gut."], DocumentRoute(route=STAYS), OWNER, parts.rest)
    )
    assert done == (["Gut."], 0)
    assert parts.requests == []
