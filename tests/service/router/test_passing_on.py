"""Which headers of a request go on to a group."""

from ipaddress import ip_network
from typing import Any

import pytest
from starlette.requests import Request

from service.router.connection import BytesBody
from service.router.passing_on import PassedAnswer, asked_of
from service.router.pool import Answer
from service.telemetry.request_context import RequestContext, attach_context

TRUSTED = (ip_network("10.0.0.0/8"),)


def _asked(
    *headers: tuple[str, str], client: str | None = "192.0.2.1", **more: object
) -> dict[bytes, bytes]:
    scope: dict[str, Any] = {
        "type": "http",
        "method": "POST",
        "path": "/v2/a b",
        "raw_path": b"/v2/a%20b",
        "query_string": b"x=1",
        "headers": [(name.encode(), value.encode()) for name, value in headers],
        "client": None if client is None else (client, 1),
        **more,
    }
    attach_context(scope, RequestContext(request_id="made"))
    asked = asked_of(Request(scope), BytesBody(data=b"12345"), TRUSTED)
    assert (asked.method, asked.target) == (b"POST", b"/v2/a%20b?x=1")
    assert b"content-length: 5" in asked.head()
    return dict(asked.headers)


def test_a_key_a_host_and_a_type_go_on_and_what_is_of_the_connection_does_not() -> None:
    passed = _asked(
        ("host", "translate.example.org"),
        ("authorization", "Bearer key"),
        ("content-type", "application/json"),
        ("content-length", "99"),
        ("transfer-encoding", "chunked"),
        ("connection", "keep-alive, X-Hop"),
        ("x-hop", "1"),
        ("expect", "100-continue"),
        ("upgrade", "h2c"),
        ("x-request-id", "not one of ours, so it was replaced"),
    )
    assert passed == {
        b"host": b"translate.example.org",
        b"authorization": b"Bearer key",
        b"content-type": b"application/json",
        b"x-request-id": b"made",
        b"x-forwarded-for": b"192.0.2.1",
    }


@pytest.mark.parametrize(
    ("client", "given", "told"),
    [
        ("192.0.2.1", "203.0.113.7", b"192.0.2.1"),  # nobody who is trusted says so
        ("10.1.2.3", "203.0.113.7", b"203.0.113.7"),
        ("10.1.2.3", "198.51.100.1, 203.0.113.7", b"203.0.113.7"),
        ("10.1.2.3", "203.0.113.7, 10.9.9.9", b"203.0.113.7"),
        ("10.1.2.3", "nonsense", b"10.1.2.3"),
        ("2001:db8::1", "203.0.113.7", b"2001:db8::1"),
    ],
)
def test_the_client_is_whom_trusted_proxies_name(client: str, given: str, told: bytes) -> None:
    assert _asked(("x-forwarded-for", given), client=client)[b"x-forwarded-for"] == told


@pytest.mark.parametrize(
    ("client", "told"), [("192.0.2.1", None), ("10.1.2.3", b"https"), (None, None)]
)
def test_the_scheme_is_what_trusted_proxies_say(client: str | None, told: bytes | None) -> None:
    passed = _asked(("x-forwarded-proto", "https"), client=client)
    assert passed.get(b"x-forwarded-proto") == told


@pytest.mark.parametrize(
    ("path", "is_patient"),
    [("/translate_file", True), ("/v1/documents", False), ("/translate", False)],
)
def test_an_answer_that_comes_when_a_file_is_translated_may_take_long(
    path: str, *, is_patient: bool
) -> None:
    scope = {"type": "http", "method": "POST", "path": path, "raw_path": path.encode()}
    scope |= {"query_string": b"", "headers": [], "client": None}
    attach_context(scope, RequestContext(request_id="made"))
    assert asked_of(Request(scope), BytesBody(), TRUSTED).is_patient is is_patient


@pytest.mark.parametrize(
    ("server", "told"),
    [
        (("127.0.0.1", 8000), b"127.0.0.1:8000"),
        (("::1", 8000), b"[::1]:8000"),
        (("/run/router", None), b"/run/router"),
        (None, b"router"),
    ],
)
def test_a_request_of_http_1_0_without_a_host_has_the_address_it_came_to(
    server: tuple[str, int | None] | None, told: bytes
) -> None:
    assert _asked(http_version="1.0", server=server)[b"host"] == told


def test_a_host_goes_on_whatever_connection_names() -> None:
    passed = _asked(("host", "example.org"), ("connection", "Host, x-hop"), ("x-hop", "1"))
    assert passed[b"host"] == b"example.org"
    assert b"x-hop" not in passed


def test_an_answer_has_the_date_of_this_server_alone() -> None:
    headers = [(b"date", b"Mon, 01 Jan 2024 00:00:00 GMT"), (b"content-length", b"0")]
    assert PassedAnswer(Answer(200, headers), "west").raw_headers == [(b"content-length", b"0")]


def test_a_client_without_an_address_is_not_named() -> None:
    assert b"x-forwarded-for" not in _asked(("x-forwarded-for", "203.0.113.7"), client=None)
