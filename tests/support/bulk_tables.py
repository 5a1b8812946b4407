"""Tables in memory, divided and read as a bulk job reads them."""

import io

from model.offline.bulk.blocks import (
    Block,
    Columns,
    Format,
    InputFile,
    Rows,
    Sizes,
    Survey,
    numbered,
)


def surveyed(kind: Format, data: bytes, columns: Columns, sizes: Sizes) -> Survey:
    return kind.survey(io.BytesIO(data), "x", columns, sizes)


def read_all(kind: Format, data: bytes, columns: Columns, sizes: Sizes) -> list[tuple[Block, Rows]]:
    survey = surveyed(kind, data, columns, sizes)
    file = InputFile(
        name="x", size=len(data), stamp="", sha256=survey.sha256,
        header=survey.header, separator=survey.separator,
    )  # fmt: skip
    reader = kind.open(io.BytesIO(data), file, columns)
    return [(block, reader.read(block)) for block in numbered([survey])]


def written(rows: Rows, found: list[list[str | None]]) -> bytes:
    stream = io.BytesIO()
    rows.write(stream, found)
    return stream.getvalue()
