import asyncio
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.requests import Request

from service.api.receiving import Receiving
from service.documents.jobs import DocumentJob
from service.documents.store import JobFiles
from service.errors import RequestError
from service.http.arrivals import Arrivals
from service.settings import Settings
from support.document_jobs import job


class Kept:
    """A queue whose jobs all have their files in one folder."""

    def __init__(self, folder: Path) -> None:
        self._files = JobFiles(folder)

    def result(self, _job: DocumentJob) -> JobFiles:
        return self._files

    async def on_disk(self, function: Callable[..., Any], *arguments: object) -> Any:
        return function(*arguments)


def test_a_result_that_has_just_been_removed_is_not_found(tmp_path: Path) -> None:
    anything: Any = None
    queue: Any = Kept(tmp_path)
    receiving = Receiving(front=anything, access=anything, queue=queue)
    done = job("a", state="done")
    with pytest.raises(RequestError, match="no such document") as caught:
        asyncio.run(receiving.result(done))
    assert caught.value.problem.status == 404
    (tmp_path / "result").write_bytes(b"four")
    reply = asyncio.run(receiving.result(done))
    assert reply.headers["content-length"] == "4"


class Forms:
    """Contract whose key is a field of the form."""

    key_name = "api_key"


def trickling(*pieces: bytes) -> Request:
    """A form that begins, and never ends."""
    messages = [{"type": "http.request", "body": one, "more_body": True} for one in pieces]

    async def receive() -> Any:
        if messages:
            return messages.pop(0)
        return await asyncio.Future()

    headers = [(b"content-type", b"multipart/form-data; boundary=x"), (b"content-length", b"90000")]
    scope = {"type": "http", "method": "POST", "headers": headers, "query_string": b""}
    return Request(scope, receive)


def test_the_beginning_of_a_form_has_the_time_of_any_body_where_a_key_is_needed(
    tmp_path: Path,
) -> None:
    async def keyless(*_: object) -> None:
        return None

    front: Any = SimpleNamespace(
        check_ready=lambda: None,
        arrivals=Arrivals(),
        settings=Settings(body_timeout_seconds=0.01),
    )
    access: Any = SimpleNamespace(admit=keyless, needs_key=True)
    queue: Any = Kept(tmp_path)
    queue.limits = SimpleNamespace(max_bytes=100_000)
    receiving = Receiving(front=front, access=access, queue=queue)
    contract: Any = Forms()

    async def received() -> None:
        async with asyncio.timeout(5.0):
            await receiving.receive(trickling(b"--x\r\n"), contract)

    with pytest.raises(RequestError, match=r"not complete after 0.01 seconds") as caught:
        asyncio.run(received())
    assert caught.value.problem.code == "body_timeout"
