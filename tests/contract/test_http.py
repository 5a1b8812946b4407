"""What every route has in common, and what no well-behaved client sends."""

import json
import re
import socket
from collections.abc import Iterator

import httpx
import pytest

from support.running_server import RunningServer

JSON = {"content-type": "application/json"}


@pytest.fixture(scope="module")
def client(server: RunningServer) -> Iterator[httpx.Client]:
    with server.client() as client:
        yield client


def _exchange(server: RunningServer, data: bytes) -> tuple[int, dict[str, object]]:
    """Status and content of the first answer to raw bytes."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
        connection.sendall(data)
        received = b""
        while True:
            chunk = connection.recv(65_536)
            assert chunk, f"closed after {received!r}"
            received += chunk
            head, _, body = received.partition(b"\r\n\r\n")
            length = re.search(rb"content-length: (\d+)", head.lower())
            if length and len(body) >= int(length[1]):
                return int(received.split()[1]), json.loads(body[: int(length[1])])


def test_probes_say_yes(client: httpx.Client) -> None:
    for path in ("/livez", "/readyz"):
        reply = client.get(path)
        assert (reply.status_code, reply.json()) == (200, {"status": "ok"})


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/languages", "/v1/languages", "/metrics"])
def test_a_head_is_a_get_without_its_body(client: httpx.Client, path: str) -> None:
    asked, head = client.get(path), client.head(path)
    assert (head.status_code, head.content) == (asked.status_code, b"")
    assert head.headers["content-type"] == asked.headers["content-type"]
    assert client.head("/translate").headers["allow"] == "POST"


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/v2/glossaries", "GET, POST"),
        ("POST", "/v1/documents/none", "DELETE, GET"),
        ("DELETE", "/languages", "GET, POST"),
        ("DELETE", "/translate", "POST"),
    ],
)
def test_a_405_lists_every_method_of_the_path(
    client: httpx.Client, method: str, path: str, allowed: str
) -> None:
    reply = client.request(method, path)
    assert reply.status_code == 405
    assert reply.headers["allow"] == allowed


def test_the_documentation_is_there(client: httpx.Client) -> None:
    assert "Dragoman" in client.get("/docs").text
    paths = client.get("/openapi.json").json()["paths"]
    assert {"/translate", "/v1/translate", "/languages", "/health"} <= set(paths)
    assert {"/livez", "/readyz", "/metrics"} <= set(paths)


def test_no_operation_documents_a_422(client: httpx.Client) -> None:
    for operations in client.get("/openapi.json").json()["paths"].values():
        for operation in operations.values():
            assert "422" not in operation["responses"]


@pytest.mark.parametrize("given", ["abc-123", "A.b_c" * 12])
def test_a_request_id_comes_back(client: httpx.Client, given: str) -> None:
    reply = client.get("/livez", headers={"X-Request-ID": given})
    assert reply.headers["x-request-id"] == given


@pytest.mark.parametrize("given", ["", "a b", "x" * 65, "é", 'a"b'])
def test_a_request_id_that_could_harm_a_log_is_replaced(client: httpx.Client, given: str) -> None:
    reply = client.get("/livez", headers={"X-Request-ID": given.encode()})
    assert re.fullmatch("[0-9a-f]{32}", reply.headers["x-request-id"])


def test_errors_have_request_ids_too(client: httpx.Client) -> None:
    for path in ("/nowhere", "/translate"):
        assert "x-request-id" in client.get(path).headers


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/translate", "error"),
        ("/v1/translate", "error"),
        ("/v1/translate/stream", "error"),
        ("/v1/documents?target=zh&name=a.txt", "error"),
        ("/translate_file", "error"),
        ("/v2/translate", "message"),
        ("/v2/document", "message"),
        ("/v3/glossaries", "message"),
    ],
)
def test_a_compressed_body_is_refused_in_the_shape_of_its_path(
    client: httpx.Client, path: str, name: str
) -> None:
    for encoding in ("gzip", "br"):
        headers = JSON | {"content-encoding": encoding}
        reply = client.post(path, content=b"{}", headers=headers)
        assert (reply.status_code, reply.headers["accept-encoding"]) == (415, "identity")
        assert reply.json()[name] == f"the content encoding is {encoding}; it must be identity"


def test_logs_have_the_request_but_never_its_text_or_its_query(
    server: RunningServer, client: httpx.Client
) -> None:
    secret = "zebra-crossing"
    query = {"q": secret, "source": "en", "target": "zh"}
    client.post("/translate", params=query, headers={"X-Request-ID": "find-me"})
    client.post("/translate", json=query | {"target": secret})
    client.get(f"/{secret}", headers={"X-Request-ID": "last-of-three"})
    server.wait_logged('"find-me"')
    log = server.wait_logged('"last-of-three"')
    assert secret not in log
    lines = [json.loads(line) for line in log.splitlines()]
    (line,) = [line for line in lines if line.get("request_id") == "find-me"]
    assert line["event"] == "request"
    assert (line["method"], line["route"], line["status"]) == ("POST", "/translate", 200)
    assert (line["num_texts"], line["num_characters"], line["num_segments"]) == (1, 14, 1)
    assert (line["pair"], line["checkpoint"]) == ("en>zh-Hans", "tiny")


def test_metrics_label_unknown_paths_and_methods_with_one_word(
    server: RunningServer, client: httpx.Client
) -> None:
    for number in range(5):
        client.get(f"/unknown-{number}")
        client.request("PROPFIND", f"/unknown-{number}")
    routes = {
        match[1]
        for name in server.metrics()
        if (match := re.search(r"route=([^,]*?)(?=,|\}$)", name)) is not None
    }
    assert "unmatched" in routes
    documented = set(client.get("/openapi.json").json()["paths"])
    pages = {"/", "/docs", "/openapi.json", "/assets/{name}", "/spec"}
    assert routes <= documented | pages | {"unmatched"}


def test_metrics_have_every_promised_instrument(
    server: RunningServer, client: httpx.Client
) -> None:
    client.post("/translate", json={"q": "The cat.", "source": "en", "target": "zh"})
    client.get("/livez")
    metrics = server.metrics()
    for name in (
        "dragoman_requests_total{route=/translate,status=200}",
        "dragoman_request_seconds_count{route=/translate}",
        "dragoman_segment_seconds_count",
        "dragoman_segment_queue_seconds_count{priority=interactive}",
        "dragoman_segment_first_step_seconds_count",
        "dragoman_step_rows_count",
        "dragoman_source_tokens_total",
        "dragoman_padded_source_tokens_total",
        "dragoman_segment_source_tokens_sum{checkpoint=tiny,pair=en>zh-Hans}",
        "dragoman_segment_target_tokens_sum{checkpoint=tiny,pair=en>zh-Hans}",
        "dragoman_source_characters_sum{checkpoint=tiny,pair=en>zh-Hans}",
        "dragoman_finished_segments_total{checkpoint=tiny,pair=en>zh-Hans}",
        "dragoman_requests_total{checkpoint=tiny,pair=en>zh-Hans,route=/translate,status=200}",
        "dragoman_requests_total{checkpoint=none,pair=none,route=/livez,status=200}",
        "dragoman_event_loop_lag_seconds_count",
        "dragoman_event_loop_tasks",
        "dragoman_max_slots",
        "dragoman_max_requests",
        "dragoman_translation_seconds_count{priority=interactive}",
        "dragoman_engine_process_resident_memory_bytes",
        "process_resident_memory_bytes",
    ):
        assert metrics[name] > 0, name
    for name in ("requests_in_work", "engine_restarts_total{reason=exit}"):
        assert metrics[f"dragoman_{name}"] == 0
    for name in ("queued_segments", "running_segments", "running_rows", "slots_in_use"):
        assert metrics[f"dragoman_{name}"] == 0
    for priority in ("interactive", "bulk"):
        assert metrics[f"dragoman_waiting_segments{{priority={priority}}}"] == 0
    info = "dragoman_info{checkpoint=tiny,compute_reason=.*,compute_type=.*,device=cpu"
    assert any(re.match(info, name) for name in metrics)
    assert metrics["dragoman_ready_timestamp_seconds"] > 1.7e9
    assert metrics["dragoman_checkpoint_loaded{directory=tiny}"] == 1
    for kind in ("checkpoints", "keys"):
        assert metrics[f"dragoman_reload_successful{{kind={kind}}}"] == 1
        assert metrics[f"dragoman_reload_last_success_timestamp_seconds{{kind={kind}}}"] > 1.7e9


def test_a_body_shorter_than_announced_is_given_up_with_408(server: RunningServer) -> None:
    head = b"POST /translate HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n"
    status, content = _exchange(server, head + b"content-length: 100\r\n\r\n{")
    assert (status, content["code"]) == (408, "body_timeout")


def test_a_body_longer_than_announced_is_a_400(server: RunningServer) -> None:
    head = b"POST /translate HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n"
    status, _ = _exchange(server, head + b"content-length: 2\r\n\r\n{}" + b"x" * 100)
    assert status == 400


def test_a_body_without_an_end_is_refused_at_the_limit(client: httpx.Client) -> None:
    def endless() -> Iterator[bytes]:
        for _ in range(64):
            yield b" " * 65_536

    reply = client.post("/translate", content=endless(), headers=JSON)
    assert (reply.status_code, reply.json()["limit"]) == (413, 1024 * 1024)


@pytest.mark.parametrize(
    "data",
    [
        b"GARBAGE\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/2.0\r\nhost: a\r\n\r\n",
        b"GET /\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n",
        b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        b"GET http://[::1 HTTP/1.1\r\nhost: a\r\n\r\n",
        b"POST /translate HTTP/1.1\r\nhost: a\r\ncontent-length: -5\r\n\r\n",
        b"POST /translate HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    ],
)
def test_what_is_no_http_is_a_400_in_our_shape(server: RunningServer, data: bytes) -> None:
    status, content = _exchange(server, data)
    assert status == 400
    assert set(content) == {"error", "code", "value", "limit"}


@pytest.mark.parametrize("digits", [20, 30])
def test_a_length_of_many_digits_is_a_413(server: RunningServer, digits: int) -> None:
    head = b"POST /translate HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n"
    length = b"1" + b"0" * (digits - 1)
    status, content = _exchange(server, head + b"content-length: " + length + b"\r\n\r\n{}")
    assert (status, content["code"]) == (413, "too_long")


def test_an_escaped_path_is_a_404(client: httpx.Client) -> None:
    for path in ("/%00", "/%ff%fe", "/..%2f..", "/x//", "/translate%20"):
        assert client.get(path).status_code == 404
