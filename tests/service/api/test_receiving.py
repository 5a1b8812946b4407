"""Uploads that become jobs, and results: what may come, and what it takes meanwhile."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from starlette.requests import Request

from service.access.access import Caller
from service.api.receiving import Receiving, kind_and_name
from service.documents.jobs import DocumentJob
from service.documents.queue import DocumentQueue
from service.documents.room import QueueLimits
from service.documents.store import JobFiles, JobStore
from service.errors import RequestError
from service.http.arrivals import Arrivals
from service.http.uploads import MAX_FRAME_BYTES
from service.settings import Settings
from service.telemetry.document_metrics import DocumentMetrics
from support.document_jobs import ASKED, Capitals, job

LIMITS = QueueLimits(
    max_bytes=2**20,
    max_characters=2**20,
    max_jobs=3,
    max_total_bytes=2**20,
    max_working=1,
    keep_seconds=100.0,
)


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
    assert reply.headers["content-type"] == "text/plain; charset=utf-8"
    (tmp_path / "result").write_bytes("four".encode("utf-16"))
    reply = asyncio.run(receiving.result(done))
    assert reply.headers["content-type"] == "text/plain; charset=utf-16"


@pytest.mark.parametrize(
    ("name", "value"),
    [("a.pdf", ".pdf"), ("d:\\b\\a.tar.gz", ".gz"), ("README", "README"), (".pdf", ".pdf")],
)
def test_a_file_of_no_known_kind_is_refused_with_its_ending(name: str, value: str) -> None:
    with pytest.raises(RequestError, match="file format not supported") as caught:
        kind_and_name(name)
    assert caught.value.problem.value == value


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


class Files:
    """Contract whose body is the file alone."""

    key_name = None
    takes_plain_bodies = True

    def parse(self, *_: object) -> Any:
        return ASKED

    async def glossary(self, *_: object) -> None:
        return None


class Sender:
    """A file that is sent piece by piece, and what becomes of it."""

    def __init__(self, receiving: Receiving, address: str, headers: dict[str, str]) -> None:
        scope = {
            "type": "http",
            "method": "POST",
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
            "query_string": b"name=a.txt",
            "client": (address, 1),
        }
        self._waits = asyncio.Event()
        self._incoming: asyncio.Queue[Any] = asyncio.Queue()
        contract: Any = Files()
        received = receiving.receive(Request(scope, self._receive), contract)
        self._work = asyncio.ensure_future(received)

    async def _receive(self) -> Any:
        if self._incoming.empty():
            self._waits.set()
        return await self._incoming.get()

    async def is_read(self) -> bool:
        """Whether more of it is asked for before anything becomes of it."""
        waiting = asyncio.ensure_future(self._waits.wait())
        await asyncio.wait([waiting, self._work], return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        return self._waits.is_set()

    async def feed(self, *pieces: bytes) -> None:
        """Send more, and wait until it was taken."""
        self._waits.clear()
        for piece in pieces:
            self._incoming.put_nowait({"type": "http.request", "body": piece, "more_body": True})
        await self.is_read()

    async def job(self) -> DocumentJob:
        """The job that it is when it ends here."""
        self._incoming.put_nowait({"type": "http.request", "body": b"", "more_body": False})
        return await self._work

    async def refusal(self) -> tuple[int, object, object]:
        """Status, value and limit of what it is refused with."""
        with pytest.raises(RequestError) as caught:
            await self._work
        problem = caught.value.problem
        return problem.status, problem.value, problem.limit

    async def leave(self) -> None:
        """Have the client be gone."""
        self._incoming.put_nowait({"type": "http.disconnect"})
        await asyncio.wait([self._work])
        if not self._work.cancelled():
            self._work.exception()


class Senders:
    """Files that are sent to one server without an engine."""

    def __init__(self, folder: Path) -> None:
        translator = Capitals()
        translator.gate.clear()
        metrics = DocumentMetrics(CollectorRegistry())
        self.queue = DocumentQueue(partial(JobStore, folder), LIMITS, translator, metrics)
        front: Any = SimpleNamespace(check_ready=lambda: None, arrivals=Arrivals())
        access: Any = SimpleNamespace(admit=_caller_of, admit_by_header=_caller_of)
        self._receiving = Receiving(front=front, access=access, queue=self.queue)
        self._begun: list[Sender] = []

    def begin(
        self, address: str, *, length: int | None = None, content_type: str = "text/plain"
    ) -> Sender:
        headers = {"content-type": content_type}
        if length is not None:
            headers["content-length"] = f"{length}"
        sender = Sender(self._receiving, address, headers)
        self._begun.append(sender)
        return sender

    async def leave(self) -> None:
        for sender in self._begun:
            await sender.leave()


async def _caller_of(request: Request) -> Caller:
    assert request.client is not None
    identity = f"address:{request.client.host}"
    return Caller(identity=identity, requests_per_minute=None, characters_per_minute=None)


A, B, C = "192.0.2.1", "192.0.2.2", "192.0.2.3"
QUARTER = bytes(2**18)


def run(folder: Path, scenario: Callable[[Senders], Awaitable[None]]) -> None:
    async def main() -> None:
        senders = Senders(folder)
        async with asyncio.timeout(60), senders.queue.running():
            try:
                await scenario(senders)
            finally:
                await senders.leave()

    asyncio.run(main())


@pytest.mark.parametrize("length", [2**20, None])
def test_what_an_upload_announces_takes_no_room_from_others(
    tmp_path: Path, length: int | None
) -> None:
    async def scenario(senders: Senders) -> None:
        for address in (A, B) * 3:
            assert await senders.begin(address, length=length).is_read()
        whole = senders.begin(C, length=2**20)
        await whole.feed(*[QUARTER] * 4)
        assert (await whole.job()).num_bytes == 2**20

    run(tmp_path, scenario)


def test_a_room_that_is_full_meanwhile_ends_an_upload_of_which_nothing_stays(
    tmp_path: Path,
) -> None:
    async def scenario(senders: Senders) -> None:
        def num_files() -> Awaitable[int]:
            return senders.queue.on_disk(lambda: len(list(tmp_path.glob("*/source"))))

        first, second = senders.begin(A, length=2**19), senders.begin(B)
        for sender in (first, second, first):
            await sender.feed(QUARTER)
        assert await num_files() == 2
        await second.feed(QUARTER + b"a")
        assert await second.refusal() == (429, 2**20 + 1, 2**20)
        assert await num_files() == 1
        assert (await first.job()).num_bytes == 2**19

    run(tmp_path, scenario)


def test_one_upload_more_than_a_caller_may_have_is_refused_unread(tmp_path: Path) -> None:
    async def scenario(senders: Senders) -> None:
        for _ in range(LIMITS.max_jobs):
            assert await senders.begin(A).is_read()
        refused = senders.begin(A, length=1)
        assert await refused.refusal() == (429, 3, 3)
        assert not await refused.is_read()
        assert await senders.begin(B).is_read()

    run(tmp_path, scenario)


def test_a_length_above_the_limit_of_one_document_is_refused_unread(tmp_path: Path) -> None:
    async def scenario(senders: Senders) -> None:
        most = LIMITS.max_bytes + MAX_FRAME_BYTES
        assert await senders.begin(A, length=most).is_read()
        refused = senders.begin(A, length=most + 1)
        assert await refused.refusal() == (413, most + 1, LIMITS.max_bytes)
        assert not await refused.is_read()

    run(tmp_path, scenario)


def test_the_largest_document_fits_into_the_smallest_room_with_the_form_around_it(
    tmp_path: Path,
) -> None:
    form_type = "multipart/form-data; boundary=x"
    head = b'--x\r\ncontent-disposition: form-data; name="file"; filename="a.txt"\r\n\r\n'

    async def scenario(senders: Senders) -> None:
        long = senders.begin(A, content_type=form_type)
        await long.feed(head, *[QUARTER] * 5)
        assert await long.refusal() == (413, 5 * 2**18, 2**20)
        form = senders.begin(A, content_type=form_type)
        await form.feed(head, *[QUARTER] * 4, b"\r\n--x--\r\n")
        assert (await form.job()).num_bytes == 2**20

    run(tmp_path, scenario)
