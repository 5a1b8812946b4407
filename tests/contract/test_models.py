"""Several models in one server, request by request: by name, by preference, through a pivot."""

from collections.abc import Iterator
from hashlib import sha256
from typing import Any

import httpx
import pytest

from service.access.keys import ApiKey, new_key
from support.fuzzing import Fuzzer
from support.running_server import RunningServer, running_server
from support.several_models import write_several

TEXT = "The cat sees the river. My friend waits."
ADMIN, ADMIN_DIGEST = new_key()


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("several")
    key = ApiKey(name="root", sha256=sha256(ADMIN.encode()).digest(), is_admin=True)
    file = folder / "keys.toml"
    file.write_text(key.line())
    environment = {
        "DRAGOMAN_API_KEYS_FILE": str(file),
        "DRAGOMAN_KEY_REQUIRED": "false",
        "DRAGOMAN_PREFERRED": "gone, both",
        "DRAGOMAN_DETECTION": "compact",
    }
    checkpoints = write_several(folder / "checkpoints")
    with running_server(checkpoints, folder / "log.jsonl", **environment) as server:
        yield server


@pytest.fixture(scope="module")
def client(several: RunningServer) -> Iterator[httpx.Client]:
    with several.client() as client:
        yield client


def _ok(client: httpx.Client, **values: object) -> dict[str, Any]:
    reply = client.post("/v1/translate", json={"texts": TEXT} | values)
    assert reply.status_code == 200, reply.text
    content: dict[str, Any] = reply.json()
    return content


def _refused(client: httpx.Client, **values: object) -> dict[str, Any]:
    reply = client.post("/v1/translate", json={"texts": TEXT} | values)
    assert reply.status_code == 400, reply.text
    content: dict[str, Any] = reply.json()
    return content


GERMAN = "Guten Morgen, wie geht es Ihnen heute?"


@pytest.mark.parametrize(
    ("path", "values", "texts"),
    [
        ("/translate", {"source": "auto", "target": "zh", "format": "html"}, "q"),
        ("/v1/translate", {"target": "zh", "format": "html"}, "texts"),
        ("/v1/translate/stream", {"target": "zh", "format": "html"}, "texts"),
        ("/v2/translate", {"target_lang": "ZH", "tag_handling": "xml"}, "text"),
    ],
)
def test_a_page_without_a_text_takes_nothing_from_its_neighbours(
    client: httpx.Client, path: str, values: dict[str, str], texts: str
) -> None:
    pages = ["<x/>", f"<p>{GERMAN}</p>"]
    both, other = (
        client.post(path, json={**values, texts: pages if is_first else pages[::-1]})
        for is_first in (True, False)
    )
    assert both.status_code == other.status_code == 200, both.text
    assert "german" in both.text or path in ("/translate", "/v2/translate")


def test_who_is_preferred_translates_and_the_reply_says_who_did(client: httpx.Client) -> None:
    chosen = _ok(client, source="en", target="zh-Hans")
    assert chosen["models"] == ["both"]
    assert "pivot" not in chosen
    assert "pivot" not in chosen["translations"][0]["segments"][0]
    named = [_ok(client, source="en", target="zh-Hans", model=name) for name in ("both", "small")]
    assert [one["models"] for one in named] == [["both"], ["small"]]
    assert named[0]["translations"] == chosen["translations"] != named[1]["translations"]


@pytest.mark.parametrize(
    ("values", "code", "value", "limit"),
    [
        ({"model": "none"}, "unknown_model", "none", "both, german, small"),
        ({"model": "x" * 900}, "unknown_model", 900, "both, german, small"),
        ({"model": "x" * 1001}, "invalid_request", 1001, 1000),
        ({"model": ""}, "invalid_request", 0, 1),
        ({"model": 5}, "invalid_request", 5, "a string"),
        ({"model": ["both"]}, "invalid_request", None, "a string"),
        ({"model": "german"}, "unknown_model", "german", "both, small"),
        ({"model": "german", "source": "auto"}, "unknown_model", "german", "both, small"),
        (
            {"model": "small", "source": "zh-Hans", "target": "en"},
            "unknown_model",
            "small",
            "both",
        ),
    ],
)
def test_a_model_that_cannot_translate_this_is_refused_with_value_and_limit(
    client: httpx.Client, values: dict[str, object], code: str, value: object, limit: object
) -> None:
    content = _refused(client, **({"source": "en", "target": "zh-Hans"} | values))
    assert (content["code"], content["value"], content["limit"]) == (code, value, limit)


