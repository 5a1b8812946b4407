"""Formatting and links of Office Open XML: pairs around words, which change places as a whole."""

import re
from collections.abc import Iterator
from random import Random

import pytest
from lxml import etree

from model.documents.formats import open_document
from model.text.marks.inline_codes import ANY_CODE, partners, without_codes
from support.library_texts import NUM_DOCUMENTS
from support.made_documents import docx, members_of, pptx, xlsx

SPACE = ' xml:space="preserve"'
FORMULA = "<m:oMath xmlns:m='m'><m:r><m:t>mass</m:t></m:r></m:oMath>"


def run(text: str, properties: str = "") -> str:
    made = f"<w:rPr>{properties}</w:rPr>" if properties else ""
    return f"<w:r>{made}<w:t{SPACE}>{text}</w:t></w:r>"


def bold(text: str) -> str:
    return run(text, "<w:b/>")


def link(target: int, inner: str) -> str:
    return f"<w:hyperlink w:anchor='{target}'>{inner}</w:hyperlink>"


def rebuilt(body: str, translation: str) -> str:
    """A paragraph of Word with a translation, in which {n} is the n-th code of its text."""
    document = open_document(docx(f"<w:p>{body}</w:p>"), "docx")
    codes = ANY_CODE.findall(document.texts[-1])
    said = re.sub(r"\{(\d+)\}", lambda found: codes[int(found[1])], translation)
    capitals = [text.upper() for text in document.texts[:-1]]
    made = members_of(document.rebuild([*capitals, said]))["word/document.xml"]
    return made.partition("<w:p>")[2].partition("</w:p></w:body>")[0]


@pytest.mark.parametrize(
    ("body", "translation", "written"),
    [
        (
            run("Click the ") + link(1, run("button")) + run(" in ") + link(2, run("page")),
            "In {2}Seite{3} den {0}Knopf{1} da",
            run("In ") + link(2, run("Seite")) + run(" den ") + link(1, run("Knopf")) + run(" da"),
        ),
        (
            run("The ") + bold("name ") + run("of the ") + run("file", "<w:i/>") + run(" here"),
            "{2}Datei{3} {0}Name{1}",
            run("Datei", "<w:i/>") + run(" ") + bold("Name"),
        ),
        (
            bold("Note:") + run(" the black cat"),
            "die Katze, {0}Notiz{1}",
            run("die Katze, ") + bold("Notiz"),
        ),
        (
            run("Some text with ") + link(1, run("a ") + bold("b") + run(" long")),
            "{0}{1}B{2} eins{3} Text",
            link(1, bold("B") + run(" eins")) + run(" Text"),
        ),
        (
            run("a longer text ") + "<w:bookmarkStart w:id='1'/>" + bold("b")
            + "<w:bookmarkEnd w:id='1'/>" + run(" end"),
            "x {0}{1}y{2}{3} z",
            run("x ") + "<w:bookmarkStart w:id='1'/>" + bold("y") + "<w:bookmarkEnd w:id='1'/>"
            + run(" z"),
        ),
        (
            run("The law ") + FORMULA + run(" is known"),
            "{0} ist bekannt",
            FORMULA + run(" ist bekannt"),
        ),
        (
            "<w:r><w:t>one long</w:t><w:cr2/><w:t>two</w:t></w:r>" + bold(" three"),
            "eins{0}zwei {1}drei{2}",
            run("eins") + "<w:r><w:cr2/></w:r>" + run("zwei ") + bold("drei"),
        ),
        (
            "<w:r><w:t>one</w:t><w:br/><w:t> a text </w:t></w:r>" + bold("b"),
            "{0}B{1} Text",
            f"<w:r><w:t{SPACE}>ONE</w:t><w:br/><w:t{SPACE}> </w:t></w:r>" + bold("B")
            + run(" Text"),
        ),
        (
            run("a text ") + f"<w:r><w:rPr><w:b/></w:rPr><w:t{SPACE}>b </w:t><w:br/></w:r>",
            "{0}B{1} Text",
            bold("B") + run(" Text")
            + f"<w:r><w:rPr><w:b/></w:rPr><w:t{SPACE}> </w:t><w:br/></w:r>",
        ),
        (
            "<w:sdt><w:sdtPr/><w:sdtContent>" + bold("a field") + "</w:sdtContent></w:sdt>"
            + run(" of the text") + "<w:ins w:id='1'>" + run("new") + "</w:ins>",
            "{2}neu{3} Text {0}Feld{1}",
            "<w:ins w:id='1'>" + run("neu") + "</w:ins>" + run(" Text ")
            + "<w:sdt><w:sdtPr/><w:sdtContent>" + bold("Feld") + "</w:sdtContent></w:sdt>",
        ),
    ],
)  # fmt: skip
def test_a_pair_moves_as_a_whole(body: str, translation: str, written: str) -> None:
    assert rebuilt(body, translation) == written


