"""Tokens of a greedy search while it runs, against real servers.

The oracle is the same checkpoint, searched in this process and decoded at once.
"""

import json
import re
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from model.config import SearchConfig
from model.decode.session import DecodeRequest, DecodingSession, SessionLimits
from model.loading import load_for_decoding
from model.text.drafts.segments import Segment
from model.text.pipeline import TextPipeline, segment_cap
from support.running_server import POLL_SECONDS, RunningServer, running_server
from support.tiny_checkpoint import EN_ZH, generated_pairs

MAX_LENGTH = 40
"""With a cap of its own nothing is tried again, so that there is one hypothesis a sentence."""
SENTENCES = list(dict.fromkeys(english for english, _ in generated_pairs(900)))
TEXTS = [" ".join(SENTENCES[at : at + 3]) for at in range(0, 24, 3)]
MARKED = "Look at {name} 😀 and https://example.org/a, then go."
LAYOUTS = {
    "two replicas": {"DRAGOMAN_REPLICAS": "2", "DRAGOMAN_FILL_ROWS": "0"},
    "two fronts": {"DRAGOMAN_FRONTS": "2"},
    "floats, plain text cached": {
        "DRAGOMAN_COMPUTE_TYPE": "float32",
        "DRAGOMAN_SEGMENT_CACHE": "1M",
    },
}

_BREAKS = re.compile("[\\t\\n\\v\\f\\r\\x1c-\\x1e\\x85\\u2028\\u2029]+")

Events = list[tuple[str, dict[str, Any]]]


def _body(**values: object) -> dict[str, object]:
    own = {"source": "en", "target": "zh-Hans", "beam_size": 1, "tokens": True}
    return {"texts": TEXTS, "max_length": MAX_LENGTH} | own | values


def _parsed(text: str) -> Events:
    *blocks, rest = text.split("\n\n")
    assert rest == ""
    pairs = (block.removeprefix("event: ").split("\ndata: ") for block in blocks if block != ":")
    return [(name, json.loads(data)) for name, data in pairs]


def _events(client: httpx.Client, **values: object) -> Events:
    reply = client.post("/v1/translate/stream", json=_body(**values))
    assert reply.status_code == 200, reply.text
    return _parsed(reply.text)


def _shown(events: Events) -> dict[tuple[int, int], str]:
    """What a reader has shown of each sentence before its end."""
    shown: dict[tuple[int, int], str] = {}
    ended: set[tuple[int, int]] = set()
    for name, data in events:
        if name not in ("token", "segment"):
            continue
        key = (data["text_index"], data["index"])
        assert key not in ended
        if name == "segment":
            ended.add(key)
        else:
            assert set(data) == {"text_index", "index", "text", "restart"}
            shown[key] = ("" if data["restart"] else shown.get(key, "")) + data["text"]
    return shown


Raw = Callable[[Sequence[str]], dict[tuple[int, int], str]]


def _raw(checkpoint: Path, compute_type: Any) -> Raw:
    """What greedy searches of plain sentences end with, as text, by text and sentence."""
    loaded = load_for_decoding(checkpoint, num_threads=1, compute_type=compute_type)
    pipeline = TextPipeline(loaded.tokenizer, loaded.manifest.limits)
    limits = SessionLimits(max_rows=1, max_slots=1, max_source_length=64, max_target_length=65)
    session = DecodingSession(loaded.network, tokens=loaded.manifest.tokens, limits=limits)
    prefix_ids = tuple(pipeline.prefix_ids(EN_ZH))

    def decoded(segment: Segment) -> str:
        cap = min(MAX_LENGTH, segment_cap(segment, loaded.manifest.limits))
        search = SearchConfig(beam_size=1, max_length=cap)
        request = DecodeRequest(source_ids=segment.source_ids, prefix_ids=prefix_ids, search=search)
        session.admit([request])
        while not (finished := session.step()):
            pass
        return loaded.tokenizer.decode(finished[0].hypotheses[0].token_ids)

    return lambda texts: {
        (place, index): decoded(segment)
        for place, text in enumerate(texts)
        for index, segment in enumerate(pipeline.prepare(text, EN_ZH).segments)
    }


