"""Text and JSON Lines: blocks of whole lines, cells, and what was there kept byte for byte."""

import io
import json

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from model.errors import DataError
from model.file_heads import other_than_utf8
from model.offline.bulk import lines
from model.offline.bulk.blocks import (
    HAS_COLUMN,
    NO_COLUMN,
    NO_RECORD,
    NOT_TEXT,
    NOT_UTF8,
    NULL,
    Cell,
    Columns,
    InputFile,
    Sizes,
    numbered,
)
from model.offline.bulk.lines import JsonLinesFormat, TextFormat
from support.bulk_tables import read_all, surveyed, written

COLUMNS = Columns(names=("a", "b"), new=("a_de", "b_de"))


@given(
    rows=st.lists(st.binary(max_size=9).map(lambda row: row.replace(b"\n", b"")), max_size=30),
    has_end=st.booleans(), max_rows=st.integers(1, 7), max_bytes=st.integers(1, 40),
)  # fmt: skip
def test_blocks_have_every_line_once_and_are_within_their_bounds(
    rows: list[bytes], has_end: bool, max_rows: int, max_bytes: int
) -> None:
    data = b"\n".join(rows) + (b"\n" if has_end and rows else b"")
    assume(other_than_utf8(data) is None)
    expected = data.split(b"\n")[: -1 if data.endswith(b"\n") or not data else None]
    found = read_all(TextFormat(), data, Columns(new=("",)), Sizes(max_rows, max_bytes))
    for block, some in found:
        assert block.num_rows == len(some.cells) <= max_rows
        assert block.end - block.start <= max_bytes or block.num_rows == 1
    assert [block.first_row for block, _ in found][:1] == [1]
    cells = [cell for _, some in found for (cell,) in some.cells]
    assert cells == [lines.decoded(line) for line in expected]
    parts = b"".join(
        written(some, [[cell if isinstance(cell, str) else None] for (cell,) in some.cells])
        for _, some in found
    )
    texts = [line if isinstance(lines.decoded(line), str) else b"" for line in expected]
    assert parts == b"".join(text + b"\n" for text in texts)


@pytest.mark.parametrize(
    ("line", "cells"),
    [
        (b'{"a": "x", "b": "y"}', ("x", "y")),
        (b'{"a": null, "b": 1.50}', (NULL, NOT_TEXT)),
        (b'{"a": "x", "b": ' + b"9" * 5_000 + b"}", ("x", NOT_TEXT)),
        (b'{"a": ["x"], "c": 1}', (NOT_TEXT, NO_COLUMN)),
        (b'{"a": "\xff", "b": "\xc3\xa4"}', (NOT_UTF8, "ä")),
        (b'{"a": "x", "b": "y", "a_de": 3}', (HAS_COLUMN, "y")),
        (b'["x"]', (NO_RECORD, NO_RECORD)),
        (b"", ("", "")),
        (b" \t\r", ("", "")),
        (b'{"a": ' + b"[" * 100_000, (NO_RECORD, NO_RECORD)),
    ],
)
def test_each_cell_is_a_text_or_says_why_not(line: bytes, cells: tuple[Cell, ...]) -> None:
    data = b'{"a": "", "b": ""}\n' + line + b"\n"
    ((_, rows),) = read_all(JsonLinesFormat(), data, COLUMNS, Sizes(100))
    assert tuple(rows.cells[1]) == cells


def test_an_object_stays_byte_for_byte_before_its_new_members() -> None:
    data = b'\xef\xbb\xbf{"a":"x" , "b":"","n": 1e400,"n":2.50 }\r\n{"a":"\xff","b":""}\n{}\n[1]'
    ((_, rows),) = read_all(JsonLinesFormat(), data, COLUMNS, Sizes(100))
    new: list[list[str | None]] = [['"ä"\n', None], [None, "é"], [None, None], [None, None]]
    first = b'{"a":"x" , "b":"","n": 1e400,"n":2.50 , "a_de": "\\"\xc3\xa4\\"\\n", "b_de": null}\r'
    assert written(rows, new).split(b"\n") == [
        b"\xef\xbb\xbf" + first,
        b'{"a":"\xff","b":"", "a_de": null, "b_de": "\xc3\xa9"}',
        b'{"a_de": null, "b_de": null}',
        b'{"a_de": null, "b_de": null}',
        b"",
    ]


