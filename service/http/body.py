"""Bodies of requests: read under a limit of bytes and time, decoded, never trusted.

Owns the way from bytes to plain values. Does not know which values a contract wants, and leaves
forms to `service.http.forms`. Whatever comes in, what goes out is a value or a `RequestError`.
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import NoReturn

from starlette.requests import Request

from service.access.access import Caller
from service.errors import (
    IDENTITY,
    ClientGoneError,
    RequestError,
    body_timeout,
    invalid,
    scalar,
    too_long,
    unsupported_encoding,
)
from service.headers import header_of, headers_of
from service.http.arrivals import Arrivals, has_arrived
from service.http.forms import decode_form

# Decoding a larger body would hold the event loop for more than a millisecond.
_MAX_INLINE_BYTES = 16 * 1024

_MAX_DIGITS = 18
_MAX_LENGTH_DIGITS = 20  # of a body; more would be a number that no parser of HTTP lets through


def _too_large(name: str, num_bytes: int, limit: int) -> RequestError:
    return too_long(
        f"{name} has {num_bytes} bytes; the limit is {limit}", value=num_bytes, limit=limit
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyReader:
    """Reader of request bodies and query strings.

    Attributes:
        max_bytes: Largest body; also the longest query string.
        timeout_seconds: Time for a body to arrive.
        executor: Where large bodies are decoded.
        arrivals: Those that are being read.
        too_large: Makes the refusal of what is too large, from its name, its bytes and the limit.
    """

    max_bytes: int
    timeout_seconds: float
    executor: Executor
    arrivals: Arrivals = field(default_factory=Arrivals)
    too_large: Callable[[str, int, int], RequestError] = _too_large

    async def read_json(self, request: Request) -> dict[str, object]:
        """The JSON object of a request that must have one.

        Raises:
            RequestError: 400, 408, 413, 415 or 503.
            ClientGoneError: The client left while sending.
        """
        media_type = body_type(request)
        self._check_query(request)
        body = await self.read_bytes(request)
        check_json(media_type)
        return await self._decode_object(body)

    async def read_query(self, request: Request) -> dict[str, object]:
        """The values of the query string.

        Raises:
            RequestError: 400 or 413.
        """
        self._check_query(request)
        given = request.scope["query_string"]
        return await self._decode(given, "", "the query string") if given else {}

    async def read_values(
        self, request: Request, query: Mapping[str, object] | None = None
    ) -> dict[str, object]:
        """The values of a JSON object or a form, and those of the query string.

        A body's value hides one of the same name in the query string. A name that comes twice
        in a form or a query string has a list of values. A body that is empty is none, whatever
        it is said to be: clients name their type of body with every request.

        Args:
            request: Its body has not been read.
            query: What `read_query` found; None reads it first.

        Raises:
            RequestError: 400, 408, 413, 415 or 503.
            ClientGoneError: The client left while sending.
        """
        media_type = body_type(request)
        values = dict(await self.read_query(request) if query is None else query)
        body = await self.read_bytes(request)
        if not body:
            return values
        if is_json_or_form(media_type):
            return values | await self._decode_object(body)
        return values | await self._decode(body, request.headers["content-type"], "the form")

    def _check_query(self, request: Request) -> None:
        num_bytes = len(request.scope["query_string"])
        if num_bytes > self.max_bytes:
            raise self.too_large("the query string", num_bytes, self.max_bytes)

    async def read_bytes(self, request: Request) -> bytes:
        """All of a body as it is.

        Raises:
            RequestError: 408, 413, 415 or 503.
            ClientGoneError: The client left while sending.
        """
        check_encoding(request)
        announced = header_of(request.scope, b"content-length")
        if announced.isdecimal() and announced.isascii():
            num_bytes = int(announced.lstrip("0")[:_MAX_LENGTH_DIGITS] or "0")
            if num_bytes > self.max_bytes:
                raise self.too_large("the body", num_bytes, self.max_bytes)
        if has_arrived(request.scope):
            self.arrivals.check_open()
            return await self._collect(request)
        try:
            async with self.arrivals.within(self.timeout_seconds):
                return await self._collect(request)
        except TimeoutError as error:
            raise body_timeout(seconds=self.timeout_seconds) from error

    async def _collect(self, request: Request) -> bytes:
        parts: list[bytes] = []
        num_bytes, is_whole = 0, False
        while not is_whole:
            message = await request.receive()
            if message["type"] == "http.disconnect":
                raise ClientGoneError
            is_whole = not message.get("more_body", False)
            parts.append(message.get("body", b""))
            num_bytes += len(parts[-1])
            if num_bytes > self.max_bytes:
                raise self.too_large("the body", num_bytes, self.max_bytes)
        return b"".join(parts)

    async def _decode_object(self, body: bytes) -> dict[str, object]:
        if len(body) <= _MAX_INLINE_BYTES:
            return decode_object(body)
        return await asyncio.get_running_loop().run_in_executor(self.executor, decode_object, body)

    async def _decode(self, data: bytes, content_type: str, name: str) -> dict[str, object]:
        if len(data) <= _MAX_INLINE_BYTES:
            return decode_form(data, content_type, name)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.executor, decode_form, data, content_type, name)


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyReaders:
    """Readers of bodies by caller: their limits and threads.

    Attributes:
        known: Of callers with a key.
        stranger: Of callers without a key who need none.
        keyless: Of callers whose key may still come with the body.
    """

    known: BodyReader
    stranger: BodyReader
    keyless: BodyReader

    def of(self, caller: Caller | None) -> BodyReader:
        """The reader for a caller; None is one whose key may still come."""
        if caller is None:
            return self.keyless
        return self.known if caller.has_key else self.stranger


_FORM_TYPES = frozenset({"application/x-www-form-urlencoded", "multipart/form-data"})


def body_type(request: Request) -> str:
    """The media type of a request's body, in small letters, without parameters."""
    return header_of(request.scope, b"content-type").partition(";")[0].strip().lower()


