"""Bulk jobs of `dragoman translate`: files and folders of tables, on this machine or a cluster.

Owns their flags, which commands are such jobs, and what is told of them. How a job is planned,
divided and resumed is `model.offline.bulk`; the flags of languages, search and terms are those of
every translation.
"""

import argparse
import os
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from model.config import SearchConfig
from model.documents.kinds import kind_of
from model.errors import ConfigError, shown
from model.system.cores import default_num_threads
from model.text.constraints.control import Control
from service.cli.arguments.control import chosen_control, controlled
from service.cli.arguments.directions import Direction, check_unreplaced, chosen_or_same
from service.cli.arguments.offline import MAX_ROWS, check_count, chosen_search, chosen_threads
from service.cli.signals import leaving_at_once
from service.cli.streams.beginnings import beginning
from service.cli.translate.bulk_progress import shown_progress

if TYPE_CHECKING:
    from model.offline.bulk.blocks import Block, Format, Receipt, Totals
    from model.offline.bulk.output import OutputFolder
    from model.offline.bulk.places import Facts
    from model.offline.bulk.planning import Wanted
    from model.offline.bulk.task import Method, Task

BAD_ROWS_STATUS = 3
"""Exit status of a job that is done, with rows that have no translation."""

_USUAL_BLOCK_ROWS = 2_000
_USUAL_CHARACTERS = 100_000
_MAX_BLOCK_ROWS = 1_000_000
_MAX_CHARACTERS = 10_000_000
_MAX_WORKERS = 10_000
_MAX_HANG_SECONDS = 1_000_000
_HANG_SECONDS = 600
_NOT_IN_BULK = {
    "text": "--text",
    "output": "--output",
    "format": "--format",
    "nearest_to": "--nearest-to",
}
_BULK_ALONE = {
    "suffix": "--suffix",
    "workers": "--workers",
    "ray_address": "--ray-address",
    "hang_seconds": "--hang-seconds",
    "block_rows": "--block-rows",
    "max_characters": "--max-characters",
}


