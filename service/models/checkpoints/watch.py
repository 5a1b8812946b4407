"""Watch of the checkpoints' folder: what is put there or taken away is served by itself.

Owns when the folder has changed and is at rest. What is done then is passed in; which directories
are checkpoints is `service.models.checkpoints.discovery`.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

from model.errors import ConfigError
from service.errors import RequestError
from service.models.checkpoints.discovery import scan

_LOGGER = logging.getLogger("dragoman")

_SECONDS = 5.0

_Marks = tuple[tuple[str, ...], ...]


class FolderWatch:
    """A checkpoint or a folder of checkpoints, and how it was when it was last loaded.

    Reads the disk: not for the event loop.

    Args:
        path: As the settings name it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._loaded: _Marks | None = _marks(path)
        self._seen = self._loaded

    def __repr__(self) -> str:
        return f"<FolderWatch {self._path}>"

    def take(self) -> None:
        """What is there now is being loaded."""
        self._loaded = self._seen = _marks(self._path)

    def put_off(self) -> None:
        """What is there was not loaded after all: it is due again."""
        self._loaded = None

    def is_due(self) -> bool:
        """Whether something else is there than was loaded, and two looks in a row found the same.

        Who copies a checkpoint into place is not done with its first file.
        """
        marks = _marks(self._path)
        is_at_rest, self._seen = marks == self._seen, marks
        return is_at_rest and marks != self._loaded


async def keep_watching(
    folder: FolderWatch, reload: Callable[[], Awaitable[None]], *, seconds: float = _SECONDS
) -> None:
    """Reload whenever the folder has changed, until cancelled.

    Args:
        folder: What is looked at.
        reload: Loads what is there, and calls `folder.take` first.
        seconds: Between two looks.
    """
    while True:
        await asyncio.sleep(seconds)
        try:
            if await asyncio.to_thread(folder.is_due):
                _LOGGER.info("checkpoints_changed")
                await reload()
        except RequestError as error:
            if error.problem.code != "reload_failed":  # of what is there; that is logged
                folder.put_off()
        except Exception:
            _LOGGER.exception("checkpoints_watch_failed")


def _marks(path: Path) -> _Marks:
    """Every file of every checkpoint, every package, and what changes with them; or why not."""
    try:
        found = scan(path)
    except ConfigError as error:
        return ((str(error),),)
    files = [mark for directory in found.directories for mark in _files(directory)]
    return (*files, *(_mark(package.file) for package in found.packages))


def _files(directory: Path) -> list[tuple[str, ...]]:
    try:
        return [_mark(entry) for entry in sorted(directory.iterdir())]
    except OSError as error:
        return [(str(directory), f"{error.errno}")]


def _mark(file: Path) -> tuple[str, ...]:
    try:
        status = file.stat()
    except OSError as error:
        return str(file), f"{error.errno}"
    numbers = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    return str(file), *map(str, numbers)
