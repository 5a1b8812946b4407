import asyncio
import re
from html.parser import HTMLParser
from pathlib import Path

import httpx
import pytest

from service.api.operations.docs import render_page
from service.app import create_app
from service.http.headers import PAGE_POLICY
from service.settings import Settings
from service.web.static_files import load_static_files


@pytest.fixture(scope="module")
def reply() -> httpx.Response:
    async def scenario() -> httpx.Response:
        transport = httpx.ASGITransport(app=create_app(Settings(checkpoint=Path("none"))))
        async with httpx.AsyncClient(transport=transport, base_url="http://a") as client:
            return await client.get("/docs")

    return asyncio.run(scenario())


def test_the_page_loads_the_servers_own_files_and_nothing_else(reply: httpx.Response) -> None:
    assert reply.headers["content-type"] == "text/html; charset=utf-8"
    page = reply.text.lower()
    assert "://" not in page
    for part in ("<style", "style=", "<iframe", "@import", "url(", "javascript:", " on"):
        assert part not in re.sub(r">[^<]*<", "><", page)
    assert not re.search(r"<script(?![^>]* src=\"assets/)", page)
    links = set(re.findall(r'(?:href|src)="([^"#]*)', reply.text)) - {"", "openapi.json"}
    assert {link.removeprefix("assets/") for link in links} <= set(load_static_files())


def test_its_policy_is_that_of_pages(reply: httpx.Response) -> None:
    assert reply.headers["content-security-policy"] == PAGE_POLICY


def test_what_can_be_sent_as_it_is_can_be_tried(reply: httpx.Response) -> None:
    tried = re.findall(r'data-method="(\w+)" data-path="([^"]+)"', reply.text)
    assert {
        ("POST", "/v1/translate"),
        ("POST", "/translate"),
        ("POST", "/v2/translate"),
        ("POST", "/v2/glossaries"),
        ("POST", "/detect"),
        ("GET", "/languages"),
    } <= set(tried)
    assert "curl -s 127.0.0.1:8000/v1/translate" in reply.text


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
    assert "list of object of source, target, case_sensitive, at most" in reply.text


def test_what_stands_between_backticks_is_shown_as_code(reply: httpx.Response) -> None:
    shown = re.sub(r"<(pre|textarea)\b.*?</\1>", "", reply.text, flags=re.DOTALL)
    assert "`" not in shown
    assert "<code>POST /v1/translate</code> has every option" in shown


def test_what_a_document_says_is_escaped() -> None:
    evil = '"><script>alert(1)</script>`<script>`'
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
    assert page.count("<script") == 2  # its own
    assert "table" in tags
