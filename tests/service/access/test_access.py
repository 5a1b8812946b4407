"""Access, at an application without an engine: 503 "booting" means that it was let in."""

import asyncio
import json
import logging
import threading
from hashlib import sha256
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry
from starlette.requests import Request

from model.errors import ConfigError
from service.access.access import Access, AccessPolicy
from service.access.key_store import KeySources, KeyStore
from service.access.keys import ApiKey, KeyRing
from service.access.rates import RateLimiter
from service.errors import RequestError
from service.front import Front
from service.settings import Settings
from service.telemetry.metrics import Metrics
from support.keyed_client import (
    ADMIN,
    ALICE,
    LET_IN,
    NATIVE,
    TEXT,
    WRONG,
    Client,
    key_line,
    outcome,
    send_unread,
)


def test_a_server_without_keys_is_open_and_ignores_what_clients_send_for_one() -> None:
    client = Client()
    for reply in (
        client.send(json=TEXT),
        client.send(json=TEXT | {"api_key": "x"}),
        client.send(json=TEXT, key="x"),
        client.send("/v1/translate", json=NATIVE, key="x"),
    ):
        assert outcome(reply) == LET_IN


@pytest.mark.parametrize("path", ["/translate", "/v1/translate"])
def test_with_keys_a_translation_needs_one(keys_file: Path, path: str) -> None:
    client = Client(api_keys_file=keys_file)
    body = TEXT if path == "/translate" else NATIVE
    reply = client.send(path, json=body)
    assert outcome(reply) == (401, "key_required")
    assert reply.headers["www-authenticate"] == "Bearer"
    assert outcome(client.send(path, json=body, key=ALICE)) == LET_IN
    reply = client.send(path, json=body, key=WRONG)
    assert outcome(reply) == (403, "invalid_api_key")
    assert reply.json()["error"] == "Invalid API key"


def test_libretranslate_clients_send_the_key_as_a_value(keys_file: Path) -> None:
    client = Client(api_keys_file=keys_file)
    for content in ({"json": TEXT}, {"data": TEXT}, {"params": TEXT}):
        ((kind, values),) = content.items()
        for key, expected in ((ADMIN, LET_IN), (WRONG, (403, "invalid_api_key"))):
            reply = client.send(**{kind: values | {"api_key": key}})
            assert outcome(reply) == expected, kind
        assert outcome(client.send(**{kind: values | {"api_key": ""}})) == (401, "key_required")


@pytest.mark.parametrize("api_key", [7, True, ["a", "b"], {"a": ALICE}, [ALICE]])
def test_a_value_that_is_no_string_is_a_wrong_key(keys_file: Path, api_key: object) -> None:
    reply = Client(api_keys_file=keys_file).send(json=TEXT | {"api_key": api_key})
    assert outcome(reply) == (403, "invalid_api_key")


def test_a_header_goes_before_a_value_and_another_scheme_is_none(keys_file: Path) -> None:
    client = Client(api_keys_file=keys_file)
    both = TEXT | {"api_key": WRONG}
    assert outcome(client.send(json=both, key=ADMIN)) == LET_IN
    basic = {"authorization": "Basic d3Jvbmc="}
    assert outcome(client.send(json=TEXT | {"api_key": ADMIN}, headers=basic)) == LET_IN
    for value in ("Bearer", "Bearer ", "bearer x"):
        reply = client.send(json=TEXT | {"api_key": ADMIN}, headers={"authorization": value})
        assert outcome(reply) == (403, "invalid_api_key")


def test_a_wrong_key_in_the_header_is_refused_before_the_body_is_read(keys_file: Path) -> None:
    app = Client(api_keys_file=keys_file).app
    sent: list[dict[str, object]] = []

    async def send(message: dict[str, object]) -> None:
        sent.append(message)

    async def receive() -> dict[str, object]:
        raise AssertionError("the body was asked for")

    for path in ("/translate", "/v1/translate"):
        scope = {
            "type": "http",
            "method": "POST",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "headers": [(b"authorization", b"Bearer " + WRONG.encode())],
            "client": None,
        }
        asyncio.run(app(scope, receive, send))  # type: ignore[arg-type]
    assert [item["status"] for item in sent if "status" in item] == [403, 403]


