"""What a router refuses itself before it looks at texts, and whom it asks when one is not well."""

import asyncio
import json
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
from service.router.directory import GroupState, ServerState, directory_of
from service.router.dispatch import Dispatcher
from service.router.groups import ConnectError, Group, LostError, SilentError
from service.router.members import Member, Members
from service.router.pool import Answer
from service.router.watch import Watch
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
UP = ServerState(problem="")
AWAY = ServerState(problem="it closed the connection")
SILENT = ServerState(problem="silent for 5 seconds", is_mute=True)
UNREADY = ServerState(problem="the server is shutting down", is_unready=True)


class _Pool:
    """Connections to a server, which answers what it always answers."""

    def __init__(self, address: str, answer: Answer | Exception, asked: list[str]) -> None:
        self.address = address
        self.answer = answer
        self.asked = asked
        self.hangs = False

    async def ask(self, _asked: Asked, *, connect_seconds: float) -> Answer:
        assert connect_seconds in (1.5, 3.0)
        self.asked.append(self.address)
        if self.hangs:
            await asyncio.Event().wait()
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def close(self) -> None:
        pass


class _Fleet:
    """A router before groups, which are as they answer; those of `away` are known to be down."""

    def __init__(self, *, away: tuple[str, ...] = (), **answers: Answers) -> None:
        self.asked: list[str] = []
        self.num_looks = 0
        self.members: dict[str, Members] = {}
        self.found: dict[str, list[str]] = {}
        for name, told in answers.items():
            each = told if isinstance(told, dict) else {"": told}
            self.members[name] = Members(
                Group(name=name, host=name, port=80),
                seconds=1.0,
                keep_seconds=60.0,
                resolve=self._resolve,
                clock=lambda: 0.0,
            )
            self.members[name]._take([name + address for address in each])
            for member, answer in zip(self.members[name].all, each.values(), strict=True):
                pool = _Pool(member.address, answer, self.asked)
                member.pool = member.asker = cast(Any, pool)
                member.state = AWAY if name in away else UP
        metrics: Any = SimpleNamespace(
            passed=lambda _name, _status: None, group_is=lambda _name, *, is_up: None
        )
        detection: Any = SimpleNamespace(is_on=False)
        self.watch = Watch(self.members, pivot=None, detection=detection, metrics=metrics)
        for name in answers:
            self.watch._note(_group(name, "de"))
        parts: dict[str, Any] = {
            "asking": Asking(watch=self.watch, metrics=metrics),
            "reader": SimpleNamespace(read_bytes=self._read),
            "detection": detection,
            "arrivals": None,
            "lists": None,
            "room": None,
        }
        self.dispatcher = Dispatcher(settings=Settings(), **parts)
        self.data = b""

    async def _resolve(self, host: str, _port: int) -> list[str]:
        self.num_looks += 1
        return self.found.get(host, [one.address for one in self.members[host].named])

    def member(self, address: str) -> Member:
        every = [one for members in self.members.values() for one in members.all]
        return next(one for one in every if one.address == address)

    def is_now(self, state: ServerState, *addresses: str) -> None:
        for address in addresses:
            self.member(address).state = state
        for group in self.watch.directory.groups:
            self.watch._note(group)

    def leaves(self, address: str) -> None:
        self.member(address).left_at = 0.0

    async def _read(self, _request: Request) -> bytes:
        return self.data

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


def test_what_has_an_id_is_asked_of_those_that_are_away_last_and_where_it_changes_nothing() -> None:
    lost, unknown = LostError("it closed the connection"), _answering(status=404)
    fleet = _Fleet(away=("a",), a=lost, b=_answering(b"mine"))
    assert fleet.ask("by_id", "/v1/documents/x") == (200, b"mine")
    assert fleet.asked == ["b"]
    fleet = _Fleet(away=("a",), a=lost, b=unknown)
    assert fleet.ask("by_id", "/v1/documents/x") == (503, "group_unavailable"), "a may have it"
    assert fleet.asked == ["b", "a"]
    fleet = _Fleet(away=("a",), a=_answering(b"back"), b=unknown)
    assert fleet.ask("by_id", "/v1/documents/x") == (200, b"back")
    fleet = _Fleet(away=("a",), a=_answering(status=204), b=unknown)
    assert fleet.ask("by_id", "/v1/documents/x", "DELETE") == (503, "group_unavailable")
    assert fleet.asked == ["b"], "it might do it when nobody knows"


