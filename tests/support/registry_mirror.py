"""A local server in the layouts of the registries, with the faults that networks have."""

import gzip
import hashlib
import json
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

from model.exchange.registry.cache import Cache
from model.exchange.registry.documents import Documents
from model.exchange.registry.download import Downloader
from model.exchange.registry.retries import Retries
from model.exchange.registry.transport import Transport

COMMIT = "0123456789abcdef0123456789abcdef01234567"


_FIREFOX_NAMES = {
    "model": "model.{pair}.intgemm.alphas.bin.gz",
    "vocab": "vocab.{pair}.spm.gz",
    "srcVocab": "srcvocab.{pair}.spm.gz",
    "trgVocab": "trgvocab.{pair}.spm.gz",
    "lexicalShortlist": "lex.50.50.{pair}.s2t.bin.gz",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One answer that is not the usual one.

    Attributes:
        status: Sent instead of a file, with `headers`; None sends the file.
        headers: Sent as well, or instead of the usual ones.
        cut_after: Bytes of the body after which the connection is closed.
        ignores_range: The whole file comes whatever was asked for.
        body: Sent instead of the file.
        is_endless: The body never ends and has no length.
        has_no_length: The body has no length.
    """

    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    cut_after: int | None = None
    ignores_range: bool = False
    body: bytes | None = None
    is_endless: bool = False
    has_no_length: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request that came, and how many bytes of a body went back, if it had an end."""

    method: str
    path: str
    headers: Mapping[str, str]
    num_bytes: int


@dataclass
class Mirror:
    """What is served, and what was asked.

    Attributes:
        url: Of the server, without a slash at its end.
        files: By path.
        faults: By path: the next answers, one after the other; `always` those that stay.
        asked: Requests in order.
    """

    url: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    faults: dict[str, list[Fault]] = field(default_factory=dict)
    always: dict[str, Fault] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)

    def bodies_of(self, path: str) -> list[int]:
        """Bytes of every body that was sent of a file."""
        return [one.num_bytes for one in self.asked if one.path == path and one.method == "GET"]

    def put_json(self, path: str, value: object) -> None:
        self.files[path] = json.dumps(value).encode()

    def put_hub_repository(
        self,
        repository: str,
        files: Mapping[str, bytes],
        *,
        card: Mapping[str, object] | None = None,
        revision: str = "main",
        siblings: list[dict[str, object]] | None = None,
    ) -> None:
        """A repository as the hub has it; large files are known by their SHA-256, others by git."""
        listed = [_sibling(name, data) for name, data in files.items()]
        self.put_json(
            f"/api/models/{repository}/revision/{revision}",
            {
                "_id": "6",
                "id": repository,
                "modelId": repository,
                "sha": COMMIT,
                "private": False,
                "tags": ["translation", "license:apache-2.0"],
                "cardData": dict(card or {}),
                "siblings": listed if siblings is None else siblings,
                "usedStorage": 1,
            },
        )
        for name, data in files.items():
            self.files[f"/{repository}/resolve/{COMMIT}/{name}"] = data

    def put_firefox_model(self, pair: str, entry: Mapping[str, object], **files: bytes) -> None:
        """A model of the Firefox registry, its files packed; the index keeps what it had.

        Of the model alone it has a size and a checksum.
        """
        path = "/db/models.json"
        index = json.loads(self.files.get(path, b'{"generated": "x", "models": {}}'))
        listed: dict[str, dict[str, object]] = {}
        for kind, data in files.items():
            name = _FIREFOX_NAMES[kind].format(pair=pair.replace("-", "").lower())
            name = f"models/{pair}/{entry['architecture']}/exported/{name}"
            self.files[f"/{name}"] = gzip.compress(data, mtime=0)
            listed[kind] = {"path": name}
            if kind == "model":
                listed[kind]["uncompressedSize"] = len(data)
                listed[kind]["uncompressedHash"] = hashlib.sha256(data).hexdigest()
        index["models"].setdefault(pair, []).append({**entry, "files": listed})
        self.put_json(path, index)

    def put_argos_package(self, source: str, target: str, data: bytes, *, version: str) -> str:
        """A package of the Argos index; returns the path of its file."""
        index = json.loads(self.files.get("/index.json", b"[]"))
        path = f"/v1/translate-{source}_{target}-{version.replace('.', '_')}.argosmodel"
        self.files[path] = data
        index.append(
            {
                "package_version": version,
                "argos_version": "1.9.0",
                "from_code": source,
                "from_name": source.title(),
                "to_code": target,
                "to_name": target.title(),
                "links": [f"ipfs://{version}", f"{self.url}{path}"],
                "code": f"translate-{source}_{target}",
            }
        )
        self.put_json("/index.json", index)
        return path


