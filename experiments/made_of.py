"""Notes beside files that take long to make: digests of what each was made of.

Owns the form of such a note, which is that of `sha256sum`, and the refusal of what was made of
something else. Does not own what is made.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path

from model.checkpoint.files.checksums import CHECKSUMS_FILE
from model.checkpoint.manifest import CheckpointFiles
from model.train.files import write_whole


def digest(path: Path) -> str:
    """SHA-256 of a file.

    Raises:
        SystemExit: It cannot be read.
    """
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise SystemExit(f"{path}: {error.strerror}") from error


def checkpoint_digest(directory: Path) -> str:
    """SHA-256 of a checkpoint's listing without its card, which changes no translation.

    Raises:
        SystemExit: There is no checkpoint.
    """
    path = directory / CHECKSUMS_FILE
    try:
        lines = path.read_bytes().splitlines(keepends=True)
    except OSError as error:
        raise SystemExit(f"{path}: {error.strerror}") from error
    card = f"  {CheckpointFiles().card}\n".encode()
    return hashlib.sha256(b"".join(line for line in lines if not line.endswith(card))).hexdigest()


def read_note(path: Path) -> dict[str, str]:
    """Digests by what they are of; empty if there is no note."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return {key: value for value, _, key in (line.partition("  ") for line in lines)}


def write_note(path: Path, made_of: Mapping[str, str]) -> None:
    """Write digests by what they are of."""
    write_whole(path, "".join(f"{value}  {key}\n" for key, value in made_of.items()).encode())


def check_same(made: Path, note: Path, of: Mapping[str, tuple[Path, str]], learners: str) -> None:
    """Refuse a file that was made of something else, or may have been.

    Args:
        made: The file.
        note: That says what it was made of.
        of: What it is to be made of: path and digest, by what they are.
        learners: Who learnt from it, in the folder around it.

    Raises:
        SystemExit: It was made of something else.
    """
    noted = read_note(note)
    for key, (path, wanted) in of.items():
        if noted.get(key) != wanted:
            is_other = f"was made with another {key} than {path}"
            is_unknown = f"may be of another {key} than {path}: {note} does not name it"
            raise SystemExit(
                f"{made} {is_other if key in noted else is_unknown}; to begin anew, move"
                f" {made.parent} away, whose {learners} have learnt from it"
            )
