"""Formats that are archives of XML: what is a text, what stays, what is refused."""

import io
import zipfile

import pytest

from model.documents.formats import open_document
from model.documents.notation.document import Document
from model.documents.notation.limits import DocumentLimits
from model.errors import DocumentError
from model.text.marks.inline_codes import ANY_CODE, class_of, without_codes
from support.made_documents import A, T, W, archive, docx, epub, members_of, odt, pptx, types, xlsx

SPACE = ' xml:space="preserve"'


def run(text: str, properties: str = "") -> str:
    made = f"<w:rPr>{properties}</w:rPr>" if properties else ""
    return f"<w:r>{made}<w:t>{text}</w:t></w:r>"


def plain_texts(document: Document) -> list[str]:
    return [without_codes(text) for text in document.texts]


def in_capitals(document: Document) -> dict[str, str]:
    return members_of(document.rebuild([text.upper() for text in document.texts]))


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


def test_paragraphs_of_opendocument_with_spans_notes_and_fields() -> None:
    body = (
        "<text:h>Title</text:h><text:p>A <text:span>black</text:span><text:s/> cat"
        "<text:note><text:note-citation>x</text:note-citation><text:note-body>"
        "<text:p>A note</text:p></text:note-body></text:note> sees.<text:tab/>"
        "Page <text:page-number>one</text:page-number>"
        "</text:p><text:tracked-changes><text:p>gone</text:p></text:tracked-changes>"
    )
    document = open_document(odt(body), "odt")
    assert plain_texts(document) == ["Title", "A note", "A black cat sees.", "Page "]
    rebuilt = in_capitals(document)
    assert next(iter(rebuilt)) == "mimetype"
    assert "A <text:span>BLACK</text:span><text:s/> CAT<text:note>" in rebuilt["content.xml"]
    assert "<text:p>A NOTE</text:p></text:note-body></text:note> SEES." in rebuilt["content.xml"]
    assert "PAGE <text:page-number>one</text:page-number>" in rebuilt["content.xml"]
    assert "<text:p>gone</text:p>" in rebuilt["content.xml"]


@pytest.mark.parametrize(
    ("body", "texts", "translated"),
    [
        ("a<text:s/>cat", ["a cat"], "A CAT"),
        ("a<text:s></text:s>cat", ["a cat"], "A CAT"),
        ("a<text:s text:c='3'/>cat", ["a cat"], "A <text:s text:c='2'/>CAT"),
        ("a<text:s text:c='2'></text:s>b", ["a b"], "A <text:s text:c='1'></text:s>B"),
        ("a<text:s/><text:s/>cat", ["a cat"], "A <text:s/>CAT"),
        ("a<text:s/><text:span>b</text:span>", ["a b"], "A <text:span>B</text:span>"),
        ("<text:span>a<text:s/></text:span>b", ["a b"], "<text:span>A </text:span>B"),
        ("a <text:s/>cat", ["a cat"], "A <text:s/>CAT"),
        ("a<text:s/> cat", ["a cat"], "A<text:s/> CAT"),
        ("<text:s text:c='4'/>a<text:s/>", ["a"], "<text:s text:c='4'/>A<text:s/>"),
        (
            "on<text:s/><text:page-number>1</text:page-number>",
            ["on "],
            "ON <text:page-number>1</text:page-number>",
        ),
        ("a<text:s text:c='x'/>cat", ["acat"], "A<text:s text:c='x'/>CAT"),
        (
            "a<text:tab/>cat<text:line-break/>b",
            ["a", "cat", "b"],
            "A<text:tab/>CAT<text:line-break/>B",
        ),
    ],
)
def test_a_tag_that_stands_for_spaces_keeps_words_apart(
    body: str, texts: list[str], translated: str
) -> None:
    made = odt(f"<text:p>{body}</text:p>")
    document = open_document(made, "odt")
    assert plain_texts(document) == texts
    assert f"<text:p>{translated}</text:p>" in in_capitals(document)["content.xml"]
    assert members_of(document.rebuild(document.texts)) == members_of(made)


def test_what_stands_in_a_sentence_of_opendocument_does_not_divide_it() -> None:
    said = "<text:p>So <text:span>it</text:span> is</text:p>"
    comment = f"<office:annotation><dc:date>May</dc:date>{said}</office:annotation>"
    box = "<draw:frame><draw:text-box><text:p>In a box</text:p></draw:text-box></draw:frame>"
    body = (
        f"<text:p>One {comment}two {box}three <draw:frame><draw:image/></draw:frame>four.</text:p>"
    )
    document = open_document(
        odt(body.replace("<text:p>One", "<text:p xmlns:dc='c' xmlns:draw='d'>One")), "odt"
    )
    assert plain_texts(document) == ["So it is", "In a box", "One two three four."]
    rebuilt = in_capitals(document)["content.xml"]
    assert (
        "ONE <office:annotation><dc:date>May</dc:date><text:p>SO <text:span>IT</text:span>"
        in rebuilt
    )
    assert "<text:p>IN A BOX</text:p></draw:text-box></draw:frame>THREE <draw:frame>" in rebuilt
    assert "</draw:frame>FOUR.</text:p>" in rebuilt


