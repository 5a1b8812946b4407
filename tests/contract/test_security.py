"""A closed server, as strangers and their unmodified clients meet it."""

import json
import time
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import httpx
import pytest
from deep_translator import LibreTranslator
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from libretranslatepy import LibreTranslateAPI

from service.access.keys import ApiKey, new_key
from support.redis_server import BINARY, running_redis
from support.running_server import RunningServer, running_server

TEXT = {"q": "The zebra crosses.", "source": "en", "target": "zh"}
NAMES = ("alice", "small", "chatty")


@pytest.fixture(scope="module")
def keys() -> dict[str, str]:
    return {name: new_key()[0] for name in NAMES}


@pytest.fixture(scope="module")
def closed(
    served_checkpoint: Path, keys: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("closed")
    limits = {
        "alice": {},
        "small": {"requests_per_minute": 2},
        "chatty": {"characters_per_minute": 40},
    }
    lines = [
        ApiKey(name=name, sha256=sha256(keys[name].encode()).digest(), **limits[name]).line()
        for name in NAMES
    ]
    file = folder / "keys.toml"
    file.write_text("\n".join(lines))
    environment = {
        "DRAGOMAN_API_KEYS_FILE": str(file),
        "DRAGOMAN_CORS_ORIGINS": "https://page.example",
        "DRAGOMAN_LOG_LEVEL": "debug",
    }
    with running_server(served_checkpoint, folder / "log.jsonl", **environment) as server:
        yield server


def _bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


def test_unmodified_clients_translate_with_their_key_and_not_without(
    closed: RunningServer, keys: dict[str, str]
) -> None:
    client = LibreTranslateAPI(f"{closed.url}/", keys["alice"])
    assert client.translate("A cat.", "en", "zh")
    with pytest.raises(Exception, match="401"):
        LibreTranslateAPI(f"{closed.url}/").translate("A cat.", "en", "zh")
    deep = LibreTranslator(
        source="en", target="zh", api_key=keys["alice"], custom_url=f"{closed.url}/"
    )
    assert deep.translate("A cat.")
    with pytest.raises(Exception, match=r"(?i)server|auth|403|key"):
        LibreTranslator(
            source="en", target="zh", api_key="wrong", custom_url=f"{closed.url}/"
        ).translate("A cat.")


def test_both_routes_take_the_header(closed: RunningServer, keys: dict[str, str]) -> None:
    with closed.client() as client:
        for path, body in (
            ("/translate", TEXT),
            ("/v1/translate", {"texts": "Cat", "target": "zh-Hans"}),
        ):
            headers = _bearer(keys["alice"])
            assert client.post(path, json=body, headers=headers).status_code == 200
            assert client.post(path, json=body).status_code == 401
            assert client.post(path, json=body, headers=_bearer("no")).status_code == 403


def test_documents_are_there_for_the_key_that_they_came_with(
    closed: RunningServer, keys: dict[str, str]
) -> None:
    files = {"file": ("a.txt", b"A cat.\n")}
    target = {"target": "zh", "source": "en"}
    with closed.client() as client:

        def send(path: str, **options: object) -> httpx.Response:
            return client.post(path, files=files, **options)  # type: ignore[arg-type]

        assert send("/v1/documents", data=target).status_code == 401
        reply = send("/v1/documents", data=target, headers=_bearer(keys["alice"]))
        path = f"/v1/documents/{reply.json()['id']}"
        for name, status in (("alice", 200), ("chatty", 404), ("nobody", 403)):
            key = _bearer(keys.get(name, "no"))
            assert client.get(path, headers=key).status_code == status
        for method in ("GET", "DELETE"):
            assert client.request(method, path).status_code == 401
        assert client.delete(path, headers=_bearer(keys["chatty"])).status_code == 404
        assert client.delete(path, headers=_bearer(keys["alice"])).status_code == 204
        assert send("/translate_file", data=target).status_code == 401
        assert send("/translate_file", data=target | {"api_key": "no"}).status_code == 403
        found = send("/translate_file", data=target | {"api_key": keys["alice"]})
        assert httpx.get(found.json()["translatedFileUrl"]).status_code == 200
        large = {"file": ("a.txt", b"A cat.\n" * 20_000)}
        refused = client.post("/translate_file", files=large, data=target)
        assert (refused.status_code, "65536" in refused.json()["error"]) == (401, True)
        refused = send("/v2/document", data={"target_lang": "ZH"})
        assert (refused.status_code, set(refused.json())) == (403, {"message"})


def test_a_glossary_is_seen_with_the_key_that_it_was_made_with_and_with_no_other(
    closed: RunningServer, keys: dict[str, str]
) -> None:
    new = {"name": "x", "source_lang": "en", "target_lang": "zh", "entries": "cat\t猫"}
    asked = {"text": ["A cat."], "source_lang": "EN", "target_lang": "ZH"}
    with closed.client() as client:
        alice, other = _bearer(keys["alice"]), _bearer(keys["chatty"])
        assert client.post("/v2/glossaries", json=new).status_code == 403
        name = client.post("/v2/glossaries", json=new, headers=alice).json()["glossary_id"]
        asked["glossary_id"] = name
        for headers, status, num in ((alice, 200, 1), (other, 404, 0)):
            assert len(client.get("/v3/glossaries", headers=headers).json()["glossaries"]) == num
            assert client.get(f"/v2/glossaries/{name}", headers=headers).status_code == status
            reply = client.post("/v2/translate", json=asked, headers=headers)
            assert reply.status_code == status
        assert client.delete(f"/v2/glossaries/{name}", headers=other).status_code == 404
        assert client.delete(f"/v2/glossaries/{name}", headers=alice).status_code == 204


def test_deepls_clients_show_the_key_in_its_own_scheme_and_know_no_401(
    closed: RunningServer, keys: dict[str, str]
) -> None:
    body = {"text": ["A cat."], "target_lang": "ZH"}

    def send(path: str, key: str | None) -> httpx.Response:
        headers = {} if key is None else {"authorization": f"DeepL-Auth-Key {key}"}
        return client.post(path, json=body if path.endswith("translate") else {}, headers=headers)

    with closed.client() as client:
        before = send("/v2/usage", keys["alice"]).json()["character_count"]
        for path in ("/v2/translate", "/v2/languages", "/v2/usage"):
            assert send(path, keys["alice"]).status_code == 200
            for wrong in (None, "invalid"):
                refused = send(path, wrong)
                assert refused.status_code == 403
                assert set(refused.json()) == {"message"}
        after = send("/v2/usage", keys["alice"]).json()["character_count"]
        assert after == before + len("A cat.")
        message = send("/v2/usage", None).json()["message"]
        assert message.endswith("Authorization: DeepL-Auth-Key KEY")
        assert client.post("/translate", json=TEXT).status_code == 401


def test_a_page_is_told_that_a_key_is_needed_and_nothing_is_kept(closed: RunningServer) -> None:
    with closed.client() as client:
        told = client.get("/frontend/settings").json()
        assert (told["apiKeys"], told["keyRequired"], told["suggestions"]) == (True, True, False)
        refused = client.post("/suggest", json=TEXT | {"s": "猫"})
        assert refused.status_code == 403
        assert refused.json()["error"] == "Suggestions are disabled on this server."


def test_limits_belong_to_keys(closed: RunningServer, keys: dict[str, str]) -> None:
    with closed.client() as client:

        def send(name: str, text: str) -> httpx.Response:
            return client.post("/translate", json=TEXT | {"q": text}, headers=_bearer(keys[name]))

        assert [send("small", "Cat").status_code for _ in range(3)] == [200, 200, 429]
        assert [send("chatty", "A" * 30).status_code for _ in range(2)] == [200, 429]
        refused = send("chatty", "A" * 30)
        assert refused.json()["error"] == "Slowdown: the limit is 40 characters a minute"
        assert 1 <= int(refused.headers["retry-after"]) <= 120
        assert send("chatty", "A" * 41).json()["code"] == "too_long"
        body = {"text": ["A" * 30], "target_lang": "ZH"}
        deepl = client.post("/v2/translate", json=body, headers=_bearer(keys["chatty"]))
        assert deepl.status_code == 429
        assert deepl.json() == {"message": "Slowdown: the limit is 40 characters a minute"}
        assert 1 <= int(deepl.headers["retry-after"]) <= 120
        assert send("alice", "A" * 41).status_code == 200


def test_a_page_of_the_named_origin_may_call_it(closed: RunningServer) -> None:
    with closed.client() as client:
        reply = client.options(
            "/translate",
            headers={
                "origin": "https://page.example",
                "access-control-request-method": "POST",
                "access-control-request-headers": "authorization",
            },
        )
        assert reply.headers["access-control-allow-origin"] == "https://page.example"
        assert "access-control-allow-credentials" not in reply.headers
        asked = {"origin": "https://other.example", "access-control-request-method": "PROPFIND"}
        reply = client.options("/translate", headers=asked)
        assert reply.status_code == 400
        assert set(reply.json()) == {"error", "code", "value", "limit"}
        assert (reply.json()["code"], reply.json()["value"]) == ("cors_refused", "origin, method")
        assert "access-control-allow-origin" not in reply.headers
        reply = client.options("/v2/translate", headers=asked)
        assert (reply.status_code, set(reply.json())) == (400, {"message"})
        assert "origin, method" in reply.json()["message"]
        assert "x-trace-id" in reply.headers
        refused = client.post("/translate", json=TEXT, headers={"origin": "https://page.example"})
        assert refused.status_code == 401
        assert refused.headers["access-control-allow-origin"] == "https://page.example"


def test_whatever_comes_for_a_key_is_refused_and_never_a_fault(closed: RunningServer) -> None:
    values = st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=300),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
        ),
        max_leaves=5,
    )
    headers = st.binary(max_size=300).map(
        lambda data: data.translate(None, bytes(range(32)) + b"\x7f").strip()
    )

    @settings(
        max_examples=100, deadline=None, database=None, suppress_health_check=list(HealthCheck)
    )
    @given(values, headers)
    def send(value: object, header: bytes) -> None:
        content = json.dumps(TEXT | {"api_key": value})
        kind = {"content-type": "application/json"}
        assert client.post("/translate", content=content, headers=kind).status_code in (
            400,
            401,
            403,
        )
        reply = client.post("/v1/translate", headers={b"authorization": header})
        assert reply.status_code in (401, 403)

    with closed.client() as client:
        send()


