"""Glossaries of DeepL's contract, request by request: what its clients do not send."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from support.running_server import RunningServer

NEW = {"name": "n", "source_lang": "en", "target_lang": "zh", "entries": "cat\tQīng 7"}
DICTIONARY = {name: value for name, value in NEW.items() if name != "name"}


@pytest.fixture(scope="module")
def client(server: RunningServer) -> Iterator[httpx.Client]:
    with server.client() as client:
        yield client


@pytest.fixture
def glossary(client: httpx.Client) -> Iterator[str]:
    name = str(client.post("/v2/glossaries", json=NEW).json()["glossary_id"])
    yield name
    client.delete(f"/v3/glossaries/{name}")


def _message(reply: httpx.Response, status: int) -> str:
    assert reply.status_code == status, reply.text
    content = reply.json()
    assert set(content) == {"message"}
    return str(content["message"])


def _translate(client: httpx.Client, **values: object) -> httpx.Response:
    body = {"text": "The cat sees the river.", "source_lang": "EN", "target_lang": "ZH"}
    return client.post("/v2/translate", json=body | values)


def test_what_is_made_and_found_has_the_same_fields(client: httpx.Client, glossary: str) -> None:
    found = client.get(f"/v2/glossaries/{glossary}").json()
    assert found.pop("creation_time").endswith("Z")
    pair = {"source_lang": "en", "target_lang": "zh"}
    expected = {"glossary_id": glossary, "name": "n", "ready": True, "entry_count": 1, **pair}
    assert found == expected
    entries = client.get(f"/v2/glossaries/{glossary}/entries")
    assert entries.text == NEW["entries"]
    assert entries.headers["content-type"].startswith("text/tab-separated-values")
    several = client.get(f"/v3/glossaries/{glossary}").json()
    assert several["dictionaries"] == [{**pair, "entry_count": 1}]


def test_forms_name_dictionaries_by_their_numbers(client: httpx.Client) -> None:
    fields = {f"dictionaries[0].{name}": value for name, value in DICTIONARY.items()}
    made = client.post("/v3/glossaries", data={"name": "form", **fields})
    assert made.status_code == 201
    path = f"/v3/glossaries/{made.json()['glossary_id']}"
    changed = client.patch(path, data=fields | {"dictionaries[0].entries": "dog\t狗"})
    assert changed.json()["dictionaries"][0]["entry_count"] == 2
    replaced = client.put(f"{path}/dictionaries", data=DICTIONARY)
    assert (replaced.status_code, replaced.json()["entry_count"]) == (200, 1)
    assert client.delete(path).status_code == 204


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"name": ""}, "Parameter 'name' not specified."),
        ({"name": "n" * 1025}, "1025 characters; the limit is 1024"),
        ({"entries": None}, "Parameter 'entries' not specified."),
        ({"entries": {"cat": "x"}}, "Value for 'entries' not supported"),
        ({"entries": "cat"}, "line 1 must be a source and a target"),
        ({"entries_format": "xlsx"}, "'entries_format' not supported: xlsx"),
        ({"source_lang": None}, "Parameter 'source_lang' not specified."),
        ({"target_lang": "not a code"}, "'target_lang' not supported: not a code"),
        ({"source_lang": "de"}, "'source_lang' not supported: de (no model here translates from"),
        ({"target_lang": "de"}, "no model here translates from en to de"),
        ({"target_lang": "en-GB"}, "no model here translates from en to en"),
    ],
)
def test_what_cannot_be_kept_is_refused_in_deepls_words(
    client: httpx.Client, values: dict[str, Any], words: str
) -> None:
    assert words in _message(client.post("/v2/glossaries", json=NEW | values), 400)
    several = {"name": "n", "dictionaries": [DICTIONARY]}
    if "name" in values:
        several |= values
    else:
        several["dictionaries"] = [DICTIONARY | values]
    assert words in _message(client.post("/v3/glossaries", json=several), 400)
    assert client.get("/v3/glossaries").json() == {"glossaries": []}


@pytest.mark.parametrize("given", [None, [], [5], "x", [DICTIONARY] * 2, [DICTIONARY] * 51])
def test_dictionaries_are_a_list_of_objects_for_different_languages(
    client: httpx.Client, glossary: str, given: object
) -> None:
    body = {"name": "n", "dictionaries": given}
    assert "'dictionaries' not supported" in _message(client.post("/v3/glossaries", json=body), 400)
    path = f"/v3/glossaries/{glossary}"
    assert "'dictionaries'" in _message(client.patch(path, json={"dictionaries": given}), 400)
    assert "'name'" in _message(client.patch(path, json={"name": ""}), 400)


def test_what_is_not_there_is_a_404(client: httpx.Client, glossary: str) -> None:
    for method, path in (
        ("GET", "/v2/glossaries/x"),
        ("GET", "/v2/glossaries/x/entries"),
        ("DELETE", "/v2/glossaries/x"),
        ("GET", "/v3/glossaries/x"),
        ("DELETE", "/v3/glossaries/x"),
        ("GET", "/v3/glossaries/x/entries?source_lang=en&target_lang=zh"),
        ("GET", f"/v3/glossaries/{glossary}/entries?source_lang=en&target_lang=de"),
        ("DELETE", f"/v3/glossaries/{glossary}/dictionaries?source_lang=en&target_lang=de"),
    ):
        _message(client.request(method, path), 404)
    _message(client.patch("/v3/glossaries/x", json={"name": "n"}), 404)
    _message(client.put("/v3/glossaries/x/dictionaries", json=DICTIONARY), 404)
    assert "source_lang" in _message(client.get(f"/v3/glossaries/{glossary}/entries"), 400)


@pytest.mark.parametrize("body", [b"", b"{}"])
def test_what_is_fetched_or_forgotten_may_say_a_type_of_body(
    client: httpx.Client, glossary: str, body: bytes
) -> None:
    def ask(method: str, path: str) -> int:
        kind = {"content-type": "application/json"}
        return client.request(method, path, content=body, headers=kind).status_code

    pair = "source_lang=en&target_lang=zh"
    for path in ("/v2/glossary-language-pairs", "/v2/glossaries", f"/v2/glossaries/{glossary}"):
        assert ask("GET", path) == 200
    assert ask("GET", f"/v3/glossaries/{glossary}/entries?{pair}") == 200
    assert ask("DELETE", f"/v3/glossaries/{glossary}/dictionaries?{pair}") == 204
    assert ask("DELETE", f"/v3/glossaries/{glossary}") == 204


def test_version_2_has_no_glossary_without_just_one_dictionary(
    client: httpx.Client, glossary: str
) -> None:
    pair = "source_lang=en&target_lang=zh"
    reply = client.delete(f"/v3/glossaries/{glossary}/dictionaries?{pair}")
    assert reply.status_code == 204
    assert client.get("/v2/glossaries").json() == {"glossaries": []}
    message = _message(client.get(f"/v2/glossaries/{glossary}"), 404)
    assert message == "the glossary has 0 dictionaries: ask /v3/glossaries"
    assert len(client.get("/v3/glossaries").json()["glossaries"]) == 1


@pytest.mark.parametrize(
    ("values", "status", "words"),
    [
        ({"glossary_id": "x"}, 404, "there is no such glossary"),
        ({"glossary_id": 5}, 400, "'glossary_id' not supported"),
        ({"glossary_id": "x", "source_lang": ""}, 400, "requires the source_lang parameter"),
        ({"glossary_ids": ["x"], "source_lang": ""}, 400, "requires the source_lang parameter"),
        ({"glossary_ids": "x,y"}, 404, "there is no such glossary"),
        ({"glossary_ids": [5]}, 400, "'glossary_ids' not supported"),
        ({"glossary_ids": {"a": 1}}, 400, "'glossary_ids' not supported"),
        ({"glossary_ids": ["x"] * 6}, 400, "it must be at most 5"),
        ({"glossary_ids": ["x"], "glossary_id": "x"}, 400, "it must be without glossary_id"),
    ],
)
def test_a_translation_with_no_such_glossary_is_refused(
    client: httpx.Client, values: dict[str, object], status: int, words: str
) -> None:
    assert words in _message(_translate(client, **values), status)


def test_an_id_that_no_file_could_have_is_a_404(client: httpx.Client) -> None:
    body = r'{"text": "a", "source_lang": "EN", "target_lang": "ZH", "glossary_id": "\ud800"}'
    kind = {"content-type": "application/json"}
    _message(client.post("/v2/translate", content=body, headers=kind), 404)


def test_terms_are_in_plain_text_and_in_markup(client: httpx.Client, glossary: str) -> None:
    (plain,) = _translate(client, glossary_id=glossary).json()["translations"]
    assert "Qīng 7" in plain["text"]
    page = "<p>The <b>cat</b> sees.</p>"
    options = {"text": page, "tag_handling": "html", "glossary_id": glossary}
    (marked,) = _translate(client, **options).json()["translations"]
    assert "Qīng 7" in marked["text"]
    assert "Qīng 7" not in _translate(client).json()["translations"][0]["text"]