HYPHEN = "<w:noBreakHyphen/>"


@pytest.mark.parametrize(
    "body",
    [
        f"<w:r><w:t>pages 10</w:t>{HYPHEN}<w:t>20 here</w:t></w:r>",
        run("pages 10") + f"<w:r>{HYPHEN}</w:r>" + run("20 here"),
        run("pages 10") + f"<w:r>{HYPHEN}<w:t>20 </w:t></w:r>" + bold("here"),
        bold("pages 10") + f"<w:r><w:rPr><w:i/></w:rPr>{HYPHEN}</w:r>" + run("20 here"),
        "<w:r><w:t>pages 10</w:t><w:noBreakHyphen></w:noBreakHyphen><w:t>20 here</w:t></w:r>",
    ],
)
def test_hyphens_that_are_tags_are_characters(body: str) -> None:
    document = open_document(docx(f"<w:p>{body}</w:p>"), "docx")
    assert [without_codes(text) for text in document.texts] == ["pages 10\u201120 here"]
    same = members_of(document.rebuild(document.texts))["word/document.xml"]
    assert body in same
    made = members_of(document.rebuild([document.texts[0].upper()]))["word/document.xml"]
    tree = etree.fromstring(made.encode())
    assert all(text.getparent().tag.endswith("}r") for text in tree.iter("{*}t"))
    assert "".join(tree.itertext()) == "PAGES 10\u201120 HERE"
    assert not list(tree.iter("{*}noBreakHyphen"))


@pytest.mark.parametrize(
    "body",
    [
        HYPHEN.join(["<w:r>", "<w:t>a self</w:t>", "<w:t>made</w:t>", "</w:r>"]),
        run("x") + f"<w:r>{HYPHEN}</w:r><w:zz>" + run("b") + "</w:zz>",
    ],
)
def test_hyphens_at_edges_are_whole(body: str) -> None:
    document = open_document(docx(f"<w:p>{body}</w:p>"), "docx")
    assert body in members_of(document.rebuild(document.texts))["word/document.xml"]
    made = members_of(document.rebuild([text.upper() for text in document.texts]))
    tree = etree.fromstring(made["word/document.xml"].encode())
    assert all(not one.text for one in tree.iter() if not one.tag.endswith("}t"))


def test_places_where_a_word_may_be_divided_are_left_out() -> None:
    body = "<w:r><w:t>inter</w:t><w:softHyphen/><w:t>national</w:t></w:r>"
    document = open_document(docx(f"<w:p>{body}</w:p>"), "docx")
    assert document.texts == ("international",)
    assert body in members_of(document.rebuild(document.texts))["word/document.xml"]
    made = members_of(document.rebuild(["Welt"]))["word/document.xml"]
    assert '<w:p><w:r><w:t xml:space="preserve">Welt</w:t></w:r></w:p>' in made


def test_formatting_that_only_editors_see_is_no_pair() -> None:
    runs = "".join(
        f"<a:r><a:rPr lang='en'{said}/><a:t>{text}</a:t></a:r>"
        for text, said in (("a ", " dirty='0'"), ("wrod", " err='1' dirty='0'"), (" more", ""))
    )
    runs += "<a:r><a:t> and</a:t></a:r><a:r><a:rPr/><a:t> more</a:t></a:r>"
    field = "<a:fld type='slidenum'><a:rPr/><a:t>7</a:t></a:fld>"
    document = open_document(pptx(f"<a:p>{runs}{field}</a:p>"), "pptx")
    assert [without_codes(text) for text in document.texts] == ["a wrod more and more"]
    (code,) = ANY_CODE.findall(document.texts[0])
    made = members_of(document.rebuild([f"auf {code} mehr"]))["ppt/slides/slide1.xml"]
    frame = "<a:r><a:rPr lang='en' dirty='0'/><a:t>{}</a:t></a:r>"
    assert frame.format("auf ") + field + frame.format(" mehr") in made


