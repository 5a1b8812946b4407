"""Files of LibreTranslate's contract: `/translate_file`, and `/download_file` for its answer.

Owns these paths. The answer is a link, so the request waits until the file is translated, and a
client that leaves takes its job along. Whoever has the link has the file, as clients send no key
for it; it cannot be guessed. The contract has no way to forget a file, so one that has been fetched
gives way to its caller's next ones. The way of an upload is `service.api.receiving`.
"""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel
from starlette.responses import Response

from model.text.constraints.glossary import Glossary
from service.access.access import DOCUMENTED
from service.access.addresses import scheme_of
from service.api.detecting import document_source
from service.api.languages import LIBRETRANSLATE_ALIASES, choose_route
from service.api.libretranslate.request import KEY_NAME
from service.api.receiving import NOT_READ, PART_OF_FILE, TRANSLATED_FILE, Receiving, kind_and_name
from service.documents.jobs import DocumentJob, JobOptions, Owner, no_such_document
from service.documents.queue import DocumentQueue
from service.errors import Problem, RequestError, invalid
from service.front import Front
from service.http.disconnect import cancelled_on_disconnect
from service.http.replies import JsonReply, error_responses, path_parameter
from service.networks import Network

_LOOK_SECONDS = 5.0
"""Between two looks at the engine while a client waits for its file."""


class FileReply(BaseModel):
    """Where the translated file is."""

    translatedFileUrl: str  # noqa: N815  # the contract's own spelling


FILE_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {"model": FileReply, "description": "Where the translated file is."},
    **error_responses(400, 401, 403, 408, 413, 415, 429, 503),
}
DOWNLOAD_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: TRANSLATED_FILE,
    206: PART_OF_FILE,
    **error_responses(400, 404, 416),
    503: NOT_READ,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LibreTranslateFiles:
    """Wire of `POST /translate_file`; see `service.api.receiving.DocumentContract`.

    Attributes:
        front: What is loaded.
    """

    front: Front
    key_name: str | None = KEY_NAME
    takes_plain_bodies: bool = False

    def parse(self, values: Mapping[str, str], file_name: str | None) -> JobOptions:
        """What is to be done with a file."""
        kind, name = kind_and_name(file_name)
        for field in ("source", "target"):
            if not values.get(field):
                raise invalid(f"Invalid request: missing {field} parameter", limit=field)
        chosen = choose_route(
            self.front.table,
            source=values["source"],
            target=values["target"],
            aliases=LIBRETRANSLATE_ALIASES,
        )
        return JobOptions(
            kind=kind,
            name=name,
            source=document_source(self.front.detection, chosen),
            target=chosen.route.target,
        )

    async def glossary(
        self,
        _values: Mapping[str, str],
        _asked: JobOptions,
        _owner: Owner,
    ) -> Glossary | None:
        """None: this contract has no glossaries."""
        return None


def build_files(receiving: Receiving) -> APIRouter:
    """The routes of files."""
    router = APIRouter(tags=["LibreTranslate"])
    contract = LibreTranslateFiles(front=receiving.front)
    front, queue = receiving.front, receiving.queue

    @router.post(
        "/translate_file",
        summary="Translate a file",
        responses=FILE_RESPONSES,
        openapi_extra=_FILE_OPERATION,
        dependencies=[DOCUMENTED],
    )
    async def translate_file(request: Request) -> Response:
        job = await receiving.receive(request, contract)
        try:
            job = await cancelled_on_disconnect(request, ended(front, queue, job.id))
        except BaseException:
            await queue.remove(job)
            raise
        if job.state == "failed":
            await queue.remove(job)  # nobody knows its name who could ask for it
            raise _failed(job)
        name = f"{job.id}.{job.secret}.{job.asked.kind}"
        trusted = receiving.front.settings.trusted_proxies
        return JsonReply({"translatedFileUrl": link_of(request, name, trusted)})

    @router.get(
        "/download_file/{name}",
        summary="A translated file",
        response_class=Response,
        responses=DOWNLOAD_RESPONSES,
        openapi_extra=_NAMED,
    )
    async def download_file(request: Request) -> Response:
        job_id, _, rest = request.path_params["name"].partition(".")
        secret, _, ending = rest.partition(".")
        job = queue.find_by_secret(job_id, secret)
        if ending != job.asked.kind or job.state != "done":
            raise no_such_document()
        return await receiving.result(job, on_sent=partial(queue.note_fetched, job.id))

    return router


async def ended(front: Front, queue: DocumentQueue, job_id: str) -> DocumentJob:
    """A job, once it is done or has failed; nobody waits here for an engine that was given up.

    Raises:
        RequestError: As `DocumentQueue.ended`; or a 503: only a reload or a restart can help.
    """
    waiting = asyncio.ensure_future(queue.ended(job_id))
    try:
        while not waiting.done():
            await asyncio.wait({waiting}, timeout=_LOOK_SECONDS)
            if not waiting.done():
                front.check_live()
        return waiting.result()
    finally:
        waiting.cancel()


def link_of(request: Request, name: str, trusted: Iterable[Network]) -> str:
    """Where a client finds a file, by the host and the scheme that it came with.

    Args:
        request: The client's.
        name: Of the file.
        trusted: Proxies whose word of the scheme is taken.
    """
    peer = request.client.host if request.client else None
    scheme = scheme_of(peer, request.headers.getlist("x-forwarded-proto"), trusted)
    base = request.base_url if scheme is None else request.base_url.replace(scheme=scheme)
    return f"{base}download_file/{name}"


def _failed(job: DocumentJob) -> RequestError:
    """A 400: the file is at fault, or what was asked."""
    return RequestError(
        Problem(status=400, code="document_failed", message=job.error or "it failed")
    )


_NAMED = path_parameter("name")
_FILE_OPERATION: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file", "source", "target"],
                    "properties": {
                        "file": {"type": "string", "format": "binary"},
                        "source": {"type": "string", "description": 'Source language, or "auto".'},
                        "target": {"type": "string", "description": "Target language."},
                        KEY_NAME: {"type": "string", "description": "A key, if there are any."},
                    },
                }
            }
        },
    }
}