@pytest.fixture(scope="module")
def client(server: RunningServer) -> Iterator[httpx.Client]:
    with server.client() as client:
        yield client


def _as_shown(raw: dict[tuple[int, int], str]) -> dict[tuple[int, int], str]:
    """Without what cannot be read and comes behind it; of a sentence without text nothing."""
    readable = {key: _BREAKS.sub(" ", text.split("\ufffd")[0]) for key, text in raw.items()}
    return {key: text for key, text in readable.items() if text}


def test_the_pieces_of_a_sentence_are_what_the_search_ends_with(
    client: httpx.Client, served_checkpoint: Path
) -> None:
    events = _events(client)
    expected = _as_shown(_raw(served_checkpoint, "auto")(TEXTS))
    assert _shown(events) == expected
    assert len(expected) > 20
    assert not any(data.get("restart") for _, data in events)
    assert "\ufffd" not in "".join(data["text"] for name, data in events if name == "token")


def test_a_sentence_is_done_as_it_is_without_tokens_and_so_is_the_result(
    client: httpx.Client,
) -> None:
    for values in ({}, {"max_length": None}, {"texts": [MARKED, "7.30", TEXTS[0].upper()]}):
        events = _events(client, **values)
        plain = _events(client, **values, tokens=False)
        assert not any(name == "token" for name, _ in plain)
        done = [[one for one in own if one[0] == "segment"] for own in (events, plain)]
        assert sorted(map(json.dumps, done[0])) == sorted(map(json.dumps, done[1]))
        assert events[-1] == plain[-1]


def test_a_sentence_that_is_tried_again_takes_back_what_was_shown(client: httpx.Client) -> None:
    events = _events(client, texts=[MARKED] * 3 + TEXTS, max_length=None)
    shown = _shown(events)
    num_tries = {
        (data["text_index"], data["index"]): data["quality"]["num_tries"]
        for name, data in events
        if name == "segment" and not data["is_verbatim"]
    }
    assert any(num_tries.values())
    for key, number in num_tries.items():
        assert not (number and shown.get(key)), "withdrawn, or tried again before it was shown"


def test_a_sentence_that_is_copied_has_no_tokens(client: httpx.Client) -> None:
    events = _events(client, texts=["7.30", " ", TEXTS[0]])
    assert {data["text_index"] for name, data in events if name == "token"} == {2}


def test_of_texts_whose_language_is_detected_each_has_its_own_tokens(client: httpx.Client) -> None:
    texts = ["猫看见河。", TEXTS[0], "7.30", TEXTS[1]]
    found = _shown(_events(client, texts=texts, source="auto"))
    named = _shown(_events(client, texts=[TEXTS[0], TEXTS[1]]))
    places = {1: 0, 3: 1}
    assert {key[0] for key in found} == set(places)
    assert {(places[place], index): text for (place, index), text in found.items()} == named


def test_tokens_that_are_drawn_come_too_and_add_up(client: httpx.Client) -> None:
    values = {"texts": TEXTS[:2], "temperature": 0.9, "seed": 5, "scores": True}
    events = _events(client, **values)
    shown = _shown(events)
    segments = {
        (data["text_index"], data["index"]): data
        for name, data in events
        if name == "segment" and not data["quality"]["failed"]
    }
    for key, data in segments.items():
        assert shown[key].strip() == data["text"]
    assert shown


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"beam_size": 4}, "tokens are of a greedy search; beam_size is 4, and must be 1"),
        ({"beam_size": None}, "tokens are of a greedy search; beam_size is "),
        ({"alternatives": 1}, "one translation; alternatives is 1, and must be 0"),
        ({"beam_size": 4, "alternatives": 3}, "alternatives is 3, and must be 0"),
        ({"format": "html"}, "tokens are of plain text; format is html"),
        ({"tokens": "yes"}, "tokens"),
    ],
)
def test_where_there_are_no_tokens_the_request_is_refused_in_words(
    client: httpx.Client, values: dict[str, object], message: str
) -> None:
    reply = client.post("/v1/translate/stream", json=_body(**values))
    assert reply.status_code == 400
    assert message in reply.json()["error"]


