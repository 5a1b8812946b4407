"""Formats that are archives of XML: what is a text, what stays, what is refused."""

import io
import zipfile

import pytest

from model.documents.formats import open_document
from model.documents.notation.limits import DocumentLimits
from model.errors import DocumentError
from support.made_documents import (
    A,
    T,
    W,
    archive,
    docx,
    epub,
    in_capitals,
    members_of,
    odt,
    plain_texts,
    pptx,
    types,
    xlsx,
)

SPACE = ' xml:space="preserve"'


def run(text: str, properties: str = "") -> str:
    made = f"<w:rPr>{properties}</w:rPr>" if properties else ""
    return f"<w:r>{made}<w:t>{text}</w:t></w:r>"


def test_a_paragraph_is_a_text_and_its_formatting_a_code() -> None:
    body = f"<w:p><w:pPr/>{run('The ')}{run('black', '<w:b/>')}{run(' cat.')}</w:p>"
    document = open_document(docx(body), "docx")
    assert plain_texts(document) == ["The black cat."]
    assert len(document.texts[0]) == len("The black cat.") + 2
    rebuilt = in_capitals(document)
    assert f"<w:rPr><w:b/></w:rPr><w:t{SPACE}>BLACK</w:t>" in rebuilt["word/document.xml"]
    assert f"<w:t{SPACE}> CAT.</w:t></w:r></w:p>" in rebuilt["word/document.xml"]


def test_runs_of_the_same_formatting_are_one_stretch() -> None:
    bold = "<w:b/>"
    body = f"<w:p>{run('on', bold)}<w:proofErr w:type='x'/>{run('e', bold)}{run(' two')}</w:p>"
    document = open_document(docx(body), "docx")
    assert plain_texts(document) == ["one two"]
    assert len(document.texts[0]) == len("one two") + 2
    text = in_capitals(document)["word/document.xml"]
    assert f"<w:rPr><w:b/></w:rPr><w:t{SPACE}>ONE </w:t></w:r><w:r><w:t{SPACE}>TWO</w:t>" in text


def test_a_run_after_text_that_was_split_keeps_its_own_formatting() -> None:
    bold = "<w:r><w:rPr><w:b/></w:rPr><w:t>a</w:t><w:t>b</w:t></w:r>"
    body = f"<w:p>{bold}{run('c')}</w:p>"
    document = open_document(docx(body), "docx")
    assert len(document.texts[0]) == len("abc") + 2


def test_breaks_text_boxes_and_cells_are_borders() -> None:
    box = f"<w:r><w:txbxContent><w:p>{run('box')}</w:p></w:txbxContent></w:r>"
    broken = f"<w:p>{run('a')}<w:r><w:br/></w:r>{run('b')}{box}{run('c')}</w:p>"
    body = f"{broken}<w:tc><w:p>{run('d')}</w:p></w:tc>"
    assert plain_texts(open_document(docx(body), "docx")) == ["a", "b", "box", "c", "d"]


def test_fields_and_deleted_text_stay() -> None:
    body = (
        "<w:p><w:r><w:instrText>PAGE text</w:instrText></w:r><w:del><w:r>"
        "<w:delText>gone</w:delText></w:r></w:del></w:p>"
    )
    document = open_document(docx(body), "docx")
    assert document.texts == ()
    assert members_of(document.rebuild([])) == members_of(docx(body))


def test_what_was_moved_away_readings_and_formulas_stay() -> None:
    ruby = (
        f"<w:r><w:ruby><w:rt>{run('kana')}</w:rt><w:rubyBase>{run('base')}</w:rubyBase></w:ruby>"
        "</w:r>"
    )
    formula = "<m:oMath xmlns:m='m'><m:r><m:t>mass</m:t></m:r></m:oMath>"
    body = (
        f"<w:p>{run('One ')}<w:moveFrom>{run('two ')}</w:moveFrom>{ruby}<w:moveTo>{run(' three ')}"
        f"</w:moveTo>{formula}{run(' four')}</w:p>"
    )
    document = open_document(docx(body), "docx")
    assert plain_texts(document) == ["One base three  four"]
    rebuilt = in_capitals(document)["word/document.xml"]
    assert all(f"<w:t>{stays}</w:t>" in rebuilt for stays in ("two ", "kana"))
    assert formula in rebuilt


