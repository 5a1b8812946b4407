"""Books: ours finds, and writes, what lxml reads in generated pages.

The format's own library, ebooklib, is under the AGPL; lxml is what it reads pages with.
"""

import io
import zipfile
from collections.abc import Iterator
from random import Random
from xml.sax.saxutils import escape

import pytest
from lxml import etree

from model.documents.formats import open_document
from model.text.marks.inline_codes import without_codes
from support.library_texts import NUM_DOCUMENTS, check, line
from support.made_documents import archive, epub, members_of

PAGE = (
    '<?xml version="1.0" encoding="utf-8"?>\n<!DOCTYPE html>\n'
    '<html xmlns="http://www.w3.org/1999/xhtml"><head><title>{}</title></head><body>{}</body></html>'
)
INLINE = ["<em>{}</em>", "{}<br/>", '<a href="x?a=1&amp;b=2">{}</a>', "<b><i>{}</i></b>", "{}"]
BLOCKS = ["<p>{}</p>\n", "<ul><li>{}</li></ul>", "<h2 id='x'>{}</h2>", "<div><p>{}</p></div>"]


def page(chance: Random) -> str:
    """Blocks of text with tags inside."""
    blocks = []
    for _ in range(60):
        parts = [escape(line(chance)) for _ in range(chance.randrange(1, 4))]
        inner = "".join(chance.choice(INLINE).format(part) for part in parts)
        blocks.append(chance.choice(BLOCKS).format(inner))
    return PAGE.format(escape(line(chance)), "".join(blocks))


def page_texts(data: bytes) -> Iterator[str]:
    """What lxml reads in the blocks of the page, where lines are broken by tags alone."""
    with zipfile.ZipFile(io.BytesIO(data)) as book:
        tree = etree.fromstring(book.read("o/p 1.xhtml"))
        contents = etree.fromstring(book.read("o/toc.ncx"))
        package = etree.fromstring(book.read("o/b.opf"))
    for one in tree.iter("{*}br"):
        one.tail = "\n" + (one.tail or "")
    for one in tree.iter("{*}title", "{*}p", "{*}li", "{*}h2"):
        yield "".join(one.itertext())
    yield from (one.text or "" for one in contents.iter("{*}text"))
    yield from (one.text or "" for one in package.iter("{*}title"))


@pytest.mark.parametrize("seed", range(NUM_DOCUMENTS))
def test_pages_are_what_lxml_reads(seed: int) -> None:
    assert check(epub(page(Random(seed))), "epub", page_texts, is_folded=True) > 60


def without_flag_of_utf8(data: bytes) -> bytes:
    """An archive whose names are in UTF-8, and that does not say so."""
    made = bytearray(data)
    for signature, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        start = made.find(signature)
        while start >= 0:
            made[start + place + 1] &= ~0x08
            start = made.find(signature, start + 4)
    return bytes(made)


@pytest.mark.parametrize("name", ["Kapitäl.xhtml", "第一章.xhtml", "plain.xhtml"])
def test_names_in_utf_8_are_found_without_the_flag_that_says_so(name: str) -> None:
    members = members_of(epub("<html><p>One.</p></html>"))
    members[f"o/{name}"] = members.pop("o/p 1.xhtml")
    members["o/b.opf"] = members["o/b.opf"].replace("p%201.xhtml", name)
    members["o/Größe.png"] = "x"
    data = without_flag_of_utf8(archive(members))
    document = open_document(data, "epub")
    assert "One." in document.texts
    rebuilt = members_of(document.rebuild([text.upper() for text in document.texts]))
    assert list(rebuilt) == list(members)
    assert rebuilt[f"o/{name}"] == "<html><p>ONE.</p></html>"


def test_names_in_an_old_encoding_stay_what_they_are() -> None:
    members = members_of(epub("<html><p>One.</p></html>"))
    data = archive({**members, "o/Xe.png": "x"}).replace(b"o/Xe.png", b"o/\x84e.png")
    document = open_document(data, "epub")
    assert "o/äe.png" in members_of(document.rebuild(document.texts))


def test_a_reference_that_no_page_of_html_has_is_kept() -> None:
    page = '<!DOCTYPE html SYSTEM "x.dtd"><html><p>One&nbsp;&notice; two.</p></html>'
    document = open_document(epub(page), "epub")
    rebuilt = members_of(document.rebuild([text.upper() for text in document.texts]))
    assert rebuilt["o/p 1.xhtml"] == page.replace("One", "ONE").replace("two", "TWO")


def test_sections_and_numbers_of_pages_are_read_as_xml() -> None:
    page = "<html><p>It&#146;s <![CDATA[a < b]]></p></html>"
    document = open_document(epub(page), "epub")
    assert "It\x92s a < b" in document.texts
    rebuilt = members_of(document.rebuild([f"’ {text}" for text in document.texts]))
    assert rebuilt["o/p 1.xhtml"] == "<html><p>’ It\x92s a &lt; b</p></html>"


def test_pages_that_are_drawings_are_read_and_pictures_are_not() -> None:
    drawing = (
        "<svg:svg xmlns:svg='s'><svg:style>a</svg:style><title>One</title><text>a <tspan>b</tspan>"
        "</text><text><tspan>c</tspan><tspan>d</tspan></text></svg:svg>"
    )
    members = members_of(epub("<html><p>One.</p></html>"))
    items = "".join(
        f"<item id='{name}' href='{name}.svg' media-type='image/svg+xml'/>" for name in "xy"
    )
    package = members["o/b.opf"].replace("</manifest>", f"{items}</manifest>")
    package = package.replace("</package>", "<spine><itemref idref='x'/></spine></package>")
    members |= {"o/b.opf": package, "o/x.svg": drawing, "o/y.svg": "<!DOCTYPE [broken"}
    document = open_document(archive(members), "epub")
    assert [without_codes(text) for text in document.texts[-4:]] == ["One", "a b", "c", "d"]
    rebuilt = members_of(document.rebuild([text.upper() for text in document.texts]))
    assert rebuilt["o/x.svg"] == (
        "<svg:svg xmlns:svg='s'><svg:style>a</svg:style><title>ONE</title><text>A <tspan>B</tspan>"
        "</text><text><tspan>C</tspan><tspan>D</tspan></text></svg:svg>"
    )
    assert rebuilt["o/y.svg"] == members["o/y.svg"]


def test_the_comment_of_an_archive_stays() -> None:
    data = io.BytesIO(epub("<html><p>One.</p></html>"))
    with zipfile.ZipFile(data, "a") as book:
        book.comment = b"of a tool"
    document = open_document(data.getvalue(), "epub")
    rebuilt = document.rebuild([text.upper() for text in document.texts])
    with zipfile.ZipFile(io.BytesIO(rebuilt)) as book:
        assert book.comment == b"of a tool"


def test_a_page_of_xml_has_all_its_end_tags() -> None:
    page = "<html><p translate='no'>Kept <div>kept</div> kept</p><p>Four</p></html>"
    texts = open_document(epub(page), "epub").texts
    assert ("Four" in texts, [text for text in texts if "kept" in text.lower()]) == (True, [])
