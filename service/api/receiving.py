"""Receiving of documents: the one path of an upload to a job, and of a job to its caller.

Owns the steps and their order: admit the caller, see whether one more may come, write the file
while it arrives and there is room, let the contract parse what came beside it, submit. A caller
whose key comes in the form is known before more than a keyless body may have is read. Jobs are
`service.documents.queue`.
"""

import asyncio
import io
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from model.documents.kinds import ENDINGS, kind_of
from model.documents.media_types import HEAD_BYTES, media_type_of_file
from model.text.constraints.glossary import Glossary
from service.access.access import Access, Caller, key_required
from service.documents.jobs import DocumentJob, JobOptions, Owner, no_such_document
from service.documents.queue import DocumentQueue
from service.documents.room import Upload
from service.errors import (
    ClientGoneError,
    Problem,
    RequestError,
    body_timeout,
    invalid,
    scalar,
)
from service.front import Front
from service.http.body import body_type, check_encoding
from service.http.files import FileReply
from service.http.forms import decode_single
from service.http.replies import error_response
from service.http.uploads import (
    FORM_TYPE,
    Body,
    FormBody,
    PlainBody,
    body_pieces,
    check_announced,
    too_large,
)

_UPLOAD_SECONDS = 600.0
_MAX_NAME = 200

_ANY_FILE = {"*/*": {"schema": {"type": "string", "format": "binary"}}}
TRANSLATED_FILE: dict[str, Any] = {
    "content": _ANY_FILE,
    "description": "The translated file, with its own media type.",
}
"""What a contract documents of a reply that is a file."""
PART_OF_FILE: dict[str, Any] = {
    "content": _ANY_FILE,
    "description": "The part of it that the header `Range` asks for.",
}
"""Likewise of a reply to a GET that is a part of one."""
NOT_READ = error_response("The disk refuses; Retry-After says when to come back.")
"""Likewise of a 503 instead of a file."""


