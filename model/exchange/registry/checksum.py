"""Checksums of files while they come, and of files that are there.

Owns the comparison of bytes with what a registry says of them, packed ones too. Where the bytes
come from is `download`'s.
"""

import gzip
import hashlib
import zlib
from collections.abc import Iterator
from pathlib import Path

from model.errors import RegistryError
from model.exchange.registry.listing import Content, RemoteFile

_BLOCK = 2**20
GZIP_MAGIC = b"\x1f\x8b"


class Verifier:
    """Running checksum and length of a file's bytes.

    Attributes:
        size: Bytes so far.
    """

    def __init__(self, content: Content) -> None:
        self._content = content
        self.size = 0
        self._hash = hashlib.sha256()
        checksum = content.checksum
        if checksum is not None and checksum.kind == "git-sha1":
            self._hash = hashlib.sha1(f"blob {content.size}\0".encode(), usedforsecurity=False)

    def update(self, block: bytes) -> None:
        """Take the next bytes."""
        self.size += len(block)
        self._hash.update(block)

    def problem(self) -> str | None:
        """What is wrong with the whole; None if it is what was said."""
        size, checksum = self._content.size, self._content.checksum
        if size is not None and self.size != size:
            return f"has {self.size} bytes; {size} are listed"
        if checksum is not None and (found := self._hash.hexdigest()) != checksum.digest:
            return f"has the {checksum.kind} checksum {found}; {checksum.digest} is listed"
        return None


def blocks(path: Path) -> Iterator[bytes]:
    """A file, a block at a time."""
    with path.open("rb") as stream:
        while block := stream.read(_BLOCK):
            yield block


def problem_of(path: Path, content: Content) -> str | None:
    """What is wrong with a file that is there; reads all of it unless its size says enough."""
    verifier = Verifier(content)
    size = path.stat().st_size
    if content.size is not None and size != content.size:
        return f"has {size} bytes; {content.size} are listed"
    for block in blocks(path):
        verifier.update(block)
    return verifier.problem()


def is_packed(path: Path) -> bool:
    """Whether a file begins as gzip does."""
    with path.open("rb") as stream:
        return stream.read(len(GZIP_MAGIC)) == GZIP_MAGIC


def unpack(packed: Path, target: Path, file: RemoteFile) -> None:
    """Unpack a gzip file, whose bytes must be `file.unpacked`.

    Raises:
        RegistryError: They are not, or are more than may be, or it is no whole gzip file; `target`
            may be there in part.
    """
    verifier = Verifier(file.final)
    limit = file.max_bytes if file.final.size is None else file.final.size
    try:
        with gzip.open(packed) as source, target.open("wb") as stream:
            while block := source.read(_BLOCK):
                verifier.update(block)
                if verifier.size > limit:
                    raise RegistryError(file.url, f"unpacks to more than {limit} bytes")
                stream.write(block)
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise RegistryError(file.url, f"is no whole gzip file: {error}") from error
    if problem := verifier.problem():
        raise RegistryError(file.url, f"unpacked {problem}")