def test_a_key_in_the_query_string_counts_beside_any_body(
    closed: RunningServer, keys: dict[str, str]
) -> None:
    text = {"q": "A cat.", "source": "en", "target": "zh"}
    large = text | {"q": "A cat. " * 10_000}  # more than is read of a body for a key
    with closed.client() as client:
        for key, status in ((keys["alice"], 200), ("no", 403)):
            query = {"api_key": key}
            for body in ({"json": text}, {"data": text}):
                reply = client.post("/translate", params=query, **body)  # type: ignore[arg-type]
                assert reply.status_code == status
        assert client.post("/translate", params={"api_key": "no"}, json=large).status_code == 403
        reply = client.post("/translate", params={"api_key": keys["alice"]}, json=large)
        assert (reply.status_code, reply.json()["limit"]) == (413, 20_000)


def test_neither_keys_nor_texts_nor_addresses_are_in_the_log_or_the_metrics(
    closed: RunningServer, keys: dict[str, str]
) -> None:
    with closed.client() as client:
        for key in (*keys.values(), "wrong-" + "k" * 40):
            client.post("/translate", json=TEXT | {"api_key": key})
            client.post("/translate", params=TEXT | {"api_key": key})
            client.post(f"/{key}", headers=_bearer(key))
        client.post(
            "/translate", json=TEXT, headers=_bearer(keys["alice"]) | {"x-request-id": "last"}
        )
        metrics = client.get("/metrics").text
    deadline = time.monotonic() + 30
    while '"last"' not in (log := closed.log.read_text()):
        assert time.monotonic() < deadline
    # The address that it listens on is one of the operator's settings, and no client's.
    others = [line for line in log.splitlines() if '"event": "settings"' not in line]
    assert len(others) == len(log.splitlines()) - 1
    assert "127.0.0.1" not in "".join([*others, metrics])
    for secret in (*keys.values(), "wrong-k", "zebra"):
        assert secret not in log
        assert secret not in metrics
    for key in keys.values():
        assert sha256(key.encode()).hexdigest() not in log
    lines = [json.loads(line) for line in log.splitlines()]
    assert {line.get("key") for line in lines if line["event"] == "request"} >= set(NAMES)
    for name in NAMES:
        assert name not in metrics


@pytest.mark.skipif(BINARY is None, reason="no redis-server; see .ci/redis")
def test_two_servers_share_limits_through_redis_and_go_on_without_it(
    served_checkpoint: Path, tmp_path: Path
) -> None:
    with running_redis(tmp_path) as redis:
        environment = {"DRAGOMAN_REDIS_URL": redis.url, "DRAGOMAN_REQUESTS_PER_MINUTE": "3"}
        with (
            running_server(served_checkpoint, tmp_path / "one.jsonl", **environment) as one,
            running_server(served_checkpoint, tmp_path / "two.jsonl", **environment) as two,
            one.client() as first,
            two.client() as second,
        ):
            clients = (first, second, first, second, first)
            statuses = [client.post("/translate", json=TEXT).status_code for client in clients]
            assert statuses == [200, 200, 200, 429, 429]
            redis.stop()
            statuses = [first.post("/translate", json=TEXT).status_code for _ in range(4)]
            assert statuses == [200, 200, 200, 429]
        log = (tmp_path / "one.jsonl").read_text()
    assert log.count("redis_lost") == 1
