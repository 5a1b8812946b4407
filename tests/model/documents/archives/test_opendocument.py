"""Files of OpenDocument: what is a text; ours finds, and writes, what odfdo reads in its own."""

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

from model.documents.formats import open_document
from model.text.marks.inline_codes import ANY_CODE, class_of
from support.library_readers import paragraph_texts, without_insertions
from support.library_texts import NUM_DOCUMENTS, check, line, lines
from support.made_documents import archive, in_capitals, members_of, odt, plain_texts


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