def git_sha1(data: bytes) -> str:
    return hashlib.sha1(f"blob {len(data)}\0".encode() + data).hexdigest()


def _sibling(name: str, data: bytes) -> dict[str, object]:
    listed: dict[str, object] = {"rfilename": name, "size": len(data)}
    if name.endswith((".safetensors", ".bin", ".spm", ".zip")):
        digest = hashlib.sha256(data).hexdigest()
        listed |= {
            "blobId": "1" * 40,
            "lfs": {"sha256": digest, "size": len(data), "pointerSize": 134},
        }
    else:
        listed["blobId"] = git_sha1(data)
    return listed


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    mirror: Mirror

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def _answer(self) -> None:
        path = unquote(urlsplit(self.path).path)
        waiting = self.mirror.faults.get(path)
        usual = self.mirror.always.get(path, Fault())
        fault = waiting.pop(0) if waiting else usual
        self.close_connection = True
        data = self.mirror.files.get(path) if fault.body is None else fault.body
        if fault.status is not None:
            self._send(fault.status, dict(fault.headers), fault.body or b"")
        elif data is None:
            self._send(404, {}, b"no such file")
        elif fault.is_endless:
            self._send_endless()
        else:
            self._send_file(data, fault)

    def _note(self, num_bytes: int) -> None:
        """Write a request down before it is answered, so that whoever has the answer sees it."""
        asked = Asked(
            method=self.command,
            path=unquote(urlsplit(self.path).path),
            headers={name.lower(): value for name, value in self.headers.items()},
            num_bytes=num_bytes,
        )
        self.mirror.asked.append(asked)

    def _send_file(self, data: bytes, fault: Fault) -> None:
        tag = f'"{hashlib.sha256(data).hexdigest()}"'
        headers = {"ETag": tag, "X-Repo-Commit": COMMIT}
        if self.headers.get("If-None-Match") == tag:
            self._send(304, {**headers, **fault.headers}, b"")
            return
        start = self._start(tag, fault)
        if start > 0 and start >= len(data):
            self._send(416, {"Content-Range": f"bytes */{len(data)}"}, b"")
            return
        if start:
            headers["Content-Range"] = f"bytes {start}-{len(data) - 1}/{len(data)}"
        body = data[start:]
        self._send(
            206 if start else 200,
            {**headers, **fault.headers},
            body,
            cut_after=fault.cut_after,
            has_length=not fault.has_no_length,
        )

    def _start(self, tag: str, fault: Fault) -> int:
        match = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        is_same = self.headers.get("If-Range", tag) == tag
        return int(match[1]) if match and is_same and not fault.ignores_range else 0

    def _send(
        self,
        status: int,
        headers: Mapping[str, str],
        body: bytes,
        *,
        cut_after: int | None = None,
        has_length: bool = True,
    ) -> None:
        sent = b"" if self.command == "HEAD" else body[:cut_after]
        self._note(len(sent))
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if has_length and "Content-Length" not in headers:
            self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(sent)

    def _send_endless(self) -> None:
        self._note(0)
        self.send_response(200)
        self.send_header("Connection", "close")
        self.end_headers()
        with suppress(OSError):
            while True:
                self.wfile.write(b"\0" * 65_536)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """A client that leaves in the middle is what many tests are about."""


@contextmanager
def running_mirror() -> Iterator[Mirror]:
    """A mirror that listens on this machine."""
    mirror = Mirror()

    class Handler(_Handler):
        pass

    Handler.mirror = mirror
    server = _Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    mirror.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield mirror
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@dataclass
class Waits:
    """Sleep and clock of a test: nobody waits, and every wait is written down."""

    waited: list[float] = field(default_factory=list)
    now: float = 0.0
    seconds_a_look: float = 0.0

    def sleep(self, seconds: float) -> None:
        self.waited.append(seconds)
        self.now += seconds

    def clock(self) -> float:
        self.now += self.seconds_a_look
        return self.now


def quick_retries(waits: Waits, *, max_tries: int = 5) -> Retries:
    return Retries(max_tries=max_tries, sleep=waits.sleep)


def quick_downloader(waits: Waits, **more: object) -> Downloader:
    return Downloader(
        transport=Transport(timeout_seconds=5.0),
        retries=quick_retries(waits),
        clock=waits.clock,
        **more,  # type: ignore[arg-type]  # what a test hands over
    )


def quick_documents(cache: Cache, waits: Waits, *, max_tries: int = 5) -> Documents:
    return Documents(
        transport=Transport(timeout_seconds=5.0),
        cache=cache,
        retries=quick_retries(waits, max_tries=max_tries),
        clock=waits.clock,
    )