def test_what_a_part_is_its_type_says_and_not_its_name() -> None:
    body = f"<w:document {W}><w:p>{run('One')}</w:p></w:document>"
    names = {
        "/Main.xml": "document.main",
        "/foot/notes": "footnotes",
        "/word/header1.xml": "styles",
    }
    own = {name.upper(): f"wordprocessingml.{said}" for name, said in names.items()}
    made = archive({"[Content_Types].xml": types(**own), **{name[1:]: body for name in names}})
    assert open_document(made, "docx").texts == ("One", "One")
    endings = f"<Types><Default Extension='XML' ContentType='{T}.presentationml.slide+xml'/>"
    main = (
        f"<Override PartName='/p' ContentType='{T}.presentationml.presentation.main+xml'/></Types>"
    )
    slide = f"<p:sld {A} xmlns:p='p'><a:p><a:t>Two</a:t></a:p></p:sld>"
    made = archive({"[Content_Types].xml": endings + main, "p": "<p/>", "a.xml": slide})
    assert open_document(made, "pptx").texts == ("Two",)


def test_a_return_that_is_written_as_a_reference_stays_one() -> None:
    document = open_document(xlsx("<si><t>one&#xD;\ntwo</t></si>"), "xlsx")
    assert document.texts == ("one\r\ntwo",)
    assert "ONE_x000D_\nTWO" in in_capitals(document)["xl/sharedStrings.xml"]
    document = open_document(docx(f"<w:p>{run('one&#xD;two')}</w:p>"), "docx")
    assert "ONE&#xD;TWO" in in_capitals(document)["word/document.xml"]


def test_characters_that_a_workbook_writes_as_codes_are_read_as_what_they_are() -> None:
    source = "one_x000D_\ntwo _x005F_x000D_ _xD83D_ _x12_"
    document = open_document(xlsx(f"<si><t>{source}</t></si>"), "xlsx")
    assert document.texts == ("one\r\ntwo _x000D_ _xD83D_ _x12_",)
    rebuilt = members_of(document.rebuild(["a\r\nb _x000D_ \x07 & c"]))["xl/sharedStrings.xml"]
    assert "a_x000D_\nb _x005F_x000D_ _x0007_ &amp; c" in rebuilt


def test_drawings_say_nothing_of_white_space() -> None:
    drawn = "<c:tx xmlns:c='c' xmlns:a='a'><a:p><a:r><a:t>One </a:t></a:r></a:p></c:tx>"
    said = types(
        **{"word/document.xml": "wordprocessingml.document.main", "c.xml": "drawingml.chart"}
    )
    body = f"<w:document {W}><w:p>{run('Two ')}</w:p><a:t xmlns:a='a'>Three</a:t></w:document>"
    made = {"[Content_Types].xml": said, "word/document.xml": body, "c.xml": drawn}
    rebuilt = in_capitals(open_document(archive(made), "docx"))
    assert "<a:t>ONE </a:t>" in rebuilt["c.xml"]
    assert "<a:t xmlns:a='a'>THREE</a:t>" in rebuilt["word/document.xml"]
    assert f"<w:t{SPACE}>TWO </w:t>" in rebuilt["word/document.xml"]


def test_other_members_of_an_archive_are_the_same() -> None:
    document = open_document(docx(f"<w:p>{run('a &amp; b')}</w:p>"), "docx")
    assert document.texts == ("a & b",)
    with zipfile.ZipFile(io.BytesIO(document.rebuild(["<x>"]))) as made:
        assert made.read("word/media/image1.png") == b"\x89PNG\0"
        assert b"&lt;x&gt;</w:t>" in made.read("word/document.xml")


