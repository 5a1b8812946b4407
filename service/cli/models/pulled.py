"""Places of pulled checkpoints: the folder that is served, and what is known of what is there.

Owns whether a checkpoint may be written where it would be, the note of what it was made of, and
how a new version takes the place of an old one. The note is a hidden file of the checkpoint, beside
those that its checksums list, so that it goes where the checkpoint goes. Earlier versions kept it
in the cache, where it is still looked for.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from model.checkpoint.description.strict_json import format_json, parse_json
from model.checkpoint.files.checksums import read_limited
from model.checkpoint.files.replacement import publish
from model.checkpoint.manifest import CONFIG_FILE
from model.errors import CheckpointError, ConfigError
from model.exchange.registry.cache import Cache, locked, write_whole
from model.exchange.registry.listing import path_problem
from model.system.paths import exists, is_file, is_folder
from service.checkpoint_folder import named_checkpoints

if TYPE_CHECKING:
    from model.exchange.registry.listing import Listing

ORIGIN_FILE = ".pulled.json"
_MAX_ORIGIN_BYTES = 2**16
_NEW_SUFFIX = ".new"
_OLD_SUFFIX = ".old"


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Origin of a pulled checkpoint: the model and version that it was made of.

    Attributes:
        name: Of the model.
        version: Of its files.
        compute: How its matrices are stored.
    """

    name: str
    version: str
    compute: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Place of a checkpoint that is there, or will be.

    Attributes:
        path: Its directory.
        cached_origin: The file that earlier versions wrote down in what it was made of; the lock
            is beside it.
    """

    path: Path
    cached_origin: Path

    def is_wanted(self, listing: "Listing", compute: str, *, is_replacing: bool) -> bool:
        """Whether there is something to do: False where the very same is there.

        Raises:
            ConfigError: Something else is there, and is not to be replaced.
        """
        if not exists(self.path, _unusable):
            self._check_no_link()
            return True
        found, wanted = self._read(), _origin_of(listing, compute)
        if found == wanted:
            return False
        if found is None or found.name != wanted.name:
            known = "nothing says that it was pulled" if found is None else f"is {found.name}"
            raise ConfigError(f"{self.path} is there and {known}; --as gives another name")
        if not is_replacing:
            raise ConfigError(
                f"{self.path} is {found.name}, version {found.version}, {found.compute};"
                f" --replace puts version {wanted.version}, {wanted.compute}, in its place"
            )
        self._check_no_link()
        return True

    def check_free(self) -> None:
        """Refuse a place that is taken.

        Raises:
            ConfigError: It is.
        """
        if exists(self.path, _unusable):
            raise ConfigError(f"{self.path} is there; --as gives another name")
        self._check_no_link()

    @contextmanager
    def locked(self, on_wait: Callable[[], None]) -> Iterator[None]:
        """Hold the place against other pulls, while one of them has it: wait.

        What a pull that was killed had moved aside is back in its place then.

        Raises:
            ConfigError: The cache, in which the lock is, cannot be written, or the folder.
        """
        try:
            with locked(self.cached_origin, on_wait):
                self._restore()
                yield
        except OSError as error:
            raise _unusable(
                Path(error.filename or self.cached_origin), error.strerror or ""
            ) from error

    @contextmanager
    def filling(self) -> Iterator[Path]:
        """The directory to write; it takes its place when the block ends without an error.

        What is there stays until then. Names that begin with a dot are not served.

        Raises:
            ConfigError: The folder cannot be written.
        """
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            new = self.path.with_name(f".{self.path.name}{_NEW_SUFFIX}")
            self._restore()
            for left in (new, self._old):
                shutil.rmtree(left, ignore_errors=True)
            try:
                yield new
                publish(new, self.path, retired=self._old)
                self.cached_origin.unlink(missing_ok=True)
            finally:
                shutil.rmtree(new, ignore_errors=True)
        except OSError as error:
            raise _unusable(Path(error.filename or self.path), error.strerror or "") from error

    def remember(self, directory: Path, listing: "Listing", compute: str) -> None:
        """Write down what a checkpoint that is to stand here was made of.

        Args:
            directory: Of the checkpoint, before it stands here.
            listing: What it was made of.
            compute: How its matrices are stored.

        Raises:
            OSError: The directory cannot be written.
        """
        write_whole(directory / ORIGIN_FILE, format_json(asdict(_origin_of(listing, compute))))

    def _check_no_link(self) -> None:
        """Refuse a link: what it leads to is somebody else's, and may be nothing."""
        if self.path.is_symlink():
            raise ConfigError(f"{self.path} is a link; --as gives another name")

    @property
    def _old(self) -> Path:
        """Where the checkpoint stands while another one takes its place."""
        return self.path.with_name(f".{self.path.name}{_OLD_SUFFIX}")

    def _restore(self) -> None:
        """Move back what a pull had moved aside when it was killed; a link never was."""
        if self._old.is_symlink():
            self._old.unlink()
        if exists(self._old, _unusable) and not exists(self.path, _unusable):
            self._old.rename(self.path)

    def _read(self) -> Origin | None:
        """The origin; None where there is none, or it is damaged."""
        return _read_origin(self.path / ORIGIN_FILE) or _read_origin(self.cached_origin)


def place_of(folder: Path | None, name: str, cache: Cache) -> Place:
    """Where a checkpoint of that name goes.

    Args:
        folder: Of checkpoints; None for the one that is served.
        name: Of the checkpoint.
        cache: Has the lock, and the notes of earlier versions.

    Raises:
        ConfigError: The name is none for a folder, or the folder is a checkpoint itself.
    """
    parent = named_checkpoints(os.environ) if folder is None else folder
    if "/" in name or path_problem(name):
        problem = path_problem(name) or "leaves the folder"
        raise ConfigError(f"{name!r} {problem}; --as gives another name")
    parent = parent.absolute()
    if is_folder(parent, _unusable) and exists(parent / CONFIG_FILE, _unusable):
        raise ConfigError(f"{parent} is a checkpoint; --to names a folder of several")
    path = parent / name
    return Place(path=path, cached_origin=cache.pulled(path))


def _read_origin(path: Path) -> Origin | None:
    if not is_file(path):
        return None
    try:
        value = parse_json(read_limited(path, _MAX_ORIGIN_BYTES))
    except (CheckpointError, ConfigError):
        return None
    keys = ("name", "version", "compute")
    if not isinstance(value, dict) or not all(isinstance(value.get(key), str) for key in keys):
        return None
    return Origin(**{key: value[key] for key in keys})


def _origin_of(listing: "Listing", compute: str) -> Origin:
    return Origin(name=listing.name, version=listing.version, compute=compute)


def _unusable(path: Path, problem: str) -> ConfigError:
    return ConfigError(f"{path}: {problem}")
