"""Uploads of a router: who may begin one, and that its room is given back."""

import asyncio
import json
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import IO, Any

import pytest

from model.text.languages.tags import LanguagePair
from service.models.routes.routing import Offer, RoutingTable
from service.router.directory import GroupState, directory_of
from service.router.groups import Group
from service.router.process import Router
from service.settings import Settings
from support.running_server import free_port

TOTAL = 4 * 2**20
NOT_KEPT = "there is no room for the document on the server's disk"
HERE, THERE = "192.0.2.1", "192.0.2.2"


class _Upload:
    """A document that is sent piece by piece."""

    def __init__(
        self,
        router: Router,
        *,
        address: str = HERE,
        path: str = "/v1/documents",
        length: int | None = None,
        content_type: bytes = b"text/plain",
    ) -> None:
        headers = [(b"content-type", content_type)]
        if length is not None:
            headers.append((b"content-length", str(length).encode()))
        scope: dict[str, Any] = {
            "type": "http",
            "method": "POST",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"source=de&target=en",
            "headers": headers,
            "client": (address, 1),
        }
        self.waits = asyncio.Event()
        self.sent: list[Any] = []
        self._incoming: asyncio.Queue[Any] = asyncio.Queue()
        app = router._uvicorn.config.app
        self._work = asyncio.ensure_future(app(scope, self._receive, self._send))

    async def _receive(self) -> Any:
        if self._incoming.empty():
            self.waits.set()
        return await self._incoming.get()

    async def _send(self, message: Any) -> None:
        self.sent.append(message)

    async def begun(self) -> None:
        """Wait until more of the body is asked for."""
        waiting = asyncio.ensure_future(self.waits.wait())
        await asyncio.wait([waiting, self._work], return_when=asyncio.FIRST_COMPLETED)
        assert waiting.done(), f"it was answered: {self.sent}"

    async def feed(self, data: bytes, *, is_last: bool = False) -> None:
        self._incoming.put_nowait({"type": "http.request", "body": data, "more_body": not is_last})

    def leave(self) -> None:
        self._incoming.put_nowait({"type": "http.disconnect"})

    async def answer(self) -> tuple[int, dict[str, Any], dict[bytes, bytes]]:
        """Status, body and headers; status 0 where there is no answer."""
        await self._work
        if not self.sent:
            return 0, {}, {}
        start = self.sent[0]
        body = b"".join(one.get("body", b"") for one in self.sent[1:])
        return start["status"], json.loads(body), dict(start["headers"])


def _router(*, is_up: bool = True, **settings: Any) -> Router:
    """A router with one group, at an address where nobody listens."""
    given = {"documents_total_bytes": TOTAL, "documents_max_bytes": 2**20, "detection": "off"}
    router = Router(
        Settings(**given | settings),
        [Group(name="west", host="127.0.0.1", port=free_port())],
        announce=lambda _: None,
    )
    offers = (Offer(name="m", pairs=[LanguagePair(source="de", target="en")]),)
    state = GroupState(name="west", offers=offers, table=RoutingTable(offers), has_answered=is_up)
    router._watch._known["west"] = state
    router._watch.directory = directory_of([state], pivot=None)
    return router


def _run(scenario: Callable[[Router], Awaitable[None]], **settings: Any) -> None:
    async def run() -> None:
        router = _router(**settings)
        await scenario(router)
        for members in router._watch.members.values():
            members.close()
        assert router._room.num_bytes == 0

    asyncio.run(run())


def test_a_length_that_is_announced_takes_no_room_from_others() -> None:
    async def scenario(router: Router) -> None:
        idle = [_Upload(router, address=one, length=2**20) for one in (HERE, THERE) * 3]
        for upload in idle:
            await upload.begun()
        assert router._room.num_bytes == 0
        other = _Upload(router, address="192.0.2.3", length=5)
        await other.feed(b"Hallo", is_last=True)
        status, told, _ = await other.answer()
        assert (status, told["code"]) == (503, "group_unavailable"), "it came as far as the group"
        for upload in idle:
            upload.leave()
            await upload.answer()

    _run(scenario)