def test_slides_are_paragraphs_without_fields() -> None:
    body = (
        "<a:p><a:r><a:rPr b='1'/><a:t>One</a:t></a:r><a:r><a:rPr/><a:t> two</a:t></a:r><a:br/>"
        "<a:r><a:t>three</a:t></a:r></a:p><a:p><a:fld><a:t>slide</a:t></a:fld></a:p>"
    )
    document = open_document(pptx(body), "pptx")
    assert plain_texts(document) == ["One two", "three"]
    assert A in in_capitals(document)["ppt/slides/slide1.xml"]
    assert "<a:t>THREE</a:t>" in in_capitals(document)["ppt/slides/slide1.xml"]


def test_strings_of_a_workbook_are_texts_but_for_names_of_columns() -> None:
    strings = (
        "<si><t>Name</t></si><si><t>A cat</t><rPh><t>kana</t></rPh></si>"
        "<si><r><t>two </t></r><r><rPr><b/></rPr><t>runs</t></r></si><si><t>12</t></si>"
    )
    document = open_document(xlsx(strings, "<tableColumn name='Name'/>"), "xlsx")
    assert plain_texts(document) == ["A cat", "two runs"]
    assert (
        f"<t{SPACE}>A CAT</t><rPh><t>kana</t></rPh>"
        in (in_capitals(document)["xl/sharedStrings.xml"])
    )


def test_names_of_columns_are_the_same_however_a_line_break_in_them_is_written() -> None:
    strings = "<si><t>Two_x000a_lines</t></si><si><t>More\nlines</t></si><si><t>A cat</t></si>"
    columns = "<tableColumn name='Two_x000a_lines'/><tableColumn name='More_x000a_lines'/>"
    document = open_document(xlsx(strings, columns), "xlsx")
    assert plain_texts(document) == ["A cat"]


def test_pages_of_a_book_are_read_as_pages() -> None:
    page = (
        "<?xml version='1.0'?><!DOCTYPE html><html xmlns='http://www.w3.org/1999/xhtml'><head>"
        "<title>T</title></head><body><p>A <em>black</em> cat<br/>sees<code>x</code>"
        "<img alt='A cat' src='x'/> <i/>it</p><code/><p>more</p></body></html>"
    )
    document = open_document(epub(page), "epub")
    assert plain_texts(document) == [
        "A book", "T", "A black cat", "A cat", "sees it", "more", "One",
    ]  # fmt: skip
    rebuilt = in_capitals(document)
    assert (
        "CAT<br/>SEES<code>x</code><img alt='A CAT' src='x'/> <i/>IT</p>"
        in (rebuilt["o/p 1.xhtml"])
    )
    assert "<text>ONE</text>" in rebuilt["o/toc.ncx"]


def test_all_texts_that_come_back_give_the_same_members() -> None:
    page = "<html><body><p>a <b>b</b></p></body></html>"
    made = (
        ("docx", docx(f"<w:p>{run(' a')}</w:p>")),
        ("odt", odt("<text:p>a</text:p>")),
        ("epub", epub(page)),
    )
    for kind, data in made:
        document = open_document(data, kind)
        assert members_of(document.rebuild(document.texts)) == members_of(data)


BOMB = archive({"word/document.xml": b"\0" * 3_000_000})


def damaged(data: bytes, name: bytes) -> bytes:
    """An archive in which the packed bytes of a member are others."""
    made = bytearray(data)
    made[made.index(name) + len(name) + 2] ^= 0xFF
    return bytes(made)


def packed_by(data: bytes, name: bytes, method: int) -> bytes:
    """An archive that says of a member that it is packed by this method."""
    made = bytearray(data)
    made[made.index(name) - 30 + 8] = method
    made[made.rindex(name) - 46 + 10] = method
    return bytes(made)


