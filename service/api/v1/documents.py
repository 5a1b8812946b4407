"""Documents of our own contract: uploaded, asked about, fetched, removed.

Owns these paths, their values and their replies. The way of an upload is
`service.api.receiving`, what becomes of it `service.documents`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field
from starlette.responses import Response

from model.text.constraints.glossary import Glossary
from service.access.access import DOCUMENTED
from service.api.detecting import document_source
from service.api.languages import AUTO, NO_ALIASES, choose_route
from service.api.receiving import NOT_READ, PART_OF_FILE, TRANSLATED_FILE, Receiving, kind_and_name
from service.api.v1.control import glossary_of_json
from service.api.v1.validation import unknown_field
from service.documents.jobs import DocumentJob, JobOptions, JobState, Owner
from service.errors import invalid
from service.front import Front
from service.http.replies import JsonReply, error_response, error_responses, path_parameter


class DocumentReply(BaseModel):
    """A document that was uploaded, as it is now."""

    id: str = Field(description="Its name, which nobody guesses.")
    state: JobState
    progress: float = Field(ge=0, le=1, description="What of its text is translated.")
    name: str = Field(description="Of the file.")
    kind: str
    source: str = Field(description="Its language, as it was named or found.")
    target: str
    num_characters: int = Field(description="Of its texts; 0 while it has not been read.")
    num_flagged: int = Field(description="Segments whose checks failed.")
    error: str | None = Field(description="Why there is no result.")


UPLOAD_RESPONSES: dict[int | str, dict[str, Any]] = {
    202: {"model": DocumentReply, "description": "It was accepted."},
    **error_responses(400, 401, 403, 408, 413, 415, 429, 503),
}
STATUS_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {"model": DocumentReply, "description": "The document."},
    **error_responses(401, 403, 404, 429),
}
RESULT_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: TRANSLATED_FILE,
    206: PART_OF_FILE,
    **error_responses(400, 401, 403, 404, 416, 429),
    409: error_response("It is not translated yet, or could not be."),
    503: NOT_READ,
}
REMOVED_RESPONSES: dict[int | str, dict[str, Any]] = {
    204: {"description": "It is forgotten; what was being done to it has stopped."},
    **error_responses(401, 403, 404, 429, 503),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class V1Documents:
    """Wire of `POST /v1/documents`; see `service.api.receiving.DocumentContract`.

    Attributes:
        front: What is loaded.
    """

    front: Front
    key_name: str | None = None
    takes_plain_bodies: bool = True

    def parse(self, values: Mapping[str, str], file_name: str | None) -> JobOptions:
        """What is to be done with a file; as in all of this contract, a field must be known."""
        for field in values:
            if field not in _FIELDS and field != "name":
                raise unknown_field(field)
        kind, name = kind_and_name(file_name)
        target = values.get("target")
        if not target:
            raise invalid("target is missing", limit="target")
        source, model = values.get("source") or AUTO, values.get("model") or None
        chosen = choose_route(
            self.front.table, source=source, target=target, aliases=NO_ALIASES, model=model
        )
        return JobOptions(
            kind=kind,
            name=name,
            source=document_source(self.front.detection, chosen),
            target=chosen.route.target,
            model=model,
        )

    async def glossary(
        self,
        values: Mapping[str, str],
        _asked: JobOptions,
        _owner: Owner,
    ) -> Glossary | None:
        """The entries that came with the file."""
        return glossary_of_json(values.get("glossary", ""))


def build_documents(receiving: Receiving) -> APIRouter:
    """The routes of documents."""
    router = APIRouter(tags=["Documents"])
    contract = V1Documents(front=receiving.front)

    @router.post(
        "/v1/documents",
        summary="Translate a document",
        status_code=202,
        responses=UPLOAD_RESPONSES,
        openapi_extra=_UPLOAD_OPERATION,
        dependencies=[DOCUMENTED],
    )
    async def upload(request: Request) -> Response:
        job = await receiving.receive(request, contract)
        return JsonReply(_content(job), 202, {"location": f"/v1/documents/{job.id}"})

    @router.get(
        "/v1/documents/{document_id}",
        summary="What became of a document",
        responses=STATUS_RESPONSES,
        openapi_extra=_NAMED,
        dependencies=[DOCUMENTED],
    )
    async def status(request: Request) -> Response:
        return JsonReply(_content(await receiving.job(request, _asked(request))))

    @router.get(
        "/v1/documents/{document_id}/result",
        summary="The translated document",
        response_class=Response,
        responses=RESULT_RESPONSES,
        openapi_extra=_NAMED,
        dependencies=[DOCUMENTED],
    )
    async def result(request: Request) -> Response:
        return await receiving.result(await receiving.job(request, _asked(request)))

    @router.delete(
        "/v1/documents/{document_id}",
        summary="Stop and forget a document",
        status_code=204,
        responses=REMOVED_RESPONSES,
        openapi_extra=_NAMED,
        dependencies=[DOCUMENTED],
    )
    async def remove(request: Request) -> Response:
        await receiving.queue.remove(await receiving.job(request, _asked(request)))
        return Response(status_code=204)

    return router


def _asked(request: Request) -> str:
    """The id in the path."""
    return str(request.path_params["document_id"])


def _content(job: DocumentJob) -> dict[str, object]:
    """A `DocumentReply` as plain values."""
    asked = job.asked
    return {
        "id": job.id,
        "state": job.state,
        "progress": round(job.progress, 4),
        "name": asked.name,
        "kind": asked.kind,
        "source": job.detected or asked.source,
        "target": asked.target,
        "num_characters": job.num_characters,
        "num_flagged": job.num_flagged,
        "error": job.error,
    }


_NAMED = path_parameter("document_id")
_CODE = {"type": "string", "minLength": 1, "maxLength": 64}
_FIELDS = {
    "source": {**_CODE, "description": 'Source language; "auto", the default, detects it.'},
    "target": {**_CODE, "description": "Target language.", "example": "zh-Hans"},
    "model": {"type": "string", "description": "The only checkpoint that may translate."},
    "glossary": {
        "type": "string",
        "description": "Entries as `glossary` of `POST /v1/translate` has them, as JSON.",
    },
}
_UPLOAD_OPERATION: dict[str, Any] = {
    "parameters": [
        {
            "name": name,
            "in": "query",
            "required": False,
            "schema": schema,
            "description": "For a body that is the file alone.",
        }
        for name, schema in {**_FIELDS, "name": {"type": "string"}}.items()
    ],
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file", "target"],
                    "properties": {"file": {"type": "string", "format": "binary"}, **_FIELDS},
                }
            },
            "application/octet-stream": {"schema": {"type": "string", "format": "binary"}},
        },
    },
}
