"""The link that a translated file is fetched by."""

from ipaddress import ip_network

import pytest
from starlette.requests import Request

from service.api.libretranslate.files import link_of

TRUSTED = (ip_network("10.0.0.0/8"),)


@pytest.mark.parametrize(
    ("peer", "headers", "link"),
    [
        ("10.1.2.3", [(b"x-forwarded-proto", b"https")], "https://a.example/download_file/x.txt"),
        ("10.1.2.3", [], "http://a.example/download_file/x.txt"),
        ("192.0.2.1", [(b"x-forwarded-proto", b"https")], "http://a.example/download_file/x.txt"),
    ],
)
def test_a_link_has_the_scheme_that_the_client_came_with(
    peer: str, headers: list[tuple[bytes, bytes]], link: str
) -> None:
    scope = {
        "type": "http",
        "method": "POST",
        "scheme": "http",
        "path": "/translate_file",
        "query_string": b"",
        "headers": [(b"host", b"a.example"), *headers],
        "client": (peer, 1),
        "server": ("127.0.0.1", 8000),
    }
    assert link_of(Request(scope), "x.txt", TRUSTED) == link
