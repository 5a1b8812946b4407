"""Conversion of a foreign model into a checkpoint: recognised, checked as a whole, then written.

Owns the order of things: nothing is written before every problem has been looked for, a network
is never in memory as a whole, a conversion that was stopped goes on, and a checkpoint appears
whole or not at all. It knows no format (`model.exchange.imports.formats`).
"""

import errno
import math
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from model.checkpoint.description.config_file import format_manifest
from model.checkpoint.description.consistency import manifest_problems
from model.checkpoint.files.checksums import CHECKSUMS_FILE, format_checksums
from model.checkpoint.files.replacement import publish_new
from model.checkpoint.manifest import CONFIG_FILE, Manifest, TensorEntry
from model.checkpoint.shortlist import format_shortlist, shortlist_entry
from model.checkpoint.tensors.safetensors_file import file_layout, opened_weight_file
from model.checkpoint.weights import tokenizer_files
from model.errors import CheckpointError, ConfigError, ForeignModelError, one_line
from model.exchange.imports.archives import unpacked
from model.exchange.imports.card import UNKNOWN_LICENCE, format_card
from model.exchange.imports.completeness import misshapen, network_shapes, unread
from model.exchange.imports.imported import ImportedModel, Importer, ImportOptions
from model.exchange.imports.piece_files import other_pieces
from model.exchange.imports.reading import read_whole, recognised, reporting_shortage
from model.exchange.imports.unfinished import (
    DONE_FILE,
    add_done,
    fingerprint,
    read_done,
    unfinished_folder,
)
from model.system.host_memory import readable_bytes
from model.system.paths import as_text, exists

StoredType = Literal["int8", "float16", "bfloat16", "float32"]
"""How matrices are stored; vectors, and tables of positions, which are small, are float32."""
Progress = Callable[[int, int], None]
"""Told how many weights are written, and of how many."""

_BYTES_OF_A_FLOAT = 4
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_FLUSH_BYTES = 2**27
_SPARE_BYTES = 2**26


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """A conversion that can be done.

    Attributes:
        imported: The foreign model.
        manifest: Of the checkpoint.
        contents: Every file but the weights and the checksums.
    """

    imported: ImportedModel
    manifest: Manifest
    contents: Mapping[str, bytes]


def convert(
    source: Path,
    destination: Path,
    *,
    importers: Sequence[Importer],
    compute: StoredType = "int8",
    name: str | None = None,
    licence: str | None = None,
    options: ImportOptions | None = None,
    command: str | None = None,
    approve: Callable[[Manifest], None] | None = None,
    progress: Progress | None = None,
) -> Manifest:
    """Convert a model of another program.

    What was interrupted goes on where it was, if neither source nor settings have changed.

    Args:
        source: A folder, a file, or an archive.
        destination: Where the checkpoint will be; nothing may be there, and its parent must exist.
        importers: The formats that are looked for, in this order.
        compute: How matrices are stored; int8 rows of the source are kept byte for byte by "int8".
        name: Name of the checkpoint; None takes the source's.
        licence: Licence of the weights; None takes the source's, and says so where it has none.
        options: What the source does not say of itself.
        command: What made the conversion, for its card.
        approve: Shown what is to be written, before any of it is; what it raises ends the
            conversion.
        progress: Told of every tensor.

    Returns:
        The manifest that was written.

    Raises:
        ForeignModelError: The source cannot be converted; every problem is told.
        CheckpointError: The destination exists or cannot be written, or its disk is too small.
    """
    destination = destination.absolute()
    _check_free(destination)
    if not exists(source, _refused):
        raise ForeignModelError(source, ["is missing"])
    with unpacked(source) as content:
        importer = recognised(content, importers, source=source)
        imported = read_whole(importer, content, options or ImportOptions(), source=source)
        plan = _planned(source, imported, compute=compute, name=name, licence=licence)
        if approve is not None:
            approve(plan.manifest)
        card = format_card(imported, plan.manifest, command=command)
        contents = {**plan.contents, plan.manifest.files.card: card.encode()}
        plan = replace(plan, contents=contents)
        mark = fingerprint(source, b"".join([contents[CONFIG_FILE], card.encode()]))
        try:
            with unfinished_folder(destination, mark) as folder:
                _check_still_free(destination, folder)
                needed = _check_disk(destination, folder, plan)
                with _reporting_full_disk(destination, folder, needed):
                    _write(source, folder, plan, progress or _no_progress)
                    _check_still_free(destination, folder)
                    publish_new(folder, destination)
        except OSError as error:
            raise CheckpointError(destination, f"cannot be written: {error}") from error
    return plan.manifest


def _check_free(destination: Path) -> None:
    """Refuse a place that is taken.

    Raises:
        CheckpointError: It is.
    """
    if exists(destination, CheckpointError) or destination.is_symlink():
        raise CheckpointError(destination, "exists; a conversion replaces nothing")


