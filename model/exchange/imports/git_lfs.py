"""Pointers of git-lfs: small texts that stand for large files until a clone has fetched them."""

from pathlib import Path

_BEGIN = b"version https://git-lfs"
POINTER_PROBLEM = "is a pointer of git-lfs and not the file; `git lfs pull` in the clone fetches it"


def is_pointer(data: bytes) -> bool:
    """Whether a file that has, or begins with, these bytes is a pointer."""
    return data.startswith(_BEGIN)


def is_pointer_file(path: Path) -> bool:
    """Whether a file is a pointer.

    Raises:
        OSError: It cannot be read.
    """
    with path.open("rb") as file:
        return is_pointer(file.read(len(_BEGIN)))
