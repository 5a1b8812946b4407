"""What a router refuses itself before it looks at texts."""

import asyncio
import json
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.requests import Request

from model.text.languages.tags import LanguagePair
from service.errors import RequestError
from service.models.routes.routing import Offer, RoutingTable
from service.router.directory import GroupState, directory_of
from service.router.dispatch import Dispatcher
from service.settings import Settings


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
