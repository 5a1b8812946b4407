"""Uploads on their way to a group: a file goes to the disk as it comes, and its fields are read.

Owns the body as a whole, which is sent when the group is known. How much of the disk uploads may
have is `service.router.room`; what fields mean is `service.router.wording`; the form's own parser
is `service.http.uploads`.
"""

import asyncio
import io
import logging
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import IO, ParamSpec

from starlette.requests import ClientDisconnect, Request

from service.documents.jobs import not_kept
from service.errors import ClientGoneError, body_timeout, invalid
from service.http.arrivals import Arrivals
from service.http.body import body_type
from service.http.uploads import (
    FORM_TYPE,
    MAX_FRAME_BYTES,
    PIECE_BYTES,
    FormBody,
    body_pieces,
    too_large,
)
from service.router.wording import Values, Wording

_LOGGER = logging.getLogger("dragoman.router")

P = ParamSpec("P")

UPLOAD_SECONDS = 600.0
"""As a server has it."""
_IN_MEMORY_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class FileBody:
    """Body that is in a file.

    Attributes:
        file: Whose all is the body.
        num_bytes: Of all of it.
    """

    file: IO[bytes]
    num_bytes: int

    async def pieces(self) -> AsyncIterator[bytes]:
        """All of it, from the beginning."""
        await asyncio.to_thread(self.file.seek, 0)
        while piece := await asyncio.to_thread(self.file.read, PIECE_BYTES):
            yield piece


class _Nowhere(io.BufferedIOBase):
    """Output of a file that is kept with the whole body already."""

    def write(self, data: object) -> int:
        """Take all, and keep nothing."""
        assert isinstance(data, bytes | memoryview)
        return len(data)


@contextmanager
def new_file() -> Iterator[IO[bytes]]:
    """A file for an upload: in memory while it is small, and gone when the block is left."""
    file = tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES)  # noqa: SIM115  # closed below
    try:
        yield file
    finally:
        with suppress(OSError):  # a full disk refuses the rest once more
            file.close()


async def received(
    request: Request,
    file: IO[bytes],
    wording: Wording,
    arrivals: Arrivals,
    *,
    hold: Callable[[int], None],
    max_bytes: int,
) -> tuple[FileBody, Values]:
    """An upload, and the values beside its file.

    Args:
        request: Whose body has not been read.
        file: Where it is kept.
        wording: Of its contract.
        arrivals: Bodies that are being read.
        hold: Called with the bytes that have come before they are kept; raises where there is no
            room.
        max_bytes: Largest document.

    Raises:
        RequestError: A 400, 408, 413, 429 or 503.
        ClientGoneError: The client left while sending.
    """
    is_form = body_type(request) == FORM_TYPE
    if not is_form and not wording.takes_plain_files:
        raise invalid(f"the content type must be {FORM_TYPE}", limit=FORM_TYPE)
    form = FormBody(_Nowhere(), request.headers["content-type"]) if is_form else None
    limit, num_bytes = max_bytes + MAX_FRAME_BYTES, 0
    try:
        async with arrivals.within(UPLOAD_SECONDS):
            async for piece in body_pieces(request):
                num_bytes += len(piece)
                if num_bytes > limit:
                    raise too_large(num_bytes, max_bytes)
                hold(num_bytes)
                await _on_disk(_keep, piece, file, form)
        await _on_disk(file.flush)
    except TimeoutError as error:
        raise body_timeout(seconds=UPLOAD_SECONDS) from error
    except ClientDisconnect as error:
        raise ClientGoneError from error
    if form is not None:
        form.finish()
    values = dict(request.query_params) | ({} if form is None else form.fields)
    return FileBody(file=file, num_bytes=num_bytes), values


async def _on_disk(function: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> None:
    """Wait for the disk, on a thread.

    Raises:
        RequestError: A 503: it refuses.
    """
    try:
        await asyncio.to_thread(function, *args, **kwargs)
    except OSError as error:
        _LOGGER.exception("document_not_kept")
        raise not_kept(error) from error


def _keep(piece: bytes, file: IO[bytes], form: FormBody | None) -> None:
    file.write(piece)
    if form is not None:
        form.feed(piece)