def test_a_pivot_is_told_segment_by_segment_and_is_what_the_hops_make(
    client: httpx.Client,
) -> None:
    options = {"scores": True, "alignment": True}
    content = _ok(client, texts=f"{TEXT}\n7.30", source="de", target="zh-Hans", **options)
    assert (content["source"], content["target"]) == ("de", "zh-Hans")
    assert (content["models"], content["pivot"]) == (["german", "both"], "en")
    segments = content["translations"][0]["segments"]
    assert [segment["is_verbatim"] for segment in segments] == [False, False, True]
    assert "pivot" not in segments[2]
    assert segments[2]["text"] == "7.30"
    into = _ok(client, source="de", target="en", **options)["translations"][0]["segments"]
    for segment, first in zip(segments[:2], into, strict=True):
        assert segment["pivot"] == {
            name: first[name] for name in ("text", "score", "token_log_probs")
        }
        alone = _ok(client, texts=first["text"], source="en", target="zh-Hans", **options)
        assert segment["text"] == alone["translations"][0]["text"].strip()
        # What an untrained network writes may loop, and is cut then.
        parts = [part for part in alone["translations"][0]["segments"] if not part["is_verbatim"]]
        log_probs = [value for part in parts for value in part["token_log_probs"]]
        assert segment["token_log_probs"] == log_probs
        assert segment["score"] == pytest.approx(sum(log_probs) / len(log_probs))
        assert len(segment["alignment"]) == segment["num_target_tokens"]
        assert all(0 <= index < segment["num_source_tokens"] for index in segment["alignment"])
        assert len(segment["source_spans"]) == segment["num_source_tokens"]
        assert len(segment["target_spans"]) == segment["num_target_tokens"]


def test_both_contracts_go_through_the_pivot(client: httpx.Client) -> None:
    query = {"q": TEXT, "source": "de", "target": "zh"}
    libre = client.post("/translate", json=query).json()["translatedText"]
    assert libre == _ok(client, source="de", target="zh-Hans")["translations"][0]["text"]


def test_languages_list_what_a_pivot_reaches(client: httpx.Client) -> None:
    targets = {one["code"]: one["targets"] for one in client.get("/languages").json()}
    assert targets == {"en": ["zh-Hans"], "zh-Hans": ["en"], "de": ["en", "zh-Hans"]}


GERMAN = "Der Hund sieht den Fluss, und meine Freundin wartet auf einen Brief."


def test_auto_goes_through_the_pivot_and_each_text_its_own_way(client: httpx.Client) -> None:
    chinese = "我的朋友等待一封信。"
    content = _ok(client, texts=[GERMAN, TEXT, chinese], target="zh")
    assert (content["source"], content["target"], content["pivot"]) == (None, "zh-Hans", "en")
    assert content["models"] == ["german", "both"]
    translations = content["translations"]
    assert [one["detected"]["language"] for one in translations] == ["de", "en", "zh-Hans"]
    assert all(one["detected"]["confidence"] > 50 for one in translations)
    assert [one["models"] for one in translations] == [["german", "both"], ["both"], []]
    german = _ok(client, texts=GERMAN, source="de", target="zh-Hans")["translations"][0]
    english = _ok(client, source="en", target="zh-Hans")["translations"][0]
    for auto, named in zip(translations, (german, english), strict=False):
        assert auto["segments"] == named["segments"]
        assert "detected" not in named
    assert translations[2]["text"] == chinese
    assert [one["is_verbatim"] for one in translations[2]["segments"]] == [True]
    assert content["usage"]["num_texts"] == 3


def test_auto_of_one_language_is_told_as_if_it_had_been_named(client: httpx.Client) -> None:
    named = _ok(client, texts=GERMAN, source="de_DE", target="zh-Hans")
    found = _ok(client, texts=GERMAN, target="zh-Hans")
    for name in ("source", "target", "models", "pivot", "usage"):
        assert found[name] == named[name]


