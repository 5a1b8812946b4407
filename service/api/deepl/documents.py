"""Documents of DeepL's contract: uploaded, asked about with a key of their own, fetched.

Owns these paths, their values and their replies. Options are those of texts, read by
`service.api.deepl.request`; the way of an upload is `service.api.receiving`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field
from starlette.responses import Response

from model.documents.kinds import kind_of
from model.text.constraints.glossary import Glossary
from service.access.access import DOCUMENTED
from service.api.admission import Admission
from service.api.deepl.bodies import content, json_or_form
from service.api.deepl.glossaries import found_terms
from service.api.deepl.reply import DeepLError, answered
from service.api.deepl.request import glossary_ids, parse_options
from service.api.deepl.values import unsupported
from service.api.detecting import document_source
from service.api.receiving import TRANSLATED_FILE, Receiving, kind_and_name, owner_of
from service.documents.jobs import DocumentJob, JobOptions, Owner
from service.errors import RequestError
from service.front import Front
from service.glossaries.keeping import Glossaries
from service.http.replies import JsonReply, path_parameter

_STATES = {"queued": "queued", "translating": "translating", "done": "done", "failed": "error"}


class DeepLDocument(BaseModel):
    """A document that was accepted."""

    document_id: str
    document_key: str = Field(description="Without which nothing of it is told.")


class DeepLDocumentStatus(BaseModel):
    """What became of a document."""

    document_id: str
    status: str = Field(description="queued, translating, done or error.")
    billed_characters: int | None = Field(default=None, description="Once it is done.")
    error_message: str | None = Field(default=None, description="Why there is no result.")


_ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": DeepLError, "description": text}
    for status, text in {
        400: "The request is invalid, or asks for what this server cannot do.",
        403: "The key is wrong, or there is none where one is required.",
        404: "There is no such document, or its key is another one.",
        408: "The body did not arrive in time.",
        413: "The document is too large.",
        415: "The upload is compressed.",
        429: "There are too many documents; Retry-After says when to come back.",
        503: "Booting, shutting down, without an engine, or not translated yet.",
    }.items()
}
UPLOAD_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {"model": DeepLDocument, "description": "It was accepted."},
    **_ERRORS,
}
STATUS_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {"model": DeepLDocumentStatus, "description": "The document."},
    **_ERRORS,
}
RESULT_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: TRANSLATED_FILE,
    **_ERRORS,
    409: {"model": DeepLError, "description": "It could not be translated."},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DeepLDocuments:
    """Wire of documents; see `service.api.receiving.DocumentContract`.

    Attributes:
        front: What is loaded.
        glossaries: What callers keep.
    """

    front: Front
    glossaries: Glossaries
    key_name: str | None = None
    takes_plain_bodies: bool = False

    def parse(self, values: Mapping[str, str], file_name: str | None) -> JobOptions:
        """What is to be done with a file."""
        if file_name is not None:
            file_name = values.get("filename") or file_name
        kind, name = kind_and_name(file_name)
        chosen = parse_options(values, self.front)
        wanted = values.get("output_format", "").lower()
        if wanted and kind_of(f".{wanted}") != kind:
            raise unsupported("output_format", wanted, limit=kind)
        return JobOptions(
            kind=kind,
            name=name,
            source=document_source(self.front.detection, chosen),
            target=chosen.route.target,
        )

    async def glossary(
        self, values: Mapping[str, str], asked: JobOptions, owner: Owner
    ) -> Glossary | None:
        """The terms of the glossaries that are named."""
        names = glossary_ids(values)
        if not names:
            return None
        return await found_terms(self.glossaries, owner, names, (asked.source, asked.target))


def build_documents(
    receiving: Receiving, admission: Admission, glossaries: Glossaries
) -> APIRouter:
    """The routes of documents."""
    router = APIRouter(tags=["DeepL"])
    contract = DeepLDocuments(front=receiving.front, glossaries=glossaries)
    note_fetched = receiving.queue.note_fetched

    async def shown(request: Request, document_id: str) -> DocumentJob:
        """The job whose key the request shows."""
        caller = await admission.access.admit_by_header(request)
        values = await admission.readers.of(caller).read_values(request)
        key = values.get("document_key")
        receiving.queue.find(document_id, owner_of(caller).key_name)
        return receiving.queue.find_by_secret(document_id, key if isinstance(key, str) else "")

    @router.post(
        "/v2/document",
        summary="Translate a document, as DeepL does",
        responses=UPLOAD_RESPONSES,
        openapi_extra=_UPLOAD_OPERATION,
        dependencies=[DOCUMENTED],
    )
    @answered
    async def upload(request: Request) -> Response:
        job = await receiving.receive(request, contract)
        return JsonReply({"document_id": job.id, "document_key": job.secret})

    @router.post(
        "/v2/document/{document_id}",
        summary="What became of a document",
        responses=STATUS_RESPONSES,
        openapi_extra=_KEY_OPERATION,
        dependencies=[DOCUMENTED],
    )
    @answered
    async def status(request: Request) -> Response:
        return JsonReply(_content(await shown(request, request.path_params["document_id"])))

    @router.post(
        "/v2/document/{document_id}/result",
        summary="The translated document",
        response_class=Response,
        responses=RESULT_RESPONSES,
        openapi_extra=_KEY_OPERATION,
        dependencies=[DOCUMENTED],
    )
    @answered
    async def result(request: Request) -> Response:
        job = await shown(request, request.path_params["document_id"])
        try:
            return await receiving.result(job, on_sent=partial(note_fetched, job.id))
        except RequestError as error:
            if error.problem.code != "document_not_ready":
                raise
            raise RequestError(replace(error.problem, status=503)) from error

    return router


def _content(job: DocumentJob) -> dict[str, object]:
    """A `DeepLDocumentStatus` as plain values."""
    content: dict[str, object] = {"document_id": job.id, "status": _STATES[job.state]}
    if job.state == "done":
        content["billed_characters"] = job.num_characters
    if job.state == "failed":
        content["error_message"] = job.error
    return content


_UPLOAD_OPERATION: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file", "target_lang"],
                    "properties": {
                        "file": {"type": "string", "format": "binary"},
                        "filename": {"type": "string", "description": "Instead of the file's own."},
                        "source_lang": {
                            "type": "string",
                            "description": "Source language; without it, it is detected.",
                        },
                        "target_lang": {"type": "string", "description": "Target language."},
                        "glossary_id": {
                            "type": "string",
                            "description": "A glossary; with `source_lang`.",
                        },
                        "output_format": {"type": "string", "description": "That of the file."},
                    },
                }
            }
        },
    }
}
_KEY_OPERATION: dict[str, Any] = {
    **path_parameter("document_id"),
    **json_or_form(content(["document_key"], {"document_key": {"type": "string"}})),
}
