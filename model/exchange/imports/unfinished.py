"""A conversion that has begun: a hidden folder beside its destination, gone on with after a stop.

Owns the folder's name, which is a hash of what is converted and how, its lock, and the list of
tensors that are on the disk. What is written there is `model.exchange.imports.convert`'s.
"""

import fcntl
import hashlib
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from model.errors import CheckpointError
from model.system.paths import flush

DONE_FILE = "done"
_VERSION = b"1"
"""Of what a conversion writes: another one begins anew."""


def fingerprint(source: Path, settings: bytes) -> str:
    """Identifier of a conversion: its settings, and every file of the source by size and time."""
    digest = hashlib.sha256(_VERSION)
    paths = sorted(source.rglob("*")) if source.is_dir() else [source]
    for path in paths:
        if path.is_file():
            status, name = path.stat(), path.relative_to(source.parent)
            digest.update(os.fsencode(name))  # names need not be UTF-8
            digest.update(f"\0{status.st_size}\0{status.st_mtime_ns}\0".encode())
    digest.update(settings)
    return digest.hexdigest()[:32]


@contextmanager
def unfinished_folder(destination: Path, mark: str) -> Iterator[Path]:
    """The folder of a conversion, made or found; those of others of this destination are removed.

    It stays where the block ends with an error, so that the next conversion goes on.

    Raises:
        CheckpointError: Another process is converting to the same destination.
        OSError: It cannot be made.
    """
    folder = destination.with_name(f".{destination.name}.{mark}.converting")
    own_name = re.compile(rf"\.{re.escape(destination.name)}\.[0-9a-f]{{32}}\.converting")
    for other in sorted(destination.parent.iterdir()):
        if other != folder and own_name.fullmatch(other.name):
            with _locked(other, destination):
                shutil.rmtree(other)
    folder.mkdir(exist_ok=True)
    with _locked(folder, destination):
        yield folder


def read_done(folder: Path) -> set[str]:
    """Names of the tensors that are on the disk; a last line that was cut is none."""
    try:
        lines = (folder / DONE_FILE).read_bytes().split(b"\n")[:-1]
    except FileNotFoundError:
        return set()
    return {line.decode(errors="replace") for line in lines}


def add_done(folder: Path, names: list[str]) -> None:
    """Note tensors that have been brought to the disk.

    Raises:
        OSError: The disk refuses.
    """
    with (folder / DONE_FILE).open("ab") as file:
        file.write("".join(f"{name}\n" for name in names).encode())
    flush(folder / DONE_FILE)


@contextmanager
def _locked(folder: Path, destination: Path) -> Iterator[None]:
    """The folder for this process alone; the lock goes with the process, however it ends."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError as error:
        raise CheckpointError(destination, "is being converted by another process") from error
    finally:
        os.close(descriptor)
