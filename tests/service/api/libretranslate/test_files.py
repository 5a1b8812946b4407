"""The link that a translated file is fetched by, and how long its client waits."""

import asyncio
from ipaddress import ip_network
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.requests import Request

from service.api.libretranslate import files
from service.api.libretranslate.files import ended, link_of
from service.errors import RequestError, unavailable

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


class _Queue:
    """A queue whose job ends after so many seconds, if ever."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    async def ended(self, job_id: str) -> str:
        await asyncio.sleep(self._seconds)
        return job_id


def test_nobody_waits_for_an_engine_that_was_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_LOOK_SECONDS", 0.01)
    looks = []

    def check_live() -> None:
        looks.append(1)
        if len(looks) > 2:
            raise unavailable("the translation engine is not running", code="lost")

    front: Any = SimpleNamespace(check_live=check_live)
    queues: list[Any] = [_Queue(60.0), _Queue(0.0)]
    with pytest.raises(RequestError) as caught:
        asyncio.run(ended(front, queues[0], "a"))
    assert (caught.value.problem.status, caught.value.problem.code) == (503, "lost")
    assert asyncio.run(ended(front, queues[1], "b")) == "b"
