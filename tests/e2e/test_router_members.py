"""A real router before two real servers of one group, which share a name."""

import json
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from support.router_fleet import BEARER, DEEPL, JA_EN, ROUTER, SERVERS, wait, wait_up
from support.running_router import running_router
from support.running_server import RunningServer, free_port, running_server
from support.tiny_checkpoint import write_tiny_checkpoint

ADDRESSES = ("127.0.0.2", "127.0.0.3")
FAULTY = "127.0.0.4"
FILE = {"file": ("a.txt", b"The cat sees the river.\n")}
JAPANESE = {"q": "犬", "source": "ja", "target": "en"}
ENTRIES = {
    "name": "words",
    "source_lang": "ja",
    "target_lang": "en",
    "entries": "a\tb",
    "entries_format": "tsv",
}
AT_ONCE_SECONDS = 5.0
"""A bound for what nothing is waited for, on a machine that others use."""


@dataclass(slots=True, kw_only=True)
class _Pods:
    """Two servers, and a router that knows their name."""

    router: RunningServer
    servers: list[RunningServer]
    clients: list[httpx.Client]
    names: Path
    port: int

    def name_has(self, *addresses: str) -> None:
        """Change what the name leads to."""
        written = self.names.with_suffix(".new")
        written.write_text(json.dumps({"pods": addresses}))
        written.replace(self.names)


@pytest.fixture(scope="module")
def pods(tmp_path_factory: pytest.TempPathFactory) -> Iterator[_Pods]:
    folder = tmp_path_factory.mktemp("pods")
    write_tiny_checkpoint(folder / "japanese", name="japanese", pairs=(JA_EN,), seed=18)
    names, port = folder / "names.json", free_port()
    names.write_text(json.dumps({"pods": ADDRESSES}))
    with ExitStack() as stack:
        servers = []
        for address in ADDRESSES:
            flags = ("--host", address, "--port", str(port))
            log = folder / f"{address}.log"
            server = running_server(folder / "japanese", log, *flags, **SERVERS)
            servers.append(stack.enter_context(server))
        urls = {"east": f"http://pods:{port}"}
        router = running_router(urls, folder / "router.log", names=names, **ROUTER)
        pods = _Pods(
            router=stack.enter_context(router),
            servers=servers,
            clients=[
                stack.enter_context(
                    httpx.Client(base_url=f"http://{one}:{port}", timeout=60.0, trust_env=False)
                )
                for one in ADDRESSES
            ],
            names=names,
            port=port,
        )
        wait_up(pods.router, "east")
        yield pods


@pytest.fixture
def client(pods: _Pods) -> Iterator[httpx.Client]:
    with pods.router.client() as client:
        yield client


def _new_document(client: httpx.Client) -> str:
    sent = {"source": "ja", "target": "en"}
    added = client.post("/v1/documents", data=sent, files=FILE, headers=BEARER)
    assert added.status_code == 202, added.text
    return f"/v1/documents/{added.json()['id']}"


def _new_glossary(client: httpx.Client) -> str:
    added = client.post("/v2/glossaries", json=ENTRIES, headers=DEEPL)
    assert added.status_code == 201, added.text
    return str(added.json()["glossary_id"])


def test_a_document_is_found_in_whichever_server_has_it(pods: _Pods, client: httpx.Client) -> None:
    for server in (*pods.clients, client):
        path = _new_document(server)
        assert {client.get(path, headers=BEARER).status_code for _ in range(6)} == {200}
        wait(lambda path=path: client.get(path, headers=BEARER).json()["state"] == "done")  # type: ignore[misc]
        assert client.get(f"{path}/result", headers=BEARER).status_code == 200
        assert client.delete(path, headers=BEARER).status_code == 204
        assert client.get(path, headers=BEARER).status_code == 404


def test_a_document_of_deepls_clients_is_found_too(pods: _Pods, client: httpx.Client) -> None:
    for server in pods.clients:
        sent = {"source_lang": "JA", "target_lang": "EN-GB"}
        added = server.post("/v2/document", data=sent, files=FILE, headers=DEEPL).json()
        path, key = f"/v2/document/{added['document_id']}", {"document_key": added["document_key"]}
        for _ in range(4):
            told = client.post(path, json=key, headers=DEEPL)
            assert (told.status_code, "status" in told.json()) == (200, True)


def test_texts_and_documents_find_the_glossary_that_they_name(
    pods: _Pods, client: httpx.Client
) -> None:
    names = [_new_glossary(server) for server in pods.clients]
    every = client.get("/v2/glossaries", headers=DEEPL).json()["glossaries"]
    assert {one["glossary_id"] for one in every} == {*names}
    for name in names:
        named = {"source_lang": "JA", "target_lang": "EN-GB", "glossary_id": name}
        for _ in range(4):
            texts = client.post("/v2/translate", json={"text": ["a"], **named}, headers=DEEPL)
            assert texts.status_code == 200, texts.text
            added = client.post("/v2/document", data=named, files=FILE, headers=DEEPL)
            assert added.status_code == 200, added.text
        assert client.get(f"/v2/glossaries/{name}/entries", headers=DEEPL).text == "a\tb"
        assert client.delete(f"/v2/glossaries/{name}", headers=DEEPL).status_code == 204
        unknown = client.post("/v2/translate", json={"text": ["a"], **named}, headers=DEEPL)
        assert unknown.status_code == 404


