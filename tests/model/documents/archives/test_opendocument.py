"""Files of OpenDocument: ours finds, and writes, what odfdo reads in documents that it wrote."""

import io
from collections.abc import Iterator
from random import Random

import pytest
from odfdo import (
    Annotation,
    Document,
    Frame,
    Header,
    List,
    ListItem,
    Note,
    Paragraph,
    Spacer,
    Table,
)

from support.library_readers import paragraph_texts, without_insertions
from support.library_texts import NUM_DOCUMENTS, check, line, lines


def text_document(chance: Random) -> bytes:
    """Paragraphs, of which some have spaces, a note or a comment between two texts; lists."""
    made = Document("text")
    body = made.body
    body.clear()
    for number in range(60):
        paragraph = Paragraph(lines(chance))
        if number % 4 == 0:
            note = Note(note_id=f"n{number}", citation="1", body=line(chance))
            paragraph.append(note if number % 8 else Annotation(line(chance), creator="An author"))
            paragraph.append_plain_text(line(chance))
        elif number % 4 == 1:
            paragraph.append(Spacer(chance.randrange(1, 4)))
            paragraph.append_plain_text(line(chance))
        body.append(paragraph)
    body.append(Header(1, line(chance)))
    outer = List([line(chance) for _ in range(3)])
    outer.append(ListItem(List([line(chance), line(chance)])))
    body.append(outer)
    frame = Frame(name="a frame", svg_title=line(chance), svg_description=line(chance))
    body.append(Paragraph(line(chance)))
    body.get_elements("text:p")[-1].append(frame)
    made.meta.title, made.meta.description = line(chance), line(chance)
    table = Table("Cells", width=2, height=1)
    table.set_value("A1", line(chance))
    body.append(table)
    return saved(made)


def saved(made: Document) -> bytes:
    output = io.BytesIO()
    made.save(output)
    return output.getvalue()


@pytest.mark.parametrize("seed", range(NUM_DOCUMENTS))
def test_text_documents_are_what_odfdo_reads(seed: int) -> None:
    assert check(text_document(Random(seed)), "odt", paragraph_texts, is_folded=True) > 60


PAGE_STYLE = ("Page", "Page /")
"""What stands at the foot of a page in odfdo's template."""


def workbook(chance: Random) -> bytes:
    """Cells of strings, numbers and a formula."""
    made = Document("spreadsheet")
    made.body.clear()
    table = Table("Cells", width=3, height=60)
    for row in range(60):
        table.set_value((0, row), line(chance))
        table.set_value((1, row), row / 7)
    made.body.append(table)
    return saved(made)


def cell_texts(data: bytes) -> Iterator[str]:
    """What odfdo takes for the values of cells."""
    (table,) = Document(io.BytesIO(data)).body.get_tables()
    for row in table.rows:
        for cell in row.cells:
            if cell.type == "string":
                yield without_insertions(cell.get_elements("text:p")[0])


@pytest.mark.parametrize("seed", range(NUM_DOCUMENTS))
def test_workbooks_are_what_odfdo_reads(seed: int) -> None:
    assert check(workbook(Random(seed)), "ods", cell_texts, unread=PAGE_STYLE, is_folded=True) > 30
