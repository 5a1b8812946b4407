"""The output folder of a bulk job: parts, their receipts, the side file, the end.

Owns its layout and what makes a block finished:

    part-000000.jsonl       the first block's rows; parts in order are the input in order
    _bad_rows.jsonl         cells without a translation: file, row, column, reason (at the end)
    _SUCCESS                the sums, when every block is finished (at the end)
    _dragoman/job.json      the manifest: the first thing that is written
    _dragoman/done/…json    a receipt of each finished block, written behind its part
    _dragoman/writing/      what is being written

A part gets its name when it is whole, and its receipt after that. So a block is finished if it has
a receipt and a part with the receipt's digest; anything else is done again, and gives the same
bytes. Readers of folders pass over names that begin with an underscore.
"""

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any, BinaryIO, cast

from model.errors import DataError
from model.offline.bulk.blocks import BadCell, Block, Receipt, Totals
from model.offline.bulk.job import Job, check_same_facts, check_same_inputs, decoded_job
from model.offline.bulk.places import Place, output_place

SUCCESS = "_SUCCESS"
BAD_ROWS = "_bad_rows.jsonl"

_OWN = "_dragoman"
_READ_BYTES = 2**20


class OutputFolder:
    """An output folder.

    Args:
        name: Its path or URL.
        writer: Who writes, as no other process at the same time: a part of temporary names.

    Raises:
        ConfigError: It cannot be written to.
    """

    def __init__(self, name: str, *, writer: str) -> None:
        self.name = name
        self._place = output_place(name)
        self._writer = writer

    def kept_job(self) -> Job | None:
        """The job that is there; None where nothing is.

        Raises:
            DataError: Something else is there, or the manifest cannot be read.
        """
        kind = self._place.kind()
        if kind == "file":
            raise DataError(f"{self.name}: is a file; a bulk job writes a folder")
        manifest = self._manifest()
        if kind == "folder" and manifest.kind() == "file":
            return decoded_job(_read(manifest), manifest.name)
        if self._place.names() not in ([], [_OWN]):  # of a job that began, and had no manifest yet
            raise DataError(
                f"{self.name}: is there and holds no bulk job; name a folder that is not there"
            )
        return None

    @contextmanager
    def begun(self, job: Job) -> Iterator[None]:
        """The folder of a job while it is held: made, with its manifest, without unfinished files.

        Raises:
            DataError: It cannot be written, or another command of this machine writes it.
        """
        for folder in ((), (_OWN,), (_OWN, "done"), (_OWN, "writing")):
            self._place.joined(*folder).make_folder()
        with self._place.joined(_OWN).locked():
            kept = self.kept_job()
            if kept is not None:  # another command may have begun it meanwhile
                check_same_facts(kept, job.facts, self.name)
                names, sizes = zip(*((one.name, one.size) for one in job.inputs), strict=True)
                check_same_inputs(kept, names, sizes, self.name)
            for name in self._place.joined(_OWN, "writing").names():
                self._place.joined(_OWN, "writing", name).remove()
            self._write(self._manifest(), lambda stream: _write_all(stream, job.encoded()))
            yield

    def reopen(self) -> None:
        """Take back that all is done: a part of it turned out not to be.

        Raises:
            DataError: It cannot be done.
        """
        self._place.joined(SUCCESS).remove()

    def finished(self, job: Job) -> Iterator[Receipt]:
        """Receipts of the blocks that are finished, each verified by its part's digest."""
        done = {*self._place.joined(_OWN, "done").names()}
        parts = {*self._place.names()}
        for block in job.blocks:
            if _record_name(block) in done and part_name(job, block) in parts:
                receipt = self._receipt(block)
                if receipt is not None and self._is_whole(job, block, receipt):
                    yield receipt

    def commit(self, job: Job, block: Block, receipt: Receipt, content: "Content") -> Receipt:
        """Write a block's part, then its receipt.

        Args:
            job: Of the block.
            block: It.
            receipt: What became of it; size and digest are filled in.
            content: Writes the part.

        Raises:
            DataError: It cannot be written; the block is not finished then.
        """
        digest = _Digest()

        def write(stream: BinaryIO) -> None:
            content(cast(BinaryIO, _Digesting(stream, digest)))

        self._write(self._place.joined(part_name(job, block)), write)
        value = {**asdict(receipt), "size": digest.size, "sha256": digest.sha256.hexdigest()}
        data = json.dumps(value, ensure_ascii=False).encode()
        place = self._place.joined(_OWN, "done", _record_name(block))
        self._write(place, lambda stream: _write_all(stream, data))
        return _decoded_receipt(value)

    def complete(self, job: Job) -> Totals:
        """Write the side file and the sums; every block is finished.

        Raises:
            DataError: They cannot be written, or a receipt is gone.
        """
        totals, digest = Totals(), hashlib.sha256()

        def write_bad(stream: BinaryIO) -> None:
            for block in job.blocks:
                receipt = self._receipt(block)
                if receipt is None:
                    raise DataError(f"{self.name}: the receipt of block {block.number} is gone")
                totals.add(receipt)
                digest.update(receipt.sha256.encode())
                for cell in receipt.bad:
                    value = {"file": job.inputs[block.file].name, **asdict(cell)}
                    stream.write(json.dumps(value, ensure_ascii=False).encode() + b"\n")

        self._write(self._place.joined(BAD_ROWS), write_bad)
        sums = {
            "blocks": totals.num_blocks,
            "rows": totals.num_rows,
            "bad_rows": totals.num_bad_rows,
            "bad_cells": dict(totals.reasons.most_common()),
            "characters": totals.num_characters,
            "failed_checks": dict(totals.checks.most_common()),
            "sha256_of_parts": digest.hexdigest(),
        }
        data = json.dumps(sums, ensure_ascii=False, indent=1).encode() + b"\n"
        self._write(self._place.joined(SUCCESS), lambda stream: _write_all(stream, data))
        return totals

    def _manifest(self) -> Place:
        return self._place.joined(_OWN, "job.json")

    def _write(self, place: Place, content: Callable[[BinaryIO], None]) -> None:
        base = place.name.rpartition("/")[2]
        partial = self._place.joined(_OWN, "writing", f"{base}.{self._writer}")
        place.write(partial, content)

    def _receipt(self, block: Block) -> Receipt | None:
        """The receipt of a block; None if there is none that can be read."""
        place = self._place.joined(_OWN, "done", _record_name(block))
        try:
            return _decoded_receipt(json.loads(_read(place)))
        except (DataError, ValueError, KeyError, TypeError):
            return None

    def _is_whole(self, job: Job, block: Block, receipt: Receipt) -> bool:
        place = self._place.joined(part_name(job, block))
        if place.facts().size != receipt.size:
            return False
        digest = hashlib.sha256()
        with place.opened() as stream:
            while data := stream.read(_READ_BYTES):
                digest.update(data)
        return digest.hexdigest() == receipt.sha256


