"""A real router before servers that stop, drain and go on; and what it answers in HTTP itself."""

import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from support.router_fleet import (
    BEARER,
    ROUTER,
    SERVERS,
    Fleet,
    health,
    running_fleet,
    wait,
    wait_up,
)
from support.running_router import running_router
from support.running_server import running_server

GERMAN = {"q": "Hallo", "source": "de", "target": "en"}
JAPANESE = {"q": "犬", "source": "ja", "target": "en"}
AT_ONCE_SECONDS = 5.0
"""A bound for what nothing is waited for, on a machine that others use."""


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    with running_fleet(tmp_path_factory.mktemp("fleet")) as fleet:
        yield fleet


def _raw(fleet: Fleet, request: bytes) -> tuple[int, list[bytes], bytes]:
    """Status, lines of the head and body of one request's answer."""
    with socket.create_connection(("127.0.0.1", fleet.router.port)) as connection:
        connection.sendall(request)
        received = b""
        while data := connection.recv(65536):
            received += data
    head, _, body = received.partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    return int(lines[0].split()[1]), lines[1:], body


def test_a_group_that_is_stopped_costs_its_own_languages_and_nobody_waits_for_it(
    fleet: Fleet,
) -> None:
    """`west` is the first group, and accepts connections all the while."""
    file = {"file": ("a.txt", b"The cat.\n")}
    early: list[httpx.Response] = []

    def ask_early() -> None:
        with fleet.router.client() as client:
            early.append(client.post("/translate", json=GERMAN))

    with fleet.router.client() as client:
        sent = {"source": "ja", "target": "en"}
        added = client.post("/v1/documents", data=sent, files=file, headers=BEARER)
        assert added.status_code == 202, added.text
        path = f"/v1/documents/{added.json()['id']}"
        os.kill(fleet.servers["west"].process.pid, signal.SIGSTOP)
        try:
            waiting = threading.Thread(target=ask_early)
            waiting.start()
            wait(lambda: not health(fleet.router)["west"]["is_up"])
            assert health(fleet.router)["west"]["problem"] == "silent for 5 seconds"
            started = time.monotonic()
            refused = client.post("/translate", json=GERMAN)
            assert (refused.status_code, refused.json()["code"]) == (503, "group_unavailable")
            assert "group west cannot be reached: silent for 5 s" in refused.json()["error"]
            assert client.post("/translate", json=JAPANESE).status_code == 200
            assert client.get(path, headers=BEARER).status_code == 200
            unknown = client.get("/v1/documents/none", headers=BEARER)
            assert (unknown.status_code, unknown.json()["code"]) == (503, "group_unavailable")
            assert time.monotonic() - started < AT_ONCE_SECONDS
            waiting.join()
        finally:
            os.kill(fleet.servers["west"].process.pid, signal.SIGCONT)
        [answer] = early
        assert (answer.status_code, answer.json()["code"]) == (502, "group_lost")
        assert "it does not answer any more" in answer.json()["error"]
        wait_up(fleet.router, "west", "east")
        assert client.post("/translate", json=GERMAN).status_code == 200


def test_while_the_first_group_drains_another_one_answers_what_is_the_same_everywhere(
    tmp_path: Path, fleet: Fleet
) -> None:
    folder, east = fleet.folders["west"], fleet.servers["east"]
    long = {"q": ["The cat sees the river."] * 20, "source": "de", "target": "en"}
    with (
        running_server(folder, tmp_path / "server.log", **SERVERS) as first,
        running_router(
            {"first": first.url, "east": east.url}, tmp_path / "router.log", **ROUTER
        ) as router,
        router.client() as client,
    ):
        wait_up(router, "first", "east")
        (engine,) = first.engine_ids()
        os.kill(engine, signal.SIGSTOP)  # the drain lasts as long as this is not answered
        try:
            asking = threading.Thread(
                target=lambda: httpx.post(
                    f"{first.url}/translate", json=long, timeout=60.0, trust_env=False
                )
            )
            asking.start()
            wait(lambda: first.metrics()["dragoman_requests_in_progress"] >= 2)
            first.signal(signal.SIGTERM)
            first.wait_logged('"event": "draining"')
            found = client.post("/detect", json={"q": "犬が草の上を走っています。"})
            assert found.status_code == 200, found.text
            assert found.json()[0]["language"] == "ja"
            wait(lambda: not health(router)["first"]["is_up"])
            assert health(router)["first"]["problem"] == "the server is shutting down"
            assert client.post("/detect", json={"q": "a"}).status_code == 200
            refused = client.post("/translate", json=GERMAN)
            assert (refused.status_code, refused.json()["code"]) == (503, "draining")
            assert client.post("/translate", json=JAPANESE).status_code == 200
        finally:
            os.kill(engine, signal.SIGCONT)
            asking.join()


def test_http_1_0_needs_no_host(fleet: Fleet) -> None:
    status, _, body = _raw(fleet, b"GET /languages HTTP/1.0\r\n\r\n")
    assert status == 200
    assert b"ja" in body
    body = b'{"q":"Hallo","source":"de","target":"en"}'
    head = b"POST /translate HTTP/1.0\r\ncontent-type: application/json\r\ncontent-length: %d\r\n"
    assert _raw(fleet, head % len(body) + b"\r\n" + body)[0] == 200
    named = b"GET /frontend/settings HTTP/1.1\r\nhost: a\r\nconnection: host, close\r\n\r\n"
    assert _raw(fleet, named)[0] == 200


@pytest.mark.parametrize("path", [b"/frontend/settings", b"/livez", b"/nowhere"])
def test_an_answer_has_one_date(fleet: Fleet, path: bytes) -> None:
    _, head, _ = _raw(fleet, b"GET %s HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n" % path)
    names = [line.partition(b":")[0].lower() for line in head]
    assert names.count(b"date") == 1
    assert len(names) == len(set(names))


@pytest.mark.parametrize("line", [b"TRACE /", b"TRACE /livez", b"OPTIONS *", b"TRACE /v2/usage"])
def test_what_a_router_refuses_itself_it_says_as_a_server_does(fleet: Fleet, line: bytes) -> None:
    request = line + b" HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n"
    status, _, body = _raw(fleet, request)
    direct = Fleet(router=fleet.servers["west"], servers={}, folders={})
    assert (status, body) == (_raw(direct, request)[0], _raw(direct, request)[2])
    assert body.startswith(b"{")
