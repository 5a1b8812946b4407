"""Admission, over parts that write down what they are asked; the contracts are tests/contract."""

import asyncio
from collections.abc import Sequence

import pytest
from starlette.requests import Request

from model.text.languages.detection import Detection
from service.api.admission import Admission
from service.errors import RequestError
from service.models.deployments.holding import Held
from service.models.requests.translation import (
    Markup,
    TranslatedText,
)
from service.models.routes.routing import Route
from service.models.translating.several_routes import unchanged
from support.admission_parts import BACK, ROUTE, TEXT, Parts, Third, answer_of, never

TRANSLATED = ["parse", "translator interactive", "spend 6", "count 6", "translate", "reply"]


@pytest.mark.parametrize(
    ("contract", "parts", "read"),
    [
        (
            {},
            {"body": TEXT, "query": {}},
            ["admit by header", "room", "reader False", "json"],
        ),
        (
            {},
            {"key": "body", "body": TEXT | {"key": "k"}, "query": {}},
            ["admit by header", "room", "reader False", "json"],
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
            ["admit by header", "room", "reader False", "query", "reader False", "values"],
        ),
    ],
)
def test_any_contract_takes_the_same_steps_in_the_same_order(
    contract: dict[str, object], parts: dict[str, object], read: list[str]
) -> None:
    server = Parts(**parts)  # type: ignore[arg-type]
    reply = answer_of(server, Third(steps=server.steps, **contract))  # type: ignore[arg-type]
    assert bytes(reply.body) == b"asked: [('en', None)]"
    assert server.steps == [*read, *TRANSLATED]


@pytest.mark.parametrize(("key", "scope"), [("header", "k"), (None, "")])
def test_what_is_kept_of_a_request_belongs_to_its_key(key: str | None, scope: str) -> None:
    server = Parts(body=TEXT, query={}, key=key)
    answer_of(server, Third(steps=server.steps))
    assert server.job.cache_scope == scope


def test_a_full_server_refuses_before_it_reads_a_body() -> None:
    server = Parts(body=TEXT, query={})
    server.is_full = True
    with pytest.raises(RequestError, match="full"):
        answer_of(server, Third(steps=server.steps))
    assert server.steps == ["admit by header", "room"]


def test_what_translates_nothing_is_read_by_a_full_server() -> None:
    server = Parts(body=TEXT, query={"key": "k"}, key="query")
    server.is_full = True
    contract = Third(steps=server.steps, takes_forms=True, key_name="key")
    admission = Admission(front=server, access=server, readers=server)  # type: ignore[arg-type]
    request = Request({"type": "http", "headers": []}, receive=never)
    _, values = asyncio.run(admission.read(request, contract, needs_room=False))
    assert values == TEXT | {"key": "k"}
    assert "room" not in server.steps


def test_a_source_that_is_not_named_is_detected_before_there_is_a_translator() -> None:
    server = Parts(body=TEXT, query={})
    reply = answer_of(server, Third(steps=server.steps, by_source={"en": ROUTE, "de": BACK}))
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
        answer_of(server, Third(steps=server.steps, by_source=by_source))
    assert server.steps == ["admit by header", "room", "reader False", "json", "parse"]


def test_what_is_not_in_memory_is_loaded_once_the_request_has_passed_its_checks() -> None:
    server = Parts(body=TEXT, query={})
    server.has_to_load = True
    answer_of(server, Third(steps=server.steps))
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
    reply = answer_of(server, Third(by_source={"en": ROUTE, "de": BACK}, markup=markup))
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
    answer_of(server, Third(by_source={"en": ROUTE, "de": BACK}))
    assert 0.02 <= server.job.spent_seconds < server.job.timeout_seconds
    server = SlowToLoad(seconds=60.0)
    with pytest.raises(RequestError) as caught:
        answer_of(server, Third(timeout_seconds=0.05))
    assert (caught.value.problem.status, caught.value.problem.code) == (504, "deadline_exceeded")
