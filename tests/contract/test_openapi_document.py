"""The OpenAPI document against a live server: its keys, answers and examples, one by one."""

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatch
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
import pytest

from service.access.keys import ApiKey, new_key
from service.api.operations.examples import example_of
from support.running_server import RunningServer, running_server

FORM = "application/x-www-form-urlencoded"
UPLOADS = {"/v1/documents", "/translate_file", "/v2/document"}
CHANGES = {"/admin/reload"}
"""What has neither a body nor a value in its path, and changes the server: no page offers it."""
REFUSED = {("/v1/models/{name}/load", "post"), ("/v1/models/{name}/unload", "post")}
"""What a server of one model only refuses; `tests/contract/test_models.py` has their answers."""

Operation = tuple[str, str]


@dataclass(kw_only=True)
class Walk:
    """Requests to a server with keys, each for an operation of its document.

    Attributes:
        client: With an administrator's key.
        operations: Of the document, by path and method.
        replies: What was answered so far.
    """

    client: httpx.Client
    operations: Mapping[Operation, dict[str, Any]]
    replies: dict[Operation, list[httpx.Response]] = field(default_factory=dict)

    def send(self, method: str, path: str, *names: str, **options: Any) -> httpx.Response:
        """Ask an operation by its path in the document, with the values that go into it."""
        parts = iter(names)
        address = "/".join(next(parts) if part[:1] == "{" else part for part in path.split("/"))
        reply = self.client.request(method, address, **options)
        self.replies.setdefault((path, method), []).append(reply)
        return reply

    def body(self, method: str, path: str, kind: str = "application/json") -> Any:
        """The example of a body."""
        return self.operations[path, method]["requestBody"]["content"][kind]["example"]


@pytest.fixture(scope="module")
def admin_key() -> str:
    return new_key()[0]


@pytest.fixture(scope="module")
def closed(
    served_checkpoint: Path, admin_key: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningServer]:
    """A server for callers with a key alone, an administrator among them."""
    folder = tmp_path_factory.mktemp("closed")
    key = ApiKey(name="ops", sha256=sha256(admin_key.encode()).digest(), is_admin=True)
    (folder / "keys.toml").write_text(key.line())
    environment = {
        "DRAGOMAN_API_KEYS_FILE": str(folder / "keys.toml"),
        "DRAGOMAN_METRICS_KEY_REQUIRED": "true",
        "DRAGOMAN_SUGGESTIONS": str(folder / "suggestions.jsonl"),
    }
    with running_server(served_checkpoint, folder / "log.jsonl", **environment) as server:
        yield server


@pytest.fixture(scope="module")
def document(closed: RunningServer) -> dict[str, Any]:
    with closed.client() as client:
        found: dict[str, Any] = client.get("/openapi.json").json()
    return found


@pytest.fixture(scope="module")
def operations(document: Mapping[str, Any]) -> dict[Operation, dict[str, Any]]:
    return {
        (path, method): operation
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }


@pytest.fixture(scope="module")
def walk(
    closed: RunningServer, admin_key: str, operations: Mapping[Operation, dict[str, Any]]
) -> Iterator[Walk]:
    """Every operation, asked for what it does."""
    with closed.client() as client:
        client.headers["authorization"] = f"Bearer {admin_key}"
        walk = Walk(client=client, operations=operations)
        for path, method in operations:
            if method == "get" and "{" not in path and path != "/v3/languages":
                walk.send("get", path)
        for path in ("/translate", "/detect", "/suggest", "/v1/translate", "/v1/translate/stream"):
            walk.send("post", path, json=walk.body("post", path))
        walk.send("post", "/v2/translate", json=walk.body("post", "/v2/translate"))
        walk.send("get", "/v3/languages", params={"resource": "glossary"})
        _walk_glossaries(walk)
        _walk_documents(walk)
        for path, method in REFUSED:
            walk.send(method, path, "tiny")
        walk.send("post", "/admin/reload")
        yield walk


def _walk_glossaries(walk: Walk) -> None:
    pair = {"source_lang": "en", "target_lang": "zh"}
    path = "/v2/glossaries"
    one = walk.send("post", path, json=walk.body("post", path)).json()["glossary_id"]
    walk.send("get", f"{path}/{{glossary_id}}", one)
    walk.send("get", f"{path}/{{glossary_id}}/entries", one)
    walk.send("get", f"{path}/{{glossary_id}}/entries", one, headers={"accept": "application/json"})
    walk.send("delete", f"{path}/{{glossary_id}}", one)
    path = "/v3/glossaries"
    one = walk.send("post", path, json=walk.body("post", path)).json()["glossary_id"]
    walk.send("get", f"{path}/{{glossary_id}}", one)
    walk.send("get", f"{path}/{{glossary_id}}/entries", one, params=pair)
    for method, rest in (("patch", ""), ("put", "/dictionaries")):
        operation = f"{path}/{{glossary_id}}{rest}"
        for kind in ("application/json", FORM):
            body = walk.body(method, operation, kind)
            sent = {"data": body} if kind == FORM else {"json": body}
            walk.send(method, operation, one, **sent)
    walk.send("delete", f"{path}/{{glossary_id}}/dictionaries", one, params=pair)
    walk.send("delete", f"{path}/{{glossary_id}}", one)