BODY, PICTURE = b"word/document.xml", b"word/media/image1.png"
MEMBER = "has a member 'word/document.xml' that"


@pytest.mark.parametrize(
    ("data", "kind", "problem"),
    [
        (b"hello", "docx", "is no zip archive"),
        (bytes.fromhex("d0cf11e0a1b11ae1") + b"\0" * 600, "docx", "is encrypted, or of an older"),
        (BOMB, "docx", "unpacks to 3000000 bytes; at most 1000000 are read"),
        (archive({str(n): "" for n in range(30)}), "docx", "has 30 members; at most 20 are read"),
        (docx("<w:p/>")[:-30], "docx", "is no zip archive"),
        (damaged(docx("<w:p/>"), BODY), "docx", "has a damaged member 'word/document.xml'"),
        (damaged(docx("<w:p/>"), PICTURE), "docx", f"has a damaged member '{PICTURE.decode()}'"),
        (
            packed_by(docx("<w:p/>"), BODY, 97),
            "docx",
            f"{MEMBER} is packed by method 97; methods 0, 8, 12 and 14 are read",
        ),
        (
            packed_by(docx("<w:p/>"), PICTURE, 9),
            "docx",
            f"has a member '{PICTURE.decode()}' that is packed by method 9; methods 0, 8",
        ),
        (docx("<w:p>"), "docx", f"{MEMBER} is not well-formed XML: mismatched tag on line 2"),
        (
            docx("<w:p>" * 500 + "</w:p>" * 500),
            "docx",
            f"{MEMBER} has elements nested more than 100 deep",
        ),
        (docx("<w:p/>" * 5000), "docx", f"{MEMBER} has more than 2000 tags"),
        (
            epub("<html><p></html>"),
            "epub",
            "has a member 'o/p 1.xhtml' that is not well-formed XML: mismatched tag on line 1",
        ),
        (
            archive({**members_of(epub("")), "o/b.opf": "<package>"}),
            "epub",
            "has a member 'o/b.opf' that is not well-formed XML: no element found",
        ),
        (
            epub("<?xml version='1.0' encoding='klingon'?><html/>"),
            "epub",
            "has a member 'o/p 1.xhtml' that is in an unknown encoding, 'klingon'",
        ),
        (docx("<w:p/>"), "xlsx", "is an archive without the parts of this format"),
        (docx("<w:p/>"), "odt", "is an archive without the parts of this format"),
        (docx("<w:p/>"), "epub", "has no member 'META-INF/container.xml'"),
        (odt("", "<m><encryption-data/></m>"), "odt", "is encrypted"),
        (
            epub("<!DOCTYPE x [<!ENTITY a 'bb'><!ENTITY b '&a;&a;'>]><x>&b;</x>"),
            "epub",
            "has a member 'o/p 1.xhtml' that declares entities, which are not read",
        ),
    ],
)
def test_what_cannot_be_read_is_one_clear_error(data: bytes, kind: str, problem: str) -> None:
    limits = DocumentLimits(
        max_unpacked_bytes=1_000_000, max_members=20, max_depth=100, max_events=2000
    )
    with pytest.raises(DocumentError) as caught:
        open_document(data, kind, limits=limits)
    assert str(caught.value).startswith(f"the {kind} document {problem}")


def test_an_encrypted_archive_is_named_so() -> None:
    data = bytearray(docx("<w:p/>"))
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        place = data.find(signature)
        data[place + offset] |= 1
    with pytest.raises(DocumentError, match="is encrypted"):
        open_document(bytes(data), "docx")


def test_texts_of_all_members_count_together() -> None:
    with pytest.raises(DocumentError, match="has 3 texts; at most 2 are read"):
        open_document(epub("<html><p>a</p></html>"), "epub", limits=DocumentLimits(max_texts=2))