def test_a_member_that_a_row_has_already_stays_as_it_is() -> None:
    data = b'{"a":"x","b":"y"}\n{"a":"x","a_de": 3, "b":"y"}\n{"a_de":"z","b_de":[]}'
    ((_, rows),) = read_all(JsonLinesFormat(), data, COLUMNS, Sizes(100))
    new: list[list[str | None]] = [["1", "2"], [None, "4"], [None, None]]
    assert written(rows, new).split(b"\n")[1:] == [
        b'{"a":"x","a_de": 3, "b":"y", "b_de": "4"}',
        b'{"a_de":"z","b_de":[]}',
        b"",
    ]


@pytest.mark.parametrize("max_rows", [1, 99])
def test_a_blank_line_is_no_object_and_stays_one(max_rows: int) -> None:
    """As to pandas and Arrow; lines are counted all the same, so that rows stay where they are."""
    columns = Columns(names=("a",), new=("a_de",))
    data = b'\n{"a":"x"}\n\r\n \n{"a":"y"}\n\n'
    found = read_all(JsonLinesFormat(), data, columns, Sizes(max_rows))
    assert [cell for _, rows in found for (cell,) in rows.cells] == ["", "x", "", "", "y", ""]
    assert sum(block.num_rows for block, _ in found) == 6
    parts = b"".join(written(rows, [["Z"]] * block.num_rows) for block, rows in found)
    assert parts == b'\n{"a":"x", "a_de": "Z"}\n\r\n \n{"a":"y", "a_de": "Z"}\n\n'
    assert JsonLinesFormat().headings(io.BytesIO(data), "x") == [["a"]]
    assert JsonLinesFormat().headings(io.BytesIO(b"\n\n"), "x") == []


@given(
    row=st.dictionaries(
        st.text(max_size=3), st.one_of(st.none(), st.floats(), st.text(max_size=4)), max_size=4
    ),
    text=st.one_of(st.none(), st.text(max_size=8)),
)
def test_a_written_object_has_what_it_had_and_the_translation(
    row: dict[str, object], text: str | None
) -> None:
    row.pop("a_de", None)
    columns = Columns(names=("a",), new=("a_de",))
    data = f'{{"a": ""}}\n{json.dumps(row, ensure_ascii=False)}'.encode(errors="surrogatepass")
    ((_, rows),) = read_all(JsonLinesFormat(), data, columns, Sizes(9))
    line = written(rows, [[""], [text]]).split(b"\n")[1]
    assert repr(json.loads(line)) == repr({**row, "a_de": text})


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b'{"a": ""}\n', "x: has no column 'b'; row 1 has 'a'"),
        (b'{"a": "", "b": "", "b_de": 1}', "has a column 'b_de' already; choose another --suffix"),
        (b"a,b\n", "x:1: is no JSON object"),
        (b"\n\n[1]\n", "x:3: is no JSON object"),
    ],
)
def test_a_first_row_without_the_columns_is_refused(data: bytes, problem: str) -> None:
    with pytest.raises(DataError, match=problem):
        surveyed(JsonLinesFormat(), data, COLUMNS, Sizes(9))


@pytest.mark.parametrize("kind", [TextFormat(), JsonLinesFormat()])
def test_lines_in_utf16_are_refused_as_such(kind: TextFormat | JsonLinesFormat) -> None:
    data = '{"a": "x", "b": "y"}\n'.encode("utf-16")
    with pytest.raises(DataError, match=r"^x: is text in UTF-16; a bulk job reads text in UTF-8"):
        surveyed(kind, data, COLUMNS, Sizes(9))


def test_a_line_that_no_memory_should_hold_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "MAX_ROW_BYTES", 8)
    with pytest.raises(DataError, match=r"x:2: has more than 8 bytes"):
        surveyed(TextFormat(), b"ab\n" + b"x" * 9, Columns(), Sizes(9))


def test_a_file_that_became_shorter_is_refused() -> None:
    survey = surveyed(TextFormat(), b"ab\ncd\n", Columns(), Sizes(9))
    file = InputFile(name="x", size=6, stamp="", sha256="")
    with pytest.raises(DataError, match=r"x: has become shorter"):
        TextFormat().open(io.BytesIO(b"ab\n"), file, Columns()).read(*numbered([survey]))
