"""HTML forms and query strings as plain values.

Owns `application/x-www-form-urlencoded` and `multipart/form-data` (text fields only), strictly
UTF-8. Pure functions of bytes; no request, no I/O.
"""

import re
from binascii import a2b_qp
from collections.abc import Iterator
from typing import TYPE_CHECKING

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from service.errors import RequestError, invalid, scalar

if TYPE_CHECKING:
    from python_multipart.multipart import MultipartCallbacks

MAX_FORM_FIELDS = 1000

_STRAY_PERCENTS = re.compile(rb"%+(?![0-9A-Fa-f]{2})")
_BOUNDARY = re.compile(rb"[0-9A-Za-z'()+_,\-./:=? ]{1,70}")


def decode_form(data: bytes, content_type: str, name: str) -> dict[str, object]:
    """The fields of a form or, with an empty content type, of a query string.

    Raises:
        RequestError: A 400: not UTF-8, too many fields, or no form at all.
    """
    try:
        data.decode("utf-8")
        if content_type.lower().startswith("multipart/form-data"):
            pairs = _multipart_pairs(data, content_type)
        else:
            pairs = list(_urlencoded_pairs(data))
    except UnicodeDecodeError as error:
        raise invalid(f"{name} is not valid UTF-8") from error
    except ValueError as error:
        raise invalid(
            f"{name} has more than {MAX_FORM_FIELDS} fields", limit=MAX_FORM_FIELDS
        ) from error
    return _grouped(pairs)


def decode_single(data: bytes, name: str) -> dict[str, str]:
    """The fields of a query string in which each has one value.

    Raises:
        RequestError: A 400, as of `decode_form`; or a field comes twice.
    """
    values: dict[str, str] = {}
    for field, value in decode_form(data, "", name).items():
        if not isinstance(value, str):
            raise twice(name, field)
        values[field] = value
    return values


def twice(name: str, field: str) -> RequestError:
    """A 400: a form or a query string has a field twice that has one value."""
    shown = scalar(field)
    said = shown if isinstance(shown, str) else "a name"
    return invalid(f"{name} has {said} twice", value=shown, limit=1)


def _grouped(pairs: list[tuple[str, str]]) -> dict[str, object]:
    lists: dict[str, list[str]] = {}
    for key, value in pairs:
        lists.setdefault(key, []).append(value)
    return {key: values[0] if len(values) == 1 else values for key, values in lists.items()}


def _urlencoded_pairs(data: bytes) -> Iterator[tuple[str, str]]:
    if data.count(b"&") >= MAX_FORM_FIELDS:
        raise ValueError
    for field in data.split(b"&"):
        if field:
            name, _, value = field.partition(b"=")
            yield _unquoted(name).decode(), _unquoted(value).decode()


def _unquoted(data: bytes) -> bytes:
    """The bytes that a name or a value stands for; a percent sign before no two digits stays.

    The standard library's `unquote` makes an object of every escape, a hundred times as slow.
    Quoted-printable is the same code with another sign, and that is decoded in C; what else it
    gives a meaning (a sign before a line's end, two of them) is escaped first.
    """
    data = data.replace(b"+", b" ")
    if b"%" not in data:
        return data
    # A function, so that other threads have their turn while a large body is nothing but these.
    data = _STRAY_PERCENTS.sub(lambda found: b"%25" * len(found[0]), data)
    return a2b_qp(data.replace(b"=", b"%3D").replace(b"%", b"="))


def boundary_of(content_type: str) -> bytes:
    """The boundary of a form of parts.

    Raises:
        RequestError: A 400: there is none, or what cannot be one.
    """
    _, options = parse_options_header(content_type)
    boundary = options.get(b"boundary", b"")
    if not _BOUNDARY.fullmatch(boundary):
        raise invalid("the form's boundary is missing or malformed")
    return boundary


def _multipart_pairs(data: bytes, content_type: str) -> list[tuple[str, str]]:
    fields = _MultipartFields()
    try:
        parser = fields.parser(boundary_of(content_type))
        parser.write(data)
        parser.finalize()
    except FormParserError as error:
        raise no_form() from error
    if not fields.is_complete:
        raise no_form()
    return fields.pairs


def no_form() -> RequestError:
    """A 400: a form of parts that is none, or ends before its last boundary."""
    return invalid("the form is not valid multipart/form-data")


class _MultipartFields:
    """Collector of a multipart form's text fields; files are refused.

    Attributes:
        pairs: Names and values.
        is_complete: The last boundary has come.
    """

    def __init__(self) -> None:
        self.pairs: list[tuple[str, str]] = []
        self.is_complete = False
        self._header_name = b""
        self._header_value = b""
        self._disposition = b""
        self._data = bytearray()

    def parser(self, boundary: bytes) -> MultipartParser:
        callbacks: MultipartCallbacks = {
            "on_part_begin": self._begin,
            "on_header_field": self._add_header_name,
            "on_header_value": self._add_header_value,
            "on_header_end": self._end_header,
            "on_part_data": self._add_data,
            "on_part_end": self._end,
            "on_end": self._complete,
        }
        return MultipartParser(boundary, callbacks)

    def _complete(self) -> None:
        self.is_complete = True

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
