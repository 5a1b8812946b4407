"""Documents that are archives, made member by member, as small as a reader accepts them."""

import io
import zipfile
from collections.abc import Mapping, Sequence

from model.documents.notation.document import Document
from model.text.marks.inline_codes import without_codes

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
A = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
S = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
O = (  # noqa: E741  # as its neighbours
    'xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" '
    'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"'
)
T = "application/vnd.openxmlformats-officedocument"
DECLARATION = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'


def archive(members: Mapping[str, str | bytes]) -> bytes:
    """A zip archive; what is called mimetype is not compressed."""
    output = io.BytesIO()
    with zipfile.ZipFile(output, "w", zipfile.ZIP_DEFLATED) as made:
        for name, data in members.items():
            kind = zipfile.ZIP_STORED if name == "mimetype" else zipfile.ZIP_DEFLATED
            made.writestr(name, data, compress_type=kind)
    return output.getvalue()


def members_of(data: bytes) -> dict[str, str]:
    """The members of an archive that is whole, as text."""
    with zipfile.ZipFile(io.BytesIO(data)) as made:
        assert made.testzip() is None
        return {name: made.read(name).decode(errors="replace") for name in made.namelist()}


def types(**parts: str) -> str:
    """The list of types of a package: an ending or a part's name, and its type."""
    made = "".join(
        f"<Override PartName='/{name}' ContentType='{T}.{said}+xml'/>"
        for name, said in parts.items()
    )
    return f"<Types>{made}<Default Extension='png' ContentType='image/png'/></Types>"


def docx(body: str) -> bytes:
    """A text document with this body."""
    return archive(
        {
            "[Content_Types].xml": types(**{"word/document.xml": "wordprocessingml.document.main"}),
            "word/document.xml": (
                f"{DECLARATION}<w:document {W}><w:body>{body}</w:body></w:document>"
            ),
            "word/media/image1.png": b"\x89PNG\0",
        }
    )


def pptx(body: str) -> bytes:
    """A presentation with one slide of these shapes."""
    return archive(
        {
            "[Content_Types].xml": types(
                **{
                    "ppt/presentation.xml": "presentationml.presentation.main",
                    "ppt/slides/slide1.xml": "presentationml.slide",
                }
            ),
            "ppt/presentation.xml": "<p/>",
            "ppt/slides/slide1.xml": f"<p:sld {A} xmlns:p='p'>{body}</p:sld>",
        }
    )


def xlsx(strings: str, table: str = "", sheets: Sequence[str] = ()) -> bytes:
    """A workbook with these shared strings, and sheets that are written so."""
    names = [f"xl/worksheets/sheet{number}.xml" for number in range(1, len(sheets) + 1)]
    return archive(
        {
            "[Content_Types].xml": types(
                **{
                    "xl/workbook.xml": "spreadsheetml.sheet.main",
                    "xl/sharedStrings.xml": "spreadsheetml.sharedStrings",
                    "xl/tables/table1.xml": "spreadsheetml.table",
                    **dict.fromkeys(names, "spreadsheetml.worksheet"),
                }
            ),
            "xl/workbook.xml": "<workbook/>",
            "xl/sharedStrings.xml": f"<sst {S}>{strings}</sst>",
            "xl/tables/table1.xml": f"<table {S}>{table}</table>",
            **dict(zip(names, sheets, strict=True)),
        }
    )


def odt(body: str, manifest: str = "<m/>") -> bytes:
    """A text document with this text."""
    return archive(
        {
            "mimetype": "application/vnd.oasis.opendocument.text",
            "content.xml": f"<office:document-content {O}><office:body><office:text>{body}"
            "</office:text></office:body></office:document-content>",
            "META-INF/manifest.xml": manifest,
        }
    )


def epub(page: str) -> bytes:
    """A book of one page."""
    return archive(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": "<container><rootfiles><rootfile full-path='o/b.opf'/>"
            "</rootfiles></container>",
            "o/b.opf": "<package xmlns:dc='d'><metadata><dc:title>A book</dc:title><dc:language>en"
            "</dc:language></metadata><manifest><item href='p%201.xhtml' "
            "media-type='application/xhtml+xml'/><item href='toc.ncx' "
            "media-type='application/x-dtbncx+xml'/></manifest></package>",
            "o/toc.ncx": "<ncx><navLabel><text>One</text></navLabel></ncx>",
            "o/p 1.xhtml": page,
        }
    )


def plain_texts(document: Document) -> list[str]:
    """Its texts without inline codes."""
    return [without_codes(text) for text in document.texts]


def in_capitals(document: Document) -> dict[str, str]:
    """Members of an archive whose texts a translator has put in capitals, by name."""
    return members_of(document.rebuild([text.upper() for text in document.texts]))
