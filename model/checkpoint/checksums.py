"""checksums.sha256: one line per file of a checkpoint, as `sha256sum -c` reads it.

Owns the listing, its verification and the bounded reading of small files. It does not know
what the files mean. Imports no torch.
"""

import hashlib
import os
import re
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path

from model.errors import CheckpointError

CHECKSUMS_FILE = "checksums.sha256"
MAX_CHECKSUMS_BYTES = 64 * 2**10

_LINE = re.compile(r"([0-9a-f]{64}) [ *]([^/\\]+)")


def read_limited(path: Path, max_bytes: int) -> bytes:
    """All of a small file.

    Raises:
        CheckpointError: The file is missing, unreadable or larger than `max_bytes`.
    """
    with _opened(path) as file:
        data = file.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise CheckpointError(path, f"has more than the {max_bytes} bytes that are allowed")
    return data


def format_checksums(paths: Iterable[Path]) -> bytes:
    """The lines for some files, in order of their names."""
    lines = [f"{_sha256(path)}  {path.name}\n" for path in sorted(paths)]
    return "".join(lines).encode()


def verify_checksums(directory: Path) -> frozenset[str]:
    """Compare every listed file with its checksum.

    A file of the directory that is not listed is left alone; whoever needs it asks whether
    its name is among those returned.

    Returns:
        The names of the files that are as they were written.

    Raises:
        CheckpointError: The listing is missing or unreadable, or a file is missing or is not
            what was written.
    """
    listing = directory / CHECKSUMS_FILE
    expected: dict[str, str] = {}
    data = read_limited(listing, MAX_CHECKSUMS_BYTES)
    lines = data.decode("utf-8", "replace").removesuffix("\n").split("\n") if data else []
    for number, line in enumerate(lines, 1):
        match = _LINE.fullmatch(line)
        if match is None or not match[2].isprintable() or match[2] in expected:
            raise CheckpointError(listing, f"line {number} is not `sha256  name`, once per name")
        expected[match[2]] = match[1]
    if not expected:
        raise CheckpointError(listing, "is empty")
    for name, digest in expected.items():
        path = directory / name
        found = _sha256(path)
        if found != digest:
            raise CheckpointError(
                path,
                f"is damaged or was changed: its sha256 is {found}, {CHECKSUMS_FILE} has {digest}",
            )
    return frozenset(expected)


def fingerprint(directory: Path) -> str:
    """A name for exactly these files: the sha256 of their listing.

    Raises:
        CheckpointError: There is no listing.
    """
    return _sha256(directory / CHECKSUMS_FILE)


@contextmanager
def unreplaced(directory: Path) -> Iterator[None]:
    """Read a checkpoint, file by file, from one and the same directory.

    Raises:
        CheckpointError: Another one has taken its place meanwhile.
    """
    try:
        before = fingerprint(directory)
    except CheckpointError:
        before = ""  # whoever reads it says what is wrong
    yield
    if fingerprint(directory) != before:
        raise CheckpointError(directory, "was replaced while it was read; load it again")


def _sha256(path: Path) -> str:
    with _opened(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def _opened(path: Path) -> Iterator[BufferedReader]:
    """Read a file, and nothing else: a pipe would be waited for, and a device has no end.

    Raises:
        CheckpointError: It is missing, unreadable or no file.
    """
    try:
        with open(path, "rb", opener=_open_without_waiting) as file:  # its opener
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise CheckpointError(path, "is not a file")
            yield file
    except OSError as error:
        raise CheckpointError(path, _reason(error)) from error


def _open_without_waiting(name: str, flags: int) -> int:
    return os.open(name, flags | os.O_NONBLOCK)


def _reason(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "is missing"
    return f"cannot be read: {error.strerror or type(error).__name__}"