Content = Callable[[BinaryIO], None]


def part_name(job: Job, block: Block) -> str:
    """What the part of a block is called."""
    return f"part-{block.number:06d}.{job.format}"


def _record_name(block: Block) -> str:
    return f"{block.number:06d}.json"


def _decoded_receipt(value: Any) -> Receipt:
    bad = tuple(BadCell(**cell) for cell in value["bad"])
    return Receipt(**{**value, "bad": bad})


def _read(place: Place) -> bytes:
    with place.opened() as stream:
        return stream.read()


def _write_all(stream: BinaryIO, data: bytes) -> None:
    stream.write(data)


class _Digest:
    def __init__(self) -> None:
        self.sha256 = hashlib.sha256()
        self.size = 0


class _Digesting:
    """A stream for writing that digests what passes."""

    closed = False

    def __init__(self, stream: BinaryIO, digest: _Digest) -> None:
        self._stream = stream
        self._digest = digest

    def write(self, data: bytes) -> int:
        self._digest.sha256.update(data)
        self._digest.size += len(memoryview(data))
        return self._stream.write(data)

    def writelines(self, parts: Iterator[bytes]) -> None:
        for part in parts:
            self.write(part)

    def tell(self) -> int:
        return self._digest.size

    def flush(self) -> None:
        self._stream.flush()
