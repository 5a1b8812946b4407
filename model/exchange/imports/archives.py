"""Archives that models come in: unpacked within bounds into a folder of their own.

Owns what is refused of an archive: names that lead out of the folder, links and devices, more
files or bytes than a model has, contents that are far larger than the archive. It does not know
what is inside.
"""

import errno
import gzip
import lzma
import shutil
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, cast

from model.errors import ForeignModelError, UnreadableModelError, shown
from model.system.host_memory import readable_bytes
from model.system.paths import is_file

MAX_FILES = 4_096
MAX_BYTES = 64 * 2**30
MAX_RATIO = 100
"""Bytes unpacked to bytes of the archive; weights hardly shrink, and text by ten at most."""

_RATIO_FROM_BYTES = 64 * 2**20
_CHUNK_BYTES = 2**20
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_ZIP_BEGINS = b"PK\x03\x04"
_MAX_PADDING_BYTES = 16 * 2**20
"""Behind the last file of a tar; records of the largest usual blocking factor have 1 MiB."""
_REGULAR_FILE = 0o100000
_KIND = 0o170000
UNREADABLE_ARCHIVE = (
    zipfile.BadZipFile,
    tarfile.TarError,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    OSError,
    RuntimeError,  # an encrypted file, or a compression that Python does not know
    ValueError,
)
"""What reading a damaged archive raises."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Member:
    """One entry of an archive: its name, and why it is no plain file or folder, if so."""

    name: str
    is_folder: bool
    odd_kind: str | None
    num_bytes: int
    entry: zipfile.ZipInfo | tarfile.TarInfo


@contextmanager
def unpacked(source: Path) -> Iterator[Path]:
    """What to import: `source` itself, or, of an archive, a folder that lasts as long as the block.

    An archive of one folder alone is that folder; another one's has the name of the archive.

    Raises:
        UnreadableModelError: The archive is damaged.
        ForeignModelError: It has something that no model has; everything that is wrong with its
            listing is told.
    """
    is_plain = is_file(source, _refused)  # a folder, or a pipe, is not opened
    if is_plain and _is_cut_short(source):
        raise UnreadableModelError(source, ["is a zip archive without its end: it is truncated"])
    if not (is_plain and (is_zip(source) or is_tar(source))):
        yield source
        return
    with tempfile.TemporaryDirectory(prefix="dragoman-import-") as folder:
        content = Path(folder, source.stem.removesuffix(".tar").strip(".") or "model")
        content.mkdir()
        try:
            _unpack(source, content)
        except UNREADABLE_ARCHIVE as error:
            kind = UnreadableModelError if _is_damage(error) else ForeignModelError
            raise kind(source, [f"cannot be unpacked: {error}"]) from error
        yield _only_folder(content)


def _is_damage(error: Exception) -> bool:
    """Whether another copy of the archive may be unpacked, though this one is not."""
    is_full = isinstance(error, OSError) and error.errno in _NO_ROOM
    return not is_full and not isinstance(error, RuntimeError)


def is_zip(path: Path) -> bool:
    """Whether a file is a zip archive of files, by its content; false where it cannot be read.

    Weights of PyTorch (`data.pkl`) and of NumPy (`.npz`) are zip archives too, but not here.
    """
    try:
        if not zipfile.is_zipfile(path):
            return False
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
        return not all(name.endswith(".npy") for name in names) and not any(
            name.endswith("data.pkl") for name in names
        )
    except UNREADABLE_ARCHIVE:
        return False


def _is_cut_short(path: Path) -> bool:
    """Whether a file begins as a zip archive does, and has not the directory at its end."""
    try:
        with path.open("rb") as file:
            begins = file.read(len(_ZIP_BEGINS)) == _ZIP_BEGINS
        return begins and not zipfile.is_zipfile(path)
    except OSError:
        return False


def is_tar(path: Path) -> bool:
    """Whether a file is a tar archive, plain or in gzip; false where it cannot be read."""
    try:
        with _opened_tar(path):
            return True
    except UNREADABLE_ARCHIVE:
        return False


@contextmanager
def _opened_tar(path: Path) -> Iterator[tarfile.TarFile]:
    with path.open("rb") as file:
        is_gzip = file.read(2) == b"\x1f\x8b"
    opener = gzip.open if is_gzip else open
    with opener(path, "rb") as opened:
        reads = cast("IO[bytes]", _ShortReads(cast("IO[bytes]", opened)))
        with tarfile.open(fileobj=reads, mode="r:") as tar:
            yield tar


class _ShortReads:
    """A file that is read a little at a time: the headers of a tar say how long they are."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.seek, self.tell = file.seek, file.tell

    def read(self, size: int) -> bytes:
        """Read at most `size` bytes.

        Raises:
            ValueError: They are more than a header or a piece of a file has.
        """
        if size > _CHUNK_BYTES:
            raise ValueError(f"has a header of {size} bytes; at most {_CHUNK_BYTES} are read")
        return self._file.read(size)


