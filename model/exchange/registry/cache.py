"""Folder of downloads: the place of each model's files, and a lock for writing there.

Owns the layout of the cache and its locks. What is in its files is `documents`', `pulling`'s and
`licences`'.
"""

import fcntl
import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from model.system.cache_folder import cache_root

_PLAIN = re.compile(r"[^A-Za-z0-9._-]+")
_MAX_PART = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Cache:
    """A folder of downloads.

    Attributes:
        root: The folder; made when something is put there.
    """

    root: Path

    def model_folder(self, name: str, version: str, folder: str) -> Path:
        """Where the files of one version of a model lie, and nothing else.

        Its last part is the model's own name, which for some formats is all that names languages.
        """
        return self.root / "models" / part_of(name) / part_of(version) / part_of(folder)

    def document(self, url: str) -> Path:
        """Where a registry's document lies; beside it, its validator."""
        return self.root / "documents" / f"{part_of(url)}.json"

    @property
    def accepted_licences(self) -> Path:
        """The file of the licences that were accepted."""
        return self.root / "accepted-licences.json"

    def pulled(self, checkpoint: Path) -> Path:
        """The file beside which a checkpoint's lock is; earlier versions wrote its origin there."""
        return self.root / "pulled" / f"{part_of(str(checkpoint.absolute()))}.json"


def cache_of(environment: Mapping[str, str]) -> Cache:
    """The cache that the environment names, or the usual one.

    Raises:
        ConfigError: Neither it nor a home is known.
    """
    return Cache(root=cache_root(environment))


def part_of(text: str) -> str:
    """A name of a file or folder for any text: readable, and no two alike."""
    plain = _PLAIN.sub("-", text).strip("-.")[:_MAX_PART]
    digest = hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()
    return plain if plain and plain == text else f"{plain}-{digest[:16]}".lstrip("-")


@contextmanager
def locked(path: Path, on_wait: Callable[[], None]) -> Iterator[None]:
    """Hold what a path stands for against other processes; wait while another one does.

    Args:
        path: What is held; the lock is a file beside it, which stays. Its folder is made.
        on_wait: Called once if another process has it.

    Raises:
        OSError: The lock cannot be made or taken.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path.with_name(f"{path.name}.lock"), os.O_RDWR | os.O_CREAT, 0o666)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_wait()
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def write_whole(path: Path, data: bytes) -> None:
    """Write a small file whole or not at all; its folder is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        partial.write_bytes(data)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
