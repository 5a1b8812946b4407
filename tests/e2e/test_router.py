"""A real router before two real servers with different languages."""

import json
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from model.text.languages.tags import LanguagePair
from support.router_fleet import (
    BEARER,
    DEEPL,
    ROUTER,
    SERVERS,
    Fleet,
    health,
    running_fleet,
    wait,
    wait_up,
)
from support.running_router import running_router
from support.running_server import free_port, running_server
from support.tiny_checkpoint import write_tiny_checkpoint


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    with running_fleet(tmp_path_factory.mktemp("fleet")) as fleet:
        yield fleet


@pytest.fixture
def client(fleet: Fleet) -> Iterator[httpx.Client]:
    with fleet.router.client() as client:
        yield client


def _same(fleet: Fleet, group: str, path: str, **request: object) -> httpx.Response:
    """The router's answer, which is that of the group itself, byte by byte, and nobody else's."""
    others = {name: fleet.num_passed(name) for name in fleet.servers if name != group}
    with fleet.router.client() as one, fleet.servers[group].client() as other:
        answer = one.post(path, **request)  # type: ignore[arg-type]
        expected = other.post(path, **request)  # type: ignore[arg-type]
    assert (answer.status_code, answer.content) == (expected.status_code, expected.content)
    assert answer.headers["content-type"] == expected.headers["content-type"]
    assert {name: fleet.num_passed(name) for name in others} == others
    return answer


@pytest.mark.parametrize(
    ("path", "request_of"),
    [
        ("/translate", lambda source, target: {"q": "The cat", "source": source, "target": target}),
        (
            "/v1/translate",
            lambda source, target: {"texts": ["The cat"], "source": source, "target": target},
        ),
        (
            "/v2/translate",
            lambda source, target: {
                "text": ["The cat"],
                "source_lang": source.upper(),
                "target_lang": target.upper(),
            },
        ),
    ],
)
def test_each_contracts_requests_go_to_the_group_of_their_languages(
    fleet: Fleet, path: str, request_of: Callable[[str, str], dict[str, object]]
) -> None:
    headers = DEEPL if path.startswith("/v2") else BEARER
    for source, target, group in (("de", "en", "west"), ("en", "zh", "west"), ("ja", "en", "east")):
        sent = request_of(source, target)
        if path == "/v1/translate" and target == "zh":
            sent["target"] = "zh-Hans"
        answer = _same(fleet, group, path, json=sent, headers=headers)
        assert answer.status_code == 200, answer.text


def test_forms_and_query_strings_are_read_as_the_servers_read_them(fleet: Fleet) -> None:
    form = {"q": "Hallo", "source": "de", "target": "en"}
    assert _same(fleet, "west", "/translate", data=form).status_code == 200
    assert _same(fleet, "east", "/translate", params=form | {"source": "ja"}).status_code == 200
    files = {name: (None, value) for name, value in form.items()}
    assert _same(fleet, "west", "/translate", files=files).status_code == 200


def test_two_hops_go_to_the_group_that_has_both(fleet: Fleet, client: httpx.Client) -> None:
    wanted = {"texts": ["Hallo"], "source": "de", "target": "zh-Hans"}
    assert _same(fleet, "west", "/v1/translate", json=wanted).status_code == 200
    refused = client.post("/v1/translate", json=wanted | {"source": "ja"})
    assert refused.status_code == 400
    assert "both ways of a pivot must be in one group" in refused.json()["error"]


def test_the_language_of_a_text_is_told_among_those_of_all_groups(fleet: Fleet) -> None:
    german = "Der Hund läuft über die Wiese und bellt, weil er Hunger hat."
    japanese = "犬が草の上を走っています。"
    for text, group in ((german, "west"), (japanese, "east")):
        sent = {"q": [text], "source": "auto", "target": "en"}
        answer = _same(fleet, group, "/translate", json=sent)
        assert answer.status_code == 200
    sent = {"q": [german, japanese], "source": "auto", "target": "en"}
    with fleet.router.client() as client:
        refused = client.post("/translate", json=sent)
        assert refused.status_code == 400
        assert "no group translates alone" in refused.json()["error"]
        found = client.post("/detect", json={"q": japanese}).json()
        assert found[0]["language"] == "ja"
        assert client.post("/detect", json={}).status_code == 400


def test_a_model_that_is_named_is_asked(fleet: Fleet, client: httpx.Client) -> None:
    sent = {"texts": "Hallo", "source": "auto", "target": "en", "model": "japanese"}
    assert _same(fleet, "east", "/v1/translate", json=sent).status_code == 200
    unknown = client.post("/v1/translate", json=sent | {"model": "none"})
    assert (unknown.status_code, unknown.json()["code"]) == (400, "unknown_model")
    assert "german" in unknown.json()["limit"]


