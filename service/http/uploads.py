"""Files that are uploaded: a body that goes to the disk as it arrives, alone or as part of a form.

Owns the way from the bytes of `multipart/form-data` to one file and some short fields, piece by
piece, so that neither is ever in memory as a whole, and the refusal of a file that is too large.
The limits themselves are its reader's; what fields mean is the contracts'. A form without files is
`service.http.forms`.
"""

from collections.abc import AsyncIterator
from io import BufferedIOBase
from typing import TYPE_CHECKING, Protocol

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.requests import Request

from service.errors import RequestError, invalid, too_long
from service.http.forms import boundary_of, no_form, twice

if TYPE_CHECKING:
    from python_multipart.multipart import MultipartCallbacks

FORM_TYPE = "multipart/form-data"
MAX_FIELDS = 100
MAX_FIELD_BYTES = 2**20
"""Of all fields together that are no files: a glossary may be one of them."""
MAX_FRAME_BYTES = MAX_FIELD_BYTES + 2**16
"""Of all of a form that is not its file: fields, boundaries, and what is around them."""
PIECE_BYTES = 256 * 1024
"""What is worth a thread's time, to write or to read."""
_MAX_DIGITS = 15
"""Of a length that is read: one with more is too long in any case."""


class Body(Protocol):
    """Receiver of an upload's bytes.

    Attributes:
        fields: What came beside the file so far.
        file_name: The name that the file came with; None while there is none.
        num_bytes: Of the file so far.
    """

    fields: dict[str, str]
    file_name: str | None
    num_bytes: int

    def feed(self, data: bytes) -> None:
        """Take further bytes, on a thread."""

    def finish(self) -> None:
        """Take notice that these were all."""


class PlainBody:
    """A body that is the file itself.

    Args:
        output: Where it is written.
        file_name: Its name, if the request says one elsewhere.
    """

    def __init__(self, output: BufferedIOBase, file_name: str) -> None:
        self.fields: dict[str, str] = {}
        self.file_name: str | None = file_name
        self.num_bytes = 0
        self._output = output

    def feed(self, data: bytes) -> None:
        """Take further bytes."""
        self._output.write(data)
        self.num_bytes += len(data)

    def finish(self) -> None:
        """Take notice that these were all."""


class FormBody:
    """A form with one file.

    Args:
        output: Where the file is written.
        content_type: Of the request.

    Raises:
        RequestError: A 400, by the methods too: it is no form, has two files, or too many fields; a
            413 for fields that are too long, or for too much around them.
    """

    def __init__(self, output: BufferedIOBase, content_type: str) -> None:
        self.fields: dict[str, str] = {}
        self.file_name: str | None = None
        self.num_bytes = 0
        self._output = output
        self._fed_bytes = 0
        self._field_bytes = 0
        self._num_parts = 0
        self._header_name = b""
        self._header_value = b""
        self._disposition = b""
        self._is_file = False
        self._data = bytearray()
        callbacks: MultipartCallbacks = {
            "on_part_begin": self._begin,
            "on_header_field": self._add_header_name,
            "on_header_value": self._add_header_value,
            "on_header_end": self._end_header,
            "on_headers_finished": self._begin_data,
            "on_part_data": self._add_data,
            "on_part_end": self._end,
            "on_end": self._complete,
        }
        self._is_complete = False
        self._parser = MultipartParser(boundary_of(content_type), callbacks)

    def feed(self, data: bytes) -> None:
        """Take further bytes."""
        try:
            self._parser.write(data)
        except FormParserError as error:
            raise no_form() from error
        self._fed_bytes += len(data)
        around = self._fed_bytes - self.num_bytes
        if around > MAX_FRAME_BYTES:
            raise too_long(
                f"the form has more than {MAX_FRAME_BYTES} bytes around its file",
                value=around,
                limit=MAX_FRAME_BYTES,
            )

    def finish(self) -> None:
        """Take notice that these were all."""
        try:
            self._parser.finalize()
        except FormParserError as error:
            raise no_form() from error
        if not self._is_complete:
            raise no_form()

    def _complete(self) -> None:
        self._is_complete = True

    def _begin(self) -> None:
        self._disposition = b""
        self._data.clear()
        self._num_parts += 1
        if self._num_parts > MAX_FIELDS:
            raise invalid(f"the form has more than {MAX_FIELDS} fields", limit=MAX_FIELDS)

    def _add_header_name(self, data: bytes, start: int, end: int) -> None:
        self._count(end - start)
        self._header_name += data[start:end]

    def _add_header_value(self, data: bytes, start: int, end: int) -> None:
        self._count(end - start)
        self._header_value += data[start:end]

    def _end_header(self) -> None:
        if self._header_name.lower() == b"content-disposition":
            self._disposition = self._header_value
        self._header_name = self._header_value = b""

    def _begin_data(self) -> None:
        _, options = parse_options_header(self._disposition)
        self._is_file = b"filename" in options
        if self._is_file and self.file_name is not None:
            raise invalid("the form has two files", limit=1)
        if self._is_file:
            self.file_name = options[b"filename"].decode("utf-8", "replace")

    def _add_data(self, data: bytes, start: int, end: int) -> None:
        if self._is_file:
            self._output.write(memoryview(data)[start:end])
            self.num_bytes += end - start
        else:
            self._count(end - start)
            self._data += data[start:end]

    def _end(self) -> None:
        if self._is_file:
            return
        _, options = parse_options_header(self._disposition)
        try:
            name = options.get(b"name", b"").decode("utf-8")
            value = self._data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise invalid("the form is not valid UTF-8") from error
        if name in self.fields:
            raise twice("the form", name)
        self.fields[name] = value

    def _count(self, num_bytes: int) -> None:
        self._field_bytes += num_bytes
        if self._field_bytes > MAX_FIELD_BYTES:
            raise too_long(
                f"the form's fields have more than {MAX_FIELD_BYTES} bytes",
                value=self._field_bytes,
                limit=MAX_FIELD_BYTES,
            )


def check_announced(request: Request, *, max_bytes: int) -> None:
    """Return unless an upload says that it is too long.

    Args:
        request: Whose body has not been read.
        max_bytes: Largest document.

    Raises:
        RequestError: A 413: it is too long.
    """
    announced = request.headers.get("content-length", "")
    if not (announced.isascii() and announced.isdecimal()):
        return
    num_bytes = int(announced.lstrip("0")[:_MAX_DIGITS] or "0")
    if num_bytes > max_bytes + MAX_FRAME_BYTES:
        raise too_large(num_bytes, max_bytes)


def too_large(num_bytes: int, limit: int) -> RequestError:
    """A 413: a document is longer than any may be."""
    return too_long(
        f"the document has {num_bytes} bytes; the limit is {limit}", value=num_bytes, limit=limit
    )


async def body_pieces(request: Request) -> AsyncIterator[bytes]:
    """A request's body in pieces of `PIECE_BYTES` and a last one, never empty.

    Raises:
        starlette.requests.ClientDisconnect: The client left before the end.
    """
    piece = bytearray()
    async for chunk in request.stream():
        piece += chunk
        if len(piece) >= PIECE_BYTES:
            yield bytes(piece)
            piece.clear()
    if piece:
        yield bytes(piece)
