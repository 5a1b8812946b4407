"""Readers: the texts of paragraphs and cells that the formats' own libraries show."""

import io
from collections.abc import Iterator
from typing import Any

import docx
import openpyxl
import pptx
from docx.comments import Comment
from docx.document import Document as WordDocument
from docx.section import _Footer, _Header
from docx.table import Table, _Cell
from odfdo import Document as OpenDocument
from odfdo import Element
from openpyxl.cell.rich_text import CellRichText
from pptx.shapes.group import GroupShape


def word_texts(data: bytes) -> Iterator[str]:
    """What python-docx reads."""
    found = docx.Document(io.BytesIO(data))
    yield from _inner_texts(found)
    for section in found.sections:
        for part in (section.header, section.footer, section.first_page_header):
            yield from _inner_texts(part)
    for comment in found.comments:
        yield from _inner_texts(comment)
    for picture in found.inline_shapes:
        yield from _described(picture._inline.docPr)
        yield from _described(picture._inline.graphic.graphicData.pic.nvPicPr.cNvPr)
    yield from _properties(found.core_properties)


def _properties(found: Any) -> Iterator[str]:
    """What a document says of itself, by the names of python-docx and python-pptx."""
    yield from (found.title, found.subject, found.comments, found.keywords)


def _described(element: Any) -> Iterator[str]:
    yield from (element.get("descr", ""), element.get("title", ""))


def _inner_texts(holder: WordDocument | _Cell | _Header | _Footer | Comment) -> Iterator[str]:
    for inner in holder.iter_inner_content():
        if not isinstance(inner, Table):
            yield inner.text
            continue
        for row in inner.rows:
            for cell in row.cells:
                yield from _inner_texts(cell)


def slide_texts(data: bytes) -> Iterator[str]:
    """What python-pptx reads."""
    found = pptx.Presentation(io.BytesIO(data))
    yield from _properties(found.core_properties)
    for slide in found.slides:
        yield from _shape_texts(slide.shapes)
        if slide.has_notes_slide:
            yield from _frame_texts(slide.notes_slide.notes_text_frame)


def _shape_texts(shapes: Any) -> Iterator[str]:
    for shape in shapes:
        yield from _described(shape._element._nvXxPr.cNvPr)
        if isinstance(shape, GroupShape):
            yield from _shape_texts(shape.shapes)
        elif shape.has_table:
            for row in shape.table.rows:
                for cell in row.cells:
                    yield from _frame_texts(cell.text_frame)
        elif shape.has_text_frame:
            yield from _frame_texts(shape.text_frame)


def _frame_texts(frame: Any) -> Iterator[str]:
    yield from (paragraph.text for paragraph in frame.paragraphs)


def cell_texts(data: bytes) -> Iterator[str]:
    """What openpyxl reads."""
    found = openpyxl.load_workbook(io.BytesIO(data), rich_text=True)
    said = found.properties
    for text in (said.title, said.subject, said.description, said.keywords):
        yield text or ""
    sheet = found.active
    for row in sheet.iter_rows():
        for cell in row:
            is_text = isinstance(cell.value, str) and cell.data_type != "f"
            if is_text or isinstance(cell.value, CellRichText):
                yield str(cell.value)
            if cell.comment is not None:
                yield cell.comment.text


def paragraph_texts(data: bytes) -> Iterator[str]:
    """What odfdo reads in paragraphs and headings, without the notes and comments in them."""
    found = OpenDocument(io.BytesIO(data))
    for one in found.body.get_elements("//text:p|//text:h|//svg:title|//svg:desc"):
        yield without_insertions(one)
    for said in (found.meta.title, found.meta.subject, found.meta.description, found.meta.keyword):
        yield said or ""


def without_insertions(paragraph: Element) -> str:
    """A paragraph without notes and comments."""
    for inner in paragraph.get_elements("text:note|office:annotation"):
        inner.delete()
    # Not `inner_text`, which writes links as Markdown does.
    found = paragraph.xpath(
        "descendant::text()|descendant::text:s|descendant::text:tab|descendant::text:line-break"
    )
    breaks = {"text:s": " ", "text:tab": "\t", "text:line-break": "\n"}
    return "".join(breaks[one.tag] if isinstance(one, Element) else str(one) for one in found)
