"""Files that LibreOffice made, translated and opened by LibreOffice again."""

import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from lxml import etree

from model.documents.formats import open_document
from model.text.marks.inline_codes import without_codes
from support.library_readers import cell_texts, paragraph_texts, slide_texts, word_texts
from support.library_texts import check
from support.libreoffice import SOFFICE, converted

pytestmark = [
    pytest.mark.office,
    pytest.mark.timeout(600),
    pytest.mark.skipif(SOFFICE is None, reason="LibreOffice is not installed"),
]

PROSE = """<html><head><title>The report</title></head><body>
<h1>The cat &amp; the river</h1>
<p>She sells <b>a <i>blue</i> letter</b> to <a href="https://a.example/b?c=1&amp;d=2">nobody</a>.</p>
<p>Water &lt; stone: 7.30.</p>
<ul><li>First thing</li><li>Second thing</li></ul>
<table border="1"><tr><td>Left cell</td><td>Right cell</td></tr></table>
</body></html>"""
PROSE_TEXTS = (
    "THE CAT & THE RIVER", "SHE SELLS A BLUE LETTER TO NOBODY.", "WATER < STONE: 7.30.",
    "FIRST THING", "SECOND THING", "LEFT CELL", "RIGHT CELL",
)  # fmt: skip
TABLE = 'Name,Amount\n"Blue letter, small",7.30\nStone & water,12\n'
TABLE_TEXTS = ("NAME", "AMOUNT", "BLUE LETTER, SMALL", "STONE & WATER", "7.3", "12")
SLIDES = """<?xml version="1.0" encoding="UTF-8"?>
<office:document xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"
 xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"
 xmlns:draw="urn:oasis:names:tc:opendocument:xmlns:drawing:1.0"
 xmlns:svg="urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0"
 xmlns:style="urn:oasis:names:tc:opendocument:xmlns:style:1.0"
 xmlns:fo="urn:oasis:names:tc:opendocument:xmlns:xsl-fo-compatible:1.0"
 office:version="1.3" office:mimetype="application/vnd.oasis.opendocument.presentation">
<office:automatic-styles><style:style style:name="B" style:family="text">
<style:text-properties fo:font-weight="bold"/></style:style></office:automatic-styles>
<office:body><office:presentation><draw:page draw:name="one">
<draw:frame svg:width="20cm" svg:height="5cm" svg:x="2cm" svg:y="2cm"><draw:text-box>
<text:p>The cat <text:span text:style-name="B">sees</text:span> the river &amp; a stone.</text:p>
<text:p>Second line</text:p></draw:text-box></draw:frame></draw:page>
</office:presentation></office:body></office:document>"""
SLIDE_TEXTS = ("THE CAT SEES THE RIVER & A STONE.", "SECOND LINE")


def in_capitals(path: Path, folder: Path) -> Path:
    """A document whose texts a perfect translator has put in capitals."""
    document = open_document(path.read_bytes(), path.suffix[1:])
    assert document.texts
    result = folder / f"translated{path.suffix}"
    result.write_bytes(document.rebuild([text.upper() for text in document.texts]))
    return result


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("office") / "made"
    folder.mkdir()
    (folder / "prose.html").write_text(PROSE, encoding="utf-8")
    (folder / "table.csv").write_text(TABLE, encoding="utf-8")
    (folder / "slides.fodp").write_text(SLIDES, encoding="utf-8")
    return folder


def shown(path: Path, folder: Path, ending: str) -> str:
    """The text that LibreOffice reads in a document, in one line."""
    made = converted(path, ending, folder)
    text = made.read_text(encoding="utf-8-sig")
    if ending.startswith("fod"):
        paragraphs = etree.fromstring(text.encode()).iter("{*}p")
        text = "\n".join("".join(one.itertext()) for one in paragraphs)
    return " ".join(text.split())


@pytest.mark.parametrize("ending", ["docx", "odt"])
def test_prose(folder: Path, tmp_path: Path, ending: str) -> None:
    made = converted(folder / "prose.html", ending, folder, reader="HTML (StarWriter)")
    text = shown(in_capitals(made, tmp_path), tmp_path, "txt:Text (encoded):UTF8")
    assert [wanted for wanted in PROSE_TEXTS if wanted not in text] == []


