"""Sentence by sentence, against a real server; the oracle is the contract that answers at once."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from support.running_server import RunningServer

TEXT = "The cat sees the river."
MARKED = "Look at {name} 😀 and https://example.org/a, then go."
TEXTS = [f"{TEXT}\n7.30\n{TEXT} {MARKED}", " ", f"a{'b' * 600} {TEXT}"]

Events = list[tuple[str, dict[str, Any]]]


@pytest.fixture(scope="module")
def client(server: RunningServer) -> Iterator[httpx.Client]:
    with server.client() as client:
        yield client


def _body(**values: object) -> dict[str, object]:
    return {"texts": TEXTS, "source": "en", "target": "zh-Hans"} | values


def _events(client: httpx.Client, **values: object) -> Events:
    reply = client.post("/v1/translate/stream", json=_body(**values))
    assert reply.status_code == 200, reply.text
    assert reply.headers["content-type"].startswith("text/event-stream")
    *blocks, rest = reply.text.split("\n\n")
    assert rest == ""
    pairs = (block.removeprefix("event: ").split("\ndata: ") for block in blocks)
    return [(name, json.loads(data)) for name, data in pairs]


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"beam_size": 1},
        {"alternatives": 2, "scores": True, "alignment": True, "beam_size": 4},
        {"max_length": 3},
        {"priority": "bulk"},
        {"temperature": 0.8, "seed": 7, "alternatives": 1},
        {"glossary": [{"source": "river", "target": "猫"}], "confidence": True},
        {"texts": [TEXT, TEXT], "target_prefix": "猫", "diversity": 0.5, "alternatives": 1},
        {"texts": "<p>The cat <b>sees</b> the river.</p>", "format": "html"},
        {"source": "auto", "texts": [*TEXTS, "猫看见河。", "7.30"]},
        {"texts": TEXT},
        {"texts": []},
        {"texts": " "},
    ],
)
def test_the_result_is_what_is_answered_at_once(
    client: httpx.Client, values: dict[str, object]
) -> None:
    *_, (name, content) = _events(client, **values)
    assert name == "result"
    assert content == client.post("/v1/translate", json=_body(**values)).json()


def test_every_sentence_is_told_once_with_its_place(client: httpx.Client) -> None:
    *segments, (_, result) = _events(client)
    assert {name for name, _ in segments} == {"segment"}
    told = {(one["text_index"], one["index"]): one for _, one in segments}
    assert len(told) == len(segments)
    for place, translation in enumerate(result["translations"]):
        own = [told[key] for key in sorted(told) if key[0] == place]
        assert [one["index"] for one in own] == list(range(len(own)))
        rest = translation["text"]
        for one in own:
            start = one["start"]
            assert TEXTS[place][start : start + len(one["source"])] == one["source"]
            before = rest[: rest.index(one["text"])]
            assert before.strip() == ""
            rest = rest[len(before) + len(one["text"]) :]
        assert rest.strip() == ""


@pytest.mark.parametrize("text", [f"  {TEXT}\n\n7.30 {TEXT}  {TEXT}\n - {TEXT}\t\n ", TEXT, "7"])
def test_sentences_with_what_stands_before_them_are_the_result(
    client: httpx.Client, text: str
) -> None:
    *events, (_, result) = _events(client, texts=text)
    segments = sorted((one for _, one in events), key=lambda one: one["index"])
    last = segments[-1]
    behind = text[last["start"] + len(last["source"]) :]
    shown = "".join(one["separator"] + one["text"] for one in segments) + behind
    assert shown == result["translations"][0]["text"]


def test_a_sentence_says_what_its_segments_say(client: httpx.Client) -> None:
    texts = [TEXT, "7.30", MARKED]
    *segments, (_, result) = _events(client, texts=texts)
    told = {one["text_index"]: one for _, one in segments}
    for place, translation in enumerate(result["translations"]):
        one, own = told[place], translation["segments"]
        assert one["text"] == translation["text"]
        assert one["is_verbatim"] == all(segment["is_verbatim"] for segment in own)
        assert one["is_cut"] == translation["is_cut"]
        assert set(one["quality"]["failed"]) == {
            name for segment in own for name in segment["quality"]["failed"]
        }


@pytest.mark.parametrize(
    ("values", "status"),
    [
        ({"target": "xx"}, 400),
        ({"texts": ["a"] * 129}, 413),
        ({"texts": ["1\n" * 10_000, "1"]}, 413),
        ({"stream": True}, 400),
        ({"texts": [TEXT] * 128, "timeout_seconds": 0.0001}, 504),
    ],
)
def test_what_is_refused_before_the_first_sentence_has_its_status(
    client: httpx.Client, values: dict[str, object], status: int
) -> None:
    reply = client.post("/v1/translate/stream", json=_body(**values))
    assert reply.status_code == status
    assert set(reply.json()) == {"error", "code", "value", "limit"}


def test_a_stream_is_counted_once(server: RunningServer, client: httpx.Client) -> None:
    names = (
        "dragoman_requests_total{route=/v1/translate/stream,status=200}",
        "dragoman_source_characters_sum",
    )
    before = [server.metrics().get(name, 0.0) for name in names]
    _events(client, texts=[TEXT, TEXT])
    after = [server.metrics().get(name, 0.0) for name in names]
    assert [new - old for new, old in zip(after, before, strict=True)] == [1, 2 * len(TEXT)]