def test_room_is_taken_by_what_comes_and_given_back_when_the_client_leaves() -> None:
    async def scenario(router: Router) -> None:
        uploads = [_Upload(router, length=3 * 2**19), _Upload(router)]  # 3 of 4 MiB
        for upload in uploads:
            await upload.feed(bytes(3 * 2**19))
            await upload.begun()
        assert router._room.num_bytes == 3 * 2**20
        refused = _Upload(router, length=2**18)
        await refused.begun()
        await refused.feed(bytes(2**18), is_last=True)
        status, told, headers = await refused.answer()
        assert (status, told["code"]) == (429, "overloaded")
        assert (told["value"], told["limit"]) == (13 * 2**18, 3 * 2**20)
        assert int(headers[b"retry-after"]) >= 1
        other = _Upload(router, address=THERE, length=2**20)
        await other.feed(bytes(2**20))
        await other.begun()
        full = _Upload(router, address="192.0.2.3", length=1)
        await full.feed(b"a", is_last=True)
        status, told, _ = await full.answer()
        assert (status, told["value"], told["limit"]) == (429, TOTAL + 1, TOTAL)
        for upload in (*uploads, other):
            upload.leave()
            await upload.answer()

    _run(scenario)


def test_room_is_given_back_when_no_group_was_reached() -> None:
    async def scenario(router: Router) -> None:
        upload = _Upload(router, length=5)
        await upload.feed(b"Hallo", is_last=True)
        status, told, _ = await upload.answer()
        assert (status, told["code"]) == (503, "group_unavailable")

    _run(scenario)


def test_a_document_that_is_announced_too_long_is_refused_unread() -> None:
    async def scenario(router: Router) -> None:
        upload = _Upload(router, length=2**22)
        status, told, _ = await upload.answer()
        assert (status, told["value"], told["limit"]) == (413, 2**22, 2**20)
        assert told["error"] == f"the document has {2**22} bytes; the limit is {2**20}"
        assert not upload.waits.is_set()

    _run(scenario)


def test_one_whole_document_fits_into_the_smallest_room() -> None:
    async def scenario(router: Router) -> None:
        upload = _Upload(router, length=2**20)
        await upload.feed(bytes(2**20))
        await upload.begun()
        assert router._room.num_bytes == 2**20
        upload.leave()
        await upload.answer()

    _run(scenario, documents_total_bytes=2**20)


def test_an_address_sends_so_many_documents_at_once() -> None:
    async def scenario(router: Router) -> None:
        upload = _Upload(router, length=1)
        await upload.begun()
        status, told, _ = await _Upload(router, length=1).answer()
        assert (status, told["value"], told["limit"]) == (429, 2, 1)
        upload.leave()
        await upload.answer()

    _run(scenario, documents_per_caller=1)


def _form(data: bytes) -> bytes:
    head = b'--x\r\ncontent-disposition: form-data; name="file"; filename="a.txt"\r\n\r\n'
    return head + data + b"\r\n--x--\r\n"


@pytest.mark.parametrize("buffer_bytes", [2**13, 2**20], ids=["at a piece", "at the end"])
@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("/v1/documents", {"error": NOT_KEPT, "code": "no_storage", "value": None, "limit": None}),
        (
            "/translate_file",
            {"error": NOT_KEPT, "code": "no_storage", "value": None, "limit": None},
        ),
        ("/v2/document", {"message": NOT_KEPT}),
    ],
)
def test_a_disk_that_is_full_is_a_503_in_the_words_of_the_contract(
    path: str,
    told: dict[str, Any],
    buffer_bytes: int,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    opened: list[IO[bytes]] = []

    def on_full_disk(*_: object, **__: object) -> IO[bytes]:
        file = Path("/dev/full").open("r+b", buffering=buffer_bytes)  # noqa: SIM115  # the router's
        opened.append(file)
        return file

    async def scenario(router: Router) -> None:
        upload = _Upload(router, path=path, content_type=b"multipart/form-data; boundary=x")
        await upload.feed(_form(bytes(2**19)), is_last=True)
        status, answer, headers = await upload.answer()
        assert (status, answer) == (503, told)
        assert int(headers[b"retry-after"]) >= 1

    monkeypatch.setattr(tempfile, "TemporaryFile", on_full_disk)
    _run(scenario)
    assert [one.closed for one in opened] == [True]
    assert [one.message for one in caplog.records].count("document_not_kept") == 1
    assert "unexpected_error" not in caplog.text


@pytest.mark.parametrize("path", ["/v1/documents", "/translate_file", "/v2/document"])
def test_where_documents_are_off_there_is_nothing_to_upload_to(path: str) -> None:
    async def scenario(router: Router) -> None:
        upload = _Upload(router, path=path, length=5)
        status, _, _ = await upload.answer()
        assert status == 404
        assert not upload.waits.is_set()

    _run(scenario, documents=False)


def test_nothing_is_read_while_no_group_answers() -> None:
    async def scenario(router: Router) -> None:
        upload = _Upload(router, length=5)
        status, told, _ = await upload.answer()
        assert (status, told["code"]) == (503, "group_unavailable")
        assert not upload.waits.is_set()

    _run(scenario, is_up=False)
