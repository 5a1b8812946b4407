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

from support.library_texts import NUM_DOCUMENTS, check, line
from support.made_documents import epub

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
