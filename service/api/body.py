"""Bodies of requests: read under a limit of bytes and time, decoded, never trusted.

Owns the way from bytes to plain values: JSON, HTML forms, query strings. Does not know which
values a contract wants. Whatever comes in, what goes out is a value or a `RequestError`.
"""

import asyncio
import json
import re
from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import NoReturn
from urllib.parse import parse_qsl

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.requests import ClientDisconnect, Request

from service.errors import ClientGoneError, RequestError, body_timeout, invalid, too_long

MAX_FORM_FIELDS = 1000

# Decoding a larger form would hold the event loop for more than a millisecond.
_MAX_INLINE_BYTES = 16 * 1024

_BOUNDARY = re.compile(rb"[0-9A-Za-z'()+_,\-./:=? ]{1,70}")
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyReader:
    """Reads what a request carries.

    Attributes:
        max_bytes: Largest body; also the longest query string.
        timeout_seconds: Time for a body to arrive.
        executor: Where large forms are decoded.
    """

    max_bytes: int
    timeout_seconds: float
    executor: Executor

    async def read_json(self, request: Request) -> dict[str, object]:
        """The JSON object of a request that must have one.

        Raises:
            RequestError: 400, 408 or 413.
            ClientGoneError: The client left while sending.
        """
        media_type = _media_type(request)
        body = await self._read(request)
        if not _is_json(media_type):
            raise _unsupported(media_type, "application/json")
        return decode_object(body)

    async def read_values(self, request: Request) -> dict[str, object]:
        """The values of a JSON object, or of a form and the query string together.

        A form's value hides one of the same name in the query string. A name that comes
        twice in one of them has a list of values.

        Raises:
            RequestError: 400, 408 or 413.
            ClientGoneError: The client left while sending.
        """
        media_type = _media_type(request)
        body = await self._read(request)
        if _is_json(media_type):
            return decode_object(body)
        values = await self._decode(request.scope["query_string"], "", "the query string")
        if not body:
            return values
        if media_type not in _FORM_TYPES:
            raise _unsupported(media_type, "application/json or a form")
        return values | await self._decode(body, request.headers["content-type"], "the form")

    async def _read(self, request: Request) -> bytes:
        num_query_bytes = len(request.scope["query_string"])
        if num_query_bytes > self.max_bytes:
            raise _too_large("the query string", num_query_bytes, self.max_bytes)
        announced = request.headers.get("content-length", "")
        if announced.isdecimal() and len(announced) < 20 and int(announced) > self.max_bytes:
            raise _too_large("the body", int(announced), self.max_bytes)
        try:
            async with asyncio.timeout(self.timeout_seconds):
                return await self._collect(request)
        except TimeoutError as error:
            raise body_timeout(seconds=self.timeout_seconds) from error
        except ClientDisconnect as error:
            raise ClientGoneError from error

    async def _collect(self, request: Request) -> bytes:
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > self.max_bytes:
                raise _too_large("the body", len(body), self.max_bytes)
        return bytes(body)

    async def _decode(self, data: bytes, content_type: str, name: str) -> dict[str, object]:
        if len(data) <= _MAX_INLINE_BYTES:
            return decode_form(data, content_type, name)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.executor, decode_form, data, content_type, name)


_FORM_TYPES = frozenset({"application/x-www-form-urlencoded", "multipart/form-data"})


