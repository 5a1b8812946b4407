"""Checks of request heads beyond the parser's.

Owns which versions, hosts and framings are refused (RFC 9110 and 9112), and what such a client is
told. Pure; no connection, no parser.
"""

import re
from collections.abc import Sequence

from service.errors import Problem

VERSIONS = ("1.1", "1.0")
MAX_LENGTH = 2**64 - 1
"""The longest body that a head can announce."""

Headers = Sequence[tuple[bytes, bytes]]

# Without a path, a user or a blank; RFC 3986, section 3.2.2, with a port. It may be empty.
_HOST = re.compile(rb"(\[[0-9A-Fa-fv:.]*\]|[A-Za-z0-9._~!$&'()*+,;=%-]*)(:[0-9]*)?")


def problem_with(version: str, headers: Headers) -> Problem | None:
    """The problem with a head; None where there is none.

    Args:
        version: Of HTTP.
        headers: Names in lower case.
    """
    if version not in VERSIONS:
        return _invalid(
            f"the request is HTTP/{version}; it must be HTTP/1.1", value=version, limit="1.1"
        )
    return _host_problem(version, headers) or _framing_problem(version, headers)


def content_length(headers: Headers) -> int:
    """Bytes of the body that a head announces, which the parser has accepted; 0 where it does not.

    A body in chunks has no announced length.

    Args:
        headers: Names in lower case.
    """
    names = dict(headers)
    return 0 if b"transfer-encoding" in names else int(names.get(b"content-length", b"0"))


def _host_problem(version: str, headers: Headers) -> Problem | None:
    hosts = [value for name, value in headers if name == b"host"]
    if len(hosts) > 1 or (not hosts and version == "1.1"):
        return _invalid(
            f"the request has {len(hosts)} Host headers; it must have one",
            value=len(hosts),
            limit=1,
        )
    if hosts and not _HOST.fullmatch(hosts[0]):
        return _invalid("the Host header is no host with or without a port", value=len(hosts[0]))
    return None


def _framing_problem(version: str, headers: Headers) -> Problem | None:
    """Two readers that disagree where a body ends can be made to see different requests."""
    codings = [value for name, value in headers if name == b"transfer-encoding"]
    if not codings:
        return None
    if version != "1.1":
        return _invalid("Transfer-Encoding is not of HTTP/1.0", limit="1.1")
    if len(codings) > 1 or codings[0].strip().lower() != b"chunked":
        return _invalid("the Transfer-Encoding must be chunked alone", limit="chunked")
    return None


def _invalid(
    message: str, *, value: str | int | None = None, limit: str | int | None = None
) -> Problem:
    return Problem(status=400, code="invalid_http", message=message, value=value, limit=limit)


def too_large(limit: int) -> Problem:
    """A 431: the head has too many bytes."""
    return Problem(
        status=431,
        code="headers_too_large",
        message=f"the request line and the headers have more than {limit} bytes",
        limit=limit,
    )


def too_many(limit: int) -> Problem:
    """A 431: the head has too many headers."""
    return Problem(
        status=431,
        code="headers_too_large",
        message=f"the request has more than {limit} headers",
        limit=limit,
    )


def too_slow(seconds: float) -> Problem:
    """A 408: the head did not arrive in time."""
    return Problem(
        status=408,
        code="header_timeout",
        message=f"the headers were not complete after {seconds:g} seconds",
        limit=seconds,
    )


def length_overflow() -> Problem:
    """A 413: the announced length is beyond the parser's numbers."""
    return Problem(
        status=413,
        code="too_long",
        message=f"the body has more than {MAX_LENGTH} bytes, by its Content-Length",
        limit=MAX_LENGTH,
    )


def without_offer(method: bytes, url: bytes, version: str, headers: Headers) -> bytes:
    """A head that offers another protocol, written again without the offer."""
    kept = [header for header in headers if header[0] != b"upgrade"]
    return written_again(method, url, version, kept)


def written_again(method: bytes, url: bytes, version: str, headers: Headers) -> bytes:
    """A head as another parser can read it, from what was parsed of it."""
    lines = [b"%s %s HTTP/%s" % (method, url, version.encode())]
    lines += [b"%s: %s" % pair for pair in headers]
    return b"\r\n".join([*lines, b"", b""])