def _check_still_free(destination: Path, folder: Path) -> None:
    """As `_check_free`, while the lock is held; what was written for the place then goes."""
    try:
        _check_free(destination)
    except CheckpointError:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _planned(
    source: Path,
    imported: ImportedModel,
    *,
    compute: StoredType,
    name: str | None,
    licence: str | None,
) -> _Plan:
    """Everything but the weights, checked against each other.

    Raises:
        ForeignModelError: With every problem.
    """
    shapes = _network_shapes(source, imported)
    files, contents = tokenizer_files(imported.tokenizer)
    manifest = Manifest(
        name=name or imported.name,
        description=one_line(as_text(imported.description)),
        licence=licence or imported.licence or UNKNOWN_LICENCE,
        network=imported.network,
        tokens=imported.tokens,
        pairs=imported.pairs,
        limits=imported.limits,
        licences=imported.licences,
        tensors={key: _entry(key, shape, compute) for key, shape in shapes.items()},
        files=files,
        languages=imported.languages,
        moses=imported.tokenizer.moses,
        normalisation=imported.tokenizer.normalisation,
        shortlist=None if imported.shortlist is None else shortlist_entry(imported.shortlist),
    )
    problems = [*_tensor_problems(imported, shapes), *manifest_problems(manifest)]
    if not problems:
        try:
            imported.tokenizer.build(manifest)
            problems += other_pieces(imported.tokenizer)
        except ConfigError as error:
            problems.append(str(error))
    if problems:
        raise ForeignModelError(source, problems)
    contents[CONFIG_FILE] = format_manifest(manifest)
    if imported.shortlist is not None and manifest.shortlist is not None:
        contents[manifest.shortlist.file] = format_shortlist(imported.shortlist)
    return _Plan(imported=imported, manifest=manifest, contents=contents)


def _network_shapes(source: Path, imported: ImportedModel) -> dict[str, tuple[int, ...]]:
    try:
        return network_shapes(imported.network)
    except ConfigError as error:
        raise ForeignModelError(source, [str(error)]) from error


def _tensor_problems(imported: ImportedModel, shapes: Mapping[str, tuple[int, ...]]) -> list[str]:
    found = imported.tensors
    problems = [f"{name} is missing" for name in shapes if name not in found]
    problems += [f"{name} is no tensor of the network" for name in found if name not in shapes]
    return [*problems, *misshapen(found, shapes), *unread(imported.unused)]


def _entry(name: str, shape: tuple[int, ...], compute: StoredType) -> TensorEntry:
    if len(shape) < 2 or "position" in name:
        return TensorEntry(shape=shape, dtype="float32")
    if compute == "int8":
        return TensorEntry(shape=shape, dtype="int8", quantisation="int8-row")
    return TensorEntry(shape=shape, dtype=compute)


def _check_disk(destination: Path, folder: Path, plan: _Plan) -> int:
    """Bytes that are still to be written; refuses before any is what the disk cannot hold.

    Raises:
        CheckpointError: There is not enough room.
    """
    weights = folder / plan.manifest.files.weights
    there = weights.stat().st_blocks * 512 if weights.exists() else 0
    needed = file_layout(plan.manifest.tensors).num_bytes - there
    needed += sum(map(len, plan.contents.values())) + _SPARE_BYTES
    if needed > shutil.disk_usage(folder).free:
        raise _full_disk(destination, folder, needed)
    return needed


@contextmanager
def _reporting_full_disk(destination: Path, folder: Path, needed: int) -> Iterator[None]:
    """Block of writing: a disk that is full, or a quota, is told as one that was from the start.

    Raises:
        CheckpointError: It is.
        OSError: The disk refuses for another reason.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise
        raise _full_disk(destination, folder, needed, f": {error.strerror}") from error


def _full_disk(destination: Path, folder: Path, needed: int, why: str = "") -> CheckpointError:
    """The error; what is there goes, since nobody can go on with it and others want the room."""
    free = shutil.disk_usage(folder).free
    shutil.rmtree(folder)
    return CheckpointError(
        destination, f"needs {readable_bytes(needed)} of disk; {readable_bytes(free)} are free{why}"
    )


def _write(source: Path, folder: Path, plan: _Plan, progress: Progress) -> None:
    """Fill the folder.

    Raises:
        ForeignModelError: A tensor cannot be read or stored, or there is not the memory for it; the
            folder is then removed, as after any error but the disk's.
        OSError: The disk refuses.
    """
    try:
        _write_weights(source, folder, plan, progress)
    except ConfigError as error:
        shutil.rmtree(folder)
        raise ForeignModelError(source, [str(error)]) from error
    except OSError:
        raise
    except Exception:  # nobody can go on with it, whatever it was
        shutil.rmtree(folder, ignore_errors=True)
        raise
    for name, data in plan.contents.items():
        (folder / name).write_bytes(data)
    (folder / DONE_FILE).unlink()
    (folder / CHECKSUMS_FILE).unlink(missing_ok=True)
    (folder / CHECKSUMS_FILE).write_bytes(format_checksums(folder.iterdir()))


def _write_weights(source: Path, folder: Path, plan: _Plan, progress: Progress) -> None:
    entries, tensors = plan.manifest.tensors, plan.imported.tensors
    path = folder / plan.manifest.files.weights
    is_begun = path.exists() and path.stat().st_size == file_layout(entries).num_bytes
    done = read_done(folder) & entries.keys() if is_begun else set()
    sizes = {name: math.prod(entry.shape) for name, entry in entries.items()}
    total, written = sum(sizes.values()), sum(sizes[name] for name in done)
    with opened_weight_file(path, entries) as file:
        fresh: list[str] = []
        unflushed = 0
        for name in entries:
            if name in done:
                continue
            size = readable_bytes(_BYTES_OF_A_FLOAT * sizes[name])
            with reporting_shortage(source, f"at {name}, which has {size} in float32"):
                file.write(name, tensors[name].read())
            fresh.append(name)
            unflushed += sizes[name]
            if unflushed >= _FLUSH_BYTES:
                file.flush()
                add_done(folder, fresh)
                fresh, unflushed = [], 0
            written += sizes[name]
            progress(written, total)
        file.flush()
        add_done(folder, fresh)


def _no_progress(_written: int, _total: int) -> None:
    """Progress that is not shown."""


def _refused(path: Path, problem: str) -> ForeignModelError:
    return ForeignModelError(path, [problem])
