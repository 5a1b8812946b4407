"""What a router refuses itself before it looks at texts, and whom it asks when one is not well."""

import asyncio
import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.requests import Request

from model.text.languages.tags import LanguagePair
from service.errors import RequestError, unavailable
from service.http.disconnect import attach_hangup
from service.http.replies import error_content
from service.models.routes.routing import Offer, RoutingTable
from service.router.connection import Asked
from service.router.directory import GroupState, directory_of
from service.router.dispatch import Dispatcher
from service.router.groups import ConnectError, LostError, SilentError
from service.router.pool import Answer
from service.settings import Settings
from service.telemetry.request_context import RequestContext, attach_context


def _group(name: str, source: str) -> GroupState:
    pairs = [LanguagePair(source=source, target="en")]
    offers = (Offer(name=name, pairs=pairs),)
    table = RoutingTable(offers, pivot=None)
    return GroupState(name=name, offers=offers, table=table, has_answered=True)


def _dispatcher(data: bytes) -> Dispatcher:
    async def read_bytes(_request: Request) -> bytes:
        return data

    async def detect(*_: object) -> None:
        raise AssertionError("no text was to be looked at")

    directory = directory_of((_group("europe", "de"), _group("asia", "ja")), pivot=None)
    parts: dict[str, Any] = {
        "watch": SimpleNamespace(directory=directory),
        "reader": SimpleNamespace(read_bytes=read_bytes),
        "detection": SimpleNamespace(is_on=True, detect=detect),
        "arrivals": None,
        "metrics": None,
        "lists": None,
        "room": None,
    }
    return Dispatcher(settings=Settings(max_texts=3), **parts)


@pytest.mark.parametrize(
    ("path", "values", "query"),
    [
        ("/translate", {"q": [""] * 4, "source": "auto", "target": "en"}, b""),
        ("/translate", {"q": [""] * 4, "source": "auto"}, b"target=en&q="),
        ("/v1/translate", {"texts": [""] * 4, "target": "en"}, b""),
        ("/v2/translate", {"text": [""] * 4, "target_lang": "EN"}, b""),
    ],
)
def test_more_texts_than_a_request_may_have_are_not_looked_at(
    path: str, values: dict[str, object], query: bytes
) -> None:
    headers = [(b"content-type", b"application/json")]
    scope = {"type": "http", "method": "POST", "path": path, "headers": headers}
    dispatcher = _dispatcher(json.dumps(values).encode())
    with pytest.raises(RequestError) as caught:
        asyncio.run(dispatcher.translate(Request(scope | {"query_string": query})))
    problem = caught.value.problem
    assert (problem.status, problem.value, problem.limit) == (413, 4, 3)


def _refusing(code: str = "draining") -> Answer:
    body = json.dumps(error_content(unavailable("no", code=code).problem)).encode()
    return Answer(503, [(b"content-type", b"application/json")], beginning=body)


def _answering(data: bytes = b"{}", status: int = 200) -> Answer:
    return Answer(status, [(b"content-type", b"application/json")], beginning=data)


class _Pool:
    """Connections to a group that answers all alike."""

    def __init__(self, answer: Answer | Exception) -> None:
        self.answer = answer
        self.seconds: list[float | None] = []

    async def ask(self, _asked: Asked) -> Answer:
        self.seconds.append(None)
        return self._answered()

    async def ask_briefly(self, _asked: Asked, *, seconds: float) -> Answer:
        self.seconds.append(seconds)
        return self._answered()

    def _answered(self) -> Answer:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class _Fleet:
    """A router before groups, which are as they answer; those of `away` are known to be down."""

    def __init__(self, *, away: tuple[str, ...] = (), **answers: Answer | Exception) -> None:
        groups = [
            replace(_group(name, "de"), problem="silent for 5 seconds" if name in away else "")
            for name in answers
        ]
        self.pools = {name: _Pool(answer) for name, answer in answers.items()}
        watch = SimpleNamespace(
            directory=directory_of(groups, pivot=None),
            pools=self.pools,
            mark_unreachable=lambda _name, _reason: None,
        )
        parts: dict[str, Any] = {
            "watch": watch,
            "reader": SimpleNamespace(read_bytes=self._read),
            "detection": SimpleNamespace(is_on=False),
            "arrivals": None,
            "metrics": SimpleNamespace(passed=lambda _name, _status: None),
            "lists": None,
            "room": None,
        }
        self.dispatcher = Dispatcher(settings=Settings(), **parts)
        self.data = b""

    async def _read(self, _request: Request) -> bytes:
        return self.data

    @property
    def asked(self) -> list[str]:
        """Who was asked, each as often as it was."""
        return [name for name, pool in self.pools.items() for _ in pool.seconds]

    def ask(self, handler: str, path: str, method: str = "GET", data: bytes = b"") -> Any:
        """Status, and body of what was answered; of a refusal its code."""
        self.data = data
        headers = [(b"content-type", b"application/json")]
        scope: dict[str, Any] = {"type": "http", "method": method, "path": path}
        scope |= {"raw_path": path.encode(), "query_string": b"", "client": None}
        scope["headers"] = headers
        attach_context(scope, RequestContext(request_id="a"))
        attach_hangup(scope)
        sent: list[Any] = []

        async def receive() -> Any:
            raise AssertionError("the body was read before")

        async def send(message: Any) -> None:
            sent.append(message)

        async def answer() -> None:
            response = await getattr(self.dispatcher, handler)(Request(scope, receive))
            await response(scope, receive, send)

        try:
            asyncio.run(answer())
        except RequestError as error:
            return error.problem.status, error.problem.code
        return sent[0]["status"], b"".join(one.get("body", b"") for one in sent[1:])


