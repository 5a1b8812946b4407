"""Texts with tags in every contract that translates, against a real server."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from support.markup_trees import outline_of, text_of, tree_of
from support.running_server import RunningServer

PAGE = (
    "<!-- a page --><h1 class='x'>The cat sees <b>the river</b>.</h1>\n"
    '<p title="A letter">Nobody <i>waits</i> for <code>ls -l</code> &lt;script&gt; &amp; she.</p>'
    "<ul><li>Two apples<li translate=no>The old train</ul><script>if (a<b) x('The cat')</script>"
)


@pytest.fixture(scope="module")
def client(server: RunningServer) -> Iterator[httpx.Client]:
    with server.client() as client:
        yield client


def _libre(client: httpx.Client, q: object, **values: object) -> dict[str, Any]:
    body = {"q": q, "source": "en", "target": "zh", "format": "html"} | values
    reply = client.post("/translate", json=body)
    assert reply.status_code == 200, reply.text
    content: dict[str, Any] = reply.json()
    return content


def _v1(client: httpx.Client, texts: object, **values: object) -> httpx.Response:
    body = {"texts": texts, "source": "en", "target": "zh-Hans"} | values
    return client.post("/v1/translate", json=body)


def _refused(reply: httpx.Response, status: int, code: str) -> dict[str, Any]:
    content: dict[str, Any] = reply.json()
    assert (reply.status_code, content["code"]) == (status, code), reply.text
    return content


def test_a_page_keeps_its_tags_and_what_only_looks_like_one(client: httpx.Client) -> None:
    translated = _libre(client, PAGE)["translatedText"]
    assert tree_of(translated) == tree_of(PAGE)
    assert outline_of(translated) == outline_of(PAGE)
    assert text_of(translated) != text_of(PAGE)
    assert '<p title="A letter">' not in translated
    kept = ("<!-- a page -->", "<code>ls -l</code>", "if (a<b) x('The cat')", "&lt;script&gt;")
    assert all(part in translated for part in kept)


def test_a_list_of_pages_is_answered_page_by_page(client: httpx.Client) -> None:
    pages = [PAGE, "", "<br>", "<p>7.30", "The <b>cat", PAGE]
    content = _libre(client, pages, alternatives=2)
    assert [tree_of(page) for page in content["translatedText"]] == list(map(tree_of, pages))
    assert content["translatedText"][1:4] == pages[1:4]
    assert content["translatedText"][0] == content["translatedText"][5]
    for page, others in zip(pages, content["alternatives"], strict=True):
        assert all(tree_of(other) == tree_of(page) for other in others)
    assert len(set(content["alternatives"][0])) > 0


def test_the_language_of_a_page_is_that_of_what_it_says(client: httpx.Client) -> None:
    chinese = "<p class='The cat sees the river'>猫看见<b>河</b>。</p>"
    content = _libre(client, [chinese, PAGE], source="auto")
    assert [one["language"] for one in content["detectedLanguage"]] == ["zh-Hans", "en"]
    assert content["translatedText"][0] == chinese


def test_as_plain_text_a_page_is_a_text(client: httpx.Client) -> None:
    plain = _libre(client, "&lt;b&gt; The cat <b>sees</b>", format="text")["translatedText"]
    assert plain.count("&lt;") == 1


def test_segments_are_stretches_of_the_page(client: httpx.Client) -> None:
    reply = _v1(client, PAGE, format="html", scores=True, alignment=True)
    content = reply.json()
    (translation,) = content["translations"]
    assert content["usage"]["num_characters"] == len(PAGE)
    assert content["usage"]["num_segments"] == len(translation["segments"]) >= 4
    sources = {segment["source"] for segment in translation["segments"]}
    whole = {"The cat sees <b>the river</b>."}
    assert whole <= sources or {"The cat sees", "the river"} <= sources  # split around its tags
    assert "A letter" in sources
    for segment in translation["segments"]:
        assert segment["source"] in PAGE
        assert segment["text"] in translation["text"]
        assert set(segment["quality"]) == {"checked", "failed", "num_tries"}
        assert ("score" in segment) != segment["is_verbatim"]


def test_what_stands_for_a_term_is_text(client: httpx.Client) -> None:
    page = "<p>The <i>cat</i> sees the <b>river</b>.</p>"
    glossary = [{"source": "river", "target": "<u>\U00100000&"}]
    reply = _v1(client, page, format="html", glossary=glossary)
    (translation,) = reply.json()["translations"]
    assert tree_of(translation["text"]) == tree_of(page)
    assert "&lt;u&gt;" in translation["text"]


def test_xml_is_read_as_xml(client: httpx.Client) -> None:
    markup = '<d xml:lang="en"><t>The cat<br/>sees</t><T a="b">the <x>old train</x></T></d>'
    reply = _v1(client, markup, format="xml", ignore_tags=["x"], splitting_tags=["br"])
    text = reply.json()["translations"][0]["text"]
    assert text.startswith('<d xml:lang="en"><t>')
    assert "<x>old train</x>" in text
    sources = [one["source"] for one in reply.json()["translations"][0]["segments"]]
    assert sources[:2] == ["The cat", "sees"]


@pytest.mark.parametrize(
    "markup",
    [
        "<a>The cat</b>",
        "The <a>cat",
        "The cat & she",
        "</text><text>",
        "<!DOCTYPE d [<!ENTITY a 'b'>]><d>The &a;</d>",
        "<d>" * 2000 + "The cat" + "</d>" * 2000,
    ],
)
def test_xml_that_is_none_is_a_400(client: httpx.Client, markup: str) -> None:
    content = _refused(_v1(client, markup, format="xml"), 400, "invalid_markup")
    assert content["error"].startswith("a text ")
    assert "The" not in content["error"]


@pytest.mark.parametrize(
    "values",
    [
        {"format": "pdf"},
        {"format": None},
        {"ignore_tags": ["b"]},
        {"format": "html", "splitting_tags": "b"},
        {"format": "html", "non_splitting_tags": [""]},
        {"format": "xml", "ignore_tags": ["b"] * 101},
    ],
)
def test_a_wrong_option_is_a_400(client: httpx.Client, values: dict[str, object]) -> None:
    _refused(_v1(client, "The cat", **values), 400, "invalid_request")


def test_the_limit_of_a_text_is_for_what_a_page_says(client: httpx.Client) -> None:
    page = "<p class='x'>7</p>\n" * 4_000
    assert _libre(client, page)["translatedText"] == page
    body = {"q": "<p>The cat.</p>" * 3_000, "source": "en", "target": "zh", "format": "html"}
    content = _refused(client.post("/translate", json=body), 413, "too_long")
    assert (content["value"], content["limit"]) == (24_000, 20_000)
    body |= {"q": "<p>" * 40_000}
    content = _refused(client.post("/translate", json=body), 413, "too_long")
    assert (content["value"], content["limit"]) == (120_000, 100_000)
