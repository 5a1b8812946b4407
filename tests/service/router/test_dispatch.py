"""What a router refuses itself before it looks at texts, and which groups it asks for what."""

import asyncio
import json
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.requests import Request

from service.errors import Problem, RequestError
from service.http.body import BodyReader
from service.router.directory import directory_of
from service.router.dispatch import Dispatcher
from service.router.groups import ConnectError, LostError
from service.router.pool import Answer
from service.settings import Settings
from support.scripted_fleet import (
    AWAY,
    UNKNOWN,
    Answers,
    ScriptedFleet,
    answering,
    group_of,
    refusing,
)


def _dispatcher(data: bytes) -> Dispatcher:
    async def read_bytes(_request: Request) -> bytes:
        return data

    async def detect(*_: object) -> None:
        raise AssertionError("no text was to be looked at")

    directory = directory_of((group_of("europe", "de"), group_of("asia", "ja")), pivot=None)
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


@pytest.mark.parametrize("media_type", ["text/plain", "text/plain;charset=UTF-8", "", "a/b"])
@pytest.mark.parametrize(
    ("path", "values", "accepted"),
    [
        ("/translate", {"q": "a", "source": "de", "target": "en"}, "application/json or a form"),
        ("/v2/translate", {"text": ["a"], "target_lang": "EN"}, "application/json or a form"),
        ("/v1/translate", {"texts": "a", "source": "de", "target": "en"}, "application/json"),
    ],
)
def test_a_body_of_another_type_is_refused_in_the_words_of_a_server(
    path: str, values: dict[str, object], accepted: str, media_type: str
) -> None:
    data = json.dumps(values).encode()
    headers = [(b"content-type", media_type.encode())]
    scope = {"type": "http", "method": "POST", "path": path, "headers": headers}

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": data, "more_body": False}

    def refused(work: Coroutine[Any, Any, object]) -> Problem:
        with pytest.raises(RequestError) as caught:
            asyncio.run(work)
        return caught.value.problem

    request = Request(scope | {"query_string": b""}, receive)
    with ThreadPoolExecutor(1) as thread:
        reader = BodyReader(max_bytes=9999, timeout_seconds=9.0, executor=thread)
        read = reader.read_json if accepted == "application/json" else reader.read_values
        expected = refused(read(request))
    assert (expected.status, expected.limit) == (400, accepted)
    assert refused(_dispatcher(data).translate(request)) == expected


GLOSSARY = json.dumps(
    {"text": ["a"], "source_lang": "DE", "target_lang": "EN-GB", "glossary_id": "g"}
).encode()


@pytest.mark.parametrize("first", [refusing(), LostError("gone"), ConnectError("refused")])
def test_a_list_of_what_there_is_needs_no_group_and_one_of_what_is_kept_needs_all(
    first: Answer | Exception,
) -> None:
    fleet = ScriptedFleet(a=first, b=answering(b"[7]"))
    assert fleet.ask("joined_list", "/languages") == (200, b"[7]")
    assert fleet.ask("complete_list", "/v2/glossaries")[0] in (502, 503)
    assert ScriptedFleet(a=first).ask("joined_list", "/languages")[0] in (502, 503)
    fleet = ScriptedFleet(away=("a",), a=answering(b"[6]"), b=answering(b"[7]"))
    assert fleet.ask("joined_list", "/languages") == (200, b"[7]")
    assert fleet.ask("complete_list", "/v2/glossaries") == (503, "group_unavailable")


def test_texts_that_name_a_glossary_go_to_a_server_that_knows_it() -> None:
    fleet = ScriptedFleet(a={"1": UNKNOWN, "2": answering(b"mine")})
    assert fleet.ask("translate", "/v2/translate", "POST", GLOSSARY) == (200, b"mine")
    assert sorted(fleet.asked) in (["a1", "a2"], ["a2"])
    fleet = ScriptedFleet(a={"1": UNKNOWN, "2": UNKNOWN})
    assert fleet.ask("translate", "/v2/translate", "POST", GLOSSARY)[0] == 404
    fleet = ScriptedFleet(a={"1": LostError("gone"), "2": LostError("gone")})
    assert fleet.ask("translate", "/v2/translate", "POST", GLOSSARY) == (502, "group_lost")
    fleet = ScriptedFleet(away=("b",), a=UNKNOWN, b=answering())
    assert fleet.ask("translate", "/v2/translate", "POST", GLOSSARY) == (503, "group_unavailable")
    fleet.watch._note(group_of("b", "ja"))
    fleet.is_now(AWAY, "b")
    assert fleet.ask("translate", "/v2/translate", "POST", GLOSSARY)[0] == 404, "b has no German"
    plain = GLOSSARY.replace(b"glossary_id", b"context")
    fleet = ScriptedFleet(a={"1": UNKNOWN, "2": UNKNOWN})
    assert fleet.ask("translate", "/v2/translate", "POST", plain)[0] == 404
    assert len(fleet.asked) == 1


def test_lists_of_what_servers_keep_are_those_of_all_and_others_are_one_servers() -> None:
    used = [b'{"character_count": %d, "character_limit": 9}' % number for number in (1, 2, 4)]
    answers: Answers = {"1": answering(used[0]), "2": answering(used[1])}
    fleet = ScriptedFleet(a=answers, b=answering(used[2]))
    status, body = fleet.ask("complete_list", "/v2/usage")
    assert (status, json.loads(body)) == (200, {"character_count": 7, "character_limit": 9})
    assert fleet.ask("joined_list", "/languages")[0] == 200
    assert [one[0] for one in fleet.asked] == ["a", "a", "b", "a", "b"]
    fleet = ScriptedFleet(a={"1": ConnectError("refused"), "2": answering(b"[7]")})
    assert fleet.ask("complete_list", "/v2/glossaries") == (503, "group_unavailable")
    assert fleet.asked.count("a2") <= 1
    fleet.asked.clear()
    assert fleet.ask("complete_list", "/v2/glossaries") == (503, "group_unavailable")
    assert fleet.asked == [], "it is known now"
    fleet.leaves("a1")
    assert fleet.ask("complete_list", "/v2/glossaries") == (200, b"[7]")
