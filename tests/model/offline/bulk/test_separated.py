"""CSV and TSV against Python's `csv`: rows, cells, and what was there kept byte for byte."""

import csv
import gzip
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.errors import DataError
from model.offline.bulk import separated
from model.offline.bulk.blocks import (
    NO_COLUMN,
    NOT_UTF8,
    RAGGED,
    Columns,
    InputFile,
    Sizes,
    numbered,
)
from model.offline.bulk.separated import SeparatedFormat
from support.bulk_tables import read_all, surveyed, written

COLUMNS = Columns(names=("b",), new=("b_de",))
CSV = SeparatedFormat("csv")
TSV = SeparatedFormat("tsv")


@given(
    table=st.lists(
        st.lists(st.text('ab",\n é', max_size=6), min_size=2, max_size=2), min_size=1, max_size=12
    ),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    end=st.sampled_from(["\n", "\r\n"]), max_rows=st.integers(1, 5),
)  # fmt: skip
def test_tables_mean_what_they_mean_to_python(
    table: list[list[str]], quoting: int, end: str, max_rows: int
) -> None:
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, quoting=quoting, lineterminator=end)  # type: ignore[arg-type]
    writer.writerows([["a", "b"], *table])
    found = read_all(CSV, stream.getvalue().encode(), COLUMNS, Sizes(max_rows))
    assert [cell for _, rows in found for (cell,) in rows.cells] == [row[1] for row in table]
    for block, rows in found:
        new: list[list[str | None]] = [[f"{row[1]}!"] for row in table][block.first_row - 1 :]
        part = written(rows, new[: block.num_rows]).decode()
        own = table[block.first_row - 1 :][: block.num_rows]
        expected = [["a", "b", "b_de"], *([*row, f"{row[1]}!"] for row in own)]
        assert list(csv.reader(io.StringIO(part, newline=""))) == expected


@given(st.text('a",', max_size=12))
def test_stray_quotes_mean_what_they_mean_to_python(line: str) -> None:
    expected = next(csv.reader([line]), [])
    data = f"{line}\n".encode()
    if separated._ends_open(data, b",", is_open=False):
        assert '"' in line  # of a quote that is not closed, `csv` takes what there is
        return
    assert [one.decode() for one in separated._fields(data[:-1], b",")] == (expected or [""])


def test_what_a_record_had_stays_byte_for_byte() -> None:
    data = b'\xef\xbb\xbf"a" ;b\r\n"x""y";\xff\r\n1 ; z\n\n7\n1;2;3'
    ((_, rows),) = read_all(CSV, data, COLUMNS, Sizes(99))
    assert [cell for (cell,) in rows.cells] == [NOT_UTF8, " z", "", NO_COLUMN, RAGGED]
    part = written(rows, [[None], ["; z"], [""], [None], [None]])
    assert part == (b'\xef\xbb\xbf"a" ;b;b_de\r\n"x""y";\xff;\r\n1 ; z;"; z"\n\n7;;\n1;2;3;\r\n')


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_a_blank_line_is_no_row_and_stays_one(end: bytes) -> None:
    """As to `csv.DictReader`; whatever is found for it is not written."""
    data = end.join([b"a,b", b"", b"1,x", b"", b"", b"2,y", b"", b""])
    ((_, rows),) = read_all(CSV, data, COLUMNS, Sizes(99))
    assert [cell for (cell,) in rows.cells] == ["", "x", "", "", "y", ""]
    part = written(rows, [[one] for one in ["So", "X", "So", None, "Y", ""]])
    assert part == end.join([b"a,b,b_de", b"", b"1,x,X", b"", b"", b"2,y,Y", b"", b""])
    found = [row["b"] for row in csv.DictReader(io.StringIO(data.decode(), newline=""))]
    assert found == ["x", "y"]


def test_of_one_column_an_empty_line_is_an_empty_field() -> None:
    ((_, rows),) = read_all(CSV, b'b\nx\n\n""\n', COLUMNS, Sizes(99))
    assert [cell for (cell,) in rows.cells] == ["x", "", ""]
    assert written(rows, [["X"], [""], [""]]) == b'b,b_de\nx,X\n,\n"",\n'


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("said", [b"sep=#\n", b'"SEP=#"\r\n'])
def test_a_first_line_that_tells_excel_the_separator_is_no_row(mark: bytes, said: bytes) -> None:
    head = mark + said
    found = read_all(CSV, head + b'"a,x"#b\n1#x\n2#y;"\n', COLUMNS, Sizes(1))
    assert [cell for _, rows in found for (cell,) in rows.cells] == ["x", 'y;"']
    assert [block.first_row for block, _ in found] == [1, 2]
    parts = [written(rows, [["Z#"]]) for _, rows in found]
    assert parts[0] == head + b'"a,x"#b#b_de\n1#x#"Z#"\n'
    assert parts[1] == head + b'"a,x"#b#b_de\n2#y;"#"Z#"\n'
    assert CSV.headings(io.BytesIO(head + b"a#b\n"), "x") == [["a", "b"]]