def test_languages_of_runs_are_no_formatting() -> None:
    body = (
        run("one ", "<w:i/><w:lang w:val='de'/>") + run("two", "<w:noProof/><w:i/>")
        + run(" three", "<w:i/>")
    )  # fmt: skip
    assert open_document(docx(f"<w:p>{body}</w:p>"), "docx").texts == ("one two three",)
    body = run("one ") + run("two", "<w:lang w:val='de'/>") + bold(" b")
    assert rebuilt(body, "{0}B{1} zwei") == bold("B") + run(" zwei")


def test_tips_of_links_in_properties_are_written_wherever_their_words_are() -> None:
    tip = "<a:rPr><a:hlinkClick tooltip='{}'/></a:rPr>"
    runs = f"<a:r><a:t>See the page </a:t></a:r><a:r>{tip}<a:t>here</a:t></a:r>"
    document = open_document(pptx(f"<a:p>{runs.format('Go on')}</a:p>"), "pptx")
    place = document.texts.index("Go on")
    translations = ["x", "x"]
    opening, closing = ANY_CODE.findall(document.texts[1 - place])
    translations[place], translations[1 - place] = "Weiter", f"{opening}hier{closing} Seite"
    made = members_of(document.rebuild(translations))["ppt/slides/slide1.xml"]
    assert f"<a:r>{tip.format('Weiter')}<a:t>hier</a:t></a:r><a:r><a:t> Seite</a:t>" in made


@pytest.mark.parametrize(
    "body",
    [
        run("a ") + "<w:hyperlink><w:bookmarkStart w:id='1'/>" + run("b") + "</w:hyperlink>"
        + run("c") + "<w:bookmarkEnd w:id='1'/>",
        run("a ") + "<mc:x xmlns:mc='m'>" + run("b") + "</mc:x>",
        run("a ") + "<w:r><w:ruby><w:rubyBase>" + bold("b") + "</w:rubyBase></w:ruby></w:r>",
        run("a ") + "<w:ins>" * 60 + bold("b") + "</w:ins>" * 60,
    ],
)  # fmt: skip
def test_what_cannot_be_moved_is_no_pair(body: str) -> None:
    document = open_document(docx(f"<w:p>{body}</w:p>"), "docx")
    assert len(document.texts) == 1
    assert partners(document.texts[0]) == {}


def test_strings_of_a_workbook_have_no_empty_runs() -> None:
    inner = "<r><t>two </t></r><r><rPr><b/></rPr><t>bold</t></r><r><t> words</t></r>"
    document = open_document(xlsx(f"<si>{inner}</si>"), "xlsx")
    opening, closing = ANY_CODE.findall(document.texts[0])
    made = members_of(document.rebuild([f"{opening}{closing}zwei Worte"]))["xl/sharedStrings.xml"]
    assert f"<si><r><t{SPACE}>zwei Worte</t></r></si>" in made


def paragraph(chance: Random, depth: int = 0) -> str:
    """Runs of several formattings, in links and beside other things."""
    made = ""
    for _ in range(chance.randrange(1, 6)):
        words = " " * chance.randrange(2) + "word" * chance.randrange(2) + "x" * chance.randrange(3)
        kind = chance.randrange(9)
        if kind == 0 and depth < 2:
            made += link(chance.randrange(9), paragraph(chance, depth + 1))
        elif kind == 1:
            made += chance.choice([FORMULA, "<w:proofErr w:type='x'/>", "<w:r/>", "<w:bookmark/>"])
        elif kind == 2:
            inner = chance.choice(["<w:br/>", "<w:noBreakHyphen/>", "<w:sym/>"])
            made += f"<w:r><w:t>{words}</w:t>{inner}<w:t>{words}</w:t></w:r>"
        else:
            made += run(words, chance.choice(["", "", "<w:b/>", "<w:i/>"]))
    return made


