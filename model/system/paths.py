"""Paths that Python or a library stumbles over: impossible names, and names that are no text.

Owns the questions whether something is there: `Path.exists` and its like raise an `OSError` where
a name is too long or a folder may not be entered, and on later versions of Python say that nothing
is there. Owns names for libraries that take nothing but UTF-8, and how what was written gets to the
disk. Imports no torch.
"""

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from model.errors import DataError, DragomanError

Refuse = Callable[[Path, str], DragomanError]
"""A path and what is wrong with it → the error to raise, such as `CheckpointError`."""


def unusable(path: Path, problem: str) -> DataError:
    """The error that a path of text, or of a run, cannot be used, to be raised."""
    return DataError(f"{path}: {problem}")


def exists(path: Path, refuse: Refuse = unusable) -> bool:
    """Whether anything is there, links followed.

    Raises:
        DataError: The system does not tell; `refuse` makes it another error.
    """
    return _mode(path, refuse) is not None


def is_file(path: Path, refuse: Refuse = unusable) -> bool:
    """Whether a file is there; errors as of `exists`."""
    mode = _mode(path, refuse)
    return mode is not None and stat.S_ISREG(mode)


def is_folder(path: Path, refuse: Refuse = unusable) -> bool:
    """Whether a folder is there; errors as of `exists`."""
    mode = _mode(path, refuse)
    return mode is not None and stat.S_ISDIR(mode)


def as_text(name: str | os.PathLike[str]) -> str:
    """A path as text: a question mark for each byte that is not UTF-8."""
    return os.fspath(name).encode(errors="replace").decode()


def is_text(name: str | os.PathLike[str]) -> bool:
    """Whether a path is UTF-8."""
    return os.fspath(name) == as_text(name)


@contextmanager
def utf8_name(path: Path) -> Iterator[str]:
    """A name of a file while the block lasts, for libraries that take only UTF-8.

    It is the path, or, where a byte of that is not UTF-8, the name of an open descriptor.

    Raises:
        OSError: The file cannot be read; only looked for where the path is not UTF-8.
    """
    if is_text(path):
        yield os.fspath(path)
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        yield f"/dev/fd/{descriptor}"
    finally:
        os.close(descriptor)


def flush(path: Path) -> None:
    """Bring a file, or the names in a folder, to the disk.

    Raises:
        OSError: It cannot be opened, or the disk refuses.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _mode(path: Path, refuse: Refuse) -> int | None:
    try:
        return path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise refuse(path, error.strerror or str(error)) from error
    except ValueError as error:  # a null character
        raise refuse(path, str(error)) from error