def test_lists_are_those_of_all_groups(client: httpx.Client) -> None:
    languages = {one["code"]: one["targets"] for one in client.get("/languages").json()}
    assert {"de", "ja", "en", "zh-Hans"} == languages.keys()
    assert "en" in languages["ja"]
    assert "zh-Hans" in languages["de"]
    sources = client.get("/v2/languages?type=source", headers=DEEPL).json()
    assert {"DE", "JA"} <= {one["language"] for one in sources}
    models = client.get("/v1/models").json()["models"]
    assert {one["name"] for one in models} == {"german", "chinese", "japanese"}
    pairs = client.get("/v2/glossary-language-pairs", headers=DEEPL).json()["supported_languages"]
    assert {"source_lang": "ja", "target_lang": "en"} in pairs


def test_usage_is_that_of_all_groups(client: httpx.Client) -> None:
    before = client.get("/v2/usage", headers=DEEPL).json()["character_count"]
    for source in ("DE", "JA"):
        sent = {"text": ["Hallo"], "source_lang": source, "target_lang": "EN-GB"}
        assert client.post("/v2/translate", json=sent, headers=DEEPL).status_code == 200
    usage = client.get("/v2/usage", headers=DEEPL).json()
    assert usage["character_count"] == before + 2 * len("Hallo")


def test_what_a_group_refuses_is_answered_as_it_says_it(fleet: Fleet, client: httpx.Client) -> None:
    wrong = {"authorization": "Bearer a-key-that-nobody-ever-had-before"}
    sent = {"q": "Hallo", "source": "de", "target": "en"}
    assert _same(fleet, "west", "/translate", json=sent, headers=wrong).status_code == 403
    long = sent | {"q": "a" * 30_000}
    assert _same(fleet, "west", "/translate", json=long).status_code == 413
    assert (
        client.post(
            "/translate", content=b"{", headers={"content-type": "application/json"}
        ).status_code
        == 400
    )
    missing = client.post("/translate", json={"q": "Hallo", "source": "de"})
    assert missing.json()["error"] == "Invalid request: missing target parameter"
    deepl = client.post("/v2/translate", json={"text": ["a"], "target_lang": "XX"}, headers=DEEPL)
    assert deepl.status_code == 400
    unsupported = "Value for 'target_lang' not supported: XX; it must be "
    assert deepl.json()["message"].startswith(unsupported)
    assert client.post("/admin/reload", headers=BEARER).status_code == 404
    assert client.get("/nowhere").status_code == 404


def test_a_stream_comes_as_its_sentences_are_done(fleet: Fleet) -> None:
    sent = {"texts": ["Hallo. Wie geht es?"], "source": "de", "target": "en"}
    answer = _same(fleet, "west", "/v1/translate/stream", json=sent)
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert "event: done" in answer.text or "event: result" in answer.text or "data:" in answer.text


def test_documents_go_to_their_group_and_are_found_again(
    fleet: Fleet, client: httpx.Client
) -> None:
    for source, group in (("de", "west"), ("ja", "east")):
        file = {"file": ("a.txt", b"The cat sees the river.\n" * 40)}
        sent = {"source": source, "target": "en"}
        added = client.post("/v1/documents", data=sent, files=file, headers=BEARER)
        assert added.status_code == 202, added.text
        path = f"/v1/documents/{added.json()['id']}"
        wait(lambda path=path: client.get(path, headers=BEARER).json()["state"] == "done")  # type: ignore[misc]
        result = client.get(f"{path}/result", headers=BEARER)
        assert result.status_code == 200
        assert "a.en.txt" in result.headers["content-disposition"]
        with fleet.servers[group].client() as direct:
            assert direct.get(f"{path}/result", headers=BEARER).content == result.content
        assert client.delete(path, headers=BEARER).status_code == 204
        assert client.get(path, headers=BEARER).status_code == 404
    unnamed = client.post("/v1/documents", data={"target": "en"}, files=file, headers=BEARER)
    assert unnamed.status_code == 400
    assert "name the source of a document" in unnamed.json()["error"]


def test_a_large_document_and_libretranslates_own_way_go_through(client: httpx.Client) -> None:
    file = {"file": ("a.txt", b"The cat.\n\n" + b" \n" * 500_000)}
    answer = client.post("/translate_file", data={"source": "ja", "target": "en"}, files=file)
    assert answer.status_code == 200, answer.text
    url = answer.json()["translatedFileUrl"]
    assert httpx.URL(url).port == client.base_url.port, "the router's own address"
    assert client.get(url).status_code == 200