GERMAN = json.dumps({"q": "Hallo", "source": "de", "target": "en"}).encode()


@pytest.mark.parametrize(
    "first",
    [_refusing(), _refusing("restarting"), ConnectError("refused")],
    ids=["leaves", "restarts", "is not reached"],
)
def test_what_a_group_has_not_begun_is_asked_of_the_next_one(first: Answer | Exception) -> None:
    for handler, path, data in (
        ("translate", "/translate", GERMAN),
        ("detect", "/detect", b'{"q": "Hallo"}'),
        ("from_any", "/frontend/settings", b""),
    ):
        fleet = _Fleet(a=first, b=_answering(b'{"of": "b"}'))
        assert fleet.ask(handler, path, "POST", data) == (200, b'{"of": "b"}')
        assert fleet.asked == ["a", "b"]


def test_what_a_group_may_have_begun_is_asked_of_no_other() -> None:
    lost = LostError("it closed the connection")
    cut = _refusing("cut_off")
    for first, told in ((lost, (502, "group_lost")), (cut, (503, cut._beginning))):
        fleet = _Fleet(a=first, b=_answering())
        assert fleet.ask("translate", "/translate", "POST", GERMAN) == told
        assert fleet.asked == ["a"]
    fleet = _Fleet(a=lost, b=_answering(b"page"))
    assert fleet.ask("from_any", "/") == (200, b"page"), "it changes nothing"


def test_a_refusal_of_all_is_the_first_ones_own() -> None:
    refusal = _refusing("restarting")
    fleet = _Fleet(a=ConnectError("refused"), b=refusal, c=_refusing())
    answer = fleet.ask("translate", "/translate", "POST", GERMAN)
    assert answer == (503, refusal._beginning)
    fleet = _Fleet(a=ConnectError("refused"))
    assert fleet.ask("translate", "/translate", "POST", GERMAN) == (503, "group_unavailable")


def test_a_group_that_is_known_to_be_away_is_asked_for_no_translation() -> None:
    fleet = _Fleet(away=("a",), a=_answering())
    assert fleet.ask("translate", "/translate", "POST", GERMAN) == (503, "group_unavailable")
    assert fleet.ask("detect", "/detect", "POST", b'{"q": "a"}') == (503, "group_unavailable")
    assert fleet.asked == []


def test_what_has_an_id_is_asked_of_those_that_are_away_last_and_briefly() -> None:
    silent, unknown = SilentError("silent for 1 seconds"), _answering(status=404)
    fleet = _Fleet(away=("a",), a=silent, b=_answering(b"mine"))
    assert fleet.ask("by_id", "/v1/documents/x") == (200, b"mine")
    assert fleet.asked == ["b"]
    fleet = _Fleet(away=("a",), a=silent, b=unknown)
    assert fleet.ask("by_id", "/v1/documents/x") == (503, "group_unavailable"), "a may have it"
    assert [pool.seconds for pool in fleet.pools.values()] == [[1.0], [None]]
    fleet = _Fleet(away=("a",), a=_answering(b"back"), b=unknown)
    assert fleet.ask("by_id", "/v1/documents/x") == (200, b"back")
    fleet = _Fleet(away=("a",), a=_answering(status=204), b=unknown)
    assert fleet.ask("by_id", "/v1/documents/x", "DELETE") == (503, "group_unavailable")
    assert fleet.asked == ["b"], "it might do it when nobody knows"


def test_what_has_an_id_is_asked_of_the_next_one_where_that_does_nothing_twice() -> None:
    lost, unknown = SilentError("it does not answer any more"), _answering(status=404)
    fleet = _Fleet(a=lost, b=_answering(b"mine"))
    assert fleet.ask("by_id", "/v1/documents/x") == (200, b"mine")
    assert _Fleet(a=lost, b=unknown).ask("by_id", "/v1/documents/x") == (502, "group_lost")
    fleet = _Fleet(a=lost, b=_answering(status=204))
    assert fleet.ask("by_id", "/v1/documents/x", "DELETE") == (502, "group_lost")
    assert fleet.asked == ["a"]
    refusal = _refusing()
    for answers in ({"a": refusal, "b": unknown}, {"b": unknown, "a": refusal}):
        found = _Fleet(**answers).ask("by_id", "/v1/documents/x")
        assert found == (503, refusal._beginning), "it may have it"
    assert _Fleet(a=unknown, b=unknown).ask("by_id", "/v1/documents/x")[0] == 404


@pytest.mark.parametrize("first", [_refusing(), LostError("gone"), ConnectError("refused")])
def test_a_list_of_what_there_is_needs_no_group_and_one_of_what_is_kept_needs_all(
    first: Answer | Exception,
) -> None:
    fleet = _Fleet(a=first, b=_answering(b"[7]"))
    assert fleet.ask("joined_list", "/languages") == (200, b"[7]")
    assert fleet.ask("complete_list", "/v2/glossaries")[0] in (502, 503)
    assert _Fleet(a=first).ask("joined_list", "/languages")[0] in (502, 503)
    fleet = _Fleet(away=("a",), a=_answering(b"[6]"), b=_answering(b"[7]"))
    assert fleet.ask("joined_list", "/languages") == (200, b"[7]")
    assert fleet.ask("complete_list", "/v2/glossaries") == (503, "group_unavailable")