def add_bulk_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of bulk jobs."""
    parser.add_argument(
        "folder",
        nargs="?",
        metavar="OUTPUT",
        help="a folder: a bulk job translates FILE, which may be a folder, a pattern or a URL, of"
        " parquet, jsonl, csv, tsv or txt, block by block into it, and goes on where it stopped",
    )
    bulk = parser.add_argument_group("bulk jobs")
    bulk.add_argument(
        "--engine",
        choices=("local", "ray"),
        help="this machine (the default), or the workers of a Ray cluster",
    )
    bulk.add_argument(
        "--columns", metavar="NAMES", help="what is translated of each row, with commas"
    )
    bulk.add_argument(
        "--suffix", help="of the new columns' names (_ and the target language: title_de)"
    )
    bulk.add_argument("--block-rows", type=int, help="rows of a block (2000)")
    bulk.add_argument(
        "--max-characters", type=int, help="of a text; a longer one is a bad row (100000)"
    )
    bulk.add_argument(
        "--workers", type=int, help="of --engine ray (as many as there are cores for)"
    )
    bulk.add_argument(
        "--ray-address",
        metavar="ADDRESS",
        help="of a Ray cluster (RAY_ADDRESS, else one on this machine for as long as the job)",
    )
    bulk.add_argument(
        "--hang-seconds",
        type=int,
        help="after so long without a step a worker of --engine ray is replaced"
        f" ({_HANG_SECONDS}; 0 for never)",
    )


def is_bulk(arguments: argparse.Namespace) -> bool:
    """Whether a command is a bulk job.

    Raises:
        ConfigError: It is none, and has flags of one.
    """
    if arguments.folder is not None or arguments.engine or arguments.columns is not None:
        return True
    for name, flag in _BULK_ALONE.items():
        if getattr(arguments, name) is not None:
            raise ConfigError(f"{flag} goes with a bulk job: give INPUT and an OUTPUT folder")
    return False


def run_bulk(arguments: argparse.Namespace) -> int:
    """Do a bulk job, or what is left of it.

    Raises:
        DragomanError: What is in the way, before anything is written; or what ended it.
    """
    search = controlled(chosen_search(arguments), arguments)
    control = chosen_control(arguments)
    _check_flags(arguments)
    with leaving_at_once():
        from model.offline.bulk import local_engine  # noqa: F401  # later, and Ctrl-C would be lost
        from model.offline.bulk.output import OutputFolder
        from model.offline.bulk.places import absolute_name
        from model.offline.bulk.planning import (
            columns_of,
            continued,
            format_of_all,
            input_files,
            planned,
        )
        from model.offline.bulk.task import Task

    names = _names(arguments.columns)
    files = input_files(arguments.file, arguments.folder)
    _check_named_as_folder(arguments.folder, arguments.file, files)
    kind = format_of_all(files, names)
    names = _distinct(columns_of(files[0], kind, names)) if names else names
    direction = _direction(arguments, files, kind, names)
    method = _method(arguments, direction, search, control)
    wanted = _wanted(arguments, files, kind, names, method)
    folder = OutputFolder(arguments.folder, writer=f"{socket.gethostname()}-{os.getpid()}")
    kept = folder.kept_job()
    job = planned(wanted) if kept is None else continued(kept, wanted, folder.name)
    with folder.begun(job):
        task = Task(job=job, output=absolute_name(arguments.folder), method=method)
        _do(task, folder, arguments)
        totals = folder.complete(job)
    _report(totals, folder.name)
    return BAD_ROWS_STATUS if totals.num_bad_rows else 0


def _check_flags(arguments: argparse.Namespace) -> None:
    """Refuse what no bulk job has.

    Raises:
        ConfigError: It is there, or INPUT or OUTPUT are not.
    """
    for name, flag in _NOT_IN_BULK.items():
        if getattr(arguments, name) is not None:
            raise ConfigError(f"{flag} does not go with a bulk job, which writes an OUTPUT folder")
    if arguments.file in (None, "-") or arguments.folder is None:
        raise ConfigError("a bulk job needs INPUT, a file or a folder, and an OUTPUT folder")
    if arguments.engine != "ray":
        for name in ("workers", "ray_address", "hang_seconds"):
            if getattr(arguments, name) is not None:
                raise ConfigError(f"{_BULK_ALONE[name]} goes with --engine ray")
    for name, flag, limit in (
        ("workers", "--workers", _MAX_WORKERS),
        ("block_rows", "--block-rows", _MAX_BLOCK_ROWS),
        ("max_characters", "--max-characters", _MAX_CHARACTERS),
    ):
        value = getattr(arguments, name)
        if value is not None:
            check_count(flag, value, limit)
    if not 0 <= (arguments.hang_seconds or 0) <= _MAX_HANG_SECONDS:
        raise ConfigError(
            f"--hang-seconds is {arguments.hang_seconds}; it must be from 0, which is never, to"
            f" {_MAX_HANG_SECONDS}"
        )
    check_count("--max-rows", arguments.max_rows, MAX_ROWS)


def _check_named_as_folder(output: str, name: str, files: "Sequence[Facts]") -> None:
    """Refuse a new folder that is named like a file of the input's format: a file was meant.

    Folders of Parquet are named so by custom.

    Args:
        output: The folder.
        name: Of the input.
        files: That it means.

    Raises:
        ConfigError: It is named so, and not there.
    """
    from model.offline.bulk.formats import format_of
    from model.offline.bulk.places import place_of

    kind = format_of(output)
    if kind is None or kind.name == "parquet" or kind != format_of(files[0].name):
        return
    if place_of(output).kind() is not None:
        return
    is_document = kind_of(name) is not None and place_of(name).kind() == "file"
    hint = f"; for one document: --output {output}, and no OUTPUT" if is_document else ""
    raise ConfigError(
        f"OUTPUT {output} is named like a {kind.name} file, and a bulk job makes a folder: name"
        f" one, or end its name in /{hint}"
    )


def _names(columns: str | None) -> tuple[str, ...]:
    """The columns that are named, as it is written.

    Raises:
        ConfigError: There is none.
    """
    names = tuple(name for name in (columns or "").split(",") if name.strip())
    if columns is not None and not names:
        raise ConfigError(f"--columns is {shown(columns)}; it names columns, with commas")
    return names


def _distinct(names: tuple[str, ...]) -> tuple[str, ...]:
    """The names.

    Raises:
        ConfigError: One is there twice.
    """
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"--columns names {shown(name)} {names.count(name)} times")
    return names


def _direction(
    arguments: argparse.Namespace,
    files: "Sequence[Facts]",
    kind: "Format",
    names: Sequence[str],
) -> Direction:
    """The checkpoint and its direction; the first texts say which language, where that is open.

    Raises:
        ConfigError: There is nothing to translate, as texts are to stay in their language.
    """
    from service.cli.translate.bulk_texts import texts_of

    direction = chosen_or_same(
        arguments,
        arguments.checkpoint,
        sample=lambda: beginning(texts_of(files, kind, names)),
        is_whole=False,
    )
    if direction is None:
        raise ConfigError("there is nothing to translate: source and target are one language")
    return direction


def _method(
    arguments: argparse.Namespace, direction: Direction, search: SearchConfig, control: Control
) -> "Method":
    """How texts are translated; the arithmetic is chosen here, for all workers."""
    from model.checkpoint.description.config_file import read_manifest
    from model.checkpoint.files.checksums import fingerprint, unreplaced
    from model.loading import automatic_compute_type
    from model.offline.bulk.task import Method
    from model.system.devices import resolve_device

    is_elsewhere = arguments.engine == "ray" and arguments.device == "cuda"
    device = "cuda" if is_elsewhere else resolve_device(arguments.device)
    with unreplaced(direction.directory):
        manifest = read_manifest(direction.directory)
        name = fingerprint(direction.directory)
    check_unreplaced(direction, manifest)
    is_open = arguments.compute_type == "auto"
    return Method(
        checkpoint=direction.directory.absolute(),
        fingerprint=name,
        device=device,
        compute_type=automatic_compute_type(manifest, device)
        if is_open
        else arguments.compute_type,
        with_shortlist=arguments.shortlist,
        num_threads=_threads(arguments),
        max_rows=max(arguments.max_rows, search.beam_size),
        pair=direction.pair,
        search=search,
        control=control,
        max_characters=arguments.max_characters or _USUAL_CHARACTERS,
    )


def _threads(arguments: argparse.Namespace) -> int:
    """Threads of a worker: all cores of one machine, or a core for each worker of a cluster."""
    if arguments.engine == "ray" and arguments.threads is None:
        return 1
    return chosen_threads(arguments)


def _wanted(
    arguments: argparse.Namespace,
    files: "tuple[Facts, ...]",
    kind: "Format",
    names: tuple[str, ...],
    method: "Method",
) -> "Wanted":
    from model.offline.bulk.blocks import Columns, Sizes
    from model.offline.bulk.planning import Wanted

    suffix = f"_{method.pair.target}" if arguments.suffix is None else arguments.suffix
    new = tuple(f"{name}{suffix}" for name in names)
    if {*new} & {*names}:
        raise ConfigError(
            f"--suffix is {shown(suffix)}; new columns would have the old ones' names"
        )
    return Wanted(
        files=files,
        format=kind,
        columns=Columns(names=names, new=new or ("",)),
        sizes=Sizes(max_rows=arguments.block_rows or _USUAL_BLOCK_ROWS),
        facts=method.facts,
    )


def _do(task: "Task", folder: "OutputFolder", arguments: argparse.Namespace) -> None:
    """Do the blocks that are not finished yet."""
    receipts = {receipt.block: receipt for receipt in folder.finished(task.job)}
    missing = [block for block in task.job.blocks if block.number not in receipts]
    num_rows = sum(receipt.num_rows for receipt in receipts.values())
    if receipts:
        print(
            f"dragoman: {len(receipts)} of {len(task.job.blocks)} blocks are finished already",
            file=sys.stderr,
        )
    if not missing:
        return
    folder.reopen()
    num_finished = len(receipts)
    with shown_progress(num_rows=task.job.num_rows, num_done=num_rows, clock=time.monotonic) as add:
        try:
            for receipt in _receipts(task, missing, folder, arguments):
                add(receipt)
                num_finished += 1
        except (KeyboardInterrupt, SystemExit):
            print(
                f"dragoman: interrupted; {num_finished} of {len(task.job.blocks)} blocks are"
                f" finished in {folder.name}; the same command goes on from there",
                file=sys.stderr,
            )
            raise


def _receipts(
    task: "Task",
    missing: "Sequence[Block]",
    folder: "OutputFolder",
    arguments: argparse.Namespace,
) -> "Iterator[Receipt]":
    """Receipts of blocks as the engine finishes them."""
    if arguments.engine != "ray":
        from model.offline.bulk.local_engine import run_here

        return run_here(task, missing, folder)
    from model.offline.bulk.ray_engine import Cluster, run_on_ray

    cluster = Cluster(
        address=arguments.ray_address or os.environ.get("RAY_ADDRESS") or None,
        num_workers=arguments.workers,
        num_local_cores=default_num_threads(),
        hang_seconds=_HANG_SECONDS if arguments.hang_seconds is None else arguments.hang_seconds,
    )
    return run_on_ray(task, missing, cluster)


def _report(totals: "Totals", name: str) -> None:
    """Tell what was done, and what is bad."""
    print(
        f"dragoman: {totals.num_rows:,} rows in {totals.num_blocks:,} blocks are in {name}",
        file=sys.stderr,
    )
    if totals.num_bad_rows:
        reasons = ", ".join(f"{reason} {count}" for reason, count in totals.reasons.most_common())
        print(
            f"dragoman: warning: {totals.num_bad_rows:,} rows have no translation, listed in"
            f" {name}/_bad_rows.jsonl: {reasons}",
            file=sys.stderr,
        )
    if totals.checks:
        counts = ", ".join(f"{check} {count}" for check, count in totals.checks.most_common())
        print(f"dragoman: warning: segments that may be wrong, by check: {counts}", file=sys.stderr)
