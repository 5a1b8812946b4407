"""A folder of packed weights: one file a checkpoint and layout, mapped by all processes.

Owns the files: what is in them, whose they must be, how they appear whole, how much they may take.
Processes that map one file have its pages once between them, in the system's page cache. Nothing
here is needed: a folder that cannot be used, or a file that is not as it was written, is logged,
and every process packs weights of its own. Which matrix lies where is `model.native.matrices`.

A file: magic, sha256 and length of a JSON header; the header; from `_IMAGE_BEGIN` on the matrices
as they lie in memory.
"""

import errno
import hashlib
import json
import logging
import mmap
import os
import shutil
import stat
import struct
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from io import BufferedReader
from pathlib import Path

from model.native import kernels
from model.native.matrices import PackedBefore, PackedHere, Place

_LOGGER = logging.getLogger("dragoman")

_START = struct.Struct("<8s32sI")
_MAGIC = b"dragopak"
_IMAGE_BEGIN = 2 * 2**20
"""A huge page, so that huge pages can map the image; what the header leaves of it is a hole."""
_SUFFIX, _PARTIAL = ".packed", ".partial"
_ABANDONED_SECONDS = 3600.0
_WITHOUT_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS)
"""What a file system without hard links says: CIFS, some of FUSE."""
_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH


class _UnusableError(Exception):
    """A file or folder that is not used, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Description:
    """Header of a file."""

    checkpoint: str
    layout: str
    num_bytes: int
    sha256: str
    matrices: Mapping[str, Place]


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedFolder:
    """A folder of this user's packed weights.

    Attributes:
        path: Where it is; made when something is put there.
        max_bytes: Of all its files together; the least recently used make room.
    """

    path: Path
    max_bytes: int

    def find(self, checkpoint: str, module: kernels.Kernels) -> PackedBefore | None:
        """The matrices of a checkpoint, mapped; None if they are not there. A damaged file goes.

        Args:
            checkpoint: Its fingerprint, a hexadecimal number.
            module: The kernels that are to read them.
        """
        path = self._file(checkpoint, module)
        with self._logged("packed_weights_not_used"), suppress(FileNotFoundError):
            _check_owner(self.path, self.path.lstat(), stat.S_ISDIR)
            try:
                with _opened(path) as file:
                    return _mapped(file, checkpoint, module)
            except _UnusableError:
                with suppress(OSError):
                    path.unlink(missing_ok=True)
                raise
        return None

    def remove(self, checkpoint: str, module: kernels.Kernels, reason: str) -> None:
        """Take away a file that is whole and of no use, such as of a release that packs otherwise.

        Args:
            checkpoint: As of `find`.
            module: Likewise.
            reason: For the log.
        """
        with self._logged("packed_weights_not_used"):
            self._file(checkpoint, module).unlink(missing_ok=True)
            raise _UnusableError(reason)

    def keep(self, checkpoint: str, packed: PackedHere, module: kernels.Kernels) -> None:
        """Write the matrices of a checkpoint; a file that another process has written stays."""
        path = self._file(checkpoint, module)
        with self._logged("packed_weights_not_kept"):
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            _check_owner(self.path, self.path.lstat(), stat.S_ISDIR)
            self._make_room(_IMAGE_BEGIN + sum(part.nbytes for part in packed.memory.parts))
            partial = self.path / f".{path.name}.{uuid.uuid4().hex}{_PARTIAL}"
            try:
                _write(partial, _header(checkpoint, packed, module), packed)
                _give_name(partial, path)
            finally:
                partial.unlink(missing_ok=True)

    def _file(self, checkpoint: str, module: kernels.Kernels) -> Path:
        return self.path / f"{checkpoint}-{module.layout}{_SUFFIX}"

    def _make_room(self, num_bytes: int) -> None:
        """Remove what was never finished, and what was not used for longest.

        Raises:
            _UnusableError: There is no room even so.
        """
        if num_bytes > self.max_bytes:
            raise _UnusableError(f"{num_bytes} bytes; there may be {self.max_bytes}")
        for path in self.path.glob(f".*{_PARTIAL}"):
            if time.time() - path.stat().st_mtime > _ABANDONED_SECONDS:
                path.unlink(missing_ok=True)
        files = [(path, path.stat()) for path in self.path.glob(f"*{_SUFFIX}")]
        total = sum(status.st_size for _, status in files)
        for path, status in sorted(files, key=lambda item: item[1].st_mtime):
            if total + num_bytes <= self.max_bytes:
                break
            path.unlink(missing_ok=True)
            total -= status.st_size
        free = shutil.disk_usage(self.path).free
        if free < 2 * num_bytes:
            raise _UnusableError(f"{num_bytes} bytes would leave too little of {free} free ones")

    @contextmanager
    def _logged(self, event: str) -> Iterator[None]:
        """Log what stands in the way; it is no error for the load of a network."""
        try:
            yield
        except (OSError, _UnusableError) as error:
            fields = {"folder": str(self.path), "reason": str(error)}
            _LOGGER.info(event, extra={"fields": fields})


def _header(checkpoint: str, packed: PackedHere, module: kernels.Kernels) -> bytes:
    digest = hashlib.sha256()
    for part in packed.memory.parts:
        digest.update(part)
    described = _Description(
        checkpoint=checkpoint,
        layout=module.layout,
        num_bytes=sum(part.nbytes for part in packed.memory.parts),
        sha256=digest.hexdigest(),
        matrices=packed.places,
    )
    text = json.dumps(asdict(described)).encode()
    return _START.pack(_MAGIC, hashlib.sha256(text).digest(), len(text)) + text


def _give_name(partial: Path, path: Path) -> None:
    """Give a file its name, unless another one has it."""
    try:
        path.hardlink_to(partial)  # unlike a rename it replaces nothing
    except FileExistsError:
        return
    except OSError as error:
        if error.errno not in _WITHOUT_LINKS:
            raise
        if not path.exists():  # what comes at this moment is the same, and goes on with who has it
            partial.rename(path)


def _write(path: Path, header: bytes, packed: PackedHere) -> None:
    if len(header) > _IMAGE_BEGIN:
        raise _UnusableError(f"a header of {len(header)} bytes; there may be {_IMAGE_BEGIN}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, 0o600), "wb", buffering=0) as file:
        _write_all(file.fileno(), memoryview(header))
        file.seek(_IMAGE_BEGIN)
        for part in packed.memory.parts:
            _write_all(file.fileno(), part)


def _write_all(descriptor: int, left: memoryview) -> None:
    while left:
        left = left[os.write(descriptor, left) :]


@contextmanager
def _opened(path: Path) -> Iterator[BufferedReader]:
    """A file of this user's, which nobody else may write."""
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    with os.fdopen(os.open(path, flags), "rb") as file:
        _check_owner(path, os.fstat(file.fileno()), stat.S_ISREG)
        yield file


