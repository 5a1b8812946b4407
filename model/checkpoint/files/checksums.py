"""checksums.sha256: one line per file of a checkpoint, as `sha256sum -c` reads it.

Owns the listing, its verification and the bounded reading of small files. It does not know
what the files mean. Imports no torch.
"""

import hashlib
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
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
        size = os.fstat(file.fileno()).st_size  # a read takes memory for all that it asks for
        data = file.read(min(size, max_bytes) + 1)
    if len(data) > max_bytes:
        raise CheckpointError(path, f"has more than the {max_bytes} bytes that are allowed")
    return data


def format_checksums(paths: Iterable[Path]) -> bytes:
    """The lines for some files, in order of their names."""
    lines = [f"{_sha256(path)}  {path.name}\n" for path in sorted(paths)]
    return "".join(lines).encode()


def read_listing(directory: Path) -> dict[str, str]:
    """The checksum of every listed file, by name.

    Raises:
        CheckpointError: The listing is missing or unreadable.
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
    return expected


def verify_files(
    directory: Path,
    expected: Mapping[str, str],
    sizes: Mapping[str, tuple[int, int]],
    *,
    max_other_bytes: int,
) -> None:
    """Compare files with their checksums; one of another size than it can have is not read.

    A sparse file costs nothing to make, and hours to read.

    Args:
        directory: Where they are; what is there besides is left alone.
        expected: The checksum of each.
        sizes: The least and the most bytes that files can have.
        max_other_bytes: What all the others can have together.

    Raises:
        CheckpointError: A file is missing, or is not what was written.
    """
    left = max_other_bytes
    for name, digest in expected.items():
        path = directory / name
        with _opened(path) as file:
            size = os.fstat(file.fileno()).st_size
            least, most = sizes.get(name, (0, left))
            if not least <= size <= most:
                raise CheckpointError(
                    path,
                    f"is damaged or was changed: it has {size} bytes; it can have {least} to"
                    f" {most}",
                )
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != digest:
            raise CheckpointError(
                path,
                f"is damaged or was changed: its sha256 is {found}, {CHECKSUMS_FILE} has {digest}",
            )
        if name not in sizes:
            left -= size


def fingerprint(directory: Path) -> str:
    """Identifier of a checkpoint's exact files: the sha256 of their listing.

    Raises:
        CheckpointError: There is no listing.
    """
    return hashlib.sha256(read_limited(directory / CHECKSUMS_FILE, MAX_CHECKSUMS_BYTES)).hexdigest()


@contextmanager
def unreplaced(directory: Path) -> Iterator[None]:
    """Guard of a reading of several files: refuses a directory that is replaced meanwhile.

    Raises:
        CheckpointError: Another checkpoint has taken its place meanwhile.
    """
    try:
        before = fingerprint(directory)
    except CheckpointError:
        before = ""  # the reading itself reports what is wrong
    yield
    if fingerprint(directory) != before:
        raise CheckpointError(directory, "was replaced while it was read; load it again")


def _sha256(path: Path) -> str:
    with _opened(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def _opened(path: Path) -> Iterator[BufferedReader]:
    """A regular file, open for reading; a pipe could block, and a device has no end.

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