UNMOVED = frozenset({"{w}noBreakHyphen", "{w}r", "{w}t", "{w}rPr", "{w}b", "{w}i", "{w}proofErr"})


def checked_letters(body: str) -> Iterator[str]:
    """The letters of a paragraph whose runs are where they may be, with links and formatting."""
    root = etree.fromstring(f"<w:p xmlns:w='w'>{body}</w:p>".encode())
    for one in root.iter("{w}t", "{w}noBreakHyphen"):
        run_of, *above = one.iterancestors()
        assert [run_of.tag, above[-1].tag] == ["{w}r", "{w}p"]
        assert all(inner.tag == "{w}hyperlink" for inner in above[:-1])
        places = "".join(str(inner.get("{w}anchor")) for inner in above[:-1])
        formatting = "".join(inner.tag for inner in run_of.iterfind("{w}rPr/*"))
        said = "\u2011" if one.tag.endswith("n") else "".join((one.text or "").split()).lower()
        yield from (f"{letter} {places} {formatting}" for letter in said)
    yield from (one.tag for one in root.iter() if one.tag not in UNMOVED)


def swapped(text: str) -> str:
    """A text in capitals, whose first two elements side by side have changed places."""
    pairs = partners(text)
    text = text.upper()
    first = next((place for place in sorted(pairs) if pairs[place] > place), None)
    second = (
        None
        if first is None
        else next((place for place in sorted(pairs) if pairs[first] < place < pairs[place]), None)
    )
    if first is None or second is None:
        return text
    between = text[pairs[first] + 1 : second]
    if any(ANY_CODE.match(one) for one in between):
        return text
    end = pairs[second] + 1
    return text[:first] + text[second:end] + between + text[first : pairs[first] + 1] + text[end:]


@pytest.mark.parametrize("seed", range(200 * NUM_DOCUMENTS))
def test_letters_keep_their_links_and_formatting_wherever_they_go(seed: int) -> None:
    body = paragraph(Random(seed))
    made = docx(f"<w:p>{body}</w:p>")
    document = open_document(made, "docx")
    for change in (str.upper, swapped):
        said = members_of(document.rebuild([change(text) for text in document.texts]))
        after = said["word/document.xml"].partition("<w:p>")[2].partition("</w:p></w:body>")[0]
        assert sorted(checked_letters(after)) == sorted(checked_letters(body))
    assert members_of(document.rebuild(document.texts)) == members_of(made)


def test_a_paragraph_that_comes_back_as_it_was_is_written_as_it_was() -> None:
    pretty = (
        "<w:p>\n  <w:r>\n    <w:t>A </w:t>\n  </w:r\n>\n  <w:r>\n    <w:rPr>\n      <w:b/>\n"
        "    </w:rPr>\n    <w:t>black</w:t>\n  </w:r >\n"
        "  <w:r>\n    <w:t> cat</w:t>\n  </w:r>\n</w:p>"
    )
    document = open_document(docx(pretty + f"<w:p>{run('Other')}</w:p>"), "docx")
    assert [without_codes(text) for text in document.texts] == ["A black cat", "Other"]
    made = members_of(document.rebuild([document.texts[0], "ANDERE"]))["word/document.xml"]
    assert pretty.replace("<w:t>", f"<w:t{SPACE}>") in made
    assert "ANDERE" in made


@pytest.mark.parametrize("num_properties", [10, 4_000])
def test_a_run_with_many_properties_goes_on_behind_many_breaks(num_properties: int) -> None:
    properties = "".join(f"<w:x w:val='{i}'/>" for i in range(num_properties))
    begin = f"<w:r><w:rPr>{properties}</w:rPr>"
    inner = "<w:t>one</w:t><w:br/>" * 4_000
    document = open_document(docx(f"<w:p>{begin}{inner}</w:r></w:p>"), "docx")
    assert document.texts == ("one",) * 4_000
    made = members_of(document.rebuild(["eins"] * 4_000))["word/document.xml"]
    replaced = inner.replace("one", "eins").replace("<w:t>", f"<w:t{SPACE}>")
    assert f"{begin}{replaced}</w:r>" in made
