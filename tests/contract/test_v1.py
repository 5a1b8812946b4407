"""Our own contract, request by request, against a real server."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from support.running_server import RunningServer

TEXT = "The cat sees the river."


@pytest.fixture(scope="module")
def client(server: RunningServer) -> Iterator[httpx.Client]:
    with server.client() as client:
        yield client


def _post(client: httpx.Client, **values: object) -> httpx.Response:
    return client.post("/v1/translate", json={"texts": TEXT, "target": "zh-Hans"} | values)


def _ok(client: httpx.Client, **values: object) -> dict[str, Any]:
    reply = _post(client, **values)
    assert reply.status_code == 200, reply.text
    content: dict[str, Any] = reply.json()
    return content


def _refused(client: httpx.Client, status: int = 400, **values: object) -> dict[str, Any]:
    reply = _post(client, **values)
    assert reply.status_code == status, reply.text
    content: dict[str, Any] = reply.json()
    assert set(content) == {"error", "code", "value", "limit"}
    return content


def test_a_reply_has_every_text_every_segment_and_the_usage(client: httpx.Client) -> None:
    content = _ok(client, texts=[f"{TEXT}\n7.30\n{TEXT}", " "], source="en")
    assert (content["source"], content["target"]) == ("en", "zh-Hans")
    first, second = content["translations"]
    assert [segment["is_verbatim"] for segment in first["segments"]] == [False, True, False]
    assert first["text"] == "\n".join(segment["text"] for segment in first["segments"])
    assert second["text"] == " "
    assert second["segments"] == []
    usage = content["usage"]
    assert (usage["num_texts"], usage["num_segments"]) == (2, 3)
    assert usage["num_characters"] == 2 * len(TEXT) + 7
    assert usage["num_source_tokens"] == 2 * first["segments"][0]["num_source_tokens"]
    assert "alternatives" not in first
    assert not {"score", "token_log_probs", "alignment"} & set(first["segments"][0])


def test_both_contracts_translate_alike(client: httpx.Client) -> None:
    libre = client.post("/translate", json={"q": TEXT, "source": "en", "target": "zh"}).json()
    assert _ok(client)["translations"][0]["text"] == libre["translatedText"]


@pytest.mark.parametrize(
    ("source", "target"), [("en-US", "zh"), ("EN", "zh-CN"), ("en_GB", "zh_Hans")]
)
def test_languages_are_read_as_people_write_them(
    client: httpx.Client, source: str, target: str
) -> None:
    content = _ok(client, source=source, target=target)
    assert (content["source"], content["target"]) == ("en", "zh-Hans")


def test_a_language_into_itself_stays_as_it_is(client: httpx.Client) -> None:
    content = _ok(client, texts=[TEXT, " "], source="en", target="en-GB", max_length=900)
    assert (content["source"], content["target"], content["models"]) == ("en", "en", [])
    first, second = content["translations"]
    assert (first["text"], second["text"]) == (TEXT, " ")
    assert [segment["is_verbatim"] for segment in first["segments"]] == [True]
    assert second["segments"] == []
    assert content["usage"]["num_source_tokens"] == 0


def test_scores_are_those_of_segments_and_of_their_tokens(client: httpx.Client) -> None:
    (segment,) = _ok(client, scores=True, length_penalty=1.0)["translations"][0]["segments"]
    log_probs = segment["token_log_probs"]
    assert len(log_probs) == segment["num_target_tokens"] + 1
    assert segment["score"] == pytest.approx(sum(log_probs) / len(log_probs), rel=1e-4)


def test_attention_is_a_row_of_shares_for_every_token(client: httpx.Client) -> None:
    (segment,) = _ok(client, attention=True)["translations"][0]["segments"]
    assert len(segment["attention"]) == segment["num_target_tokens"]
    assert {len(row) for row in segment["attention"]} == {segment["num_source_tokens"]}
    assert all(sum(row) == pytest.approx(1.0, abs=0.02) for row in segment["attention"])
    assert len(segment["target_spans"]) == segment["num_target_tokens"]
    assert "alignment" not in segment
    (plain,) = _ok(client)["translations"][0]["segments"]
    assert not {"attention", "target_spans"} & set(plain)
    body = {"texts": "a" * 2001, "source": "en", "target": "zh", "attention": True}
    reply = client.post("/v1/translate", json=body)
    assert (reply.status_code, reply.json()["limit"]) == (400, 2000)


def test_alignment_points_into_the_source(client: httpx.Client) -> None:
    (segment,) = _ok(client, alignment=True)["translations"][0]["segments"]
    assert len(segment["alignment"]) == segment["num_target_tokens"]
    assert all(0 <= index < segment["num_source_tokens"] for index in segment["alignment"])


def test_tokens_are_where_they_are_read_and_written(client: httpx.Client) -> None:
    content = _ok(client, texts=f"😀 {TEXT}", alignment=True)
    (segment,) = content["translations"][0]["segments"]
    places = {"source": segment["source_spans"], "text": segment["target_spans"]}
    assert len(places["source"]) == segment["num_source_tokens"]
    assert len(places["text"]) == segment["num_target_tokens"]
    for name, spans in places.items():
        shown = [segment[name][slice(*span)] for span in spans if span is not None]
        assert "".join(shown) == "".join(segment[name].split())
    assert places["source"][-1] is None
    assert "source_spans" not in _ok(client)["translations"][0]["segments"][0]


def test_marks_come_through_and_every_segment_says_what_was_checked(client: httpx.Client) -> None:
    text = "- The cat sees {name} 😀 at https://example.org/a?b=c\n`git push`"
    (translation,) = _ok(client, texts=text)["translations"]
    assert translation["text"].startswith("- ")
    assert translation["text"].endswith("\n`git push`")
    for mark in ("{name}", "😀", "https://example.org/a?b=c"):
        assert translation["text"].count(mark) == 1
    *_, last = translation["segments"]
    assert last["quality"] == {"checked": [], "failed": [], "num_tries": 0}
    checked = [segment["quality"]["checked"] for segment in translation["segments"]]
    names = ["marks", "numbers", "characters", "length", "loop", "copy", "end"]
    assert names in checked
    assert all(
        set(segment["quality"]["failed"]) <= set(names) for segment in translation["segments"]
    )


def test_alternatives_widen_the_beam_and_differ(client: httpx.Client) -> None:
    translation = _ok(client, beam_size=1, alternatives=3)["translations"][0]
    texts = [translation["text"], *translation["alternatives"]]
    assert len(texts) == len(set(texts)) > 1


def test_a_beam_of_one_is_greedy_and_may_differ_in_score_only_downwards(
    client: httpx.Client,
) -> None:
    def score(beam_size: int) -> float:
        content = _ok(client, beam_size=beam_size, scores=True, length_penalty=0.0, max_length=4)
        value: float = content["translations"][0]["segments"][0]["score"]
        return value

    assert score(1) <= score(16) + 1e-4


def test_max_length_caps_and_says_so(client: httpx.Client) -> None:
    (segment,) = _ok(client, max_length=3)["translations"][0]["segments"]
    assert segment["num_target_tokens"] <= 2
    assert segment["is_truncated"] is True


def test_a_sentence_that_is_too_long_is_cut_and_every_piece_says_so(client: httpx.Client) -> None:
    translation = _ok(client, texts="word " * 200)["translations"][0]
    assert translation["is_cut"] is True
    assert len(translation["segments"]) > 1
    assert all(segment["is_cut"] for segment in translation["segments"])


def _queued(server: RunningServer) -> tuple[float, float]:
    """Segments that have waited so far, by class."""
    metrics = server.metrics()
    name = "dragoman_segment_queue_seconds_count{priority="
    return metrics[f"{name}interactive}}"], metrics[f"{name}bulk}}"]


@pytest.mark.parametrize(
    ("num_texts", "values", "is_bulk"),
    [
        (1, {}, False),
        (8, {}, False),
        (8, {"priority": "interactive"}, False),
        (8, {"priority": None}, False),
        (128, {}, True),
        (128, {"priority": "interactive"}, True),
        (8, {"beam_size": 16}, False),
        (64, {"beam_size": 1}, False),
        (64, {"beam_size": 16}, True),
        (1, {"priority": "bulk"}, True),
    ],
)
def test_the_priority_goes_by_the_work_and_a_claim_can_only_lower_it(
    server: RunningServer,
    client: httpx.Client,
    num_texts: int,
    values: dict[str, object],
    is_bulk: bool,
) -> None:
    interactive, bulk = _queued(server)
    _ok(client, texts=[TEXT] * num_texts, **values)
    expected = (0, num_texts) if is_bulk else (num_texts, 0)
    assert _queued(server) == (interactive + expected[0], bulk + expected[1])


def test_a_deadline_that_passes_is_a_504_with_its_seconds(client: httpx.Client) -> None:
    content = _refused(client, 504, texts=[TEXT] * 50, timeout_seconds=0.001)
    assert (content["code"], content["limit"]) == ("deadline_exceeded", 0.001)


@pytest.mark.parametrize(
    ("values", "message", "value", "limit"),
    [
        ({"beam_size": 17}, "beam_size is 17; it must be at most 16", 17, 16),
        ({"beam_size": 0}, "beam_size is 0; it must be at least 1", 0, 1),
        ({"beam_size": "4"}, "beam_size must be an integer", 1, "an integer"),
        ({"beam_size": 4.5}, "beam_size must be an integer", 4.5, "an integer"),
        ({"beam_size": True}, "beam_size must be an integer", True, "an integer"),
        ({"alternatives": 16}, "alternatives is 16; it must be at most 15", 16, 15),
        ({"alternatives": -1}, "alternatives is -1; it must be at least 0", -1, 0),
        ({"length_penalty": 11}, "length_penalty is 11; it must be at most 10.0", 11, 10.0),
        ({"max_length": 65}, "max_length is 65; it must be at most 64", 65, 64),
        ({"timeout_seconds": 0}, "timeout_seconds is 0; it must be above 0.0", 0, 0.0),
        (
            {"timeout_seconds": 300.00001},
            "timeout_seconds is 300.00001; it must be at most 300",
            300.00001,
            300,
        ),
        (
            {"max_length": 12_345_678},
            "max_length is 12345678; it must be at most 64",
            12_345_678,
            64,
        ),
        ({"timeout_seconds": 301}, "timeout_seconds is 301; it must be at most 300", 301, 300),
        ({"scores": "yes"}, "scores must be true or false", 3, "true or false"),
        (
            {"priority": "urgent"},
            "priority is urgent; it must be interactive or bulk",
            "urgent",
            "interactive or bulk",
        ),
        ({"priority": ""}, "priority must be interactive or bulk", "", "interactive or bulk"),
        ({"priority": 5}, "priority must be interactive or bulk", 5, "interactive or bulk"),
        (
            {"priority": "x" * 99},
            "priority must be interactive or bulk",
            99,
            "interactive or bulk",
        ),
        (
            {"priority": ["bulk"]},
            "priority must be interactive or bulk",
            None,
            "interactive or bulk",
        ),
        ({"target": ""}, "target has 0 characters; it must have at least 1", 0, 1),
        ({"target": "x" * 99}, "target has 99 characters; it must have at most 64", 99, 64),
        ({"target": 5}, "target must be a string", 5, "a string"),
        ({"target": "pb"}, "pb is not supported", "pb", "en, zh-Hans"),
        ({"beam": 5}, "field beam is unknown", "beam", None),
        ({"слово": 5}, "a field is unknown", 5, None),
        ({"texts": 5}, "texts must be a string or a list of strings", None, "string or list"),
        (
            {"texts": [5] * 128},
            "texts must be a string or a list of strings",
            None,
            "string or list",
        ),
        (
            {"texts": ["a", 5]},
            "texts must be a string or a list of strings",
            None,
            "string or list",
        ),
    ],
)
def test_a_wrong_value_is_a_400_with_value_and_limit(
    client: httpx.Client, values: dict[str, object], message: str, value: object, limit: object
) -> None:
    content = _refused(client, **values)
    assert content["error"] == message
    assert (content["value"], content["limit"]) == (value, limit)


@pytest.mark.parametrize(("path", "name"), [("/v1/translate", "texts"), ("/translate", "q")])
def test_a_list_that_is_too_long_is_a_413_whatever_is_in_it(
    client: httpx.Client, path: str, name: str
) -> None:
    wish = {name: [5] * 400_000, "source": "en", "target": "zh-Hans"}
    reply = client.post(path, json=wish)
    assert reply.status_code == 413
    assert reply.json()["error"] == "the request has 400000 texts; the limit is 128"


def test_a_missing_field_is_named(client: httpx.Client) -> None:
    reply = client.post("/v1/translate", json={"texts": TEXT})
    assert (reply.status_code, reply.json()["error"]) == (400, "target is missing")


def test_a_field_of_an_entry_that_is_like_a_text_is_not_repeated(client: httpx.Client) -> None:
    entry = {"source": "a", "target": "b", "a text " * 7: 1}
    values = {"texts": "a", "source": "en", "target": "zh", "glossary": [entry]}
    reply = client.post("/v1/translate", json=values)
    assert reply.status_code == 400
    assert reply.json()["error"] == "glossary[0].(a field of 49 characters) is unknown"


def test_an_unknown_field_that_is_no_text_is_not_repeated(client: httpx.Client) -> None:
    body = rb'{"texts": "a", "target": "zh-Hans", "\ud800": 1}'
    reply = client.post("/v1/translate", content=body, headers={"content-type": "application/json"})
    assert (reply.status_code, reply.json()["error"]) == (400, "a field is unknown")


def test_infinity_by_overflow_is_a_400(client: httpx.Client) -> None:
    body = b'{"texts": "a", "target": "zh-Hans", "length_penalty": 1e999}'
    reply = client.post("/v1/translate", content=body, headers={"content-type": "application/json"})
    assert reply.status_code == 400
    assert reply.json()["value"] == "inf"


def test_only_json_is_read(client: httpx.Client) -> None:
    reply = client.post("/v1/translate", data={"texts": TEXT, "target": "zh-Hans"})
    assert reply.status_code == 400
    assert "application/json" in reply.json()["error"]


def test_too_much_text_is_a_413(client: httpx.Client) -> None:
    assert _refused(client, 413, texts=["a"] * 129)["limit"] == 128


def test_a_request_that_can_never_fit_the_queue_is_a_413(client: httpx.Client) -> None:
    content = _refused(client, 413, texts=["A cat. " * 13] * 128)
    assert content["value"] > content["limit"] == 1152