@pytest.mark.parametrize("ending", ["docx", "odt"])
def test_formatting_stays_with_its_words(folder: Path, tmp_path: Path, ending: str) -> None:
    made = converted(folder / "prose.html", ending, folder, reader="HTML (StarWriter)")
    page = converted(in_capitals(made, tmp_path), "html", tmp_path).read_text(encoding="utf-8")
    bold = etree.HTML(page).xpath("//b[ancestor::p]")
    assert " ".join("".join(one.itertext()) for one in bold).split() == ["A", "BLUE", "LETTER"]
    (link,) = etree.HTML(page).xpath("//a[@href]")
    assert ("".join(link.itertext()), link.get("href")) == (
        "NOBODY",
        "https://a.example/b?c=1&d=2",
    )


@pytest.mark.parametrize("ending", ["xlsx", "ods"])
def test_tables(folder: Path, tmp_path: Path, ending: str) -> None:
    made = converted(folder / "table.csv", ending, folder)
    text = shown(in_capitals(made, tmp_path), tmp_path, "csv")
    assert [wanted for wanted in TABLE_TEXTS if wanted not in text] == []


@pytest.mark.parametrize("ending", ["pptx", "odp"])
def test_slides(folder: Path, tmp_path: Path, ending: str) -> None:
    made = converted(folder / "slides.fodp", ending, folder)
    text = shown(in_capitals(made, tmp_path), tmp_path, "fodp")
    assert [wanted for wanted in SLIDE_TEXTS if wanted not in text] == []


@pytest.mark.parametrize(
    ("source", "ending", "reader", "read"),
    [
        ("prose.html", "docx", "HTML (StarWriter)", word_texts),
        ("prose.html", "odt", "HTML (StarWriter)", paragraph_texts),
        ("slides.fodp", "pptx", None, slide_texts),
        ("table.csv", "xlsx", None, cell_texts),
    ],
)
def test_what_it_made_is_what_the_formats_own_libraries_read(
    folder: Path,
    source: str,
    ending: str,
    reader: str | None,
    read: Callable[[bytes], Iterable[str]],
) -> None:
    data = converted(folder / source, ending, folder, reader=reader).read_bytes()
    # At the foot of its pages, where openpyxl reads codes too.
    unread = ["Page "] if ending == "xlsx" else []
    assert check(data, ending, read, unread=unread, is_folded=ending == "odt") >= 2


def test_books(folder: Path, tmp_path: Path) -> None:
    """LibreOffice writes books and reads none: what it wrote has to be XML with these texts."""
    prose = converted(folder / "prose.html", "odt", folder, reader="HTML (StarWriter)")
    result = in_capitals(converted(prose, "epub", folder), tmp_path)
    with zipfile.ZipFile(result) as book:
        assert book.testzip() is None
        assert book.infolist()[0].filename == "mimetype"
        pages = [name for name in book.namelist() if name.endswith((".xhtml", ".opf", ".ncx"))]
        texts = ["".join(etree.fromstring(book.read(name)).itertext()) for name in pages]
    text = " ".join(" ".join(texts).split())
    assert [wanted for wanted in PROSE_TEXTS if wanted not in text] == []


def test_what_it_made_comes_back_as_it_was_where_nothing_is_translated(folder: Path) -> None:
    for path in sorted(folder.glob("*.[!h]*")):
        if path.suffix not in (".docx", ".odt", ".xlsx", ".ods", ".pptx", ".odp", ".epub"):
            continue
        document = open_document(path.read_bytes(), path.suffix[1:])
        assert any(without_codes(text) for text in document.texts)
        with (
            zipfile.ZipFile(path) as before,
            zipfile.ZipFile(_written(path, document.rebuild(document.texts))) as after,
        ):
            assert before.namelist() == after.namelist()
            for name in before.namelist():
                assert before.read(name) == after.read(name)


def _written(path: Path, data: bytes) -> Path:
    result = path.parent.parent / f"again{path.suffix}"
    result.write_bytes(data)
    return result
