"""Texts of a bulk job's input, read before the job is planned, to see their language.

Owns the order in which they are read; how a file is divided is its format's.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing

from model.offline.bulk.blocks import Columns, Format, Sizes, numbered
from model.offline.bulk.places import Facts, place_of
from model.offline.bulk.planning import input_of

_BLOCK_ROWS = 1_000


def texts_of(files: Sequence[Facts], kind: Format, names: Sequence[str]) -> Iterator[str]:
    """The cells of named columns, row by row, file by file; empty where one is no text.

    Args:
        files: Those of the job.
        kind: Their format.
        names: Columns; none where a row is a text.

    Raises:
        DataError: A file cannot be read or divided, or has not the columns.
    """
    columns = Columns(names=tuple(names), new=tuple(f"{name}\0" for name in names))
    for file in files:
        place = place_of(file.name)
        with place.opened() as stream:
            survey = kind.survey(stream, file.name, columns, Sizes(max_rows=_BLOCK_ROWS))
        with closing(kind.open(place.opened(), input_of(file, survey), columns)) as reader:
            for block in numbered([survey]):
                for row in reader.read(block).cells:
                    yield from (cell if isinstance(cell, str) else "" for cell in row)
