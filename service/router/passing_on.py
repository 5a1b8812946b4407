"""Passing of one request to a group, and of its answer to the client.

Owns which headers go on in either direction, and what becomes of an answer that breaks off. Bodies
are not changed.
"""

from collections.abc import Iterable
from contextlib import aclosing

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from service.access.addresses import address_of, scheme_of
from service.errors import ClientGoneError
from service.http.disconnect import cancelled_on_disconnect
from service.http.middleware import note_late_problem
from service.networks import Network
from service.router.connection import Asked, Body
from service.router.groups import LostError, group_lost
from service.router.pool import Answer
from service.router.wording import ANSWERED_WHEN_DONE
from service.telemetry.request_context import context_in, context_of

_HOP_BY_HOP = frozenset(
    {
        b"connection",
        b"expect",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)
"""RFC 9110, section 7.6.1; an expectation was met by reading the body."""
_OURS = frozenset({b"content-length", b"x-forwarded-for", b"x-forwarded-proto", b"x-request-id"})
_OF_ANSWERS = frozenset({b"date", b"x-request-id"})
"""Which an answer has from this server, as every one of its own."""


def asked_of(request: Request, body: Body, trusted: Iterable[Network]) -> Asked:
    """A client's request as a group gets it.

    Args:
        request: The client's.
        body: Of it, read before.
        trusted: Proxies whose word of who the client is, and what it speaks, goes on; others' is
            left out.
    """
    scope = request.scope
    left_out = _HOP_BY_HOP | _OURS | (_named(scope["headers"]) - {b"host"})
    headers = [(name, value) for name, value in scope["headers"] if name not in left_out]
    if all(name != b"host" for name, _ in headers):
        headers.append((b"host", _own_host(scope)))  # HTTP/1.0 needs none
    headers.append((b"x-request-id", context_of(request).request_id.encode("ascii")))
    peer = request.client.host if request.client else None
    client = address_of(peer, request.headers.getlist("x-forwarded-for"), trusted)
    if client is not None:
        headers.append((b"x-forwarded-for", str(client).encode("ascii")))
    scheme = scheme_of(peer, request.headers.getlist("x-forwarded-proto"), trusted)
    if scheme is not None:
        headers.append((b"x-forwarded-proto", scheme.encode("ascii")))
    target = scope["raw_path"] or scope["path"].encode()
    if scope["query_string"]:
        target += b"?" + scope["query_string"]
    return Asked(
        method=scope["method"].encode(),
        target=target,
        headers=headers,
        body=body,
        is_patient=scope["path"] in ANSWERED_WHEN_DONE,
    )


class PassedAnswer(Response):
    """A group's answer as it comes.

    Args:
        answer: Its head is there; it is closed in any case.
        group: Name of whose it is.
    """

    def __init__(self, answer: Answer, group: str) -> None:
        self._answer = answer
        self._group = group
        self.status_code = answer.status
        self.background = None
        left_out = _HOP_BY_HOP | _named(answer.headers) | _OF_ANSWERS
        self.raw_headers = [one for one in answer.headers if one[0] not in left_out]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it; when the client goes, the group is told by the end of its connection."""
        try:
            await cancelled_on_disconnect(Request(scope, receive), self._send_all(send))
        except ClientGoneError as error:
            note_late_problem(context_in(scope), error)
        except LostError as error:
            # Half an answer is none: without its end, the client's connection breaks off as well.
            note_late_problem(context_in(scope), group_lost(self._group, str(error)))
        finally:
            self.close()

    def close(self) -> None:
        """Do not send it: it is nobody's."""
        self._answer.close()

    async def _send_all(self, send: Send) -> None:
        await send(
            {
                "type": "http.response.start",
                "status": self.status_code,
                "headers": list(self.raw_headers),
            }
        )
        async with aclosing(self._answer.pieces()) as pieces:
            async for piece in pieces:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def _own_host(scope: Scope) -> bytes:
    """The address that a request came to, as the server that got it would name it."""
    host, port = scope.get("server") or ("router", None)
    named = f"[{host}]" if ":" in host else host
    return (named if port is None else f"{named}:{port}").encode("ascii")


def _named(headers: Iterable[tuple[bytes, bytes]]) -> frozenset[bytes]:
    """Headers that `Connection` names: of this connection alone too."""
    named = (value for name, value in headers if name == b"connection")
    return frozenset(one.strip().lower() for value in named for one in value.split(b","))
