"""Replies that are a file: when all of it was sent, and what is no part of it."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from starlette.types import Message

from service.http.files import FileReply
from service.telemetry.request_context import RequestContext, attach_context

CONTENT = b"0123456789"


class Asked:
    """A request for a file, and what came of it."""

    def __init__(
        self, path: Path, *, given: str | None = None, is_head: bool = False, leaves: bool = False
    ) -> None:
        path.write_bytes(CONTENT)
        self.num_told = 0
        self.messages: list[Message] = []
        self.context = RequestContext(request_id="a", is_head=is_head)
        self._leaves = leaves
        headers = [] if given is None else [(b"range", given.encode())]
        scope: dict[str, Any] = {"type": "http", "method": "GET", "headers": headers}
        attach_context(scope, self.context)
        reply = FileReply(
            path, path.stat(), media_type="text/plain", name="a.txt", on_sent=self._told
        )
        asyncio.run(self._ask(reply, scope))

    async def _ask(self, reply: FileReply, scope: dict[str, Any]) -> None:
        async def receive() -> Message:
            return {"type": "http.disconnect"} if self._leaves else await asyncio.Future()

        async def send(message: Message) -> None:
            if self._leaves:
                await asyncio.Future()
            self.messages.append(message)

        await reply(scope, receive, send)

    async def _told(self) -> None:
        self.num_told += 1

    @property
    def status(self) -> int:
        return int(self.messages[0]["status"])

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.messages)


def test_it_is_told_when_all_of_a_file_was_sent(tmp_path: Path) -> None:
    asked = Asked(tmp_path / "a")
    assert (asked.status, asked.body, asked.num_told) == (200, CONTENT, 1)


def test_a_part_a_head_and_a_client_that_leaves_do_not_count(tmp_path: Path) -> None:
    asked = Asked(tmp_path / "a", given="bytes=2-3")
    assert (asked.status, asked.body, asked.num_told) == (206, b"23", 0)
    assert Asked(tmp_path / "a", is_head=True).num_told == 0
    assert Asked(tmp_path / "a", leaves=True).num_told == 0


@pytest.mark.parametrize(
    ("given", "status", "code", "limit"),
    [
        ("bytes=10-", 416, "range_not_satisfiable", 10),
        ("bytes=a", 400, "invalid_request", "bytes=FIRST-LAST"),
    ],
)
def test_what_is_no_part_is_refused_once_in_json(
    tmp_path: Path, given: str, status: int, code: str, limit: object
) -> None:
    asked = Asked(tmp_path / "a", given=given)
    assert [message["type"] for message in asked.messages] == [
        "http.response.start",
        "http.response.body",
    ]
    content = json.loads(asked.body)
    assert (asked.status, asked.context.code, asked.num_told) == (status, code, 0)
    assert (content["code"], content["value"], content["limit"]) == (code, given, limit)
