"""The files of one listing: all of them here and verified, or an error.

Owns the order of it: the lock, the room on the disk, one file after the other. A second pull of the
same version finds the files, verifies them and asks no server.
"""

import shutil
from collections.abc import Callable
from pathlib import Path

from model.errors import ConfigError, RegistryError
from model.exchange.registry.cache import Cache, locked
from model.exchange.registry.download import PARTIAL_SUFFIX, Downloader
from model.exchange.registry.kept import drop_checksum, known_content
from model.exchange.registry.listing import Listing, RemoteFile
from model.system.paths import is_file

_ROOM_LEFT_BYTES = 64 * 2**20


def pull(
    listing: Listing,
    cache: Cache,
    downloader: Downloader,
    *,
    on_wait: Callable[[], None],
    free_bytes: Callable[[Path], int] | None = None,
) -> Path:
    """Download what is missing; where the model lies.

    Args:
        listing: What is wanted.
        cache: Where it goes.
        downloader: Fetches each file.
        on_wait: Called if another process pulls the same.
        free_bytes: Of the disk that a folder is on; the system's own answer by default.

    Returns:
        The folder of the files, or the archive among them that is the model.

    Raises:
        RegistryError: A file cannot be had, or is not what is listed.
        ConfigError: The disk has no room, or cannot be written.
    """
    folder = cache.model_folder(listing.name, listing.version, listing.folder)
    try:
        with locked(folder, on_wait):
            folder.mkdir(exist_ok=True)
            _check_room(listing, folder, free_bytes or _free_bytes)
            for file in listing.files:
                target = _target(folder, file)
                target.parent.mkdir(parents=True, exist_ok=True)
                downloader.fetch(file, target)
    except OSError as error:
        raise ConfigError(f"{error.filename or folder}: {error.strerror or error}") from error
    return folder if listing.archive is None else folder / listing.archive


def distrust(listing: Listing, cache: Cache) -> None:
    """Have the next pull download again what nothing but its arrival says to be whole.

    A server that names neither size nor checksum can break off unnoticed; that a model of such
    files cannot be read may be why.

    Raises:
        OSError: The cache cannot be written.
    """
    folder = cache.model_folder(listing.name, listing.version, listing.folder)
    for file in listing.files:
        if file.final.checksum is None and file.final.size is None:
            drop_checksum(folder / file.path)


def missing_bytes(listing: Listing, cache: Cache) -> int:
    """Bytes that a pull would still download, as far as the registry says."""
    folder = cache.model_folder(listing.name, listing.version, listing.folder)
    return sum(_missing(folder, file) for file in listing.files)


def _missing(folder: Path, file: RemoteFile) -> int:
    target = folder / file.path
    size = file.final.size
    is_whole = is_file(target) and (size is None or target.stat().st_size == size)
    if is_whole and known_content(target, file) is not None:
        return 0
    partial = target.with_name(f".{target.name}{PARTIAL_SUFFIX}")
    there = partial.stat().st_size if is_file(partial) else 0
    return max(0, file.known_bytes - there)


def _target(folder: Path, file: RemoteFile) -> Path:
    """Where a file goes; no link on the way may lead out of the folder."""
    target = folder / file.path
    if not target.parent.resolve().is_relative_to(folder.resolve()) or target.is_symlink():
        raise RegistryError(file.url, f"would be written outside of {folder}")
    return target


def _check_room(listing: Listing, folder: Path, free_bytes: Callable[[Path], int]) -> None:
    wanted = sum(_missing(folder, file) for file in listing.files)
    free = free_bytes(folder)
    if wanted and wanted + _ROOM_LEFT_BYTES > free:
        raise ConfigError(
            f"{folder}: {wanted} bytes are to come and {free} are free on that disk;"
            f" {_ROOM_LEFT_BYTES} stay free"
        )


def _free_bytes(folder: Path) -> int:
    return shutil.disk_usage(folder).free