def test_what_answers_at_once_knows_no_tokens(client: httpx.Client) -> None:
    reply = client.post("/v1/translate", json=_body())
    assert (reply.status_code, reply.json()["code"]) == (400, "invalid_request")
    assert "tokens" in reply.json()["error"]


def test_tokens_of_one_request_are_never_in_the_stream_of_another(
    server: RunningServer, served_checkpoint: Path
) -> None:
    texts = [SENTENCES[at : at + 8] for at in range(0, 96, 8)]
    raw = _raw(served_checkpoint, "auto")

    def shown(own: list[str]) -> dict[tuple[int, int], str]:
        with server.client() as client:
            return _shown(_events(client, texts=own))

    with ThreadPoolExecutor(6) as threads:
        every = list(threads.map(shown, texts))
    assert every == [_as_shown(raw(own)) for own in texts]


def test_a_reader_that_stands_still_holds_nothing_up_and_misses_nothing(
    server: RunningServer, served_checkpoint: Path
) -> None:
    texts = [" ".join(SENTENCES[at : at + 6]) for at in range(0, 360, 6)]
    body = json.dumps(_body(texts=texts)).encode()
    head = (
        "POST /v1/translate/stream HTTP/1.1\r\nhost: here\r\nconnection: close\r\n"
        f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    name = "dragoman_finished_segments_total"
    before = server.metrics()[name]
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(60.0)
        connection.connect(("127.0.0.1", server.port))
        connection.sendall(head.encode() + body)
        received = connection.recv(512)
        server.wait_metric(name, before + 360)  # though nobody reads
        while data := connection.recv(1 << 16):
            received += data
    _, _, rest = received.partition(b"\r\n\r\n")
    events = _parsed(_unchunked(rest).decode())
    assert _shown(events) == _as_shown(_raw(served_checkpoint, "auto")(texts))
    assert events[-1][0] == "result"


def _unchunked(data: bytes) -> bytes:
    """The body of an answer in chunks."""
    body = b""
    while data:
        size, _, data = data.partition(b"\r\n")
        length = int(size, 16)
        body, data = body + data[:length], data[length + 2 :]
    return body


def test_a_client_that_leaves_takes_its_sentences_with_it(server: RunningServer) -> None:
    name = "dragoman_cancelled_segments_total"
    before = server.metrics().get(name, 0.0)
    with (
        server.client() as client,
        client.stream(
            "POST", "/v1/translate/stream", json=_body(texts=[" ".join(SENTENCES[:300])] * 3)
        ) as reply,
    ):
        assert next(reply.iter_lines()) == "event: token"
    server.wait_metric(name, before + 1)
    while server.metrics()["dragoman_pending_segments"]:
        time.sleep(POLL_SECONDS)


@pytest.mark.replicas
@pytest.mark.parametrize("name", LAYOUTS)
def test_in_every_layout_of_engines_the_pieces_are_the_same(
    name: str, served_checkpoint: Path, tmp_path: Path
) -> None:
    layout = LAYOUTS[name]
    raw = _raw(served_checkpoint, layout.get("DRAGOMAN_COMPUTE_TYPE", "auto"))
    texts = [SENTENCES[at : at + 12] for at in range(0, 96, 12)]
    with running_server(served_checkpoint, tmp_path / "log.jsonl", **layout) as server:
        _wait_whole(server)

        def shown(own: list[str]) -> dict[tuple[int, int], str]:
            with server.client() as client:
                return _shown(_events(client, texts=own))

        with ThreadPoolExecutor(4) as threads:
            every = list(threads.map(shown, texts))
        assert every == [_as_shown(raw(own)) for own in texts]
        again = shown(texts[0])
        assert again == ({} if "DRAGOMAN_SEGMENT_CACHE" in layout else every[0])


def _wait_whole(server: RunningServer) -> None:
    """Ask until all replicas and fronts are there; pytest's timeout is the bound."""
    while True:
        metrics = server.metrics()
        with server.client() as client:
            replicas = client.get("/v1/health").json()["replicas"]
        is_whole = metrics.get("dragoman_fronts", 1) == metrics.get("dragoman_max_fronts", 1)
        if is_whole and replicas["ready"] == replicas["of"]:
            return
        time.sleep(POLL_SECONDS)
