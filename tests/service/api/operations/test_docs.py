import asyncio
import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path

import httpx
import pytest

from service.api.operations.docs import render_page
from service.app import create_app
from service.settings import Settings


@pytest.fixture(scope="module")
def reply() -> httpx.Response:
    async def scenario() -> httpx.Response:
        transport = httpx.ASGITransport(app=create_app(Settings(checkpoint=Path("none"))))
        async with httpx.AsyncClient(transport=transport, base_url="http://a") as client:
            return await client.get("/docs")

    return asyncio.run(scenario())


def test_the_page_loads_nothing_and_has_no_script(reply: httpx.Response) -> None:
    assert reply.headers["content-type"] == "text/html; charset=utf-8"
    page = reply.text.lower()
    assert "://" not in page
    for part in ("<script", "src=", "<link", "<iframe", "@import", "url(", "javascript:"):
        assert part not in page
    assert set(re.findall(r'href="([^"#]*)', reply.text)) <= {"/openapi.json", ""}


def test_its_policy_allows_its_own_style_and_nothing_else(reply: httpx.Response) -> None:
    (style,) = re.findall(r"<style>(.*?)</style>", reply.text, re.DOTALL)
    digest = b64encode(sha256(style.encode()).digest()).decode()
    policy = reply.headers["content-security-policy"]
    assert policy.startswith(f"default-src 'none'; style-src 'sha256-{digest}';")
    assert "unsafe" not in policy


def test_every_route_and_every_schema_is_on_it_and_every_link_leads_somewhere(
    reply: httpx.Response,
) -> None:
    headings = re.findall(r"<h2[^>]*>([^<]*)</h2>", reply.text)
    assert {"POST /translate", "POST /v1/translate", "GET /languages"} <= set(headings)
    assert {"ErrorReply", "TranslateReply"} <= set(headings)
    targets = set(re.findall(r'id="([^"]*)"', reply.text))
    links = set(re.findall(r'href="#([^"]*)"', reply.text))
    assert links
    assert links <= targets


def test_limits_are_said(reply: httpx.Response) -> None:
    assert "at most 20000 characters" in reply.text
    assert "beam_size" in reply.text
    assert "≤ 16" in reply.text


def test_what_a_document_says_is_escaped() -> None:
    evil = '"><script>alert(1)</script>'
    page = render_page(
        {
            "info": {"title": evil, "version": evil, "description": evil},
            "paths": {
                f"/{evil}": {
                    evil: {
                        "summary": evil,
                        "parameters": [
                            {"name": evil, "schema": {"enum": [evil]}, "description": evil}
                        ],
                        "requestBody": {
                            "content": {evil: {"schema": {"const": evil, "description": evil}}}
                        },
                        "responses": {
                            evil: {
                                "description": evil,
                                "content": {evil: {"schema": {"$ref": evil}}, "a": {}},
                            }
                        },
                    }
                }
            },
            "components": {"schemas": {evil: {"type": evil, "default": evil}}},
        }
    )
    tags: set[str] = set()

    class Tags(HTMLParser):
        def handle_starttag(self, tag: str, attrs: object) -> None:
            tags.add(tag)

    Tags().feed(page)
    assert "script" not in tags
    assert "table" in tags