def _check_owner(path: Path, status: os.stat_result, is_kind: Callable[[int], bool]) -> None:
    """Refuse what somebody else may have put there, or may change."""
    if not is_kind(status.st_mode):
        raise _UnusableError(f"{path} is of another kind than it should be")
    if status.st_uid != os.geteuid():
        raise _UnusableError(f"{path} belongs to user {status.st_uid}")
    if status.st_mode & _OTHERS_MAY_WRITE:
        raise _UnusableError(f"{path} may be written by others ({stat.filemode(status.st_mode)})")


def _mapped(file: BufferedReader, checkpoint: str, module: kernels.Kernels) -> PackedBefore:
    """What is in a file, once every byte is what was written."""
    described = _read_header(file)
    if (described.checkpoint, described.layout) != (checkpoint, module.layout):
        raise _UnusableError("it is of another checkpoint or layout than its name")
    num_bytes = described.num_bytes
    size = os.fstat(file.fileno()).st_size
    if size != _IMAGE_BEGIN + num_bytes:
        raise _UnusableError(f"it has {size} bytes; it was written with {_IMAGE_BEGIN + num_bytes}")
    # Read before it is mapped: a disk that fails is an error here, and a signal there.
    file.seek(_IMAGE_BEGIN)
    if hashlib.file_digest(file, "sha256").hexdigest() != described.sha256:
        raise _UnusableError("its checksum is not that of what was written")
    with suppress(OSError):  # where nothing can be written, nothing makes room either
        os.utime(file.fileno())  # used now
    image = mmap.mmap(
        file.fileno(), num_bytes, mmap.MAP_SHARED, mmap.PROT_READ, offset=_IMAGE_BEGIN
    )
    with suppress(OSError, AttributeError):  # where files have no huge pages
        image.madvise(mmap.MADV_HUGEPAGE)
    return PackedBefore(module, module.weight_memory(image), described.matrices)


def _read_header(file: BufferedReader) -> _Description:
    start = file.read(_START.size)
    if len(start) < _START.size:
        raise _UnusableError("it has no header")
    magic, digest, length = _START.unpack(start)
    if magic != _MAGIC or length > _IMAGE_BEGIN:
        raise _UnusableError("it has no header")
    text = file.read(length)
    if hashlib.sha256(text).digest() != digest:
        raise _UnusableError("the checksum of its header is not that of what was written")
    content = json.loads(text)
    content["matrices"] = {name: Place(**place) for name, place in content["matrices"].items()}
    return _Description(**content)