def test_a_glossary_is_kept_by_the_group_of_its_languages(
    fleet: Fleet, client: httpx.Client
) -> None:
    ids = {}
    for source in ("de", "ja"):
        sent = {
            "name": source,
            "source_lang": source,
            "target_lang": "en",
            "entries": "a\tb",
            "entries_format": "tsv",
        }
        added = client.post("/v2/glossaries", json=sent, headers=DEEPL)
        assert added.status_code == 201, added.text
        ids[source] = added.json()["glossary_id"]
        used = {
            "text": ["a"],
            "source_lang": source,
            "target_lang": "EN-GB",
            "glossary_id": ids[source],
        }
        assert client.post("/v2/translate", json=used, headers=DEEPL).status_code == 200
    every = client.get("/v2/glossaries", headers=DEEPL).json()["glossaries"]
    assert {one["glossary_id"] for one in every} == {*ids.values()}
    for name in ids.values():
        assert client.get(f"/v2/glossaries/{name}/entries", headers=DEEPL).text == "a\tb"
        assert client.delete(f"/v2/glossaries/{name}", headers=DEEPL).status_code == 204
    assert client.get(f"/v2/glossaries/{ids['ja']}", headers=DEEPL).status_code == 404


def test_the_page_its_files_and_preflights_are_those_of_a_group(client: httpx.Client) -> None:
    page = client.get("/")
    assert page.status_code == 200
    assert page.headers["content-security-policy"].startswith("default-src 'none'; script-src")
    assert client.head("/").status_code == 200
    assert client.get("/assets/main.js").status_code == 200
    assert client.get("/frontend/settings").status_code == 200


def test_request_ids_reach_the_group(fleet: Fleet, client: httpx.Client) -> None:
    sent = {"q": "Hallo", "source": "de", "target": "en"}
    answer = client.post("/translate", json=sent, headers={"x-request-id": "of-this-test"})
    assert answer.headers.get_list("x-request-id") == ["of-this-test"]
    log = fleet.servers["west"].wait_logged('"request_id": "of-this-test"')
    [line] = [json.loads(line) for line in log.splitlines() if "of-this-test" in line]
    assert (line["event"], line["route"], line["status"]) == ("request", "/translate", 200)


def test_a_group_limits_each_clients_address_and_not_the_routers(
    tmp_path: Path, fleet: Fleet
) -> None:
    """A group of its own, which lets an address without a key ask twice a minute."""
    limited = SERVERS | {"DRAGOMAN_REQUESTS_PER_MINUTE": "2"}
    sent = {"q": "Hallo", "source": "ja", "target": "en"}

    def ask(client: httpx.Client, address: str) -> int:
        return client.post(
            "/translate", json=sent, headers={"x-forwarded-for": address}
        ).status_code

    with (
        running_server(fleet.folders["east"], tmp_path / "server.log", **limited) as server,
        running_router({"all": server.url}, tmp_path / "router.log", **ROUTER) as router,
        router.client() as client,
    ):
        wait_up(router, "all")
        for address in ("203.0.113.7", "203.0.113.8", "2001:db8::7"):
            assert [ask(client, address) for _ in range(3)] == [200, 200, 429], address
        assert client.post("/translate", json=sent, headers=BEARER).status_code == 200


def test_a_hundred_requests_at_once_are_each_answered_once(fleet: Fleet) -> None:
    before = {name: fleet.num_passed(name) for name in fleet.servers}

    def ask(number: int) -> int:
        source = "de" if number % 2 else "ja"
        with fleet.router.client() as client:
            sent = {"q": f"The cat number {number}.", "source": source, "target": "en"}
            return client.post("/translate", json=sent).status_code

    with ThreadPoolExecutor(16) as threads:
        assert list(threads.map(ask, range(100))) == [200] * 100
    after = {name: fleet.num_passed(name) for name in fleet.servers}
    assert {name: after[name] - before[name] for name in after} == {"west": 50, "east": 50}


def test_a_client_that_leaves_has_its_work_dropped_by_the_group(fleet: Fleet) -> None:
    body = json.dumps(
        {"q": ["The cat sees the river again."] * 100, "source": "de", "target": "en"}
    )
    lines = ("POST /translate HTTP/1.1", "host: a", "content-type: application/json")
    head = "\r\n".join([*lines, f"content-length: {len(body)}", "", ""])
    gone = "dragoman_requests_total{route=/translate,status=499}"
    west = fleet.servers["west"]
    before = west.metrics().get(gone, 0.0)
    (engine,) = west.engine_ids()
    os.kill(engine, signal.SIGSTOP)  # nothing is done before its client has left
    try:
        with socket.create_connection(("127.0.0.1", fleet.router.port)) as connection:
            connection.sendall((head + body).encode())
            wait(lambda: west.metrics()["dragoman_requests_in_progress"] >= 2)
        wait(lambda: fleet.router.metrics()["dragoman_router_requests_in_progress"] == 1)
        wait(lambda: west.metrics().get(gone, 0.0) > before)
    finally:
        os.kill(engine, signal.SIGCONT)
    wait_up(fleet.router, "west", "east")