def test_a_body_is_small_until_a_key_is_seen(keys_file: Path) -> None:
    client = Client(api_keys_file=keys_file, max_keyless_body_bytes=2048)
    large = TEXT | {"q": "a" * 3000}
    for key, content in (
        (None, {"json": large | {"api_key": ADMIN}}),
        (None, {"data": large | {"api_key": ADMIN}}),
    ):
        reply = client.send(key=key, **content)
        assert outcome(reply) == (401, "key_required")
        assert "send the key as Authorization: Bearer KEY" in reply.json()["error"]
        assert reply.json()["value"] > reply.json()["limit"] == 2048
    assert outcome(client.send(json=large, key=ADMIN)) == LET_IN
    for content in ({"data": large}, {"json": large}):
        assert outcome(client.send(params={"api_key": ADMIN}, **content)) == LET_IN
    assert outcome(client.send(json=TEXT | {"api_key": ADMIN})) == LET_IN
    open_to_strangers = Client(
        api_keys_file=keys_file, key_required=False, max_keyless_body_bytes=2048
    )
    assert outcome(open_to_strangers.send(json=large)) == LET_IN


def test_a_large_body_without_a_key_is_refused_before_it_is_read(keys_file: Path) -> None:
    app = Client(api_keys_file=keys_file).app
    kind = "application/x-www-form-urlencoded"
    length = str(64 * 1024 + 1)
    assert send_unread(app, content_type=kind, content_length=length)[0] == 401
    wrong = {"content_type": kind, "content_length": length, "query": f"api_key={WRONG}"}
    assert send_unread(app, **wrong)[0] == 403


def test_what_strangers_send_never_waits_on_the_thread_of_texts(keys_file: Path) -> None:
    settings = Settings(checkpoint=Path("none"), api_keys_file=keys_file)
    front = Front(settings, Metrics(CollectorRegistry()))
    client = Client(front=front)
    release = threading.Event()
    held = front.text_thread.submit(release.wait, 10.0)
    large = TEXT | {"q": "a" * 20_000}  # too large to be decoded on the event loop
    for content in ({"json": large}, {"data": large}, {"params": large}):
        assert outcome(client.send(**content)) == (401, "key_required")
    assert not held.done()
    release.set()


def test_everything_that_translates_nothing_stays_open(keys_file: Path) -> None:
    client = Client(api_keys_file=keys_file)
    for path in ("/livez", "/metrics", "/docs", "/openapi.json"):
        assert client.send(path, method="GET").status_code == 200
    for path in ("/readyz", "/languages"):
        assert outcome(client.send(path, method="GET")) == LET_IN


def test_metrics_can_need_a_key(keys_file: Path) -> None:
    client = Client(api_keys_file=keys_file, metrics_key_required=True)
    statuses = [
        client.send("/metrics", method="GET", key=key).status_code for key in (None, WRONG, ALICE)
    ]
    assert statuses == [401, 403, 200]
    with pytest.raises(ConfigError, match="METRICS_KEY_REQUIRED is true, but there is no key"):
        Client(metrics_key_required=True)


def test_a_server_that_needs_keys_does_not_start_without() -> None:
    with pytest.raises(ConfigError, match="DRAGOMAN_KEY_REQUIRED is true, but there is no key"):
        Client(key_required=True)
    assert outcome(Client(key_required=None).send(json=TEXT)) == LET_IN


def test_keys_need_not_be_required(keys_file: Path) -> None:
    client = Client(api_keys_file=keys_file, key_required=False, requests_per_minute=2)
    outcomes = [outcome(client.send(json=TEXT)) for _ in range(3)]
    assert outcomes == [LET_IN, LET_IN, (429, "rate_limited")]
    outcomes = [outcome(client.send(json=TEXT, key=ALICE)) for _ in range(4)]
    assert outcomes == [LET_IN] * 3 + [(429, "rate_limited")]
    assert outcome(client.send(json=TEXT | {"api_key": WRONG})) == (429, "rate_limited")


def _request(key: str | None) -> Request:
    headers = [] if key is None else [(b"authorization", f"Bearer {key}".encode())]
    from service.telemetry.request_context import RequestContext, attach_context

    scope = {"type": "http", "headers": headers}
    attach_context(scope, RequestContext(request_id="a"))
    return Request(scope)