def _walk_documents(walk: Walk) -> None:
    files = {"file": ("a.html", b"<p>A cat.</p>")}
    languages = {"source": "en", "target": "zh"}
    part = {"headers": {"range": "bytes=0-3"}}
    path = "/v1/documents/{document_id}"
    one = walk.send("post", "/v1/documents", files=files, data=languages).json()["id"]
    while walk.send("get", path, one).json()["state"] != "done":
        time.sleep(0.02)
    walk.send("get", f"{path}/result", one)
    walk.send("get", f"{path}/result", one, **part)
    walk.send("get", f"{path}/result", one, headers={"range": "bytes=9999-"})
    walk.send("delete", path, one)
    link = walk.send("post", "/translate_file", files=files, data=languages).json()
    name = link["translatedFileUrl"].rpartition("/")[2]
    walk.send("get", "/download_file/{name}", name, **part)
    walk.send("get", "/download_file/{name}", name)
    languages = {"source_lang": "en", "target_lang": "zh"}
    one = walk.send("post", "/v2/document", files=files, data=languages).json()
    path, key = "/v2/document/{document_id}", {"document_key": one["document_key"]}
    name = one["document_id"]
    while walk.send("post", path, name, data=key).json()["status"] != "done":
        time.sleep(0.02)
    walk.send("post", path, name, json=key)
    walk.send("post", f"{path}/result", name, json=key)
    walk.send("post", f"{path}/result", name, data=key)


def test_whatever_takes_a_key_says_so_and_nothing_else_does(
    closed: RunningServer, operations: Mapping[Operation, dict[str, Any]]
) -> None:
    with closed.client() as client:
        for (path, method), operation in operations.items():
            address = path.replace("{", "").replace("}", "")
            keyless = client.request(method, address).status_code
            wrong = client.request(method, address, headers={"authorization": "Bearer no"})
            if operation.get("security"):
                assert (keyless, wrong.status_code) in ((401, 403), (403, 403)), (method, path)
                assert {str(keyless), "403"} <= set(operation["responses"]), (method, path)
            else:
                assert keyless in (200, 404), (method, path)
                assert wrong.status_code == keyless, (method, path)


def test_every_operation_answers_as_the_document_says_it_does(walk: Walk) -> None:
    assert set(walk.replies) == set(walk.operations)
    for (path, method), replies in walk.replies.items():
        answers = walk.operations[path, method]["responses"]
        for reply in replies:
            where = (method, path, reply.status_code, reply.text[:200])
            assert str(reply.status_code) in answers, where
            kinds = answers[str(reply.status_code)].get("content", {})
            assert bool(kinds) == bool(reply.content), where
            assert not kinds or any(_is_of(kind, reply) for kind in kinds), where


def test_every_success_and_every_type_of_it_that_the_document_has_is_sent(walk: Walk) -> None:
    for operation, described in walk.operations.items():
        for status, answer in described["responses"].items():
            if not status.startswith("2") or operation in REFUSED:
                continue
            sent = [one for one in walk.replies[operation] if str(one.status_code) == status]
            assert sent, (operation, status)
            for kind in answer.get("content", {}):
                assert any(_is_of(kind, reply) for reply in sent), (operation, status, kind)


def _is_of(kind: str, reply: httpx.Response) -> bool:
    """A reply has a media type of the document, which says parameters or leaves them open."""
    found = reply.headers["content-type"]
    return fnmatch(found, kind) or fnmatch(found.partition(";")[0], kind)


def test_every_post_has_an_example_but_uploads_and_what_has_no_body(
    operations: Mapping[Operation, dict[str, Any]],
) -> None:
    without = {
        path
        for (path, method), operation in operations.items()
        if method == "post" and "{" not in path and example_of(path, method, operation) is None
    }
    assert without == UPLOADS | CHANGES


def test_examples_are_answered_as_they_stand_in_every_type_that_has_one(
    walk: Walk, operations: Mapping[Operation, dict[str, Any]]
) -> None:
    num_sent = 0
    for (path, method), operation in operations.items():
        for kind, content in operation.get("requestBody", {}).get("content", {}).items():
            if "example" not in content or "{" in path:
                continue
            body, num_sent = content["example"], num_sent + 1
            if kind == FORM:
                reply = walk.client.request(method, path, data=body)
            else:
                example = example_of(path, method, operation)
                assert example is not None
                assert example.body is not None
                assert json.loads(example.body) == body
                reply = walk.client.request(
                    method, path, content=example.body, headers={"content-type": kind}
                )
            assert reply.is_success, (method, path, kind, reply.text)
            assert str(reply.status_code) in operation["responses"]
    assert num_sent > 8


def test_bodies_of_deepls_contract_are_json_or_a_form(
    operations: Mapping[Operation, dict[str, Any]],
) -> None:
    bodies = {
        path: set(operation["requestBody"]["content"])
        for (path, _), operation in operations.items()
        if path.startswith(("/v2/", "/v3/")) and "requestBody" in operation
    }
    assert bodies.pop("/v2/document") == {"multipart/form-data"}
    assert len(bodies) > 5
    assert all(kinds == {"application/json", FORM} for kinds in bodies.values()), bodies


def test_what_is_not_alive_and_what_is_not_ready_are_described_apart(
    operations: Mapping[Operation, dict[str, Any]],
) -> None:
    alive, ready = (operations[path, "get"]["responses"] for path in ("/livez", "/readyz"))
    assert alive["200"] == ready["200"]
    assert alive["503"]["description"].startswith("Only a restart helps")
    assert ready["503"]["description"].startswith("Booting")
