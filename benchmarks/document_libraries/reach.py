"""Reach: which texts of a document of Word its own library shows to who asks for all paragraphs.

Owns one document with a text in each of the places that Word knows, and who finds which.
"""

import io
from collections.abc import Iterator

import docx
from docx.document import Document as WordDocument
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls
from docx.table import Table, _Cell

from model.documents.formats import open_document
from model.text.marks.inline_codes import without_codes

_RUN = "<w:r><w:t>{}</w:t></w:r>"
_PLACES = {
    "a paragraph": f"<w:p>{_RUN}</w:p>",
    "a link": f'<w:p><w:hyperlink w:anchor="x">{_RUN}</w:hyperlink></w:p>',
    "an insertion that is tracked": f'<w:p><w:ins w:id="1" w:author="a">{_RUN}</w:ins></w:p>',
    "a content control in a sentence": (
        f"<w:p><w:sdt><w:sdtContent>{_RUN}</w:sdtContent></w:sdt></w:p>"
    ),
    "a content control around paragraphs": (
        f"<w:sdt><w:sdtContent><w:p>{_RUN}</w:p></w:sdtContent></w:sdt>"
    ),
    "a field's result": f'<w:p><w:fldSimple w:instr="TITLE">{_RUN}</w:fldSimple></w:p>',
    "a text box": (
        '<w:p><w:r><w:pict><v:shape xmlns:v="urn:schemas-microsoft-com:vml"><v:textbox>'
        f"<w:txbxContent><w:p>{_RUN}</w:p></w:txbxContent></v:textbox></v:shape></w:pict></w:r>"
        "</w:p>"
    ),
    "a cell": (
        f"<w:tbl><w:tblGrid><w:gridCol/></w:tblGrid><w:tr><w:tc><w:p>{_RUN}</w:p></w:tc></w:tr>"
        "</w:tbl>"
    ),
}


def reach() -> dict[str, dict[str, bool]]:
    """For every place, whether python-docx and ours find the text in it."""
    made = docx.Document()
    for number, xml in enumerate(_PLACES.values()):
        opening, rest = xml.split(">", 1)
        element = f"{opening} {nsdecls('w')}>{rest}".format(_word(number))
        made.element.body.insert_element_before(parse_xml(element), "w:sectPr")
    output = io.BytesIO()
    made.save(output)
    theirs = set(_texts(docx.Document(io.BytesIO(output.getvalue()))))
    ours = {without_codes(text) for text in open_document(output.getvalue(), "docx").texts}
    return {
        place: {"python-docx": _word(number) in theirs, "ours": _word(number) in ours}
        for number, place in enumerate(_PLACES)
    }


def _word(number: int) -> str:
    return f"word {number}"


def _texts(holder: WordDocument | _Cell) -> Iterator[str]:
    for inner in holder.iter_inner_content():
        if not isinstance(inner, Table):
            yield inner.text
            continue
        for row in inner.rows:
            for cell in row.cells:
                yield from _texts(cell)