def test_a_table_without_rows_has_one_block_without_rows() -> None:
    ((block, rows),) = read_all(SeparatedFormat("tsv"), b"a\tb", COLUMNS, Sizes(9))
    assert (block.num_rows, list(rows.cells)) == (0, [])
    assert written(rows, []) == b"a\tb\tb_de\n"


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"a,c\n1,2\n", "x: has no column 'b'; it has 'a', 'c'"),
        (b"", "x: is empty; a table has a header"),
        (b"b,a,b\n", "x: has 2 columns 'b'"),
        (b"b,b_de\n", "has a column 'b_de' already; choose another --suffix"),
        ("a,b\n".encode("utf-16"), "x: is text in UTF-16; a bulk job reads text in UTF-8"),
        (gzip.compress(b"a,b\n", mtime=0), "x: is packed by gzip; a bulk job reads text in UTF-8"),
        (b"sep=;\na,b\n", "x: has no column 'b'; it has 'a,b'"),
        (b"sep=;\n", "x: has no column 'b'; it has ''"),
        (b'sep=;\na;"b\n', "x:1: a quote is not closed in the header"),
        (b'a,"b\n', "x:1: a quote is not closed in the header"),
        (b'a,b\n1,2\n1,"2\n3,4\n', "x, row 2: a quote is not closed"),
    ],
)
def test_tables_that_cannot_be_translated_are_refused(data: bytes, problem: str) -> None:
    with pytest.raises(DataError, match=problem):
        surveyed(CSV, data, COLUMNS, Sizes(9))


def test_a_record_that_no_memory_should_hold_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(separated, "MAX_ROW_BYTES", 8)
    with pytest.raises(DataError, match=r"x, row 1: has more than 8 bytes"):
        surveyed(CSV, b'a,b\n1,"2\n3\n4\n5"\n', COLUMNS, Sizes(9))


def test_rows_that_are_others_than_when_the_job_began_are_refused() -> None:
    survey = surveyed(CSV, b"a,b\n1,2\n3,4\n", COLUMNS, Sizes(9))
    file = InputFile(name="x", size=12, stamp="", sha256="", header=4, separator=",")
    reader = CSV.open(io.BytesIO(b"a,b\n1,2,3,4\n"), file, COLUMNS)
    with pytest.raises(DataError, match=r"x: has other rows than when the job began"):
        reader.read(*numbered([survey]))


@pytest.mark.parametrize(
    ("data", "cells"),
    [
        (
            b'1\t"Hello he said\n2\tGood morning.\n3\tBye" she said\n4\tThank you.\n',
            ['"Hello he said', "Good morning.", 'Bye" she said', "Thank you."],
        ),
        (b'1\t"Hello he said.\n2\tHe said so."\n', ['"Hello he said.', 'He said so."']),
        (b'1\t"a\n2\t""\n3\t"b\n', ['"a', "", '"b']),
        (b'1\t"a"b\n"2\t"c""d"\n', ['"a"b', 'c"d']),
        (b'1\t"one\r\ntwo ""2"""\r\n2\tb\r\n', ['one\r\ntwo "2"', "b"]),
        (b'"1\n1"\t"a\nb"\n"2\t"c\n3\t"d\te"\n', ["a\nb", '"c', "d\te"]),
        (b'1\t"a\nb"\n2\t"c\nd" e\n', ["a\nb", '"c', NO_COLUMN]),
    ],
)
@pytest.mark.parametrize("max_rows", [1, 2, 99])
def test_between_tabs_a_quote_is_special_where_it_closes_a_field(
    data: bytes, cells: list[object], max_rows: int
) -> None:
    found = read_all(TSV, b"a\tb\n" + data, COLUMNS, Sizes(max_rows))
    assert [cell for _, rows in found for (cell,) in rows.cells] == cells
    if NO_COLUMN not in cells:
        parts = [written(rows, [["x"]] * block.num_rows) for block, rows in found]
        own = b"".join(part.removeprefix(b"a\tb\tb_de\n") for part in parts)
        assert own.replace(b"\tx\n", b"\n").replace(b"\tx\r\n", b"\r\n") == data


def test_of_one_column_a_line_with_tabs_is_a_row() -> None:
    ((_, rows),) = read_all(TSV, b'b\n"Hello he said.\nHe said so."\n"c"\n', COLUMNS, Sizes(99))
    assert [cell for (cell,) in rows.cells] == ['"Hello he said.', 'He said so."', "c"]


@given(
    table=st.lists(
        st.lists(st.text('ab",\n é', max_size=6), min_size=2, max_size=2), min_size=1, max_size=12
    ),
    max_rows=st.integers(1, 5),
)  # fmt: skip
def test_fields_with_tabs_in_quotes_mean_what_they_mean_to_python(
    table: list[list[str]], max_rows: int
) -> None:
    stream = io.StringIO(newline="")
    csv.writer(stream, dialect="excel-tab", lineterminator="\n").writerows([["a", "b"], *table])
    found = read_all(TSV, stream.getvalue().encode(), COLUMNS, Sizes(max_rows))
    assert [cell for _, rows in found for (cell,) in rows.cells] == [row[1] for row in table]


@given(st.text('a"\t\n', max_size=30), st.integers(1, 3))
def test_blocks_cut_any_table_with_tabs_as_the_plan_does(text: str, max_rows: int) -> None:
    data = f"a\tb\n{text}".encode()
    found = read_all(TSV, data, COLUMNS, Sizes(max_rows))
    whole = read_all(TSV, data, COLUMNS, Sizes(99))
    assert [cells for _, rows in found for cells in rows.cells] == [
        cells for _, rows in whole for cells in rows.cells
    ]


def test_a_table_with_tabs_whose_quote_is_never_closed_is_read() -> None:
    survey = surveyed(TSV, b'a\tb\n1\t"c\n' + b"d\n" * 9, COLUMNS, Sizes(99))
    assert survey.ranges[0][3] == 10
