"""Download of one file: bounded, resumed where it stopped, verified before it has its name.

Owns the file that grows beside it, `.NAME.partial`, and what is kept of its validator. It does not
own where files lie (`cache`), what is tried again (`retries`) or the room on the disk (`pulling`).
"""

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from model.errors import RegistryError, UnreachableError
from model.exchange.registry.checksum import Verifier, blocks, is_packed, problem_of, unpack
from model.exchange.registry.kept import drop_checksum, keep_checksum, known_content
from model.exchange.registry.listing import Content, RemoteFile
from model.exchange.registry.pace import PaceWatch
from model.exchange.registry.retries import Retries, check_status
from model.exchange.registry.transport import Reply, Transport, content_length
from model.system.paths import exists, flush, is_file

PARTIAL_SUFFIX = ".partial"
_VALIDATOR_SUFFIX = ".etag"
_UNPACKED_SUFFIX = ".unpacked"
_BLOCK = 2**18
_CONTENT_RANGE = re.compile(r"bytes ([0-9]{1,19})-([0-9]{1,19})/([0-9]{1,19}|\*)")
_STRONG_TAG = re.compile(r'"[\x21\x23-\x7e]{1,500}"')

Advance = Callable[[int], None]
"""Told of bytes that came; of a negative number when they are dropped."""


