"""Pages of other origins: what an answer says of who may read it, whoever answered."""

import asyncio
from typing import Any

import pytest
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from service.api.deepl.reply import error_reply_at
from service.http.cors import Cors

PAGE = "https://page.example"


def _headers(origins: list[str], origin: str | None, **marks: str) -> list[tuple[str, str]]:
    """Headers of an answer that has these marks already."""
    sent: list[Any] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        named = {name.replace("_", "-"): value for name, value in marks.items()}
        await Response(headers=named)(scope, receive, send)

    async def receive() -> Any:
        raise AssertionError("nothing is read")

    async def send(message: Any) -> None:
        sent.append(message)

    given = [] if origin is None else [(b"origin", origin.encode())]
    scope = {"type": "http", "method": "GET", "path": "/", "headers": given}
    cors = Cors(app, reply_at=error_reply_at, origins=origins)
    asyncio.run(cors(scope, receive, send))
    return sorted(
        (name.decode(), value.decode())
        for name, value in sent[0]["headers"]
        if name != b"content-length"
    )


@pytest.mark.parametrize("origins", [[PAGE], ["*"]])
@pytest.mark.parametrize("origin", [None, PAGE, "https://other.example"])
def test_an_answer_that_a_server_has_marked_is_marked_once(
    origins: list[str], origin: str | None
) -> None:
    plain = _headers(origins, origin)
    marks = {
        "access_control_allow_origin": "*",
        "access_control_expose_headers": "x-own",
        "vary": "Origin",
    }
    assert _headers(origins, origin, **marks) == plain


def test_a_server_does_not_say_which_pages_read_the_answers_of_another() -> None:
    marked = _headers([PAGE], "https://other.example", access_control_allow_origin="*")
    assert "access-control-allow-origin" not in dict(marked)


def test_what_else_an_answer_varies_by_is_left() -> None:
    marked = _headers([PAGE], PAGE, vary="Accept-Language, origin")
    assert dict(marked)["vary"] == "Accept-Language, Origin"
