"""Files of Office: ours finds, and writes, what the formats' own libraries read.

python-docx, python-pptx and XlsxWriter write documents of generated texts; they, and openpyxl, read
them before and after a translation.
"""

import io
from base64 import b64decode
from random import Random
from typing import Any

import docx
import openpyxl
import pptx
import pytest
import xlsxwriter
from openpyxl.cell.rich_text import CellRichText, TextBlock
from openpyxl.cell.text import InlineFont
from pptx.util import Inches

from support.library_readers import cell_texts, slide_texts, word_texts
from support.library_texts import NUM_DOCUMENTS, check, line, lines, runs


def add_runs(paragraph: Any, runs: list[tuple[str, bool]]) -> None:
    for text, is_bold in runs:
        paragraph.add_run(text).bold = is_bold or None


PICTURE = b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def describe(element: Any, chance: Random) -> None:
    """Give a shape a title and a description."""
    for name in ("title", "descr"):
        element.set(name, line(chance))


def set_properties(said: Any, chance: Random) -> None:
    for name in ("title", "subject", "comments", "keywords"):
        setattr(said, name, line(chance))


def word_document(chance: Random) -> bytes:
    """Paragraphs of runs, and a text in each other place that python-docx reads.

    A nested table, the headers, the footer, a comment, a picture's description, the properties.
    """
    made = docx.Document()
    for _ in range(100):
        add_runs(made.add_paragraph(), runs(chance))
    table = made.add_table(1, 2)
    table.cell(0, 0).text = lines(chance)
    inner = table.cell(0, 1).add_table(1, 1)
    add_runs(inner.cell(0, 0).paragraphs[0], runs(chance))
    section = made.sections[0]
    section.different_first_page_header_footer = True
    section.first_page_header.paragraphs[0].text = lines(chance)
    section.header.paragraphs[0].text = lines(chance)
    section.footer.paragraphs[0].text = lines(chance)
    run = made.add_heading("Heading", level=1).runs[0]
    made.add_comment(run, text=lines(chance), author="An author", initials="aa")
    picture = made.add_picture(io.BytesIO(PICTURE))._inline
    describe(picture.docPr, chance)
    describe(picture.graphic.graphicData.pic.nvPicPr.cNvPr, chance)
    set_properties(made.core_properties, chance)
    output = io.BytesIO()
    made.save(output)
    return output.getvalue()


@pytest.mark.parametrize("seed", range(NUM_DOCUMENTS))
def test_text_documents_are_what_python_docx_reads(seed: int) -> None:
    assert check(word_document(Random(seed)), "docx", word_texts) > 60


def presentation(chance: Random) -> bytes:
    """A title, paragraphs of runs in a group, a table, notes, descriptions, the properties."""
    made = pptx.Presentation()
    slide = made.slides.add_slide(made.slide_layouts[5])
    slide.shapes.title.text = lines(chance)
    group = slide.shapes.add_group_shape()
    frame = group.shapes.add_textbox(0, 0, Inches(1), Inches(1)).text_frame
    for _ in range(100):
        paragraph = frame.add_paragraph()
        for text, is_bold in runs(chance):
            run = paragraph.add_run()
            run.text, run.font.bold = text, is_bold or None
    table = slide.shapes.add_table(2, 2, 0, 0, Inches(2), Inches(2)).table
    table.cell(1, 1).text = lines(chance)
    slide.notes_slide.notes_text_frame.text = lines(chance)
    picture = slide.shapes.add_picture(io.BytesIO(PICTURE), 0, 0)
    for shape in (group, picture):
        describe(shape._element._nvXxPr.cNvPr, chance)
    set_properties(made.core_properties, chance)
    output = io.BytesIO()
    made.save(output)
    return output.getvalue()


@pytest.mark.parametrize("seed", range(NUM_DOCUMENTS))
def test_presentations_are_what_python_pptx_reads(seed: int) -> None:
    assert check(presentation(Random(seed)), "pptx", slide_texts, borders="\v\n") > 60


def workbook(chance: Random, *, is_shared: bool) -> bytes:
    """Cells of strings in one and several runs, a formula, a number and a comment."""
    output = io.BytesIO()
    # A string that two cells share is one text.
    cells = [[f"{row} ", *(text for text, _ in runs(chance) if text)] for row in range(100)]
    if not is_shared:
        made = openpyxl.Workbook()
        for row, parts in enumerate(cells, start=1):
            made.active.cell(row, 1).value = CellRichText(
                [TextBlock(InlineFont(b=number % 2 == 1), run) for number, run in enumerate(parts)]
            )
        made.active["C1"], made.active["D1"] = "=A1", 7.3
        made.properties.title, made.properties.description = line(chance), line(chance)
        made.active["C1"].comment = openpyxl.comments.Comment(lines(chance), "An author")
        made.save(output)
        return output.getvalue()
    with xlsxwriter.Workbook(output, {"in_memory": True, "strings_to_formulas": False}) as book:
        sheet, bold = book.add_worksheet(), book.add_format({"bold": True})
        for row, parts in enumerate(cells):
            if len(parts) == 1:
                sheet.write_string(row, 0, parts[0])
            else:
                pieces = [piece for part in parts for piece in (bold, part)]
                sheet.write_rich_string(row, 0, *pieces[1:])
        sheet.write_formula(0, 2, "=A1")
        sheet.write_number(0, 3, 7.3)
        sheet.write_comment(0, 0, lines(chance) or "none")
        book.set_properties({"title": line(chance), "subject": line(chance)})
    return output.getvalue()


@pytest.mark.parametrize("seed", range(NUM_DOCUMENTS))
def test_workbooks_are_what_openpyxl_reads(seed: int) -> None:
    for is_shared in (False, True):
        made = workbook(Random(seed), is_shared=is_shared)
        assert check(made, "xlsx", cell_texts, borders="\v") > 60
