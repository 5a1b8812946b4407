"""What a router refuses itself before it looks at texts, and whom it asks when one is not well."""

import asyncio
import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from starlette.requests import Request

from model.text.languages.tags import LanguagePair
from service.errors import RequestError, unavailable
from service.http.disconnect import attach_hangup
from service.http.replies import error_content
from service.models.routes.routing import Offer, RoutingTable
from service.router.asking import Asking
from service.router.connection import Asked
from service.router.directory import GroupState, directory_of
from service.router.dispatch import Dispatcher
from service.router.groups import ConnectError, LostError, SilentError
from service.router.members import Member
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
        "asking": SimpleNamespace(watch=SimpleNamespace(directory=directory)),
        "reader": SimpleNamespace(read_bytes=read_bytes),
        "detection": SimpleNamespace(is_on=True, detect=detect),
        "arrivals": None,
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


Answers = Answer | Exception | dict[str, Answer | Exception]
"""Of a group, or of each of its servers by address."""


class _Pool:
    """Connections to a group whose servers answer what each of them always answers."""

    def __init__(self, answers: Answers) -> None:
        self.answers = answers if isinstance(answers, dict) else {"1": answers}
        self.members = self
        self.doubtful: set[str] = set()
        self.left: set[str] = set()
        self.seconds: list[float | None] = []
        self.addresses: list[str] = []

    async def all(self) -> list[Member]:
        found = [
            Member(
                address=one,
                is_named=one not in self.left,
                is_doubtful=one in self.doubtful | self.left,
            )
            for one in self.answers
        ]
        return sorted(found, key=lambda one: one.is_doubtful)

    async def ask(self, _asked: Asked, *, address: str | None = None) -> Answer:
        return self._answered(address, None)

    async def ask_briefly(
        self, _asked: Asked, *, seconds: float, address: str | None = None
    ) -> Answer:
        return self._answered(address, seconds)

    def _answered(self, address: str | None, seconds: float | None) -> Answer:
        self.seconds.append(seconds)
        self.addresses.append(address or next(iter(self.answers)))
        answer = self.answers[self.addresses[-1]]
        if isinstance(answer, Exception):
            raise answer
        return answer


class _Fleet:
    """A router before groups, which are as they answer; those of `away` are known to be down."""

    def __init__(self, *, away: tuple[str, ...] = (), **answers: Answers) -> None:
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
        metrics = SimpleNamespace(passed=lambda _name, _status: None)
        parts: dict[str, Any] = {
            "asking": Asking(watch=cast(Any, watch), metrics=cast(Any, metrics)),
            "reader": SimpleNamespace(read_bytes=self._read),
            "detection": SimpleNamespace(is_on=False),
            "arrivals": None,
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


UNKNOWN = _answering(b'{"error": "no such document"}', status=404)
GLOSSARY = json.dumps(
    {"text": ["a"], "source_lang": "DE", "target_lang": "EN-GB", "glossary_id": "g"}
).encode()


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_what_has_an_id_is_asked_of_every_server_of_a_group(method: str) -> None:
    fleet = _Fleet(a={"1": UNKNOWN, "2": _answering(b"mine")}, b=_answering())
    assert fleet.ask("by_id", "/v2/document/x", method) == (200, b"mine")
    assert fleet.pools["a"].addresses == ["1", "2"]
    assert fleet.pools["b"].addresses == []
    fleet = _Fleet(a={"1": UNKNOWN, "2": UNKNOWN}, b={"1": UNKNOWN, "2": UNKNOWN})
    assert fleet.ask("by_id", "/v2/document/x", method)[0] == 404
    assert fleet.asked == ["a", "a", "b", "b"]


def test_while_a_server_that_may_have_it_was_not_asked_nobody_says_that_it_is_not_there() -> None:
    for answer in (ConnectError("refused"), SilentError("silent for 1 seconds")):
        fleet = _Fleet(a={"1": answer, "2": UNKNOWN})
        fleet.pools["a"].doubtful = {"1"}
        assert fleet.ask("by_id", "/v1/documents/x") == (503, "group_unavailable")
        assert fleet.pools["a"].addresses == ["2", "1"], "what answers comes first"
        assert fleet.pools["a"].seconds == [None, 1.0]
    fleet = _Fleet(a={"1": _answering(status=204), "2": UNKNOWN})
    fleet.pools["a"].doubtful = {"1"}
    assert fleet.ask("by_id", "/v1/documents/x", "DELETE") == (503, "group_unavailable")
    assert fleet.pools["a"].addresses == ["2"], "it might do it when nobody knows"
    fleet = _Fleet(a={"1": UNKNOWN, "2": ConnectError("refused")})
    assert fleet.ask("by_id", "/v1/documents/x") == (503, "group_unavailable")


def test_a_server_that_has_left_is_asked_and_one_that_is_no_more_is_not_missed() -> None:
    for answer, told in (
        (_answering(b"mine"), (200, b"mine")),
        (SilentError("silent"), (503, "group_unavailable")),
        (ConnectError("refused"), (404, UNKNOWN._beginning)),
    ):
        fleet = _Fleet(a={"1": answer, "2": UNKNOWN})
        fleet.pools["a"].left = {"1"}
        assert fleet.ask("by_id", "/v1/documents/x") == told
        assert fleet.pools["a"].addresses == ["2", "1"]


def test_texts_that_name_a_glossary_go_to_a_server_that_knows_it() -> None:
    fleet = _Fleet(a={"1": UNKNOWN, "2": _answering(b"mine")})
    assert fleet.ask("translate", "/v2/translate", "POST", GLOSSARY) == (200, b"mine")
    assert fleet.pools["a"].addresses == ["1", "2"]
    fleet = _Fleet(a={"1": UNKNOWN, "2": UNKNOWN})
    assert fleet.ask("translate", "/v2/translate", "POST", GLOSSARY)[0] == 404
    fleet = _Fleet(a={"1": LostError("gone"), "2": _answering()})
    assert fleet.ask("translate", "/v2/translate", "POST", GLOSSARY) == (502, "group_lost")
    fleet = _Fleet(away=("b",), a=UNKNOWN, b=_answering())
    assert fleet.ask("translate", "/v2/translate", "POST", GLOSSARY) == (503, "group_unavailable")
    plain = GLOSSARY.replace(b"glossary_id", b"context")
    fleet = _Fleet(a={"1": _answering(b"any"), "2": _answering()})
    assert fleet.ask("translate", "/v2/translate", "POST", plain) == (200, b"any")
    assert fleet.asked == ["a"]


def test_lists_of_what_servers_keep_are_those_of_all_and_others_are_one_servers() -> None:
    used = [b'{"character_count": %d, "character_limit": 9}' % number for number in (1, 2, 4)]
    answers: Answers = {"1": _answering(used[0]), "2": _answering(used[1])}
    fleet = _Fleet(a=answers, b=_answering(used[2]))
    status, body = fleet.ask("complete_list", "/v2/usage")
    assert (status, json.loads(body)) == (200, {"character_count": 7, "character_limit": 9})
    assert fleet.ask("joined_list", "/languages")[0] == 200
    assert fleet.asked == ["a", "a", "a", "b", "b"]
    fleet = _Fleet(a={"1": ConnectError("refused"), "2": _answering(b"[7]")})
    assert fleet.ask("complete_list", "/v2/glossaries") == (503, "group_unavailable")
    fleet.pools["a"].left = {"1"}
    assert fleet.ask("complete_list", "/v2/glossaries") == (200, b"[7]")