def test_usage_is_that_of_all_servers_and_languages_are_listed_once(
    pods: _Pods, client: httpx.Client
) -> None:
    def used(server: httpx.Client) -> int:
        return int(server.get("/v2/usage", headers=DEEPL).json()["character_count"])

    sent = {"text": ["Hallo"], "source_lang": "JA", "target_lang": "EN-GB"}
    for server in pods.clients:
        assert server.post("/v2/translate", json=sent, headers=DEEPL).status_code == 200
    before = [used(server) for server in pods.clients]
    assert min(before) >= len("Hallo")
    # Documents of other tests may still be translated.
    assert sum(before) <= used(client) <= sum(used(server) for server in pods.clients)
    assert [one["name"] for one in client.get("/v1/models").json()["models"]] == ["japanese"]


def test_requests_are_spread_over_the_servers(pods: _Pods) -> None:
    def num_asked() -> list[int]:
        return [server.log.read_text().count('"route": "/translate"') for server in pods.servers]

    def ask(_number: int) -> int:
        with pods.router.client() as client:
            return client.post("/translate", json=JAPANESE).status_code

    before = num_asked()
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(ask, range(48))) == [200] * 48
    wait(lambda: sum(num_asked()) == sum(before) + 48)  # a line is written after its answer
    assert all(now > then for then, now in zip(before, num_asked(), strict=True))


def test_a_server_that_has_left_the_name_is_asked_for_what_it_has_and_for_nothing_else(
    pods: _Pods, client: httpx.Client
) -> None:
    def num_translated() -> int:
        """How many of four requests the second server gets."""
        log = pods.servers[1].log
        num_before = log.read_text().count('"/translate"')
        for _ in range(4):
            assert client.post("/translate", json=JAPANESE).status_code == 200
        return log.read_text().count('"/translate"') - num_before

    path = _new_document(pods.clients[1])
    pods.name_has(ADDRESSES[0])
    try:
        wait(lambda: num_translated() == 0)
        assert client.get(path, headers=BEARER).status_code == 200
        assert client.get("/v2/glossaries", headers=DEEPL).status_code == 200
        assert client.delete("/v1/documents/none", headers=BEARER).status_code == 404
    finally:
        pods.name_has(*ADDRESSES)
        assert client.get(path, headers=BEARER).status_code == 200


def test_a_server_that_is_stopped_is_passed_over(pods: _Pods, client: httpx.Client) -> None:
    well, stopped = (_new_document(server) for server in pods.clients)
    os.kill(pods.servers[1].process.pid, signal.SIGSTOP)
    try:
        pods.router.wait_logged('"event": "member_unreachable"')
        started = time.monotonic()
        for _ in range(4):
            assert client.get(well, headers=BEARER).status_code == 200
            assert client.post("/translate", json=JAPANESE).status_code == 200
        assert time.monotonic() - started < AT_ONCE_SECONDS
        for path in (stopped, "/v1/documents/none"):
            away = client.get(path, headers=BEARER)
            assert away.status_code == 503, "the one that is stopped may have it"
            assert "one of its servers does not answer" in away.json()["error"]
        assert client.get("/readyz").status_code == 200, "the group is up"
    finally:
        os.kill(pods.servers[1].process.pid, signal.SIGCONT)
    pods.router.wait_logged('"event": "member_reached"')
    assert client.get(stopped, headers=BEARER).status_code == 200
    assert client.get("/v1/documents/none", headers=BEARER).status_code == 404


def test_a_server_that_breaks_every_connection_off_costs_no_translation(
    pods: _Pods, client: httpx.Client
) -> None:
    with socket.create_server((FAULTY, pods.port)) as faulty:

        def break_off() -> None:
            with suppress(OSError):
                while True:
                    faulty.accept()[0].close()

        threading.Thread(target=break_off, daemon=True).start()
        pods.name_has(*ADDRESSES, FAULTY)
        try:
            pods.router.wait_logged(f'"address": "{FAULTY}"')
            for _ in range(12):
                assert client.post("/translate", json=JAPANESE).status_code == 200
                assert client.get("/readyz").status_code == 200
        finally:
            pods.name_has(*ADDRESSES)
            faulty.shutdown(socket.SHUT_RDWR)


def test_what_waits_in_a_silent_server_that_has_left_the_name_ends(pods: _Pods) -> None:
    statuses = []

    def ask() -> None:
        with pods.router.client() as client:
            statuses.append(client.post("/translate", json=JAPANESE).status_code)

    os.kill(pods.servers[1].process.pid, signal.SIGSTOP)
    try:
        asking = [threading.Thread(target=ask) for _ in range(2)]
        for one in asking:
            one.start()
        wait(lambda: statuses == [200])  # the other one waits
        pods.name_has(ADDRESSES[0])
        for one in asking:
            one.join()
        assert statuses == [200, 502]
    finally:
        os.kill(pods.servers[1].process.pid, signal.SIGCONT)
        pods.name_has(*ADDRESSES)