def no_progress(num_bytes: int) -> None:
    """Progress that is not shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Downloader:
    """Downloader, with what all downloads share.

    Attributes:
        transport: Asks.
        retries: When again.
        clock: Seconds, monotonic; a server that sends almost nothing is told by it.
        advance: Told of the bytes.
    """

    transport: Transport
    retries: Retries = field(default_factory=Retries)
    clock: Callable[[], float] = time.monotonic
    advance: Advance = no_progress

    def fetch(self, file: RemoteFile, target: Path) -> None:
        """Make `target` the file, whose bytes are then those of the listing.

        One that is there and is right stays; where no checksum is listed, it must have the one
        that was kept when it came. One that is not is replaced, once the right one is there. After
        any error but a broken connection, nothing is left of what came.

        Raises:
            RegistryError: The server has no such file, or another one.
            OSError: The disk is full, or cannot be written.
        """
        if _is_right(target, file):
            self.advance(file.stored.size or file.final.size or 0)
            return
        growing = _Growing(target.with_name(f".{target.name}{PARTIAL_SUFFIX}"), file, self)
        was_resumed = growing.size > 0
        try:
            growing.complete()
            growing.finish(target)
        except RegistryError as error:
            if isinstance(error, UnreachableError) or not was_resumed:
                raise
            growing.complete()  # what an earlier process left was of another file
            growing.finish(target)


def _is_right(target: Path, file: RemoteFile) -> bool:
    if not is_file(target):
        return False
    known = known_content(target, file)
    return known is not None and problem_of(target, known) is None


class _Growing:
    """The partial file of one download."""

    def __init__(self, path: Path, file: RemoteFile, shared: Downloader) -> None:
        self._path, self._file, self._shared = path, file, shared
        self._tag_path = path.with_name(path.name + _VALIDATOR_SUFFIX)
        self._num_advanced = 0

    @property
    def size(self) -> int:
        """Bytes that are there."""
        return self._path.stat().st_size if exists(self._path) else 0

    def complete(self) -> None:
        """Fetch what is missing, and check the whole.

        Raises:
            RegistryError: As `Downloader.fetch`; nothing is left but after an UnreachableError.
        """
        try:
            if not self._is_whole():
                self._shared.retries.run(self._attempt, gained=lambda: self.size)
        except UnreachableError:
            raise
        except BaseException as error:
            if not isinstance(error, (KeyboardInterrupt, SystemExit)):
                self._drop()
            raise

    def finish(self, target: Path) -> None:
        """Unpack if need be, and give the file its name."""
        whole = self._path
        try:
            if self._file.unpacked is not None:
                whole = self._unpacked()
            flush(whole)
            if self._file.final.checksum is None:
                keep_checksum(whole, target)
            whole.replace(target)
        except BaseException:
            whole.unlink(missing_ok=True)
            drop_checksum(target)
            raise
        finally:
            self._drop()

    def _unpacked(self) -> Path:
        """The file that is kept, of one that was listed as packed; either form may have come."""
        is_plain = not is_packed(self._path)
        if problem := problem_of(self._path, self._file.final if is_plain else self._file.stored):
            raise RegistryError(self._file.url, problem)
        if is_plain:
            return self._path
        target = self._path.with_name(self._path.name + _UNPACKED_SUFFIX)
        try:
            unpack(self._path, target, self._file)
        except BaseException:
            target.unlink(missing_ok=True)
            raise
        return target

    def _is_whole(self) -> bool:
        """Whether an earlier process was stopped between the last byte and the name."""
        expected = self._expected()
        if expected.size is None or self.size < expected.size:
            return False
        problem = problem_of(self._path, expected)
        if problem:
            self._drop()
        return not problem

    def _attempt(self) -> None:
        """One request, from where the file ends."""
        kept, tag = self._kept()
        headers = {"Range": f"bytes={kept}-"} if kept else {}
        if kept and tag:
            headers["If-Range"] = tag
        reply = self._shared.transport.request(self._file.url, headers=headers)
        try:
            if reply.status == 416 and kept:
                self._drop()
                raise UnreachableError(self._file.url, f"has nothing from byte {kept} on")
            check_status(reply, self._file.url)
            start = self._start(reply, kept)
            self._check_encoding(reply)
            limit = self._limit(reply, start)
            if not start:
                self._begin(reply)
            self._receive(reply, start, limit)
        finally:
            reply.close()

    def _kept(self) -> tuple[int, str | None]:
        """Bytes to go on from and the validator that they came under.

        Without a validator only a checksum can tell whether the rest is of the same file.
        """
        size = self.size
        tag = ""
        if exists(self._tag_path):
            tag = self._tag_path.read_text(encoding="ascii", errors="replace")
        is_tagged = _STRONG_TAG.fullmatch(tag) is not None
        is_checked = self._file.final.checksum is not None
        if size and not (is_tagged or is_checked):
            self._drop()
            return 0, None
        return size, tag if is_tagged else None

    def _begin(self, reply: Reply) -> None:
        """Drop what is there, and keep the validator of what comes."""
        self._drop()
        tag = reply.headers.get("ETag", "")
        if _STRONG_TAG.fullmatch(tag):
            self._tag_path.write_text(tag, encoding="ascii")

    def _start(self, reply: Reply, kept: int) -> int:
        """Where the body begins: after what is there, or anew."""
        if reply.status != 206:
            return 0
        match = _CONTENT_RANGE.fullmatch(reply.headers.get("Content-Range", ""))
        if match is None or int(match[1]) != kept or not kept:
            self._drop()
            raise RegistryError(self._file.url, "sent another part of the file than was asked for")
        return kept

    def _check_encoding(self, reply: Reply) -> None:
        encoding = reply.headers.get("Content-Encoding", "identity").lower()
        if encoding == "identity" or (encoding == "gzip" and self._file.unpacked is not None):
            return
        raise RegistryError(self._file.url, f"comes encoded as {encoding}, which nobody asked for")

    def _limit(self, reply: Reply, start: int) -> int | None:
        """Size of what comes as a whole; None where neither server nor registry says."""
        length = content_length(reply.headers)
        total = None if length is None else start + length
        largest = self._largest()
        if total is not None and total > largest:
            raise RegistryError(self._file.url, f"has {total} bytes; at most {largest} are listed")
        expected = self._expected().size
        if total is not None and expected is not None and total != expected:
            raise RegistryError(self._file.url, f"has {total} bytes; {expected} are listed")
        return total if expected is None else expected

    def _largest(self) -> int:
        """The most bytes that may come, packed or not."""
        sizes = [self._file.stored.size, self._file.final.size]
        known = [size for size in sizes if size is not None]
        is_all_known = self._file.unpacked is None or len(known) == len(sizes)
        return max(known) if known and is_all_known else self._file.max_bytes

    def _receive(self, reply: Reply, start: int, total: int | None) -> None:
        verifier = Verifier(self._expected())
        for block in blocks(self._path) if start else ():
            verifier.update(block)
        self._advance(verifier.size)
        self._append(reply, verifier)
        if total is not None and verifier.size < total:
            broken = f"broke off after {verifier.size} of {total} bytes"
            raise UnreachableError(self._file.url, broken)
        if problem := verifier.problem():
            raise RegistryError(self._file.url, problem)

    def _append(self, reply: Reply, verifier: Verifier) -> None:
        """Write what comes, to its end or to the bound."""
        watch = PaceWatch(self._file.url, self._shared.clock)
        largest = self._largest()
        with self._path.open("ab") as stream:
            while block := reply.read(_BLOCK):
                if verifier.size + len(block) > largest:
                    raise RegistryError(self._file.url, f"sends more than {largest} bytes")
                stream.write(block)
                verifier.update(block)
                self._advance(verifier.size)
                watch.received(len(block))

    def _expected(self) -> Content:
        """What is known of the bytes that come: of what may be packed or not, nothing yet."""
        return self._file.stored if self._file.unpacked is None else Content()

    def _advance(self, size: int) -> None:
        self._shared.advance(size - self._num_advanced)
        self._num_advanced = size

    def _drop(self) -> None:
        self._path.unlink(missing_ok=True)
        self._tag_path.unlink(missing_ok=True)
