"""shortlist.safetensors: the lexical shortlist of a checkpoint, read, checked and written.

Owns the file (three int32 tensors: `always`, `offsets`, `ids`), its entry in the manifest, and the
copy of a checkpoint that has a shortlist added. What the table means is `model.shortlist`.
"""

import re
import shutil
import uuid
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from model.checkpoint.description.config_file import format_manifest, read_manifest
from model.checkpoint.files.checksums import (
    CHECKSUMS_FILE,
    format_checksums,
    read_limited,
    read_listing,
    unreplaced,
)
from model.checkpoint.files.replacement import publish_new
from model.checkpoint.files.verification import MAX_CARD_BYTES, max_shortlist_bytes
from model.checkpoint.manifest import CONFIG_FILE, Manifest, ShortlistEntry
from model.errors import CheckpointError, ConfigError
from model.shortlist import Shortlist, shortlist_problems
from model.system.paths import exists

CARD_HEAD = "## Lexical shortlist"
"""First line of the note that a card has of its checkpoint's shortlist."""

_CARD_NOTE = re.compile(rb"\n%b\n.*?(?=\n##? |\Z)" % CARD_HEAD.encode(), re.DOTALL)
_CARD_BULLET = re.compile(rb"\n- Its lexical shortlist [^\n]*")
"""What a converted checkpoint's card says of the one that came along."""
_TENSORS = ("always", "offsets", "ids")


def read_shortlist(directory: Path, manifest: Manifest) -> Shortlist:
    """The shortlist of a checkpoint whose files are verified.

    Raises:
        CheckpointError: It has none; or the file is not what the manifest says.
    """
    entry = manifest.shortlist
    if entry is None:
        raise CheckpointError(
            directory, "has no lexical shortlist; `dragoman shortlist` makes a copy that has one"
        )
    path = directory / entry.file
    data = read_limited(path, max_shortlist_bytes(manifest, entry))
    try:
        tensors = load(data)
    except (SafetensorError, ValueError, KeyError) as error:
        raise CheckpointError(path, f"is not a readable safetensors file: {error}") from error
    found = {name: f"{value.dtype} {value.shape}" for name, value in tensors.items()}
    expected = {
        "always": f"int32 {(entry.num_always,)}",
        "offsets": f"int32 {(manifest.network.vocab_size + 1,)}",
        "ids": f"int32 {(entry.num_ids,)}",
    }
    if found != expected:
        raise CheckpointError(path, f"has the tensors {found}; they must be {expected}")
    shortlist = Shortlist(
        always=tensors["always"],
        offsets=tensors["offsets"],
        ids=tensors["ids"],
        with_source=entry.with_source,
    )
    network = manifest.network
    problems = shortlist_problems(
        shortlist, num_sources=network.vocab_size, num_targets=network.output_size
    )
    if problems:
        raise CheckpointError(path, "; ".join(problems))
    return shortlist


def shortlist_entry(shortlist: Shortlist) -> ShortlistEntry:
    """What the manifest says of a shortlist."""
    return ShortlistEntry(
        num_always=len(shortlist.always),
        num_ids=len(shortlist.ids),
        with_source=shortlist.with_source,
    )


def format_shortlist(shortlist: Shortlist) -> bytes:
    """The bytes of the file."""
    return save(
        {name: np.ascontiguousarray(getattr(shortlist, name), np.int32) for name in _TENSORS}
    )


def check_new(destination: Path) -> None:
    """Refuse a place where something is already.

    Raises:
        CheckpointError: It exists, be it as a link to nothing, or cannot be looked at.
    """
    if exists(destination, CheckpointError) or destination.is_symlink():
        raise CheckpointError(destination, "exists; a shortlist is written with a new copy")


def add_shortlist(source: Path, destination: Path, shortlist: Shortlist, *, note: str) -> Manifest:
    """Write a copy of a checkpoint that has a shortlist, in place of the one that it may have.

    Args:
        source: The checkpoint; it stays as it is.
        destination: Where the copy will be; nothing may be there.
        shortlist: The table.
        note: What its card says of it, in Markdown, under `CARD_HEAD`.

    Returns:
        The manifest of the copy.

    Raises:
        CheckpointError: The checkpoint cannot be read, or the destination exists or cannot be
            written.
        ConfigError: The table does not fit the checkpoint's vocabularies.
    """
    destination = destination.absolute()
    check_new(destination)
    with unreplaced(source):
        old = read_manifest(source)
        _check(shortlist, old)
        manifest = replace(old, shortlist=shortlist_entry(shortlist))
        partial = destination.with_name(f".{destination.name}.{uuid.uuid4().hex}.partial")
        try:
            partial.mkdir()
            contents = {
                old.files.card: _card(source, old, note),
                CONFIG_FILE: format_manifest(manifest),
                shortlist_entry(shortlist).file: format_shortlist(shortlist),
            }
            _fill(partial, source, old, contents)
            publish_new(partial, destination)
        except OSError as error:
            raise CheckpointError(destination, f"cannot be written: {error}") from error
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    return manifest


def _check(shortlist: Shortlist, manifest: Manifest) -> None:
    network = manifest.network
    problems = shortlist_problems(
        shortlist, num_sources=network.vocab_size, num_targets=network.output_size
    )
    if problems:
        raise ConfigError(f"the shortlist does not fit {manifest.name}: {'; '.join(problems)}")


def _card(source: Path, manifest: Manifest, note: str) -> bytes:
    card = read_limited(source / manifest.files.card, MAX_CARD_BYTES)
    if manifest.shortlist is not None:  # it goes, and so does what is said of it
        card = _CARD_BULLET.sub(b"", _CARD_NOTE.sub(b"", card))
    return card.rstrip() + f"\n\n{note}\n".encode()


def _fill(partial: Path, source: Path, old: Manifest, contents: Mapping[str, bytes]) -> None:
    """All files of the copy: those that are written anew, and the others as they are.

    Raises:
        OSError: The disk refuses.
    """
    left_out = {*contents, *([old.shortlist.file] if old.shortlist else [])}
    for name in sorted(read_listing(source).keys() - left_out):
        shutil.copyfile(source / name, partial / name)
    for name, data in contents.items():
        (partial / name).write_bytes(data)
    (partial / CHECKSUMS_FILE).write_bytes(format_checksums(partial.iterdir()))