def test_a_formula_of_opendocument_is_a_word_of_its_sentence() -> None:
    frame = (
        "<draw:frame xmlns:draw='d' xmlns:svg='s' text:anchor-type='{}'><draw:{}/>"
        "<svg:desc>{}</svg:desc></draw:frame>"
    )
    for kind, frames in (
        ("word", ["as-char", "object"]),
        ("lone", ["paragraph", "object"]),
        ("lone", ["as-char", "image"]),
    ):
        document = open_document(
            odt(f"<text:p>a {frame.format(*frames, 'mass')} b</text:p>"), "odt"
        )
        assert plain_texts(document) == ["mass", "a  b"]
        (code,) = ANY_CODE.findall(document.texts[1])
        assert class_of(code) == kind
        rebuilt = members_of(document.rebuild(["Masse", f"{code} c"]))["content.xml"]
        assert f"<text:p>{frame.format(*frames, 'Masse')} c</text:p>" in rebuilt


def test_elements_of_other_programs_hold_words_of_their_sentence() -> None:
    body = (
        "<text:p>Choose <loext:content-control><text:span>a black</text:span> cat"
        "</loext:content-control> now.</text:p>"
    )
    document = open_document(odt(body), "odt")
    assert plain_texts(document) == ["Choose a black cat now."]
    assert "<text:span>A BLACK</text:span> CAT</loext" in in_capitals(document)["content.xml"]


def test_cells_of_opendocument_that_hold_a_text_are_translated() -> None:
    def cell(text: str, attributes: str = "office:value-type='string'", beside: str = "") -> str:
        return f"<table:table-cell {attributes}><text:p>{text}</text:p>{beside}</table:table-cell>"

    note = "<office:annotation><text:p>a note</text:p></office:annotation>"
    body = "<table:table table:name='cat'><table:table-row>" + "".join(
        [
            cell("A <text:span>black</text:span> cat"),
            cell("one", "office:value-type='float' office:value='1'", note),
            cell("two", "office:value-type='string' table:formula='of:=[.A1]'"),
            cell("a dog", "", "<text:p>sleeps</text:p>"),
            cell("may", "office:value-type='date'"),
        ]
    )
    document = open_document(odt(f"{body}</table:table-row></table:table>"), "ods")
    assert plain_texts(document) == ["A black cat", "a note", "a dog", "sleeps"]
    rebuilt = in_capitals(document)["content.xml"]
    assert all(f"<text:p>{text}</text:p>" in rebuilt for text in ("one", "two", "A DOG", "may"))
    assert "table:name='cat'" in rebuilt


def test_a_cell_with_a_comment_says_its_text_once() -> None:
    note = "<office:annotation><text:p>a note</text:p></office:annotation>"
    body = (
        "<table:table xmlns:table='t'><table:table-cell office:value-type='string'"
        f" office:string-value='a cat'>{note}<text:p>a cat</text:p></table:table-cell>"
        "</table:table>"
    )
    document = open_document(odt(body), "ods")
    assert document.texts == ("a note", "a cat")
    rebuilt = in_capitals(document)["content.xml"]
    assert "office:value-type='string'><office:annotation><text:p>A NOTE</text:p>" in rebuilt
    assert "</office:annotation><text:p>A CAT</text:p></table:table-cell>" in rebuilt


def test_a_template_of_styles_alone_is_a_document() -> None:
    styles = "<office:document-styles><text:p>Foot of a page</text:p></office:document-styles>"
    made = archive(
        {"styles.xml": styles.replace("styles>", "styles xmlns:office='o' xmlns:text='t'>", 1)}
    )
    assert open_document(made, "odt").texts == ("Foot of a page",)


def test_a_cell_that_says_its_text_twice_says_it_once() -> None:
    def cell(attributes: str, *inner: str) -> str:
        paragraphs = "".join(f"<text:p>{text}</text:p>" for text in inner)
        return f"<table:table-cell {attributes}>{paragraphs}</table:table-cell>"

    held = "office:value-type='string' office:string-value"
    body = (
        cell(f"{held}='a cat'", "a <text:s/>cat")
        + cell(f'{held}="one&#10;two"', "one", "two")
        + cell(f"{held}='other'", "shown")
        + cell(f"{held}='three' table:formula='x'", "three")
    )
    made = odt(f"<table:table xmlns:table='t'>{body}</table:table>")
    document = open_document(made, "ods")
    assert plain_texts(document) == ["a cat", "one", "two"]
    rebuilt = in_capitals(document)["content.xml"]
    assert "<table:table-cell office:value-type='string'><text:p>ONE</text:p><text:p>TWO" in rebuilt
    assert cell(f"{held}='other'", "shown") in rebuilt
    assert cell(f"{held}='three' table:formula='x'", "three") in rebuilt
    assert members_of(document.rebuild(document.texts)) == members_of(made)


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
DAMAGED = bytearray(docx("<w:p/>"))
DAMAGED[DAMAGED.index(b"word/document.xml") + 30] ^= 0xFF

PACKED = bytearray(docx("<w:p/>"))
PACKED[PACKED.index(b"word/document.xml") - 30 + 8] = 97
PACKED[PACKED.rindex(b"word/document.xml") - 46 + 10] = 97
MEMBER = "has a member 'word/document.xml' that"


@pytest.mark.parametrize(
    ("data", "kind", "problem"),
    [
        (b"hello", "docx", "is no zip archive"),
        (bytes.fromhex("d0cf11e0a1b11ae1") + b"\0" * 600, "docx", "is encrypted, or of an older"),
        (BOMB, "docx", "unpacks to 3000000 bytes; at most 1000000 are read"),
        (archive({str(n): "" for n in range(30)}), "docx", "has 30 members; at most 20 are read"),
        (docx("<w:p/>")[:-30], "docx", "is no zip archive"),
        (bytes(DAMAGED), "docx", "has a damaged member 'word/document.xml'"),
        (bytes(PACKED), "docx", f"{MEMBER} is packed by method 97; methods 0, 8"),
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