def test_those_that_are_away_have_one_moment_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.router.asking._BRIEF_SECONDS", 0.05)
    fleet = _Fleet(a=dict.fromkeys("1234", UNKNOWN), b=UNKNOWN)
    fleet.is_now(AWAY, "a1", "a2", "a3")
    for address in ("a1", "a2"):
        cast(Any, fleet.member(address).pool).hangs = True
    cast(Any, fleet.member("a3").pool).answer = _answering(b"mine")
    assert fleet.ask("by_id", "/v1/documents/x") == (200, b"mine")
    assert fleet.asked[:2] == ["a4", "b"]
    assert sorted(fleet.asked[2:]) == ["a1", "a2", "a3"]
    fleet.is_now(SILENT, "a1", "a2", "a3")
    fleet.asked.clear()
    assert fleet.ask("by_id", "/v1/documents/x") == (503, "group_unavailable")
    assert fleet.asked == ["a4", "b"], "those that are waited for in vain cost no time"


def test_one_that_says_nothing_holds_up_nobody_who_looks_for_what_another_one_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("service.router.asking._HEAD_START_SECONDS", 0.05)
    fleet = _Fleet(a={"1": UNKNOWN, "2": _answering(b"mine")})
    fleet.member("a1").state = fleet.member("a2").state = UP
    cast(Any, fleet.member("a1").pool).hangs = True
    for _ in range(2):
        assert fleet.ask("by_id", "/v1/documents/x") == (200, b"mine")


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
    for _ in range(2):
        assert fleet.ask("by_id", "/v2/document/x", method) == (200, b"mine")
    assert sorted(fleet.asked) == ["a1", "a2", "a2"]
    fleet = _Fleet(a={"1": UNKNOWN, "2": UNKNOWN}, b={"1": UNKNOWN, "2": UNKNOWN})
    assert fleet.ask("by_id", "/v2/document/x", method)[0] == 404
    assert sorted(fleet.asked) == ["a1", "a2", "b1", "b2"]


def test_while_a_server_that_may_have_it_was_not_asked_nobody_says_that_it_is_not_there() -> None:
    for state, asked in ((AWAY, ["a2", "a1"]), (SILENT, ["a2"])):
        fleet = _Fleet(a={"1": LostError("gone"), "2": UNKNOWN})
        fleet.is_now(state, "a1")
        assert fleet.ask("by_id", "/v1/documents/x") == (503, "group_unavailable")
        assert fleet.asked == asked
        fleet = _Fleet(a={"1": _answering(status=204), "2": UNKNOWN})
        fleet.is_now(state, "a1")
        assert fleet.ask("by_id", "/v1/documents/x", "DELETE") == (503, "group_unavailable")
        assert fleet.asked == ["a2"], "it might do it when nobody knows"
    fleet = _Fleet(a={"1": UNKNOWN, "2": ConnectError("refused")})
    assert fleet.ask("by_id", "/v1/documents/x") == (503, "group_unavailable")
    assert fleet.member("a2").state.problem == "refused"
    fleet = _Fleet(a=UNKNOWN, b=UNKNOWN)
    fleet.members["b"]._members.clear()
    assert fleet.ask("by_id", "/v1/documents/x") == (503, "group_unavailable"), "it has no address"


def test_those_that_are_up_are_asked_before_those_that_say_they_are_not() -> None:
    fleet = _Fleet(a={"1": _answering(status=500), "2": UNKNOWN}, b=_answering(b"mine"))
    fleet.is_now(UNREADY, "a1")
    assert fleet.ask("by_id", "/v1/documents/x") == (200, b"mine")
    assert fleet.asked == ["a2", "b"]


