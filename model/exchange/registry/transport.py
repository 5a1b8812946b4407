"""One request to a registry, with its redirects: where it may go, and what it may tell.

Owns the limits of a request (time, redirects, schemes), proxies of the environment, and that a
credential is for one origin. It does not own what is tried again (`retries`) nor what is in an
answer.
"""

import http.client
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.message import Message
from typing import Protocol
from urllib.error import URLError
from urllib.parse import urljoin, urlsplit
from urllib.request import (
    HTTPHandler,
    HTTPSHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
    UnknownHandler,
)

from model.errors import ConfigError, RegistryError, UnreachableError, shown
from model.exchange.registry.local_files import open_local

_MAX_REDIRECTS = 5
REDIRECTS = frozenset({301, 302, 303, 307, 308})
_LENGTH = re.compile(r"[0-9]{1,18}")
_PORTS = {"http": 80, "https": 443}

Origin = tuple[str, str, int]
"""Scheme, host, port."""


class Reply(Protocol):
    """Answer to a request, its body still to be read.

    Attributes:
        url: Where the answer came from, redirects followed.
        status: HTTP's.
        headers: HTTP's, in any case.
    """

    url: str
    status: int
    headers: Message

    def read(self, size: int) -> bytes:
        """The next bytes that are there, at most `size`; none at the end.

        Raises:
            UnreachableError: The connection broke, or nothing came for too long.
        """
        ...

    def close(self) -> None:
        """Give the connection up."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Credential:
    """Token, with the one origin that it is sent to."""

    origin: Origin
    token: str = field(repr=False)


class Transport:
    """Requests over HTTP, HTTPS and to local files.

    Args:
        credentials: Tokens; each goes to its own origin alone.
        timeout_seconds: Longest silence, when connecting and between any two bytes.
    """

    def __init__(
        self, credentials: tuple[Credential, ...] = (), *, timeout_seconds: float = 30.0
    ) -> None:
        self._tokens = {each.origin: each.token for each in credentials}
        self._timeout_seconds = timeout_seconds
        self._opener = OpenerDirector()
        for handler in (ProxyHandler(), HTTPHandler(), HTTPSHandler(), UnknownHandler()):
            self._opener.add_handler(handler)

    def request(
        self,
        url: str,
        *,
        method: str = "GET",
        headers: Mapping[str, str] | None = None,
        is_following: bool = True,
    ) -> Reply:
        """Ask, and follow redirects.

        Args:
            url: http, https or file.
            method: GET or HEAD.
            headers: Sent wherever a redirect leads, so no credential may be among them.
            is_following: Follow them; else a redirect is an answer.

        Raises:
            UnreachableError: There is no answer, or not in time.
            RegistryError: The redirects are too many, or lead to where none is followed; or the
                server cannot be trusted.
        """
        address = url
        for _ in range(_MAX_REDIRECTS + 1):
            reply = self._ask(address, method, dict(headers or {}))
            if reply.status not in REDIRECTS or not is_following:
                return reply
            reply.close()
            address = _redirected(address, reply.headers.get("Location"))
        raise RegistryError(url, f"redirects more than {_MAX_REDIRECTS} times")

    def _ask(self, url: str, method: str, headers: dict[str, str]) -> Reply:
        try:
            if urlsplit(url).scheme == "file":
                return open_local(url, method, headers)
            sent = {"User-Agent": "dragoman", "Accept-Encoding": "identity", **headers}
            request = Request(url, method=method, headers=sent)  # noqa: S310  # schemes are checked
            if token := self._tokens.get(origin_of(url)):
                request.add_unredirected_header("Authorization", f"Bearer {token}")
            response = self._opener.open(request, timeout=self._timeout_seconds)
        except (OSError, http.client.HTTPException) as error:
            raise _failure(url, error) from error
        except (UnicodeError, ValueError) as error:
            raise RegistryError(url, f"is no address: {error}") from error
        assert isinstance(response, http.client.HTTPResponse)
        return _HttpReply(url, response)


class _HttpReply:
    def __init__(self, url: str, response: http.client.HTTPResponse) -> None:
        self.url = url
        self.status = response.status
        self.headers: Message = response.headers
        self._response = response

    def read(self, size: int) -> bytes:
        try:
            return self._response.read1(size)
        except (OSError, http.client.HTTPException) as error:
            raise _failure(self.url, error) from error

    def close(self) -> None:
        self._response.close()


def origin_of(url: str) -> Origin:
    """Scheme, host and port of a URL.

    Raises:
        ConfigError: It has none of these.
    """
    try:
        parts = urlsplit(url)
        port = parts.port or _PORTS.get(parts.scheme, 0)
    except ValueError as error:
        raise ConfigError(f"{shown(url)} is no URL: {error}") from error
    return parts.scheme, (parts.hostname or "").lower(), port


def content_length(headers: Message) -> int | None:
    """Bytes of a body, as its headers say; None where they do not."""
    match = _LENGTH.fullmatch(headers.get("Content-Length", ""))
    return int(match[0]) if match else None


def _redirected(url: str, location: str | None) -> str:
    if location is None:
        raise RegistryError(url, "redirects to nowhere")
    try:
        target = urljoin(url, location)
        old, new = urlsplit(url), urlsplit(target)
        has_password = "@" in new.netloc
    except ValueError as error:
        raise RegistryError(url, f"redirects to {shown(location)}: {error}") from error
    is_weaker = old.scheme == "https" and new.scheme != "https"
    if new.scheme not in _PORTS or is_weaker or has_password or not new.hostname:
        raise RegistryError(url, f"redirects to {shown(location)}, which is not followed")
    return target


def _failure(url: str, error: Exception) -> RegistryError:
    """What a library's error means; its text may have no address in it but ours."""
    reason = error.reason if isinstance(error, URLError) else error
    if isinstance(reason, ssl.SSLCertVerificationError):
        return RegistryError(url, f"has a certificate that is not valid: {reason.verify_message}")
    if isinstance(reason, TimeoutError):
        return UnreachableError(url, "does not answer in time")
    if isinstance(reason, OSError):
        return UnreachableError(url, f"cannot be reached: {reason.strerror or reason}")
    return UnreachableError(url, f"broke off: {type(reason).__name__}")
