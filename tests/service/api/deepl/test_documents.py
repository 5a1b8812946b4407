"""Documents that DeepL's clients fetch: what is kept of them then."""

import asyncio
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from prometheus_client import CollectorRegistry
from starlette.types import Receive, Scope, Send

from model.text.languages.tags import LanguagePair
from service.access.access import Caller
from service.api.deepl.documents import DeepLDocuments, build_documents
from service.api.receiving import Receiving
from service.documents.jobs import DocumentJob
from service.documents.queue import DocumentQueue
from service.documents.room import QueueLimits
from service.documents.store import JobStore
from service.errors import RequestError
from service.models.routes.routing import Offer, RoutingTable
from service.telemetry.document_metrics import DocumentMetrics
from service.telemetry.request_context import RequestContext, attach_context
from support.document_jobs import ASKED, OWNER, Capitals

LIMITS = QueueLimits(
    max_bytes=1_000,
    max_characters=1_000,
    max_jobs=2,
    max_total_bytes=10_000,
    max_working=1,
    keep_seconds=100.0,
)
CALLER = Caller(identity=OWNER.identity, requests_per_minute=None, characters_per_minute=None)


async def _admitted(*_: object) -> Caller:
    return CALLER


class _Reader:
    """Reader of values that are in the query string."""

    async def read_values(self, request: Any) -> dict[str, object]:
        return dict(request.query_params)


def _client(queue: DocumentQueue) -> httpx.AsyncClient:
    """A client of the routes alone."""
    anything: Any = None
    access: Any = SimpleNamespace(admit_by_header=_admitted)
    admission: Any = SimpleNamespace(
        access=access, readers=SimpleNamespace(of=lambda _caller: _Reader())
    )
    routes = FastAPI()
    receiving = Receiving(front=anything, access=access, queue=queue)
    routes.include_router(build_documents(receiving, admission, anything))

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        attach_context(scope, RequestContext(request_id="r"))
        await routes(scope, receive, send)

    return httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://a")


async def _translated(queue: DocumentQueue) -> DocumentJob:
    """The job of a file that was sent, once it is done."""
    with queue.room(OWNER) as upload:
        upload.files.folder.mkdir()
        upload.files.source.write_bytes(b"one\n")
        job = await queue.submit(upload, ASKED, OWNER, num_bytes=4)
    return await queue.ended(job.id)


def test_a_result_that_was_fetched_can_be_again_until_its_caller_sends_one_file_too_many(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        metrics = DocumentMetrics(CollectorRegistry())
        queue = DocumentQueue(partial(JobStore, tmp_path / "jobs"), LIMITS, Capitals(), metrics)
        async with asyncio.timeout(60), queue.running(), _client(queue) as client:

            async def fetched(job: DocumentJob) -> tuple[int, str]:
                path = f"/v2/document/{job.id}/result"
                reply = await client.post(path, params={"document_key": job.secret})
                return reply.status_code, reply.text

            jobs = []
            for _ in range(4):
                jobs.append(await _translated(queue))
                for _ in range(2):
                    assert await fetched(jobs[-1]) == (200, "ONE\n")
            assert [(await fetched(job))[0] for job in jobs] == [404, 404, 200, 200]

    asyncio.run(scenario())


def _parsed_kind(file_name: str, output_format: str) -> str:
    pair = LanguagePair(source="en", target="zh-Hans")
    front: Any = SimpleNamespace(
        table=RoutingTable([Offer(name="tiny", pairs=(pair,))]), detection=None
    )
    anything: Any = None
    contract = DeepLDocuments(front=front, glossaries=anything)
    values = {"source_lang": "EN", "target_lang": "ZH", "output_format": output_format}
    return contract.parse(values, file_name).kind


@pytest.mark.parametrize(
    ("file_name", "output_format", "kind"),
    [
        ("a.htm", "htm", "html"),
        ("a.html", "htm", "html"),
        ("a.md", "MARKDOWN", "md"),
        ("a.text", "txt", "txt"),
        ("a.docx", "docx", "docx"),
        ("a.docx", "", "docx"),
    ],
)
def test_any_ending_of_the_files_kind_is_its_output_format(
    file_name: str, output_format: str, kind: str
) -> None:
    assert _parsed_kind(file_name, output_format) == kind


@pytest.mark.parametrize("output_format", ["pdf", "docx", "x"])
def test_another_output_format_is_refused_by_its_name(output_format: str) -> None:
    with pytest.raises(RequestError) as refused:
        _parsed_kind("a.htm", output_format)
    problem = refused.value.problem
    assert (problem.status, problem.value, problem.limit) == (400, output_format, "html")
    assert problem.message == (
        f"Value for 'output_format' not supported: {output_format}; it must be html"
    )