def test_a_batch_of_several_languages_has_labels_of_its_own(
    client: httpx.Client, several: RunningServer
) -> None:
    _ok(client, texts=[GERMAN, TEXT], target="zh-Hans")
    _ok(client, texts=TEXT, source="en", target="en")
    metrics = several.metrics()
    for pair in ("several", "none"):
        labels = f"{{checkpoint={pair},pair={pair},route=/v1/translate,status=200}}"
        assert metrics[f"dragoman_requests_total{labels}"] >= 1


def test_a_named_model_goes_straight(client: httpx.Client) -> None:
    content = _refused(client, source="de", target="zh-Hans", model="both")
    assert content["code"] == "unknown_model"
    found = _ok(client, texts=GERMAN, target="zh-Hans", model="both")
    assert (found["source"], found["models"]) == ("en", ["both"])


def test_a_pivot_has_labels_and_each_hop_its_own(
    client: httpx.Client, several: RunningServer
) -> None:
    _ok(client, source="de", target="zh-Hans")
    metrics = several.metrics()
    labels = "{checkpoint=pivot,pair=de>zh-Hans,route=/v1/translate,status=200}"
    assert metrics[f"dragoman_requests_total{labels}"] >= 1
    for pair in ("{checkpoint=german,pair=de>en}", "{checkpoint=both,pair=en>zh-Hans}"):
        assert metrics[f"dragoman_finished_segments_total{pair}"] >= 2


def test_models_are_listed_with_what_they_translate(client: httpx.Client) -> None:
    both, german, _ = client.get("/v1/models").json()["models"]
    assert (both["name"], both["state"], both["licence"]) == ("both", "loaded", "Apache-2.0")
    assert both["pairs"] == [
        {"source": "en", "target": "zh-Hans"},
        {"source": "zh-Hans", "target": "en"},
    ]
    assert both["compute_type"] in ("int8", "float32")
    assert both["num_weight_bytes"] > 0
    assert (german["sources"], german["targets"], german["num_pairs"]) == (["de"], ["en"], 1)


@pytest.mark.parametrize("what", ["load", "unload"])
def test_only_an_administrator_changes_what_is_loaded(client: httpx.Client, what: str) -> None:
    path = f"/v1/models/small/{what}"
    assert client.post(path).status_code == 401
    assert client.post(path, headers={"authorization": "Bearer no"}).status_code == 403
    assert client.get(path).status_code == 405


def test_an_administrator_unloads_and_loads_by_name(
    client: httpx.Client, several: RunningServer
) -> None:
    headers = {"authorization": f"Bearer {ADMIN}"}
    missing = client.post("/v1/models/a%2Fb/unload", headers=headers)
    assert (missing.status_code, missing.json()["value"]) == (404, "a/b")
    reply = client.post("/v1/models/german/unload", headers=headers)
    assert (reply.status_code, reply.json()["state"]) == (200, "unloaded")
    assert _refused(client, source="de", target="en")["code"] == "unsupported_language"
    again = client.post("/v1/models/german/unload", headers=headers)
    assert (again.status_code, again.json()["code"]) == (409, "already_unloaded")
    reply = client.post("/v1/models/german/load", headers=headers)
    assert (reply.status_code, reply.json()["state"]) == (200, "loaded")
    assert _ok(client, source="de", target="en")["models"] == ["german"]
    labels = "{checkpoint=none,pair=none,route=/v1/models/{name}/load,status=200}"
    assert several.metrics()[f"dragoman_requests_total{labels}"] == 1


def test_answers_keep_to_the_document(several: RunningServer) -> None:
    fuzzer = Fuzzer(several.url)
    for values in ({"model": "both"}, {"source": "de"}):
        reply = httpx.post(
            f"{several.url}/v1/translate",
            json={"texts": "A cat.", "source": "en", "target": "zh-Hans", "scores": True} | values,
            trust_env=False,
        )
        fuzzer.schema["/v1/translate"]["POST"].validate_response(reply)
    reply = httpx.get(f"{several.url}/v1/models", trust_env=False)
    fuzzer.schema["/v1/models"]["GET"].validate_response(reply)
