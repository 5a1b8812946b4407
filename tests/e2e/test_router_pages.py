"""Pages of other origins before a real router and before its server: both tell them the same."""

from collections.abc import Iterator
from contextlib import ExitStack

import httpx
import pytest

from support.router_fleet import DE_EN, DEEPL, ROUTER, SERVERS, wait_up
from support.running_router import running_router
from support.running_server import RunningServer, running_server
from support.tiny_checkpoint import write_tiny_checkpoint

PAGE = "https://app.example"
ASKED: dict[str, tuple[str, str, dict[str, object]]] = {
    "a translation": (
        "POST",
        "/translate",
        {"json": {"q": "Die Katze", "source": "de", "target": "en"}},
    ),
    "a refusal": ("POST", "/translate", {"json": {"q": "a", "source": "fr", "target": "en"}}),
    "languages": ("GET", "/languages", {}),
    "checkpoints": ("GET", "/v1/models", {}),
    "languages of DeepL's contract": ("GET", "/v2/languages", {"headers": DEEPL}),
    "a detection": ("POST", "/detect", {"json": {"q": "Die Katze"}}),
    "usage": ("GET", "/v2/usage", {"headers": DEEPL}),
    "glossaries": ("GET", "/v2/glossaries", {"headers": DEEPL}),
    "no such glossary": ("GET", "/v2/glossaries/none", {"headers": DEEPL}),
    "no such path": ("GET", "/nowhere", {}),
    "no such method": ("DELETE", "/translate", {}),
    "usage without a key": ("GET", "/v2/usage", {}),
    "a probe": ("GET", "/readyz", {}),
    "a preflight": (
        "OPTIONS",
        "/translate",
        {"headers": {"access-control-request-method": "POST"}},
    ),
    "a refused preflight": (
        "OPTIONS",
        "/v2/usage",
        {"headers": {"access-control-request-method": "PROPFIND"}},
    ),
}


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RunningServer, RunningServer]]:
    """A router, and the one server behind it; pages of the same origin may call both."""
    folder = tmp_path_factory.mktemp("pages")
    write_tiny_checkpoint(folder / "german", name="german", pairs=(DE_EN,), seed=15)
    origins = {"DRAGOMAN_CORS_ORIGINS": PAGE}
    with ExitStack() as stack:
        server = stack.enter_context(
            running_server(folder / "german", folder / "server.log", **SERVERS, **origins)
        )
        router = stack.enter_context(
            running_router({"west": server.url}, folder / "router.log", **ROUTER, **origins)
        )
        wait_up(router, "west")
        yield router, server


def _told(one: RunningServer, origin: str, what: str) -> tuple[int, list[tuple[str, str]]]:
    """The status, and each header that tells a browser which pages may read the answer."""
    method, path, parts = ASKED[what]
    request = httpx.Request(method, one.url + path, **parts)  # type: ignore[arg-type]
    request.headers["origin"] = origin
    with one.client() as client:
        answer = client.send(request)
    told = [
        (name, value)
        for name, value in answer.headers.multi_items()
        if name == "vary" or name.startswith("access-control-")
    ]
    return answer.status_code, sorted(told)


@pytest.mark.parametrize("what", ASKED)
def test_a_router_tells_browsers_what_a_server_tells_them(
    both: tuple[RunningServer, RunningServer], what: str
) -> None:
    router, server = both
    status, told = _told(server, PAGE, what)
    assert ("access-control-allow-origin", PAGE) in told
    assert _told(router, PAGE, what) == (status, told)
    other = _told(server, "https://other.example", what)
    assert "access-control-allow-origin" not in dict(other[1])
    assert _told(router, "https://other.example", what) == other
