"""Atomic writing of files, locks of folders, and file system errors that name the file.

Owns how a file is written (under another name, flushed to the disk, renamed) and how a process
locks a folder. Does not own what is in files, nor which of them a run has.
"""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile

from safetensors import SafetensorError

from model.errors import TrainingError, UnwritableError
from model.system.paths import flush

PARTIAL_SUFFIX = ".partial"
"""Of a file, in the place of its own suffix, until it is whole."""


@contextmanager
def whole_file(path: Path, what: str = "", *, previous: Path | None = None) -> Iterator[Path]:
    """Path to write to; the file replaces `path` when the block ends without an error.

    Args:
        path: The file; its folder must exist.
        what: It is, in words for the error, such as "a snapshot".
        previous: Gets what stood at `path`; None drops it.

    Raises:
        UnwritableError: The file cannot be written; nothing is left of it, and what stood at `path`
            still stands there.
    """
    partial = path.with_suffix(PARTIAL_SUFFIX)
    try:
        yield partial
        flush(partial)
        if previous is not None and path.exists():
            path.replace(previous)
        partial.replace(path)
        flush(path.parent)
    except (OSError, RuntimeError, SafetensorError) as error:  # torch makes the second of the first
        with suppress(OSError):  # the error before it is the one to raise
            partial.unlink()
        raise UnwritableError(
            f"{unwritable(path, error, what)}; what was saved before is whole"
        ) from error


def write_whole(path: Path, data: bytes) -> None:
    """Write a file whole, or not at all.

    Raises:
        UnwritableError: It cannot be written, such as on a full disk; what stood there still does.
    """
    with whole_file(path) as partial:
        partial.write_bytes(data)


def remove(path: Path) -> None:
    """Remove a file or a folder with its contents; a missing one is no error.

    Raises:
        TrainingError: It cannot be removed.
    """
    with naming_files(path):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def check_writable(folder: Path) -> None:
    """Check that a folder can be written to; the probe is removed.

    Raises:
        TrainingError: It cannot be done.
    """
    try:
        TemporaryFile(dir=folder).close()
    except OSError as error:
        raise unwritable(folder, error) from error


@contextmanager
def naming_files(path: Path) -> Iterator[None]:
    """Context that turns file system errors into one that names the file.

    Args:
        path: Named by errors that name none.

    Raises:
        TrainingError: The block had one.
    """
    try:
        yield
    except OSError as error:
        named = error.filename or path
        raise TrainingError(f"{named}: cannot be used: {reason_of(error)}") from error


@contextmanager
def locked_folder(folder: Path) -> Iterator[bool | None]:
    """Lock of a folder for this process, until the end of the block or of the process.

    The lock is on the folder itself: nothing is left of it, and a user who can read the folder can
    lock it. On a file system of several machines it may hold on each of them alone.

    Yields:
        Whether it was locked: False if another process holds it, or it is missing; None if the
        file system has no locks.
    """
    with ExitStack() as opened:
        is_ours: bool | None = False
        try:
            handle = os.open(folder, os.O_RDONLY)
            opened.callback(os.close, handle)
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_ours = os.path.samestat(os.fstat(handle), folder.stat())
        except (BlockingIOError, FileNotFoundError):
            pass
        except OSError:
            is_ours = None
        yield is_ours


def unwritable(path: Path, error: Exception, what: str = "") -> TrainingError:
    """The error to raise when a file cannot be written.

    Args:
        path: The file.
        error: What came up.
        what: The file is, in words.
    """
    problem = f"{what} cannot be written".lstrip()
    return TrainingError(f"{path}: {problem}: {reason_of(error)}")


def reason_of(error: BaseException) -> str:
    """The system's message, unwrapped from a library's error."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror
        cause = cause.__cause__ or cause.__context__
    return str(error)
