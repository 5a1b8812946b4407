"""Replacement of a checkpoint's directory: the old one, or the new one, never half of one.

Owns the moves on the disk. Does not own what is in a directory. Imports no torch.
"""

import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from model.checkpoint.manifest import CONFIG_FILE
from model.errors import CheckpointError
from model.system.paths import exists, flush, is_file


@contextmanager
def replaced_directory(directory: Path) -> Iterator[Path]:
    """A directory to fill, which becomes `directory` when the block ends without an error."""
    directory = directory.absolute()
    is_checkpoint = is_file(directory / CONFIG_FILE, CheckpointError)
    if directory.is_symlink() or (exists(directory, CheckpointError) and not is_checkpoint):
        raise CheckpointError(directory, "exists and is not a checkpoint; it is not replaced")
    partial = directory.with_name(f".{directory.name}.{uuid.uuid4().hex}.partial")
    try:
        partial.mkdir()
        yield partial
        publish(partial, directory)
    except OSError as error:
        raise CheckpointError(directory, f"cannot be written: {error}") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def publish(partial: Path, directory: Path, *, retired: Path | None = None) -> None:
    """Flush a filled folder to the disk and move it into place, beside which it stands.

    Args:
        partial: The folder.
        directory: Its place; what is there is replaced.
        retired: Where that stands meanwhile, and after a kill between the two moves; nothing may
            be there. A name of its own by default.

    Raises:
        OSError: It cannot be flushed or moved; `directory` is then what it was.
    """
    retired = retired or directory.with_name(f".{directory.name}.{uuid.uuid4().hex}.old")
    try:
        _flush_all(partial)
        try:
            if directory.exists():
                directory.rename(retired)
            partial.rename(directory)
        except BaseException:
            if retired.exists() and not directory.exists():
                retired.rename(directory)
            raise
        flush(directory.parent)
    finally:
        if directory.exists() and retired.exists():
            _remove(retired, by_way_of=partial)


def publish_new(partial: Path, directory: Path) -> None:
    """Flush a filled folder to the disk and move it where nothing is, or an empty folder.

    Raises:
        OSError: It cannot be flushed or moved, or something is there, which stays.
    """
    _flush_all(partial)
    partial.rename(directory)
    flush(directory.parent)


def _remove(folder: Path, *, by_way_of: Path) -> None:
    """Remove a folder; half removed, it never stands where it would be put back from."""
    with suppress(OSError):
        folder = folder.rename(by_way_of)
    shutil.rmtree(folder, ignore_errors=True)


def _flush_all(folder: Path) -> None:
    for path in [*folder.iterdir(), folder]:
        flush(path)
