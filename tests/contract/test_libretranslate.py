"""LibreTranslate's contract, request by request, against a real server."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from model.documents.kinds import ENDINGS
from support.running_server import RunningServer

TEXT = "The cat sees the river."
FORM = "application/x-www-form-urlencoded"


@pytest.fixture(scope="module")
def client(server: RunningServer) -> Iterator[httpx.Client]:
    with server.client() as client:
        yield client


def _ok(reply: httpx.Response) -> dict[str, Any]:
    assert reply.status_code == 200, reply.text
    content: dict[str, Any] = reply.json()
    return content


def _error(reply: httpx.Response, status: int) -> dict[str, Any]:
    content: dict[str, Any] = reply.json()
    assert reply.status_code == status, reply.text
    assert set(content) == {"error", "code", "value", "limit"}
    return content


def _translate(client: httpx.Client, **values: object) -> httpx.Response:
    body = {"q": TEXT, "source": "en", "target": "zh"} | values
    return client.post("/translate", json={k: v for k, v in body.items() if v != "absent"})


def test_a_string_is_answered_with_a_string_and_nothing_else(client: httpx.Client) -> None:
    content = _ok(_translate(client))
    assert isinstance(content.pop("translatedText"), str)
    assert content in ({}, {"isTruncated": True})


def test_a_list_is_answered_with_a_list_in_order(client: httpx.Client) -> None:
    single = _ok(_translate(client))["translatedText"]
    texts = ["7.30", TEXT, "", "  \n"]
    assert _ok(_translate(client, q=texts))["translatedText"] == ["7.30", single, "", "  \n"]


@pytest.mark.parametrize(("num_texts", "priority"), [(8, "interactive"), (128, "bulk")])
def test_a_list_of_many_texts_waits_as_bulk(
    server: RunningServer, client: httpx.Client, num_texts: int, priority: str
) -> None:
    name = f"dragoman_segment_queue_seconds_count{{priority={priority}}}"
    before = server.metrics()[name]
    _ok(_translate(client, q=[TEXT] * num_texts))
    assert server.metrics()[name] == before + num_texts


def test_an_empty_list_is_an_empty_list(client: httpx.Client) -> None:
    assert _ok(_translate(client, q=[])) == {"translatedText": []}


def test_json_form_and_query_string_say_the_same(client: httpx.Client) -> None:
    values = {"q": TEXT, "source": "en", "target": "zh-Hans", "format": "text", "api_key": "k"}
    replies = [
        client.post("/translate", json=values),
        client.post("/translate", data=values),
        client.post("/translate", files={name: (None, value) for name, value in values.items()}),
        client.post("/translate", params=values),
        client.post("/translate", params={"q": "hidden"}, data=values),
    ]
    assert len({_ok(reply)["translatedText"] for reply in replies}) == 1


@pytest.mark.parametrize("target", ["zh", "zh-Hans", "ZH-HANS", "Zh"])
def test_chinese_has_its_aliases(client: httpx.Client, target: str) -> None:
    _ok(_translate(client, target=target))


def test_auto_says_which_language_each_text_is_in(client: httpx.Client) -> None:
    detected = {"confidence": 100, "language": "en"}
    english = _ok(_translate(client, source="auto"))
    assert english["detectedLanguage"] == detected
    assert english["translatedText"] == _ok(_translate(client))["translatedText"]
    batch = _ok(_translate(client, source="auto", q=["猫看见河。", TEXT, "7.30"]))
    assert batch["detectedLanguage"] == [
        {"confidence": 100, "language": "zh-Hans"},
        detected,
        {"confidence": 0, "language": "en"},
    ]
    assert batch["translatedText"] == ["猫看见河。", english["translatedText"], "7.30"]
    assert _ok(_translate(client, source="auto", q=[])) == {
        "translatedText": [],
        "detectedLanguage": [],
    }


@pytest.mark.parametrize("kind", ["data", "params"])
@pytest.mark.parametrize("name", ["source", "target", "format", "alternatives"])
def test_a_value_that_comes_twice_is_refused_by_name_and_texts_are_a_list(
    client: httpx.Client, kind: str, name: str
) -> None:
    values = {"q": ["7.30", "8"], "source": "en", "target": "zh"}
    reply = client.post("/translate", **{kind: values})  # type: ignore[arg-type]
    assert reply.json()["translatedText"] == ["7.30", "8"]
    twice = values | {name: ["en", "de"]}
    reply = client.post("/translate", **{kind: twice})  # type: ignore[arg-type]
    assert reply.status_code == 400
    assert name in reply.json()["error"]


@pytest.mark.parametrize(("source", "target"), [("en-US", "en"), ("EN", "en_GB"), ("zh", "zh-CN")])
def test_a_text_in_the_targets_language_stays_as_it_is(
    client: httpx.Client, source: str, target: str
) -> None:
    texts = [f" {TEXT}\n", "", "7.30"]
    assert _ok(_translate(client, source=source, target=target, q=texts)) == {
        "translatedText": texts
    }


@pytest.mark.parametrize("kind", ["json", "data", "params"])
def test_detect_names_the_loaded_languages_that_a_text_may_be_in(
    client: httpx.Client, kind: str
) -> None:
    reply = client.post("/detect", **{kind: {"q": "Hello", "api_key": "k"}})  # type: ignore[arg-type]
    assert (reply.status_code, reply.json()) == (200, [{"confidence": 100, "language": "en"}])


@pytest.mark.parametrize(
    ("q", "found"),
    [
        ("猫看见河。", [(100, "zh-Hans")]),
        ("  \n", [(0, "en")]),
        (["你好吗我很好", "Hello"], [(55, "zh-Hans"), (45, "en")]),
    ],
)
def test_detect_takes_a_list_as_one_text(
    client: httpx.Client, q: object, found: list[tuple[int, str]]
) -> None:
    content = client.post("/detect", json={"q": q}).json()
    assert [(one["confidence"], one["language"]) for one in content] == found


@pytest.mark.parametrize("values", [{}, {"q": ""}, {"q": []}, {"q": [""]}, {"q": None}])
def test_detect_needs_a_text_as_libretranslate_does(
    client: httpx.Client, values: dict[str, object]
) -> None:
    content = _error(client.post("/detect", json=values), 400)
    assert content["error"] == "Invalid request: missing q parameter"


def test_detect_has_the_limits_of_a_translation(client: httpx.Client) -> None:
    for q, limit in (("a" * 20_001, 20_000), (["a"] * 129, 128), (["a" * 20_000] * 6, 100_000)):
        assert _error(client.post("/detect", json={"q": q}), 413)["limit"] == limit
    assert _error(client.get("/detect"), 405)["code"] == "method_not_allowed"


@pytest.mark.parametrize("number", [3, "3"])
def test_alternatives_come_only_when_asked_for(client: httpx.Client, number: object) -> None:
    best = _ok(_translate(client))["translatedText"]
    content = _ok(_translate(client, alternatives=number))
    texts = content["alternatives"]
    assert 0 < len(texts) <= 3
    assert len({best, *texts}) == len(texts) + 1
    batch = _ok(_translate(client, alternatives=number, q=[TEXT, " "]))
    assert batch["alternatives"] == [texts, []]
    assert "alternatives" not in _ok(_translate(client, alternatives=0))


def test_more_alternatives_than_beams_are_refused(client: httpx.Client) -> None:
    content = _error(_translate(client, alternatives=10_000), 400)
    assert (content["value"], content["limit"]) == (10_000, 15)
    assert content["error"] == "Invalid request: alternatives parameter must be <= 15"
    content = _error(_translate(client, alternatives="many"), 400)
    assert content["error"] == "Invalid request: alternatives parameter is not a number"
    assert content["value"] == "many"
    content = _error(_translate(client, alternatives=1.5), 400)
    assert content["error"] == "Invalid request: alternatives parameter is not an integer"
    assert content["value"] == 1.5
    one, other = (_ok(_translate(client, alternatives=number)) for number in (1, 1.0))
    assert one == other


@pytest.mark.parametrize("name", ["q", "source", "target"])
def test_a_missing_parameter_is_named_as_libretranslate_does(
    client: httpx.Client, name: str
) -> None:
    content = _error(_translate(client, **{name: "absent"}), 400)
    assert content["error"] == f"Invalid request: missing {name} parameter"


@pytest.mark.parametrize(("name", "code"), [("target", "zz"), ("target", "zt"), ("source", "de")])
def test_a_language_that_is_not_loaded_is_named_as_libretranslate_does(
    client: httpx.Client, name: str, code: str
) -> None:
    assert _error(_translate(client, **{name: code}), 400)["error"] == f"{code} is not supported"


def test_the_other_direction_is_not_loaded(client: httpx.Client) -> None:
    content = _error(_translate(client, source="zh", target="en"), 400)
    assert content["error"] == (
        "English (en) is not available as a target language from Chinese (zh-Hans)"
    )


@pytest.mark.parametrize(
    "values",
    [
        {"q": 5},
        {"q": [5]},
        {"q": {"a": 1}},
        {"q": ["a", None]},
        {"source": 5},
        {"target": ["zh"]},
        {"format": 5},
        {"format": "pdf"},
        {"alternatives": 1.5},
        {"alternatives": "many"},
        {"alternatives": True},
        {"alternatives": -1},
        {"alternatives": [1]},
    ],
)
def test_a_wrong_value_is_a_400(client: httpx.Client, values: dict[str, object]) -> None:
    _error(_translate(client, **values), 400)


def test_an_unknown_format_is_named_as_libretranslate_does(client: httpx.Client) -> None:
    content = _error(_translate(client, format="pdf"), 400)
    assert (content["error"], content["value"]) == ("pdf format is not supported", "pdf")
    content = _error(_translate(client, format="ü" * 50), 400)
    assert content["error"] == "this format is not supported"


def test_unknown_fields_are_ignored_because_clients_send_them(client: httpx.Client) -> None:
    _ok(_translate(client, secret="s", formality="more"))


def test_line_breaks_and_spacing_come_back_byte_for_byte(client: httpx.Client) -> None:
    text = "\n\n  7.30\t\r\n — \u3000\n* 5\n"
    assert _ok(_translate(client, q=text))["translatedText"] == text


def test_a_sentence_that_is_too_long_is_cut_and_says_so(client: httpx.Client) -> None:
    content = _ok(_translate(client, q=["word " * 200, "7"]))
    assert content["isCut"] == [True, False]


def test_an_unpaired_surrogate_is_replaced(client: httpx.Client) -> None:
    body = rb'{"q": "7 \ud800 7", "source": "en", "target": "zh"}'
    reply = client.post("/translate", content=body, headers={"content-type": "application/json"})
    assert _ok(reply)["translatedText"] == "7 \ufffd 7"


def test_languages_have_names_and_targets(client: httpx.Client) -> None:
    languages = [
        {"code": "en", "name": "English", "targets": ["zh-Hans"]},
        {"code": "zh-Hans", "name": "Chinese", "targets": []},
    ]
    assert client.get("/languages").json() == languages
    assert client.request("GET", "/languages", content=b"api_key=k").json() == languages
    assert client.post("/languages", data={"api_key": "k"}).json() == languages


def test_a_wrong_method_is_a_405_that_names_the_right_one(client: httpx.Client) -> None:
    for method in ("GET", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"):
        reply = client.request(method, "/translate")
        assert reply.status_code == 405
        assert reply.headers["allow"] == "POST"
    assert _error(client.get("/translate"), 405)["code"] == "method_not_allowed"


def test_an_unknown_path_is_a_404(client: httpx.Client) -> None:
    assert _error(client.get("/nowhere"), 404)["code"] == "not_found"
    assert _error(client.post("/translate/"), 404)["code"] == "not_found"


def test_too_many_characters_are_a_413_that_quotes_nothing(client: httpx.Client) -> None:
    content = _error(_translate(client, q="a" * 100_000), 413)
    assert (content["code"], content["value"], content["limit"]) == ("too_long", 100_000, 20_000)
    assert "aaa" not in content["error"]
    assert _error(_translate(client, q=["a"] * 129), 413)["limit"] == 128
    assert _error(_translate(client, q=["a" * 20_000] * 6), 413)["limit"] == 100_000
    assert _error(_translate(client, q="a" * 2_000_000), 413)["limit"] == 1024 * 1024


def test_health_is_ok_and_says_nothing_else(client: httpx.Client) -> None:
    assert client.get("/health").json() == {"status": "ok"}
    assert client.post("/health").status_code == 405


def test_a_list_of_languages_may_be_asked_for_with_a_form_and_with_no_other_body(
    client: httpx.Client,
) -> None:
    for reply in (client.post("/languages"), client.post("/languages", json={})):
        assert _error(reply, 405)["code"] == "method_not_allowed"
        assert reply.headers["allow"] == "GET"


def test_the_document_is_where_libretranslate_has_it(client: httpx.Client) -> None:
    assert client.get("/spec").json() == client.get("/openapi.json").json()
    assert client.post("/spec").status_code == 405


@pytest.mark.parametrize("accepted", ["", "zh-CN,zh;q=0.9", "*, de, ZH;q=0.1", "en", "\xe9,;,"])
def test_a_page_is_told_what_it_needs(client: httpx.Client, accepted: str) -> None:
    headers = {"accept-language": accepted.encode("latin-1")}
    reply = client.get("/frontend/settings", headers=headers)
    assert (reply.status_code, reply.json()) == (
        200,
        {
            "charLimit": 20_000,
            "frontendTimeout": 500,
            "apiKeys": False,
            "keyRequired": False,
            "suggestions": True,
            "filesTranslation": True,
            "supportedFilesFormat": [f".{ending}" for ending in ENDINGS],
            "language": {
                "source": {"code": "auto", "name": "Auto Detect"},
                "target": {"code": "zh-Hans", "name": "Chinese"},
            },
        },
    )


@pytest.mark.parametrize("kind", ["json", "data"])
def test_a_suggestion_is_written_down(
    server: RunningServer, client: httpx.Client, kind: str
) -> None:
    values = {"q": "Hello\nthere", "s": f"你好 ({kind})", "source": "EN", "target": "zh"}
    reply = client.post("/suggest", **{kind: values})  # type: ignore[arg-type]
    assert (reply.status_code, reply.json()) == (200, {"success": True})
    lines = server.log.with_name("suggestions.jsonl").read_text("utf-8").splitlines()
    assert json.loads(lines[-1]) == values | {"source": "en", "target": "zh-Hans"}


@pytest.mark.parametrize("name", ["q", "s", "source", "target"])
def test_a_suggestion_lacks_nothing(client: httpx.Client, name: str) -> None:
    values = {"q": "Hello", "s": "你好", "source": "en", "target": "zh"} | {name: ""}
    content = _error(client.post("/suggest", json=values), 400)
    assert content["error"] == f"Invalid request: missing {name} parameter"