def _unpack(source: Path, folder: Path) -> None:
    if is_zip(source):
        with zipfile.ZipFile(source) as archive:
            members = [_of_zip(entry) for entry in archive.infolist()]
            _check(source, members, folder)
            for member in members:
                if not member.is_folder:
                    assert isinstance(member.entry, zipfile.ZipInfo)
                    with archive.open(member.entry) as file:
                        _copy(source, file, folder / member.name, member.num_bytes)
        return
    with _opened_tar(source) as tar:
        members = []
        for entry in tar:
            members.append(_of_tar(entry))
            _check_bounds(source, members)  # a tar has no listing: reading on unpacks
        _check(source, members, folder)
        for member in members:
            if not member.is_folder:
                assert isinstance(member.entry, tarfile.TarInfo)
                content = tar.extractfile(member.entry)
                assert content is not None
                _copy(source, content, folder / member.name, member.num_bytes)
        _read_to_the_end(source, tar)


def _read_to_the_end(source: Path, tar: tarfile.TarFile) -> None:
    """Read what is behind the last file: the checksum of gzip is at its end.

    Raises:
        ForeignModelError: That is more than the zeros that fill a tar's last record.
    """
    assert tar.fileobj is not None
    num_left = 0
    while data := tar.fileobj.read(_CHUNK_BYTES):
        num_left += len(data)
        if num_left > _MAX_PADDING_BYTES:
            raise ForeignModelError(source, ["goes on after its last file"])


def _of_zip(entry: zipfile.ZipInfo) -> _Member:
    kind = (entry.external_attr >> 16) & _KIND
    is_plain = entry.is_dir() or kind in {0, _REGULAR_FILE}
    return _Member(
        name=entry.filename,
        is_folder=entry.is_dir(),
        odd_kind=None if is_plain else "is a link or a device",
        num_bytes=entry.file_size,
        entry=entry,
    )


def _of_tar(entry: tarfile.TarInfo) -> _Member:
    is_plain = entry.isreg() or entry.isdir()
    return _Member(
        name=entry.name,
        is_folder=entry.isdir(),
        odd_kind=None if is_plain else "is a link or a device",
        num_bytes=entry.size if entry.isreg() else 0,
        entry=entry,
    )


def _check(source: Path, members: list[_Member], folder: Path) -> None:
    """Refuse an archive by its listing.

    Raises:
        ForeignModelError: With everything that is wrong.
    """
    _check_bounds(source, members)
    problems = []
    seen: set[str] = set()
    for member in members:
        if problem := member.odd_kind or _name_problem(member.name):
            problems.append(f"{shown(member.name)} {problem}")
        if not member.is_folder and str(PurePosixPath(member.name)) in seen:
            problems.append(f"{shown(member.name)} is there twice")
        seen.add(str(PurePosixPath(member.name)))
    num_bytes, free = sum(member.num_bytes for member in members), shutil.disk_usage(folder).free
    if num_bytes > free:
        problems.append(
            f"needs {readable_bytes(num_bytes)} in {tempfile.gettempdir()};"
            f" {readable_bytes(free)} are free"
        )
    if problems:
        raise ForeignModelError(source, problems)


def _check_bounds(source: Path, members: list[_Member]) -> None:
    num_bytes, size = sum(member.num_bytes for member in members), source.stat().st_size
    problems = []
    if len(members) > MAX_FILES:
        problems.append(f"has more than the {MAX_FILES} files that are unpacked")
    if num_bytes > MAX_BYTES:
        problems.append(f"has {num_bytes} bytes; at most {MAX_BYTES} are unpacked")
    if num_bytes > max(_RATIO_FROM_BYTES, MAX_RATIO * size):
        problems.append(
            f"has {num_bytes} bytes in an archive of {size}; at most {MAX_RATIO} times as many are"
            " unpacked"
        )
    if problems:
        raise ForeignModelError(source, problems)


def _name_problem(name: str) -> str | None:
    path = PurePosixPath(name)
    if not name.isprintable() or "\\" in name or ":" in name:
        return "is no plain name"
    if path.is_absolute() or ".." in path.parts:
        return "leads out of the archive's folder"
    return None


def _copy(source: Path, file: IO[bytes], path: Path, num_bytes: int) -> None:
    """Write one file, of no more bytes than the listing says."""
    path.parent.mkdir(parents=True, exist_ok=True)
    left = num_bytes
    with path.open("xb") as output:
        while data := file.read(_CHUNK_BYTES):
            left -= len(data)
            if left < 0:
                raise ForeignModelError(source, [f"{shown(path.name)} is longer than its listing"])
            output.write(data)


def _only_folder(folder: Path) -> Path:
    while True:
        inside = list(folder.iterdir())
        if len(inside) != 1 or not inside[0].is_dir():
            return folder
        folder = inside[0]


def _refused(path: Path, problem: str) -> ForeignModelError:
    return ForeignModelError(path, [problem])
