import asyncio
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from service.app import create_app
from service.http.headers import PAGE_POLICY
from service.settings import Settings
from service.web.static_files import load_static_files

Get = Callable[..., httpx.Response]


def _get(*, page: bool = True) -> Get:
    app = create_app(Settings(checkpoint=Path("none"), page=page))

    def get(path: str, method: str = "GET", **headers: str) -> httpx.Response:
        async def scenario() -> httpx.Response:
            transport = httpx.ASGITransport(app=app)
            async with httpx.AsyncClient(transport=transport, base_url="http://a") as client:
                return await client.request(method, path, headers=headers)

        return asyncio.run(scenario())

    return get


@pytest.fixture(scope="module")
def get() -> Get:
    return _get()


def test_the_page_may_load_what_this_server_has_and_nothing_else(get: Get) -> None:
    reply = get("/")
    assert reply.status_code == 200
    assert reply.headers["content-type"] == "text/html; charset=utf-8"
    assert reply.headers["content-security-policy"] == PAGE_POLICY
    assert PAGE_POLICY.startswith("default-src 'none';")
    for loose in ("unsafe", "*", "http:", "https:", "data:", "blob:"):
        assert loose not in PAGE_POLICY
    assert reply.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("name", sorted(set(load_static_files()) - {"index.html"}))
def test_every_file_has_its_type_its_tag_and_a_short_second_answer(get: Get, name: str) -> None:
    first = get(f"/assets/{name}")
    assert first.status_code == 200
    assert first.content == load_static_files()[name].content
    assert first.headers["cache-control"] == "no-cache"
    for tags in (first.headers["etag"], f'W/"x", W/{first.headers["etag"]}', "*"):
        again = get(f"/assets/{name}", **{"if-none-match": tags})
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["etag"] == first.headers["etag"]
    assert get(f"/assets/{name}", **{"if-none-match": '"other"'}).status_code == 200


def test_a_head_is_answered_like_a_get(get: Get) -> None:
    assert get("/", "HEAD").headers["etag"] == get("/").headers["etag"]


@pytest.mark.parametrize(
    "name", ["index.html", "nothing.js", "..%2froutes.py", "%2e%2e/routes.py", "", "a/main.js"]
)
def test_no_other_name_leads_anywhere(get: Get, name: str) -> None:
    assert get(f"/assets/{name}").status_code == 404


def test_the_page_can_be_switched_off_and_the_documentation_stays_whole() -> None:
    get = _get(page=False)
    assert get("/").status_code == 404
    assert get("/").json()["code"] == "not_found"
    assert get("/docs").status_code == 200
    assert get("/assets/docs.js").status_code == 200