def test_names_are_looked_up_once_before_anybody_says_that_there_is_no_such_thing() -> None:
    fleet = _Fleet(a=UNKNOWN, b=UNKNOWN)
    assert fleet.ask("by_id", "/v1/documents/x")[0] == 404
    assert fleet.num_looks == 2
    fleet = _Fleet(a=UNKNOWN, b=_answering(b"mine"))
    assert fleet.ask("by_id", "/v1/documents/x")[0] == 200
    assert fleet.num_looks == 0
    fleet = _Fleet(a=UNKNOWN)
    fleet.found["a"] = ["a", "new"]
    assert fleet.ask("by_id", "/v1/documents/x", "DELETE") == (503, "group_unavailable")


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_a_server_that_has_left_is_asked_and_one_that_is_no_more_is_not_missed(method: str) -> None:
    for answer, told in (
        (_answering(b"mine"), (200, b"mine")),
        (UNKNOWN, (404, UNKNOWN._beginning)),
        (LostError("gone"), (502, "group_lost")),
        (ConnectError("refused"), (404, UNKNOWN._beginning)),
    ):
        fleet = _Fleet(a={"1": answer, "2": UNKNOWN})
        fleet.leaves("a1")
        assert fleet.ask("by_id", "/v2/document/x", method) == told
        assert fleet.asked == ["a2", "a1"]


def test_the_next_server_of_a_group_is_asked_where_one_begins_nothing() -> None:
    for first in (_refusing(), _refusing("booting"), ConnectError("refused")):
        fleet = _Fleet(a={"1": first, "2": _answering(b"done")})
        for _ in range(4):
            assert fleet.ask("translate", "/translate", "POST", GERMAN) == (200, b"done")
        assert fleet.watch.directory.groups[0].is_up
    assert fleet.asked.count("a1") == 1, "it is known then"
    fleet = _Fleet(a={"1": LostError("gone"), "2": LostError("gone")})
    assert fleet.ask("translate", "/translate", "POST", GERMAN) == (502, "group_lost")
    assert len(fleet.asked) == 1, "it may have been begun"
    fleet = _Fleet(a={"1": LostError("gone"), "2": _answering(b"page")})
    assert {fleet.ask("from_any", "/") for _ in range(2)} == {(200, b"page")}


def test_texts_that_name_a_glossary_go_to_a_server_that_knows_it() -> None:
    fleet = _Fleet(a={"1": UNKNOWN, "2": _answering(b"mine")})
    assert fleet.ask("translate", "/v2/translate", "POST", GLOSSARY) == (200, b"mine")
    assert sorted(fleet.asked) in (["a1", "a2"], ["a2"])
    fleet = _Fleet(a={"1": UNKNOWN, "2": UNKNOWN})
    assert fleet.ask("translate", "/v2/translate", "POST", GLOSSARY)[0] == 404
    fleet = _Fleet(a={"1": LostError("gone"), "2": LostError("gone")})
    assert fleet.ask("translate", "/v2/translate", "POST", GLOSSARY) == (502, "group_lost")
    fleet = _Fleet(away=("b",), a=UNKNOWN, b=_answering())
    assert fleet.ask("translate", "/v2/translate", "POST", GLOSSARY) == (503, "group_unavailable")
    fleet.watch._note(_group("b", "ja"))
    fleet.is_now(AWAY, "b")
    assert fleet.ask("translate", "/v2/translate", "POST", GLOSSARY)[0] == 404, "b has no German"
    plain = GLOSSARY.replace(b"glossary_id", b"context")
    fleet = _Fleet(a={"1": UNKNOWN, "2": UNKNOWN})
    assert fleet.ask("translate", "/v2/translate", "POST", plain)[0] == 404
    assert len(fleet.asked) == 1


def test_lists_of_what_servers_keep_are_those_of_all_and_others_are_one_servers() -> None:
    used = [b'{"character_count": %d, "character_limit": 9}' % number for number in (1, 2, 4)]
    answers: Answers = {"1": _answering(used[0]), "2": _answering(used[1])}
    fleet = _Fleet(a=answers, b=_answering(used[2]))
    status, body = fleet.ask("complete_list", "/v2/usage")
    assert (status, json.loads(body)) == (200, {"character_count": 7, "character_limit": 9})
    assert fleet.ask("joined_list", "/languages")[0] == 200
    assert [one[0] for one in fleet.asked] == ["a", "a", "b", "a", "b"]
    fleet = _Fleet(a={"1": ConnectError("refused"), "2": _answering(b"[7]")})
    assert fleet.ask("complete_list", "/v2/glossaries") == (503, "group_unavailable")
    assert fleet.asked.count("a2") <= 1
    fleet.asked.clear()
    assert fleet.ask("complete_list", "/v2/glossaries") == (503, "group_unavailable")
    assert fleet.asked == [], "it is known now"
    fleet.leaves("a1")
    assert fleet.ask("complete_list", "/v2/glossaries") == (200, b"[7]")