class DocumentContract(Protocol):
    """Wire of one API for documents."""

    @property
    def key_name(self) -> str | None:
        """The field that may carry an API key; None where only the header does."""

    @property
    def takes_plain_bodies(self) -> bool:
        """The body may be the file alone, and the query string say what is to be done."""

    def parse(self, values: Mapping[str, str], file_name: str | None) -> JobOptions:
        """What is to be done with a file.

        Raises:
            RequestError: A 400 in the contract's words.
        """

    async def glossary(
        self, values: Mapping[str, str], asked: JobOptions, owner: Owner
    ) -> Glossary | None:
        """What its terms have to be translated as.

        Raises:
            RequestError: A 400, 404 or 503 in the contract's words.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Receiving:
    """The path, over the parts of one server.

    Attributes:
        front: What is loaded, and the settings.
        access: What knows callers.
        queue: Where jobs are.
    """

    front: Front
    access: Access
    queue: DocumentQueue

    async def receive(self, request: Request, contract: DocumentContract) -> DocumentJob:
        """The job of a file that is uploaded.

        Raises:
            RequestError: A 400, 401, 403, 408, 413, 415, 429 or 503.
            ClientGoneError: The client left while sending.
        """
        access = self.access
        admit = access.admit_by_header if contract.key_name is None else access.admit
        caller = await admit(request)
        self.front.check_ready()
        check_encoding(request)
        check_announced(request, max_bytes=self.queue.limits.max_bytes)
        query = decode_single(request.scope["query_string"], "the query string")
        try:
            async with self.front.arrivals.within(_UPLOAD_SECONDS):
                pieces = body_pieces(request)
                head = b""
                if caller is None:
                    name = contract.key_name or ""
                    head, key = await self._head_in_time(request, pieces, name, query.get(name))
                    caller = await self.access.admit_with(request, key)
                owner = owner_of(caller)
                with self.queue.room(owner) as upload:
                    body = await self._written(request, contract, upload, head, pieces)
                    values = query | body.fields
                    asked = contract.parse(values, body.file_name)
                    num_bytes = body.num_bytes
                    glossary = await contract.glossary(values, asked, owner)
                    if glossary is not None:
                        keep = upload.files.keep_glossary
                        num_bytes += await self.queue.on_disk(keep, glossary)
                    return await self.queue.submit(upload, asked, owner, num_bytes=num_bytes)
        except TimeoutError as error:
            raise body_timeout(seconds=_UPLOAD_SECONDS) from error
        except ClientDisconnect as error:
            raise ClientGoneError from error

    async def job(self, request: Request, job_id: str) -> DocumentJob:
        """A job of the request's caller, as it is now.

        Raises:
            RequestError: A 401, 403, 404 or 429.
        """
        caller = await self.access.admit_by_header(request)
        return self.queue.find(job_id, owner_of(caller).key_name)

    async def result(
        self, job: DocumentJob, *, on_sent: Callable[[], Awaitable[None]] | None = None
    ) -> Response:
        """The translated file of a job.

        Args:
            job: As it is now.
            on_sent: Called once all of the file was sent.

        Raises:
            RequestError: A 409: there is none; a 404: it has just been removed; a 503.
        """
        path = self.queue.result(job).result
        found = await self.queue.on_disk(_seen, path)
        if found is None:
            raise no_such_document()
        status, head = found
        return FileReply(
            path,
            status,
            media_type=media_type_of_file(job.asked.kind, head),
            name=translated_name(job.asked),
            on_sent=on_sent,
        )

    async def _head_in_time(
        self, request: Request, pieces: AsyncIterator[bytes], key_name: str, in_query: str | None
    ) -> tuple[bytes, str | None]:
        """The same as of `_head`; where a key is needed it has no longer than other bodies have.

        Raises:
            RequestError: A 401 or 408.
        """
        seconds = self.front.settings.body_timeout_seconds
        limit = asyncio.timeout(seconds if self.access.needs_key else None)
        try:
            async with limit:
                return await self._head(request, pieces, key_name, in_query)
        except TimeoutError as error:
            raise body_timeout(seconds=seconds) from error

    async def _head(
        self, request: Request, pieces: AsyncIterator[bytes], key_name: str, in_query: str | None
    ) -> tuple[bytes, str | None]:
        """The beginning of a form up to the key in it, and that key, if it comes in time."""
        if in_query:
            return b"", in_query
        head = bytearray()
        look = _body(request, io.BytesIO())
        limit = self.front.settings.max_keyless_body_bytes
        async for piece in pieces:
            head += piece
            await self.queue.on_disk(look.feed, piece)
            if look.fields.get(key_name):
                return bytes(head), look.fields[key_name]
            if len(head) > limit:
                if self.access.needs_key:
                    raise key_required("the body", len(head), limit)
                break
        return bytes(head), None

    async def _written(
        self,
        request: Request,
        contract: DocumentContract,
        upload: Upload,
        head: bytes,
        pieces: AsyncIterator[bytes],
    ) -> Body:
        """The upload, with its file where it belongs."""
        on_disk, limit = self.queue.on_disk, self.queue.limits.max_bytes
        if not contract.takes_plain_bodies and body_type(request) != FORM_TYPE:
            raise invalid(f"the content type must be {FORM_TYPE}", limit=FORM_TYPE)
        await on_disk(lambda: upload.files.folder.mkdir(mode=0o700))
        output = await on_disk(lambda: upload.files.source.open("wb"))
        try:
            body, num_come = _body(request, output), 0
            async for piece in _joined(head, pieces):
                num_come += len(piece)
                self.queue.hold(upload, min(num_come, limit))
                await on_disk(body.feed, piece)
                if body.num_bytes > limit:
                    raise too_large(body.num_bytes, limit)
            await on_disk(body.finish)
        finally:
            await on_disk(output.close)
        if body.file_name is not None and not body.num_bytes:
            raise invalid("Invalid request: empty file")
        return body


def owner_of(caller: Caller) -> Owner:
    """A caller as the owner of a document."""
    return Owner(
        key_name=caller.identity if caller.has_key else "",
        identity=caller.identity,
        characters_per_minute=caller.characters_per_minute,
    )


def kind_and_name(file_name: str | None) -> tuple[str, str]:
    """The kind of a file, and its name without a folder.

    Raises:
        RequestError: A 400: there is no file, or none of a kind that is translated.
    """
    if file_name is None:
        raise invalid("Invalid request: missing file parameter", limit="file")
    name = file_name.replace("\\", "/").rpartition("/")[2]
    name = "".join(one for one in name if one.isprintable())[-_MAX_NAME:]
    kind = kind_of(name)
    if kind is None:
        endings = ", ".join(f".{one}" for one in ENDINGS)
        stem, dot, ending = name.rpartition(".")
        raise RequestError(
            Problem(
                status=400,
                code="unsupported_document",
                message="Invalid request: file format not supported; the name of the file must"
                f" end in one of {endings}",
                value=scalar(dot + ending if stem else name),
                limit=endings,
            )
        )
    return kind, name


def translated_name(asked: JobOptions) -> str:
    """The name of a translated file: report.docx → report.de.docx."""
    stem, _, ending = asked.name.rpartition(".")
    return f"{stem or 'document'}.{asked.target}.{ending}"


async def _joined(head: bytes, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """A body whose head has been read, from the beginning."""
    if head:
        yield head
    async for piece in pieces:
        yield piece


def _seen(path: Path) -> tuple[os.stat_result, bytes] | None:
    """What the system says of a file, and its first bytes; nothing if it is gone."""
    try:
        with path.open("rb") as file:
            return os.fstat(file.fileno()), file.read(HEAD_BYTES)
    except FileNotFoundError:
        return None


def _body(request: Request, output: io.BufferedIOBase) -> Body:
    if body_type(request) == FORM_TYPE:
        return FormBody(output, request.headers["content-type"])
    return PlainBody(output, request.query_params.get("name", ""))