def _media_type(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def _is_json(media_type: str) -> bool:
    return media_type == "application/json" or media_type.endswith("+json")


def _unsupported(media_type: str, accepted: str) -> RequestError:
    shown = media_type if len(media_type) <= 64 and media_type.isascii() else "unreadable"
    return invalid(
        f"the content type is {shown or 'missing'}; it must be {accepted}",
        value=shown or None,
        limit=accepted,
    )


def _too_large(name: str, num_bytes: int, limit: int) -> RequestError:
    return too_long(f"{name} has {num_bytes} bytes; the limit is {limit}", value=num_bytes, limit=limit)


def decode_object(body: bytes) -> dict[str, object]:
    """The JSON object in `body`.

    `NaN` and `Infinity` are no JSON; a name that comes twice is refused, because two readers
    would disagree about it.

    Raises:
        RequestError: A 400 that says what is wrong and where, without quoting.
    """
    try:
        value = json.loads(
            body.decode("utf-8"),
            parse_constant=_refuse_constant,
            object_pairs_hook=_object_without_duplicates,
        )
    except UnicodeDecodeError as error:
        raise invalid(
            f"the body is not valid UTF-8 at byte {error.start}", value=error.start
        ) from error
    except json.JSONDecodeError as error:
        raise invalid(
            f"the body is not valid JSON: {error.msg} at character {error.pos}", value=error.pos
        ) from error
    except RecursionError as error:
        raise invalid("the body is nested too deeply") from error
    except ValueError as error:
        raise invalid("a number in the body has too many digits") from error
    if not isinstance(value, dict):
        raise invalid("the body must be a JSON object", limit="object")
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise invalid(f"the body has {name}, which is not JSON", value=name)


def _object_without_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    value = dict(pairs)
    if len(value) < len(pairs):
        raise invalid("an object in the body has a name twice")
    return value


def decode_form(data: bytes, content_type: str, name: str) -> dict[str, object]:
    """The fields of a form or, with an empty content type, of a query string.

    Raises:
        RequestError: A 400: not UTF-8, too many fields, or no form at all.
    """
    try:
        text = data.decode("utf-8")
        if content_type.lower().startswith("multipart/form-data"):
            pairs = _multipart_pairs(data, content_type)
        else:
            pairs = parse_qsl(
                text, keep_blank_values=True, errors="strict", max_num_fields=MAX_FORM_FIELDS
            )
    except UnicodeDecodeError as error:
        raise invalid(f"{name} is not valid UTF-8") from error
    except ValueError as error:
        raise invalid(
            f"{name} has more than {MAX_FORM_FIELDS} fields", limit=MAX_FORM_FIELDS
        ) from error
    return _grouped(pairs)


def _grouped(pairs: list[tuple[str, str]]) -> dict[str, object]:
    lists: dict[str, list[str]] = {}
    for key, value in pairs:
        lists.setdefault(key, []).append(value)
    return {key: values[0] if len(values) == 1 else values for key, values in lists.items()}


def _multipart_pairs(data: bytes, content_type: str) -> list[tuple[str, str]]:
    _, options = parse_options_header(content_type)
    boundary = options.get(b"boundary", b"")
    if not _BOUNDARY.fullmatch(boundary):
        raise invalid("the form's boundary is missing or malformed")
    fields = _MultipartFields()
    parser = MultipartParser(boundary, fields.callbacks())
    try:
        parser.write(data)
        parser.finalize()
    except FormParserError as error:
        raise invalid("the form is not valid multipart/form-data") from error
    return fields.pairs


class _MultipartFields:
    """Collects the text fields of a multipart form; files are refused."""

    def __init__(self) -> None:
        self.pairs: list[tuple[str, str]] = []
        self._header_name = b""
        self._header_value = b""
        self._disposition = b""
        self._data = bytearray()

    def callbacks(self) -> Mapping[str, object]:
        return {
            "on_part_begin": self._begin,
            "on_header_field": self._add_header_name,
            "on_header_value": self._add_header_value,
            "on_header_end": self._end_header,
            "on_part_data": self._add_data,
            "on_part_end": self._end,
        }

    def _begin(self) -> None:
        self._disposition = b""
        self._data.clear()

    def _add_header_name(self, data: bytes, start: int, end: int) -> None:
        self._header_name += data[start:end]

    def _add_header_value(self, data: bytes, start: int, end: int) -> None:
        self._header_value += data[start:end]

    def _end_header(self) -> None:
        if self._header_name.lower() == b"content-disposition":
            self._disposition = self._header_value
        self._header_name = self._header_value = b""

    def _add_data(self, data: bytes, start: int, end: int) -> None:
        self._data += data[start:end]

    def _end(self) -> None:
        _, options = parse_options_header(self._disposition)
        if b"filename" in options:
            raise invalid("the form has a file; only text fields are read")
        if len(self.pairs) == MAX_FORM_FIELDS:
            raise ValueError
        self.pairs.append((options.get(b"name", b"").decode(), self._data.decode()))


def without_surrogates(text: str) -> str:
    """`text` with every unpaired surrogate (from a JSON escape) replaced by U+FFFD."""
    return _SURROGATE.sub("\ufffd", text)