def check_encoding(request: Request) -> None:
    """Return unless a body is said to be compressed: nothing here unpacks it.

    Raises:
        RequestError: A 415.
    """
    scope = request.scope
    encoding = ", ".join(headers_of(scope, b"content-encoding")).strip()
    if encoding.lower() in ("", IDENTITY):
        return
    length = header_of(scope, b"content-length", "0")
    if length != "0" or header_of(scope, b"transfer-encoding"):  # else there is none
        raise unsupported_encoding(scalar(encoding))


def check_json(media_type: str) -> None:
    """Return if a body of this type is JSON.

    Raises:
        RequestError: A 400.
    """
    if not _is_json(media_type):
        raise _unsupported(media_type, "application/json")


def is_json_or_form(media_type: str) -> bool:
    """Whether a body of this type is JSON; else it is a form.

    Raises:
        RequestError: A 400: it is neither.
    """
    if _is_json(media_type):
        return True
    if media_type not in _FORM_TYPES:
        raise _unsupported(media_type, "application/json or a form")
    return False


def _is_json(media_type: str) -> bool:
    return media_type == "application/json" or media_type.endswith("+json")


def _unsupported(media_type: str, accepted: str) -> RequestError:
    shown = media_type if len(media_type) <= 64 and media_type.isascii() else "unreadable"
    return invalid(
        f"the content type is {shown or 'missing'}; it must be {accepted}",
        value=shown or None,
        limit=accepted,
    )


def decode_object(body: bytes) -> dict[str, object]:
    """The JSON object in `body`.

    `NaN` and `Infinity` are no JSON; a name that comes twice is refused, because two readers
    would disagree about it.

    Raises:
        RequestError: A 400 that says what is wrong and where, without quoting.
    """
    try:
        value = _decoded(body.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise invalid(
            f"the body is not valid UTF-8 at byte {error.start}", value=error.start
        ) from error
    except json.JSONDecodeError as error:
        raise invalid(
            f"the body is not valid JSON: {error.msg} (character {error.pos})", value=error.pos
        ) from error
    except RecursionError as error:
        raise invalid("the body is nested too deeply") from error
    if not isinstance(value, dict):
        raise invalid("the body must be a JSON object", limit="object")
    return value


def _decoded(text: str) -> object:
    if text.startswith("\ufeff"):  # as of `json.loads`
        raise json.JSONDecodeError("Unexpected UTF-8 BOM (decode using utf-8-sig)", text, 0)
    return _DECODER.decode(text)


def _refuse_constant(name: str) -> NoReturn:
    raise invalid(f"the body has {name}, which is not JSON", value=name)


def _parse_integer(digits: str) -> int:
    if len(digits) > _MAX_DIGITS:
        raise invalid(
            f"a number in the body has {len(digits)} digits; the limit is {_MAX_DIGITS}",
            value=len(digits),
            limit=_MAX_DIGITS,
        )
    return int(digits)


def _parse_float(digits: str) -> float:
    """As JSON's own, but in Python, where other threads get their turn between two numbers."""
    return float(digits)


def _object_without_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    value = dict(pairs)
    if len(value) < len(pairs):
        raise invalid("an object in the body has a name twice")
    return value


_DECODER = json.JSONDecoder(
    parse_constant=_refuse_constant,
    parse_int=_parse_integer,
    parse_float=_parse_float,
    object_pairs_hook=_object_without_duplicates,
)
