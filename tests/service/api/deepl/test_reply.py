"""Errors in DeepL's shape, whatever they are; the contract as a whole is tests/contract."""

import asyncio
import json

import pytest
from starlette.requests import Request
from starlette.responses import Response

from service.api.deepl.reply import answered, error_reply_at
from service.errors import draining, invalid, overloaded
from service.telemetry.request_context import RequestContext, attach_context


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (invalid("text is missing"), 400, "text is missing"),
        (ValueError("what a text said"), 500, "internal error"),
    ],
)
def test_an_error_has_its_shape(error: Exception, status: int, message: str) -> None:
    async def fail(_request: Request) -> Response:
        raise error

    request = Request({"type": "http", "headers": []})
    attach_context(request.scope, RequestContext(request_id="r"))
    reply = asyncio.run(answered(fail)(request))
    assert (reply.status_code, json.loads(bytes(reply.body))) == (status, {"message": message})


@pytest.mark.parametrize("path", ["/v2/translate", "/v2/document", "/v3/glossaries/a", "/v2/none"])
def test_on_deepls_paths_an_error_has_its_shape_whoever_answers(path: str) -> None:
    reply = error_reply_at(path, draining().problem, {"allow": "GET"})
    told = {"message": "the server is shutting down"}
    assert (reply.status_code, json.loads(bytes(reply.body))) == (503, told)
    assert (reply.headers["retry-after"], reply.headers["allow"]) == ("5", "GET")


@pytest.mark.parametrize("path", ["/translate", "/v1/translate", "/v2", "/", "/v20/translate"])
def test_on_all_other_paths_it_has_the_servers_own(path: str) -> None:
    problem = overloaded("too much", value=2, limit=1, seconds=3.0).problem
    reply = error_reply_at(path, problem, {"allow": "GET"})
    told = {"error": "too much", "code": "overloaded", "value": 2, "limit": 1}
    assert (reply.status_code, json.loads(bytes(reply.body))) == (429, told)
    assert (reply.headers["retry-after"], reply.headers["allow"]) == ("3", "GET")
