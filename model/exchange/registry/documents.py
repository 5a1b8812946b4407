"""Registries' JSON documents: bounded, kept, asked for again by their validator.

Owns what is done when a registry does not answer: the document that was kept stands in, and the
caller is told. Does not own what a document says.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from model.checkpoint.description.strict_json import parse_json
from model.errors import ConfigError, RegistryError, UnreachableError
from model.exchange.registry.cache import Cache, write_whole
from model.exchange.registry.pace import PaceWatch
from model.exchange.registry.retries import PassingError, Retries, check_status
from model.exchange.registry.transport import Reply, Transport, content_length
from model.system.paths import is_file

MAX_DOCUMENT_BYTES = 64 * 2**20
_BLOCK = 2**16
_MAX_TAG = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Documents:
    """Way to documents.

    Attributes:
        transport: Asks.
        cache: Keeps.
        retries: When again.
        clock: Seconds, monotonic; a registry that sends almost nothing is told by it.
        stale: Problems with registries whose kept documents stood in, in order.
        parsed: Documents that were asked for before: each is asked for once.
    """

    transport: Transport
    cache: Cache
    retries: Retries = field(default_factory=Retries)
    clock: Callable[[], float] = time.monotonic
    stale: list[str] = field(default_factory=list)
    parsed: dict[str, object] = field(default_factory=dict)

    def get(self, url: str) -> object:
        """A parsed document.

        Raises:
            UnreachableError: The registry does not answer, and nothing was kept.
            RegistryError: It has no such document, or it is no JSON.
        """
        if url not in self.parsed:
            self.parsed[url] = self._parsed(url, self.cache.document(url))
        return self.parsed[url]

    def _parsed(self, url: str, kept: Path) -> object:
        try:
            data = self.retries.run(lambda: self._fetch(url, kept))
        except UnreachableError as error:
            if not is_file(kept):
                raise
            self.stale.append(str(error))
            data = kept.read_bytes()
        try:
            return parse_json(data)
        except ConfigError as error:
            kept.unlink(missing_ok=True)
            raise RegistryError(url, str(error)) from error

    def _fetch(self, url: str, kept: Path) -> bytes:
        tag_path = kept.with_suffix(".etag")
        headers = {"Accept": "application/json"}
        if is_file(kept) and is_file(tag_path):
            kept_tag = tag_path.read_bytes().decode("ascii", errors="replace")
            if _is_tag(kept_tag):
                headers["If-None-Match"] = kept_tag
        reply = self.transport.request(url, headers=headers)
        try:
            if reply.status == 304 and "If-None-Match" in headers:
                return kept.read_bytes()
            check_status(reply, url)
            data = _body(reply, url, PaceWatch(url, self.clock))
            tag = reply.headers.get("ETag", "")
        finally:
            reply.close()
        tag_path.unlink(missing_ok=True)  # never one document under the validator of another
        write_whole(kept, data)
        if _is_tag(tag):
            write_whole(tag_path, tag.encode("ascii"))
        return data


def _is_tag(text: str) -> bool:
    """Whether a validator can stand in a header; what was kept of one may be damaged."""
    return text.isascii() and text.isprintable() and 0 < len(text) <= _MAX_TAG


def _body(reply: Reply, url: str, watch: PaceWatch) -> bytes:
    parts: list[bytes] = []
    size, length = 0, content_length(reply.headers)
    while block := reply.read(_BLOCK):
        parts.append(block)
        size += len(block)
        if size > MAX_DOCUMENT_BYTES:
            raise RegistryError(url, f"has more than {MAX_DOCUMENT_BYTES} bytes")
        watch.received(len(block))
    if length is not None and size < length:
        raise PassingError(url, f"broke off after {size} of {length} bytes")
    return b"".join(parts)