def test_a_reload_of_a_group_is_known_to_the_router(fleet: Fleet, client: httpx.Client) -> None:
    sent = {"q": "Bonjour", "source": "fr", "target": "en"}
    assert client.post("/translate", json=sent).status_code == 400
    pair = LanguagePair(source="fr", target="en")
    write_tiny_checkpoint(fleet.folders["east"] / "french", name="french", pairs=(pair,), seed=3)
    with fleet.servers["east"].client() as east:
        assert east.post("/admin/reload", headers=BEARER).status_code == 200
    fleet.router.signal(signal.SIGHUP)
    wait(lambda: "fr" in health(fleet.router)["east"]["languages"])  # type: ignore[operator]
    assert _same(fleet, "east", "/translate", json=sent).status_code == 200


def test_a_group_that_is_away_is_named_and_the_others_go_on(tmp_path: Path, fleet: Fleet) -> None:
    """A router of its own, whose second group comes, goes, and comes again."""
    folder, port = fleet.folders["east"], free_port()
    urls = {"west": fleet.servers["west"].url, "late": f"http://127.0.0.1:{port}"}
    german = {"q": "Hallo", "source": "de", "target": "en"}
    japanese = {"q": "犬", "source": "ja", "target": "en"}
    flags = ("--port", str(port))
    with (
        running_router(urls, tmp_path / "router.log", **ROUTER) as router,
        router.client() as client,
    ):
        wait_up(router, "west")
        assert client.post("/translate", json=german).status_code == 200
        early = client.post("/translate", json=japanese)
        assert (early.status_code, early.json()["code"]) == (503, "group_unavailable")
        assert "group late cannot be reached" in early.json()["error"]
        assert "retry-after" in early.headers
        with running_server(folder, tmp_path / "late.log", *flags, **SERVERS):
            wait_up(router, "late")
            assert client.post("/translate", json=japanese).status_code == 200
        away = client.post("/translate", json=japanese)
        assert away.status_code == 503
        assert "group late cannot be reached" in away.json()["error"]
        deepl = {"text": ["犬"], "source_lang": "JA", "target_lang": "EN-GB"}
        told = client.post("/v2/translate", json=deepl, headers=DEEPL)
        assert told.status_code == 503
        assert "group late" in told.json()["message"]
        assert client.post("/translate", json=german).status_code == 200
        assert client.get("/readyz").status_code == 200
        health = client.get("/v1/health").json()
        assert health["status"] == "partial"
        assert router.metrics()["dragoman_router_group_up{group=late}"] == 0
        assert "ja" not in {one["code"] for one in client.get("/languages").json()}
        assert client.get("/v2/glossaries", headers=DEEPL).status_code == 503
        unknown = client.get("/v1/documents/none", headers=BEARER)
        assert unknown.status_code == 503, "the group that is away may have it"
        with running_server(folder, tmp_path / "again.log", *flags, **SERVERS):
            wait_up(router, "late")
            assert client.post("/translate", json=japanese).status_code == 200


def test_on_sigterm_what_was_passed_on_is_answered_and_what_comes_is_refused(
    tmp_path: Path, fleet: Fleet
) -> None:
    urls = {"west": fleet.servers["west"].url}
    long = {"q": ["The cat sees the river again and again."] * 100, "source": "de", "target": "en"}
    answers = []
    with (
        running_router(urls, tmp_path / "router.log", **ROUTER) as router,
        router.client() as client,
    ):
        wait_up(router, "west")
        asking = threading.Thread(
            target=lambda: answers.append(client.post("/translate", json=long))
        )
        asking.start()
        wait(lambda: router.metrics()["dragoman_router_requests_in_progress"] >= 2)
        router.signal(signal.SIGTERM)
        asking.join()
        assert router.wait() == 0
    [answer] = answers
    assert answer.status_code == 200
    assert len(answer.json()["translatedText"]) == 100


def test_a_router_without_groups_or_with_a_wrong_one_says_so_in_one_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    from service.cli.main import main

    assert main(["route"]) == 1
    assert "there is no group; give at least one" in capsys.readouterr().err
    assert main(["route", "--group", "a=b"]) == 1
    assert "it must be http://HOST:PORT" in capsys.readouterr().err
