"""Parts of a bulk job: input files, blocks of their rows, and what becomes of a block.

Owns the types alone. A block is a range of one file that is the same whenever the job is begun
anew; how files are divided is their format's.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO, Protocol

MAX_ROW_BYTES = 2**26
"""Of a row; a longer one would have to be held in memory whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InputFile:
    """A file that is translated.

    Attributes:
        name: As it is opened: a path, or a URL of fsspec.
        size: Bytes.
        stamp: What changes when the file is written: its time, or what a store calls its version.
        sha256: Of all of it.
        header: Bytes before the first row (CSV's names).
        separator: What stands between fields (CSV); empty of other formats.
    """

    name: str
    size: int
    stamp: str
    sha256: str
    header: int = 0
    separator: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Rows of a file that follow each other; a unit of work.

    Attributes:
        number: Its place among all blocks of the job, from 0.
        file: Index of its input file.
        group: Row group (Parquet); 0 of other formats.
        start: First byte, or first row of the group (Parquet).
        end: Behind the last one.
        first_row: Number of its first row in the file, from 1.
        num_rows: Rows.
    """

    number: int
    file: int
    group: int
    start: int
    end: int
    first_row: int
    num_rows: int


@dataclass(frozen=True, slots=True)
class Bad:
    """A cell that has no text.

    Attributes:
        reason: Why, in words that every such cell shares.
    """

    reason: str


NULL = Bad("null")
NOT_TEXT = Bad("not a string")
NOT_UTF8 = Bad("not valid UTF-8")
NO_COLUMN = Bad("the row does not have the column")
NO_RECORD = Bad("the row is no JSON object")
HAS_COLUMN = Bad("the row has the new column already")
RAGGED = Bad("the row has another number of fields than the header")
NO_SCORE = Bad("the network gave no finite score")

Cell = str | Bad


def too_long(num_characters: int, limit: int) -> Bad:
    """A text that is longer than the job takes."""
    return Bad(f"{num_characters} characters; a text may have {limit}")


class Rows(Protocol):
    """Rows of a block as they were read."""

    @property
    def cells(self) -> Sequence[Sequence[Cell]]:
        """Of each row, the cell of each column that is translated."""

    def write(self, stream: BinaryIO, found: Sequence[Sequence[str | None]]) -> None:
        """Write the rows with their translations.

        Args:
            stream: Gets a whole file of the format.
            found: Of each row, what stands in each new column; None for null.
        """


class Reader(Protocol):
    """One input file, opened by a worker."""

    def read(self, block: Block) -> Rows:
        """The rows of one of its blocks.

        Raises:
            DataError: They are not what the job was planned with.
        """

    def close(self) -> None:
        """Close the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Columns that are translated of every row, and those that translations go to.

    Attributes:
        names: Columns; empty where a row is a text (txt).
        new: Those that get their translations, in the same order.
    """

    names: tuple[str, ...] = ()
    new: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes of blocks.

    Attributes:
        max_rows: Rows.
        max_bytes: Bytes of the file, unless one row has more.
    """

    max_rows: int
    max_bytes: int = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """Findings of the one look at a whole file.

    Attributes:
        sha256: Of all of it.
        header: As of `InputFile`.
        separator: As of `InputFile`.
        ranges: Blocks as (group, start, end, rows), in order; at least one.
    """

    sha256: str
    header: int = 0
    separator: str = ""
    ranges: Sequence[tuple[int, int, int, int]]


class Format(Protocol):
    """A kind of table."""

    @property
    def name(self) -> str:
        """What it is called."""

    @property
    def endings(self) -> tuple[str, ...]:
        """What names of such files end in."""

    def headings(self, stream: BinaryIO, name: str) -> Sequence[Sequence[str]]:
        """What a file calls its columns; several lists where that is open, the best first.

        Raises:
            DataError: It is not of this format.
        """

    def survey(self, stream: BinaryIO, name: str, columns: Columns, sizes: Sizes) -> Survey:
        """Read a file once: divide it, and refuse what it does not have.

        Raises:
            DataError: It is not of this format, or a column is not there.
        """

    def open(self, stream: BinaryIO, file: InputFile, columns: Columns) -> Reader:
        """A reader of a file that was surveyed, which owns the stream."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BadCell:
    """A cell whose translation is null, for the side file.

    Attributes:
        row: Number of its row in its file, from 1.
        column: Its column; empty of txt.
        reason: Why.
    """

    row: int
    column: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """Receipt of a finished block: written behind its part, and only then the block is finished.

    Attributes:
        block: Its number.
        num_rows: Rows.
        size: Bytes of the part.
        sha256: Of the part.
        num_characters: Of the texts that were translated.
        bad: Cells whose translation is null.
        checks: Segments of which a check failed, by check.
    """

    block: int
    num_rows: int
    size: int
    sha256: str
    num_characters: int
    bad: tuple[BadCell, ...] = ()
    checks: dict[str, int] = field(default_factory=dict)

    @property
    def num_bad_rows(self) -> int:
        """Rows with at least one such cell."""
        return len({cell.row for cell in self.bad})


@dataclass(slots=True)
class Totals:
    """Sums over finished blocks."""

    num_blocks: int = 0
    num_rows: int = 0
    num_bad_rows: int = 0
    num_characters: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    checks: Counter[str] = field(default_factory=Counter)

    def add(self, receipt: Receipt) -> None:
        """Count a block."""
        self.num_blocks += 1
        self.num_rows += receipt.num_rows
        self.num_bad_rows += receipt.num_bad_rows
        self.num_characters += receipt.num_characters
        self.reasons.update(_kind(cell.reason) for cell in receipt.bad)
        self.checks.update(receipt.checks)


def _kind(reason: str) -> str:
    """A reason without its numbers."""
    return "too long" if reason[:1].isdigit() else reason


def numbered(surveys: Sequence[Survey]) -> Iterator[Block]:
    """The blocks of all files, one after the other."""
    number = 0
    for file, survey in enumerate(surveys):
        row = 1
        for group, start, end, num_rows in survey.ranges:
            yield Block(
                number=number,
                file=file,
                group=group,
                start=start,
                end=end,
                first_row=row,
                num_rows=num_rows,
            )
            number += 1
            row += num_rows
