"""Checksums that are kept of files of which their registry publishes none.

Owns the file beside each of them, `.NAME.sha256`: written when a file comes, before it has its
name, and held against it whenever it is used.
"""

import hashlib
from dataclasses import replace
from pathlib import Path

from model.exchange.registry.cache import write_whole
from model.exchange.registry.checksum import blocks
from model.exchange.registry.listing import Checksum, Content, RemoteFile
from model.system.paths import is_file

_SUFFIX = ".sha256"
_NUM_DIGITS = 64


def known_content(target: Path, file: RemoteFile) -> Content | None:
    """The bytes that a file must have, as listed or with the checksum that was kept.

    None where there is neither checksum, so that nothing says what is right.
    """
    if file.final.checksum is not None:
        return file.final
    path = _beside(target)
    if not is_file(path):
        return None
    with path.open("rb") as stream:
        digest = stream.read(_NUM_DIGITS + 1).decode("ascii", "replace")
    try:
        return replace(file.final, checksum=Checksum(kind="sha256", digest=digest))
    except ValueError:
        return None


def keep_checksum(whole: Path, target: Path) -> None:
    """Write down the checksum of a file that is to be `target`."""
    digest = hashlib.sha256()
    for block in blocks(whole):
        digest.update(block)
    write_whole(_beside(target), digest.hexdigest().encode())


def drop_checksum(target: Path) -> None:
    """Remove what is kept, if anything is."""
    _beside(target).unlink(missing_ok=True)


def _beside(target: Path) -> Path:
    return target.with_name(f".{target.name}{_SUFFIX}")
