"""API keys of a running server: read at the start, and again when their files change.

Owns when files are read again and what becomes of the keys there were. What a file says is
`service.access.keys`; what a key opens is `service.access.access`.

What says that a key is gone withdraws it: its line, its file, or all of them. A server that has
begun with keys is never open again, so without any no request is admitted. What cannot be read, or
has a mistake in it, says nothing: the keys there were still hold, and it is logged and counted.
"""

import asyncio
import errno
import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Literal

from model.errors import ConfigError
from service.access.keys import KeyRing, keys_files, load_keys

_LOGGER = logging.getLogger("dragoman")

_REFRESH_SECONDS = 2.0

KeysResult = Literal["success", "failure"]
_Mark = tuple[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeySources:
    """Sources of API keys: a file, a directory of files, text from the environment.

    Attributes:
        file: One file.
        directory: Files whose names end in `.toml`.
        text: Lines from the environment; they stay as they are.
    """

    file: Path | None = None
    directory: Path | None = None
    text: str = ""

    def __repr__(self) -> str:
        return f"KeySources({self.file}, {self.directory}, text {'set' if self.text else 'unset'})"

    @property
    def can_change(self) -> bool:
        """Whether there are files, which can change."""
        return self.file is not None or self.directory is not None

    def load(self, *, may_be_none: bool) -> KeyRing:
        """All keys; arguments and errors as of `service.access.keys.load_keys`."""
        return load_keys(self.file, self.text, directory=self.directory, may_be_none=may_be_none)

    def marks(self) -> tuple[_Mark, ...]:
        """Marks that change when a file is written, replaced, made readable or taken away."""
        paths = [] if self.file is None else [self.file]
        marks = []
        if self.directory is not None:
            marks.append(_mark(self.directory))
            try:
                paths += keys_files(self.directory)
            except ConfigError:  # `load` says why
                marks.append((str(self.directory), (errno.EACCES,)))
        return (*marks, *map(_mark, paths))


class KeyStore:
    """API keys that are valid now.

    Args:
        sources: Where they come from.
        ring: What was read there; None reads it.
        held: Keys that hold in another process of the same server, which has read them before:
            where there is a mistake now they hold here too. None where there is no such process,
            or the server is open.
        on_reload: Called after every further reading with its result.

    Attributes:
        ring: All keys.
        is_guarded: There were keys at the start: without one no request is admitted.

    Raises:
        ConfigError: The keys cannot be read, and none are held.
    """

    def __init__(
        self,
        sources: KeySources,
        *,
        ring: KeyRing | None = None,
        held: KeyRing | None = None,
        on_reload: Callable[[KeysResult], None] = lambda _: None,
    ) -> None:
        self._sources = sources
        self._on_reload = on_reload
        self._lock = Lock()  # between the watch and a reload that is asked for
        self._read = self._seen = sources.marks()
        self.ring = self._first(held) if ring is None else ring
        self.is_guarded = held is not None or bool(self.ring)

    def __repr__(self) -> str:
        return f"KeyStore({len(self.ring.keys)} keys)"

    @property
    def held(self) -> KeyRing | None:
        """What a store in another process of the server begins with; None where it is open."""
        return self.ring if self.is_guarded else None

    def reload(self) -> None:
        """Read the keys again; requests that were admitted go on.

        Raises:
            ConfigError: They cannot be read; those there were still hold.
        """
        with self._lock:
            self._read = self._sources.marks()
            try:
                ring = self._sources.load(may_be_none=self.is_guarded)
            except ConfigError:
                self._on_reload("failure")
                raise
            before, self.ring = self.ring, ring
            self._on_reload("success")
        _log_changes(before, ring)

    def refresh(self) -> None:
        """Read the files again if they have changed and two checks in a row found them the same.

        An editor empties a file before it fills it, and some take it away before it is there again.
        """
        marks = self._sources.marks()
        is_at_rest, self._seen = marks == self._seen, marks
        if marks == self._read or not is_at_rest:
            return
        try:
            self.reload()
        except ConfigError as error:
            _log_refused(error)

    def _first(self, held: KeyRing | None) -> KeyRing:
        """The keys that hold at the start."""
        try:
            return self._sources.load(may_be_none=held is not None)
        except ConfigError as error:
            if held is None:
                raise
            _log_refused(error)
            return held

    async def watch(self, *, seconds: float = _REFRESH_SECONDS) -> None:
        """Check the files every `seconds` until cancelled; returns at once where there are none."""
        while self._sources.can_change:
            await asyncio.sleep(seconds)
            try:
                await asyncio.to_thread(self.refresh)
            except Exception:
                _LOGGER.exception("keys_watch_failed")


def _log_refused(error: ConfigError) -> None:
    _LOGGER.error("keys_refused", extra={"fields": {"reason": str(error)}})


def _log_changes(before: KeyRing, after: KeyRing) -> None:
    """Log the names of the keys that were added, withdrawn or changed."""
    old, new = ({key.name: key for key in ring.keys} for ring in (before, after))
    fields = {
        "num_keys": len(new),
        "added": sorted(new.keys() - old.keys()),
        "withdrawn": sorted(old.keys() - new.keys()),
        "changed": sorted(name for name in new.keys() & old.keys() if new[name] != old[name]),
    }
    level = logging.INFO if new or not old else logging.WARNING  # no request is admitted any more
    _LOGGER.log(level, "keys_read", extra={"fields": fields})


def _mark(path: Path) -> _Mark:
    try:
        status = path.stat()
    except OSError as error:
        return str(path), (error.errno or 0,)
    return str(path), (
        status.st_dev,
        status.st_ino,
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
    )
