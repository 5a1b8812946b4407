"""DeepL's contract, request by request, against a real server."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from support.markup_trees import tree_of
from support.running_server import RunningServer

TEXT = "The cat sees the river."
JSON_TYPE = {"content-type": "application/json"}
KEY = {"authorization": "DeepL-Auth-Key a-key"}


@pytest.fixture(scope="module")
def client(server: RunningServer) -> Iterator[httpx.Client]:
    with server.client() as client:
        client.headers.update(KEY)
        yield client


@pytest.fixture(scope="module")
def expected(server: RunningServer) -> str:
    with server.client() as client:
        reply = client.post("/translate", json={"q": TEXT, "source": "en", "target": "zh"})
    text: str = reply.json()["translatedText"]
    return text


def _translate(client: httpx.Client, **values: object) -> httpx.Response:
    body = {"text": [TEXT], "target_lang": "ZH-HANS"} | values
    return client.post("/v2/translate", json={k: v for k, v in body.items() if v != "absent"})


def _translations(reply: httpx.Response) -> list[dict[str, Any]]:
    assert reply.status_code == 200, reply.text
    content = reply.json()
    assert set(content) == {"translations"}
    translations: list[dict[str, Any]] = content["translations"]
    return translations


def _message(reply: httpx.Response, status: int) -> str:
    assert reply.status_code == status, reply.text
    content = reply.json()
    assert set(content) == {"message"}
    return str(content["message"])


def test_texts_are_translated_in_order_and_nothing_else_is_said(
    client: httpx.Client, expected: str
) -> None:
    assert _translations(_translate(client, text=[TEXT, "7.30", ""])) == [
        {"detected_source_language": "EN", "text": expected},
        {"detected_source_language": "EN", "text": "7.30"},
        {"detected_source_language": "EN", "text": ""},
    ]


def test_json_and_forms_say_the_same(client: httpx.Client) -> None:
    values = {"text": [TEXT, "7"], "target_lang": "zh", "source_lang": "en", "context": "Animals."}
    replies = [
        client.post("/v2/translate", json=values),
        client.post("/v2/translate", data=values),
        client.post("/v2/translate", params=values),
    ]
    one, *others = map(_translations, replies)
    assert others == [one, one]
    single = client.post("/v2/translate", data=values | {"text": TEXT})
    assert _translations(single) == one[:1]


@pytest.mark.parametrize("target", ["ZH", "zh-hans", "ZH-HANS", "zh-CN"])
@pytest.mark.parametrize("source", ["EN", "en", "en-GB", ""])
def test_languages_are_read_without_regard_to_case_or_region(
    client: httpx.Client, expected: str, source: str, target: str
) -> None:
    [translation] = _translations(_translate(client, source_lang=source, target_lang=target))
    assert translation == {"detected_source_language": "EN", "text": expected}


def test_the_language_of_each_text_is_detected(client: httpx.Client, expected: str) -> None:
    texts = ["猫看见河。", TEXT]
    found = _translations(_translate(client, text=texts))
    assert [one["detected_source_language"] for one in found] == ["ZH", "EN"]
    assert [one["text"] for one in found] == [texts[0], expected]


@pytest.mark.parametrize("flag", [True, 1, "1", "true"])
def test_billed_characters_are_those_of_the_source(client: httpx.Client, flag: object) -> None:
    found = _translations(_translate(client, text=[TEXT, "猫"], show_billed_characters=flag))
    assert [one["billed_characters"] for one in found] == [len(TEXT), 1]


@pytest.mark.parametrize(
    ("asked", "used"),
    [
        ("quality_optimized", "quality_optimized"),
        ("prefer_quality_optimized", "quality_optimized"),
        ("latency_optimized", "latency_optimized"),
    ],
)
def test_the_type_of_model_is_told_where_it_was_asked_for(
    client: httpx.Client, asked: str, used: str
) -> None:
    [translation] = _translations(_translate(client, model_type=asked))
    assert translation["model_type_used"] == used


def test_low_latency_is_a_greedy_search(client: httpx.Client) -> None:
    greedy = client.post(
        "/v1/translate", json={"texts": TEXT, "source": "en", "target": "zh", "beam_size": 1}
    )
    [translation] = _translations(_translate(client, model_type="latency_optimized"))
    assert translation["text"] == greedy.json()["translations"][0]["text"]


@pytest.mark.parametrize(
    "values",
    [
        {"formality": "default"},
        {"formality": "prefer_more"},
        {"formality": "Prefer_Less"},
        {"split_sentences": "0"},
        {"split_sentences": 1},
        {"split_sentences": "nonewlines"},
        {"preserve_formatting": True},
        {"preserve_formatting": "0"},
        {"context": "Animals."},
        {"tag_handling": "", "ignore_tags": ["x"], "glossary_id": None, "custom_instructions": []},
        {"debug": "1", "enable_beta_languages": True},
    ],
)
def test_what_changes_nothing_is_taken(
    client: httpx.Client, expected: str, values: dict[str, object]
) -> None:
    [translation] = _translations(_translate(client, **values))
    assert translation["text"] == expected


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"text": "absent"}, "Parameter 'text' not specified."),
        ({"text": []}, "Parameter 'text' not specified."),
        ({"text": [7]}, "Value for 'text' not supported"),
        ({"text": {"a": 1}}, "Value for 'text' not supported"),
        ({"target_lang": "absent"}, "Parameter 'target_lang' not specified."),
        (
            {"target_lang": "XX"},
            "Value for 'target_lang' not supported: XX; it must be ZH, ZH-HANS",
        ),
        ({"target_lang": "not a code"}, "Value for 'target_lang' not supported: not a code"),
        ({"target_lang": "ZH-HANT"}, "Value for 'target_lang' not supported: ZH-HANT"),
        ({"target_lang": ["ZH"]}, "Value for 'target_lang' not supported"),
        ({"source_lang": "DE"}, "Value for 'source_lang' not supported: DE; it must be EN"),
        ({"split_sentences": 2}, "Value for 'split_sentences' not supported: 2; it must be 0"),
        ({"split_sentences": True}, "Value for 'split_sentences' not supported: true; it must"),
        ({"formality": "x" * 50}, "Value for 'formality' not supported; it must be default"),
        ({"source_lang": "ZH", "target_lang": "EN-GB"}, "not available as a target language"),
        ({"formality": "more"}, "Target language does not support formality"),
        ({"formality": "less"}, "Target language does not support formality"),
        ({"formality": "rude"}, "Value for 'formality' not supported: rude"),
        ({"split_sentences": "2"}, "Value for 'split_sentences' not supported: 2"),
        ({"preserve_formatting": "maybe"}, "Value for 'preserve_formatting' not supported"),
        ({"show_billed_characters": [1]}, "Value for 'show_billed_characters' not supported"),
        ({"model_type": "best"}, "Value for 'model_type' not supported: best"),
        ({"context": 7}, "Value for 'context' not supported: 7; it must be string"),
        (
            {"tag_handling": "md"},
            "Value for 'tag_handling' not supported: md; it must be html, xml",
        ),
        (
            {"ignore_tags": [5]},
            "Value for 'ignore_tags' not supported; it must be at most 100 strings",
        ),
        ({"style_id": "some-id"}, "this server has no style rules"),
        ({"custom_instructions": ["Be kind."]}, "no model of this server takes instructions"),
    ],
)
def test_what_cannot_be_done_is_refused_in_deepls_words(
    client: httpx.Client, values: dict[str, object], words: str
) -> None:
    assert words in _message(_translate(client, **values), 400)


def test_too_much_is_a_413_that_quotes_nothing(client: httpx.Client) -> None:
    assert "51 texts; the limit is 50" in _message(_translate(client, text=["a"] * 51), 413)
    message = _message(_translate(client, text=["a" * 20_001]), 413)
    assert "20001" in message
    assert "aaa" not in message
    assert len(_translations(_translate(client, text=["7"] * 50))) == 50


def test_a_body_that_cannot_be_read_is_a_400(client: httpx.Client) -> None:
    kind = {"content-type": "application/json"}
    for content in (b"", b"[]", b'{"text": ["a"', b"\xff"):
        _message(client.post("/v2/translate", content=content, headers=kind), 400)


def test_every_answer_has_a_trace_id(client: httpx.Client) -> None:
    for reply in (_translate(client), _translate(client, text="absent"), client.get("/v2/usage")):
        assert reply.headers["x-trace-id"] == reply.headers["x-request-id"]


def test_a_trace_id_comes_back_wherever_the_path_leads(client: httpx.Client) -> None:
    asked = (("GET", "/v2/usage", 200), ("GET", "/v2/none", 404), ("GET", "/v2/translate", 405))
    for method, path, status in (*asked, ("POST", "/v2/translate", 400)):
        reply = client.request(method, path, headers={"x-trace-id": "trace-7"})
        assert reply.status_code == status
        assert reply.headers["x-trace-id"] == reply.headers["x-request-id"] == "trace-7"
        both = {"x-trace-id": "trace-7", "x-request-id": "request-7"}
        reply = client.request(method, path, headers=both)
        assert {name: reply.headers[name] for name in both} == both
        for given in ("a b", "x" * 65):
            reply = client.request(method, path, headers={"x-trace-id": given})
            assert reply.headers["x-trace-id"] == reply.headers["x-request-id"] != given
    assert "x-trace-id" not in client.get("/livez", headers={"x-trace-id": "trace-7"}).headers


def test_languages_are_listed_as_sources_and_targets(client: httpx.Client) -> None:
    sources = [{"language": "EN", "name": "English"}]
    targets = [
        {"language": "ZH", "name": "Chinese", "supports_formality": False},
        {"language": "ZH-HANS", "name": "Chinese (simplified)", "supports_formality": False},
    ]
    kind = {"type": "target"}
    for reply in (
        client.get("/v2/languages"),
        client.get("/v2/languages", params={"type": "source"}),
        client.post("/v2/languages"),
    ):
        assert (reply.status_code, reply.json()) == (200, sources)
    for reply in (
        client.get("/v2/languages", params=kind),
        client.request("GET", "/v2/languages", data=kind),
        client.post("/v2/languages", json=kind),
        client.get("/v2/languages", params=kind, headers=JSON_TYPE),
        client.request("GET", "/v2/languages", params=kind, json={}),
        client.request("GET", "/v2/languages", params={"type": "source"}, json=kind),
    ):
        assert (reply.status_code, reply.json()) == (200, targets)
    assert "'type'" in _message(client.get("/v2/languages", params={"type": "x"}), 400)


def test_version_3_says_what_a_language_can_be_used_for(client: httpx.Client) -> None:
    found = client.get("/v3/languages", params={"resource": "translate_text"}).json()
    usable = [(one["lang"], one["usable_as_source"], one["usable_as_target"]) for one in found]
    assert usable == [("en", True, False), ("zh", False, True), ("zh-Hans", False, True)]
    assert [one["features"] for one in found] == [{}] * 3
    for resource in ("glossary", "translate_document"):
        assert client.get("/v3/languages", params={"resource": resource}).json() == found
    assert client.get("/v3/languages", params={"resource": "write"}).json() == []
    assert "resource" in _message(client.get("/v3/languages"), 400)


def test_usage_grows_by_what_was_translated(client: httpx.Client) -> None:
    before = client.get("/v2/usage").json()
    _translations(_translate(client, text=[TEXT, "7"]))
    _message(_translate(client, text=["a" * 20_001]), 413)
    after = client.post("/v2/usage", headers=JSON_TYPE).json()
    assert after["character_count"] == before["character_count"] + len(TEXT) + 1
    assert after["character_limit"] == before["character_limit"] == 1_000_000_000_000


@pytest.mark.parametrize("kind", ["html", "xml"])
def test_tags_come_back_around_what_they_were_around(client: httpx.Client, kind: str) -> None:
    text = '<p a="b">The <b>cat</b> sees <x>the river</x>. &lt;i&gt;</p>'
    options = {"tag_handling": kind, "ignore_tags": "x,y", "show_billed_characters": True}
    (found,) = _translations(_translate(client, text=text, **options))
    assert tree_of(found["text"]) == tree_of(text)
    assert "<x>the river</x>" in found["text"]
    assert "&lt;" in found["text"]
    assert found["billed_characters"] < len(text)
    form = {"text": text, "target_lang": "ZH", "tag_handling": kind, "ignore_tags": "x"}
    (formed,) = _translations(client.post("/v2/translate", data=form))
    assert formed["text"] == found["text"]


def test_the_outline_of_xml_may_be_said_by_name(client: httpx.Client) -> None:
    text = "<d><t>The cat sees</t><t>the river.</t></d>"
    one, other = (
        _translations(_translate(client, text=text, tag_handling="xml", **options))[0]["text"]
        for options in ({}, {"outline_detection": False, "splitting_tags": ["t"]})
    )
    assert one == other
    found = _translate(client, text=text, tag_handling="xml", outline_detection="0")
    assert tree_of(_translations(found)[0]["text"]) == tree_of(text)


def test_xml_that_is_none_is_refused_in_deepls_words(client: httpx.Client) -> None:
    message = _message(_translate(client, text="<a>The <b>cat</a>", tag_handling="xml"), 400)
    assert message.startswith("Tag handling parsing failed, please check input")


def test_what_is_not_there_is_a_404(client: httpx.Client) -> None:
    for path in ("/v2/write/rephrase", "/v3/style_rules"):
        _message(client.post(path, json={}), 404)