def test_the_administration_opens_to_its_keys_only_and_hides_without_one(
    keys_file: Path,
) -> None:
    def status(ring: KeyRing, key: str | None) -> int:
        try:
            keys = KeyStore(KeySources(), ring=ring)
            Access(AccessPolicy(), RateLimiter(lambda: 0.0), keys).check_admin(_request(key))
        except RequestError as error:
            return error.problem.status
        return 200

    alice, admin = (
        ApiKey(name=n, sha256=sha256(k.encode()).digest(), is_admin=k == ADMIN)
        for n, k in (("a", ALICE), ("b", ADMIN))
    )
    for key in (None, ALICE, ADMIN):
        assert status(KeyRing(), key) == 404
        assert status(KeyRing((alice,)), key) == 404
    both = KeyRing((alice, admin))
    assert [status(both, key) for key in (None, WRONG, ALICE, ADMIN)] == [401, 403, 403, 200]


def test_keys_can_be_read_again_and_a_spoilt_file_changes_nothing(keys_file: Path) -> None:
    client = Client(api_keys_file=keys_file)
    keys: KeyStore = client.app.state.keys
    lines = keys_file.read_text()
    keys_file.write_text(key_line("bob", "bob-" + "k" * 40))
    assert outcome(client.send(json=TEXT, key=ALICE)) == LET_IN
    keys.reload()
    assert outcome(client.send(json=TEXT, key=ALICE)) == (403, "invalid_api_key")
    keys_file.write_text("nonsense")
    with pytest.raises(ConfigError):
        keys.reload()
    assert outcome(client.send(json=TEXT, key="bob-" + "k" * 40)) == LET_IN
    keys_file.write_text(lines)
    keys.reload()
    assert outcome(client.send(json=TEXT, key=ALICE)) == LET_IN


@pytest.mark.parametrize("how", ["emptied", "gone"])
def test_a_server_whose_last_key_is_withdrawn_lets_nobody_in(keys_file: Path, how: str) -> None:
    client = Client(api_keys_file=keys_file, metrics_key_required=True)
    if how == "gone":
        keys_file.unlink()
    else:
        keys_file.write_text("")
    client.app.state.keys.reload()
    assert outcome(client.send(json=TEXT)) == (401, "key_required")
    assert outcome(client.send(json=TEXT, key=ALICE)) == (403, "invalid_api_key")
    assert client.send("/metrics", method="GET").status_code == 401
    assert client.send("/admin/reload", key=ADMIN).status_code == 404


def test_no_key_and_no_hash_is_in_a_log_an_answer_a_metric_or_a_representation(
    keys_file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    client = Client(
        api_keys_file=keys_file,
        api_keys=key_line("inline", "inline-" + "k" * 40),
        redis_url="redis://:pass-word@127.0.0.1:1",
        requests_per_minute=100,
    )
    seen = []
    for key in (ALICE, ADMIN, WRONG):
        for reply in (
            client.send(json=TEXT, key=key),
            client.send(json=TEXT | {"api_key": key}),
            client.send(params=TEXT | {"api_key": key}),
            client.send(f"/{key}"),
            client.send(f"/translate?api_key={key}"),
            client.send(data={"api_key": [key, key]}),
        ):
            seen += [reply.text, repr(dict(reply.headers))]
    seen.append(client.send("/metrics", method="GET").text)
    seen += [repr(record.__dict__) for record in caplog.records if record.name != "httpx"]
    settings = Settings(api_keys="a-secret-line", redis_url="redis://:pass-word@host")  # type: ignore[arg-type]
    seen += [repr(settings), str(settings), settings.model_dump_json(), repr(client.app)]
    secrets = [ALICE, ADMIN, WRONG, "pass-word", "a-secret-line"]
    secrets += [sha256(key.encode()).hexdigest() for key in (ALICE, ADMIN, WRONG)]
    for secret in secrets:
        assert [text for text in seen if secret in text] == []
    logged = [record.__dict__["fields"] for record in caplog.records if "fields" in record.__dict__]
    assert {"alice", "root"} <= {str(fields.get("key")) for fields in logged}
    json.dumps(logged)
