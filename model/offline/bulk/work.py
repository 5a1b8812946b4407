"""Work on blocks: several on their way through one session, each written when it is whole.

Owns a worker's loop body: which blocks are open, what of them is missing, what is bad. A long row
of one block holds back that block alone: the next ones are opened and finished beside it. Memory is
that of the open blocks. Every block is committed by the output folder, in whatever order they end.
"""

from collections import Counter
from dataclasses import dataclass, field

from model.errors import DataError, DecodingError
from model.offline.bulk.blocks import (
    NO_SCORE,
    Bad,
    BadCell,
    Block,
    Cell,
    InputFile,
    Reader,
    Receipt,
    Rows,
    too_long,
)
from model.offline.bulk.formats import format_named
from model.offline.bulk.output import OutputFolder
from model.offline.bulk.places import place_of
from model.offline.bulk.task import Task
from model.offline.stream import TranslationStream
from model.offline.translator import Translator
from model.text.drafts.segments import Translation

MAX_OPEN_BLOCKS = 3
"""Blocks on their way in one worker: one ends, one is under way, one has just begun."""

_Key = tuple[int, int, int]
"""Of a text: its block, its row in that, its column."""


@dataclass(slots=True, kw_only=True)
class _OpenBlock:
    block: Block
    rows: Rows
    found: list[list[str | None]]
    num_missing: int = 0
    num_characters: int = 0
    bad: list[BadCell] = field(default_factory=list)
    checks: Counter[str] = field(default_factory=Counter)


class BlockWork:
    """A worker's blocks; belongs to one thread.

    Args:
        translator: Whose session it has, alone.
        task: Of which job the blocks are.
        folder: Where they are written.
    """

    def __init__(self, translator: Translator, task: Task, folder: OutputFolder) -> None:
        method = task.method
        self._task = task
        self._folder = folder
        self._format = format_named(task.job.format)
        self._stream: TranslationStream[_Key] = TranslationStream(
            translator, method.pair, method.search, method.control
        )
        self._open: dict[int, _OpenBlock] = {}
        self._whole: list[_OpenBlock] = []
        self._reader: tuple[InputFile, Reader] | None = None

    @property
    def has_room(self) -> bool:
        """Whether another block may begin."""
        return len(self._open) + len(self._whole) < MAX_OPEN_BLOCKS

    @property
    def is_idle(self) -> bool:
        """Whether no block is on its way."""
        return not (self._open or self._whole)

    def begin(self, block: Block) -> None:
        """Read a block, and have its texts translated.

        Raises:
            DataError: It cannot be read, or its file has changed since the job began.
        """
        rows = self._reader_of(self._task.job.inputs[block.file]).read(block)
        one = _OpenBlock(block=block, rows=rows, found=[[None] * len(row) for row in rows.cells])
        for row, cells in enumerate(rows.cells):
            for column, cell in enumerate(cells):
                self._put(one, row, column, cell)
        if one.num_missing:
            self._open[block.number] = one
        else:
            self._whole.append(one)

    def step(self) -> list[Receipt]:
        """One step of the session; receipts of the blocks that are whole by it, and written.

        Raises:
            DataError: A block cannot be written.
        """
        for (number, row, column), found in self._stream.step():
            one = self._open[number]
            self._take(one, row, column, found)
            if not one.num_missing:
                self._whole.append(self._open.pop(number))
        whole, self._whole = self._whole, []
        return [self._committed(one) for one in whole]

    def close(self) -> None:
        """Close what is read."""
        if self._reader is not None:
            self._reader[1].close()
            self._reader = None

    def _reader_of(self, file: InputFile) -> Reader:
        """The reader of a file, which goes on where the last block ended."""
        place = place_of(file.name)
        facts = place.facts()
        if (facts.size, facts.stamp) != (file.size, file.stamp):
            raise DataError(
                f"{file.name}: was changed since the job began; the same command looks whether its"
                " content is still the same"
            )
        if self._reader is not None and self._reader[0] == file:
            return self._reader[1]
        self.close()
        reader = self._format.open(place.opened(), file, self._task.job.columns)
        self._reader = (file, reader)
        return reader

    def _put(self, one: _OpenBlock, row: int, column: int, cell: Cell) -> None:
        limit = self._task.method.max_characters
        if isinstance(cell, str) and len(cell) > limit:
            cell = too_long(len(cell), limit)
        if isinstance(cell, Bad):
            self._mark(one, row, column, cell)
            return
        one.num_missing += 1
        one.num_characters += len(cell)
        self._stream.put(one.block.number, (one.block.number, row, column), cell)

    def _take(
        self, one: _OpenBlock, row: int, column: int, found: Translation | DecodingError
    ) -> None:
        one.num_missing -= 1
        if isinstance(found, DecodingError):
            self._mark(one, row, column, NO_SCORE)
            return
        one.found[row][column] = found.text
        for segment in found.segments:
            one.checks.update(segment.quality.failed)

    def _mark(self, one: _OpenBlock, row: int, column: int, bad: Bad) -> None:
        names = self._task.job.columns.names
        one.bad.append(
            BadCell(
                row=one.block.first_row + row,
                column=names[column] if names else "",
                reason=bad.reason,
            )
        )

    def _committed(self, one: _OpenBlock) -> Receipt:
        receipt = Receipt(
            block=one.block.number,
            num_rows=len(one.found),
            size=0,
            sha256="",
            num_characters=one.num_characters,
            bad=tuple(sorted(one.bad, key=lambda cell: (cell.row, cell.column))),
            checks=dict(one.checks),
        )
        return self._folder.commit(
            self._task.job, one.block, receipt, lambda stream: one.rows.write(stream, one.found)
        )
