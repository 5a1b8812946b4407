"""Files by path or URL: found, read, written whole.

Owns what a place is: a path of this machine, or a URL that fsspec opens (s3://, gs://, memory://).
Locally a file is flushed to the disk before it has its name; elsewhere it is written beside and
moved, which stores do at once. Errors of every file system become one `DataError` that names the
place. fsspec is imported when the first URL comes.
"""

import fcntl
import io
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal, Protocol, cast

from model.errors import ConfigError, DataError
from model.system.paths import flush

Kind = Literal["file", "folder"]
_BUFFER_BYTES = 2**17
_MAGIC = frozenset("*?[")
_STAMPS = (
    "ETag",
    "etag",
    "md5Hash",
    "version_id",
    "mtime",
    "LastModified",
    "last_modified",
    "created",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Facts of a file, by its file system.

    Attributes:
        name: Its path or URL.
        size: Bytes.
        stamp: What changes when it is written.
    """

    name: str
    size: int
    stamp: str


class Place(Protocol):
    """A path or a URL, and what can be done there.

    Every method raises a `DataError` that names the place if the system refuses.
    """

    name: str

    def joined(self, *parts: str) -> "Place":
        """A place below this one."""

    def kind(self) -> Kind | None:
        """What is there."""

    def facts(self) -> Facts:
        """Of the file that is there."""

    def files(self) -> list[Facts]:
        """The files of a folder, or those that fit a pattern, by name."""

    def names(self) -> list[str]:
        """What a folder has; nothing if it is not there."""

    def opened(self) -> BinaryIO:
        """The file, opened for reading at any position."""

    def write(self, partial: "Place", content: Callable[[BinaryIO], None]) -> None:
        """Write a file whole, or not at all.

        Args:
            partial: Where it is until it is whole; a place of this writer alone.
            content: Writes it.
        """

    def make_folder(self) -> None:
        """Make it, and what is above it, unless it is there."""

    def remove(self) -> None:
        """Remove a file; a missing one is no error."""

    def locked(self) -> AbstractContextManager[None]:
        """Keep other commands of this machine out while the block lasts."""


def place_of(name: str) -> Place:
    """The place of a path or a URL.

    Raises:
        ConfigError: Nothing here opens such URLs.
    """
    for local in ("file://", "local://"):
        name = name.removeprefix(local)
    return _Remote.of(name) if "://" in name else _Local(name)


def output_place(name: str) -> Place:
    """The place of a folder that is written.

    Raises:
        ConfigError: Nothing here opens such URLs, or fsspec would take it for a pattern.
    """
    place = place_of(name)
    if isinstance(place, _Remote) and is_pattern(place.path):
        raise ConfigError(
            f"{name}: has one of {' '.join(sorted(_MAGIC))}, which make a pattern of a URL;"
            " choose another OUTPUT"
        )
    return place


def absolute_name(name: str) -> str:
    """A name that means the same in every process: URLs do, paths are made to."""
    place = place_of(name)
    return str(Path(place.name).absolute()) if isinstance(place, _Local) else name


def is_pattern(name: str) -> bool:
    """Whether a name has characters that stand for others."""
    return not _MAGIC.isdisjoint(name)


def reason_of(error: BaseException) -> str:
    """What went wrong, in one line without the place."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    text = " ".join(str(error).split())[:300]
    return text or type(error).__name__


class _Named(io.RawIOBase):
    """A stream whose errors name its place.

    Args:
        stream: What is read.
        naming: Makes errors inside a block a `DataError` that has the name.
    """

    def __init__(self, stream: Any, naming: Callable[[], AbstractContextManager[None]]) -> None:
        self._stream, self._naming = stream, naming

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        with self._naming():
            found: bytes = self._stream.read(len(buffer))
            buffer[: len(found)] = found
            return len(found)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        with self._naming():
            return int(self._stream.seek(offset, whence))

    def tell(self) -> int:
        return int(self._stream.tell())

    def close(self) -> None:
        self._stream.close()
        super().close()


def _named(stream: Any, naming: Callable[[], AbstractContextManager[None]]) -> BinaryIO:
    """A stream, buffered, with readlines that have a limit; files of fsspec have none."""
    return cast(BinaryIO, io.BufferedReader(_Named(stream, naming), _BUFFER_BYTES))


class _Local:
    """A path of this machine."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._path = Path(name)

    def joined(self, *parts: str) -> "_Local":
        return _Local(str(Path(self.name, *parts)))

    def kind(self) -> Kind | None:
        with self._naming():
            try:
                self._path.stat()
            except (FileNotFoundError, NotADirectoryError):
                return None
            return "folder" if self._path.is_dir() else "file"

    def facts(self) -> Facts:
        with self._naming():
            found = self._path.stat()
            name = str(self._path.absolute())  # workers have other working directories
            return Facts(name=name, size=found.st_size, stamp=str(found.st_mtime_ns))

    def files(self) -> list[Facts]:
        with self._naming():
            if self._path.is_dir():
                found = sorted(self._path.iterdir())
            else:
                top = Path(self._path.anchor or ".")
                found = sorted(top.glob(str(self._path.relative_to(self._path.anchor))))
            return [_Local(str(path)).facts() for path in found if path.is_file()]

    def names(self) -> list[str]:
        with self._naming():
            try:
                return sorted(path.name for path in self._path.iterdir())
            except (FileNotFoundError, NotADirectoryError):
                return []

    def opened(self) -> BinaryIO:
        with self._naming():
            return _named(self._path.open("rb", buffering=0), self._naming)

    def write(self, partial: Place, content: Callable[[BinaryIO], None]) -> None:
        own = Path(partial.name)
        with self._naming(), ExitStack() as cleaned:
            cleaned.callback(own.unlink, missing_ok=True)
            with own.open("wb") as stream:
                content(stream)
                stream.flush()
                os.fsync(stream.fileno())
            own.replace(self._path)
            flush(self._path.parent)

    def make_folder(self) -> None:
        with self._naming():
            self._path.mkdir(parents=True, exist_ok=True)

    def remove(self) -> None:
        with self._naming():
            self._path.unlink(missing_ok=True)

    @contextmanager
    def locked(self) -> Iterator[None]:
        with ExitStack() as opened:
            with self._naming():
                handle = os.open(self._path, os.O_RDONLY)
                opened.callback(os.close, handle)
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    raise DataError(f"{self.name}: another command is writing there") from None
            yield

    @contextmanager
    def _naming(self) -> Iterator[None]:
        try:
            yield
        except (OSError, ValueError) as error:
            raise DataError(f"{self.name}: {reason_of(error)}") from error


class _Remote:
    """A URL of fsspec.

    Args:
        name: It.
        system: Its file system.
        path: Its name there.
    """

    def __init__(self, name: str, system: Any, path: str) -> None:
        self.name = name
        self._system = system
        self.path = path

    @classmethod
    def of(cls, name: str) -> "_Remote":
        """The place of a URL."""
        try:
            from fsspec.core import url_to_fs  # noqa: PLC0415  # for URLs alone

            system, path = url_to_fs(name)
        except (ImportError, ValueError) as error:
            raise ConfigError(f"{name}: cannot be opened: {reason_of(error)}") from error
        return cls(name, system, path)

    def joined(self, *parts: str) -> "_Remote":
        ends = "/".join(parts)
        return _Remote(
            f"{self.name.rstrip('/')}/{ends}", self._system, f"{self.path.rstrip('/')}/{ends}"
        )

    def kind(self) -> Kind | None:
        with self._naming():
            self._system.invalidate_cache()
            if self._system.isdir(self.path):
                return "folder"
            return "file" if self._system.exists(self.path) else None

    def facts(self) -> Facts:
        with self._naming():
            return self._facts(self._system.info(self.path))

    def files(self) -> list[Facts]:
        with self._naming():
            is_folder = self._system.isdir(self.path)
            found = (
                self._system.ls(self.path, detail=False)
                if is_folder
                else self._system.glob(self.path)
            )
            told = map(self._system.info, found)  # a listing may write the same time another way
            files = [self._facts(one) for one in told if one["type"] == "file"]
            return sorted(files, key=lambda one: one.name)

    def names(self) -> list[str]:
        with self._naming():
            self._system.invalidate_cache()
            try:
                found = self._system.ls(self.path, detail=False)
            except FileNotFoundError:
                return []
            return sorted(str(path).rstrip("/").rpartition("/")[2] for path in found)

    def opened(self) -> BinaryIO:
        with self._naming():
            return _named(self._system.open(self.path, "rb"), self._naming)

    def write(self, partial: Place, content: Callable[[BinaryIO], None]) -> None:
        own = cast("_Remote", partial)
        with self._naming():
            with self._system.open(own.path, "wb") as stream:
                content(stream)
            self._system.mv(own.path, self.path)

    def make_folder(self) -> None:
        with self._naming():
            self._system.makedirs(self.path, exist_ok=True)

    def remove(self) -> None:
        with self._naming():
            if self._system.exists(self.path):
                self._system.rm_file(self.path)

    @contextmanager
    def locked(self) -> Iterator[None]:
        yield  # stores have no locks; who writes a block at once with another writes the same bytes

    def _facts(self, found: Any) -> Facts:
        stamp = next((str(found[key]) for key in _STAMPS if found.get(key) is not None), "")
        return Facts(
            name=self._system.unstrip_protocol(found["name"]), size=found["size"] or 0, stamp=stamp
        )

    @contextmanager
    def _naming(self) -> Iterator[None]:
        try:
            yield
        except DataError:
            raise
        except Exception as error:  # every kind of store has errors of its own
            raise DataError(f"{self.name}: {reason_of(error)}") from error
