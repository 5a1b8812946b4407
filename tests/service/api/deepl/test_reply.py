"""Errors in DeepL's shape, whatever they are; the contract as a whole is tests/contract."""

import asyncio
import json

import pytest
from starlette.requests import Request
from starlette.responses import Response

from service.api.deepl.reply import answered
from service.errors import invalid
from service.telemetry.request_context import RequestContext, attach_context


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (invalid("text is missing"), 400, "text is missing"),
        (ValueError("what a text said"), 500, "internal error"),
    ],
)
def test_an_error_has_its_shape_and_a_trace_id(error: Exception, status: int, message: str) -> None:
    async def fail(_request: Request) -> Response:
        raise error

    request = Request({"type": "http", "headers": []})
    attach_context(request.scope, RequestContext(request_id="r"))
    reply = asyncio.run(answered(fail)(request))
    assert (reply.status_code, json.loads(bytes(reply.body))) == (status, {"message": message})
    assert reply.headers["x-trace-id"] == "r"
