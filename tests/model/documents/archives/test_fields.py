"""Complex fields of Word: what they show is words in an element, or a word that is computed."""

from collections.abc import Callable

import pytest

from model.documents.formats import open_document
from model.text.marks.inline_codes import ANY_CODE, class_of, without_codes
from support.made_documents import docx, members_of

SPACE = ' xml:space="preserve"'


def run(text: str) -> str:
    return f"<w:r><w:t{SPACE}>{text}</w:t></w:r>"


def tag(kind: str) -> str:
    return f"<w:r><w:fldChar w:fldCharType='{kind}'/></w:r>"


def field(instruction: str, shown: str) -> str:
    asked = f"<w:r><w:instrText>{instruction}</w:instrText></w:r>"
    return tag("begin") + asked + tag("separate") + shown + tag("end")


PAGE, DATE = field(" PAGE ", run("3")), field("DATE", run("May 5"))
REF, LINK = field("REF a", run("Table two")), field("HYPERLINK 'a'", run("our page"))


@pytest.mark.parametrize(
    ("body", "said", "classes", "written"),
    [
        (
            run("Page ") + PAGE + run(" of ") + DATE,
            "Page  of ", ["word", "word"],
            lambda one, two: f"VON {two} SEITE {one}",
        ),
        (
            run("See ") + REF + run(" and ") + LINK + run("!"),
            "See Table two and our page!", ["opening", "closing"] * 2,
            None,
        ),
        (
            run("Page ") + f"<w:fldSimple w:instr='PAGE'>{run('3')}</w:fldSimple>",
            "Page ", ["word"], None,
        ),
        (
            run("See ") + "<w:r><w:fldChar w:fldCharType='begin'/><w:instrText>REF</w:instrText>"
            "<w:fldChar w:fldCharType='separate'/><w:t>it</w:t>"
            "<w:fldChar w:fldCharType='end'/></w:r>",
            "See ", ["word"], None,
        ),
        (
            run("See ") + field("REF", run("page ") + PAGE) + run(" now"),
            "See page  now", ["opening", "word", "closing"], None,
        ),
    ],
)  # fmt: skip
def test_fields_are_words_or_elements(
    body: str, said: str, classes: list[str], written: Callable[[str, str], str] | None
) -> None:
    document = open_document(docx(f"<w:p>{body}</w:p>"), "docx")
    codes = ANY_CODE.findall(document.texts[0])
    assert [class_of(one) for one in codes] == classes
    assert without_codes(document.texts[0]).strip() == said.strip()
    assert members_of(document.rebuild(document.texts))["word/document.xml"].count(body) == 1
    if written is not None:
        made = members_of(document.rebuild([written(*codes)]))["word/document.xml"]
        assert f"<w:p>{run('VON ')}{DATE}{run(' SEITE ')}{PAGE}</w:p>" in made


def test_what_a_field_shows_is_translated_inside_of_it() -> None:
    body = run("A longer text is in ") + REF
    document = open_document(docx(f"<w:p>{body}</w:p>"), "docx")
    opening, closing = ANY_CODE.findall(document.texts[0])
    made = members_of(document.rebuild([f"In {opening}Tafel{closing} ist Text"]))
    written = run("In ") + field("REF a", run("Tafel")) + run(" ist Text")
    assert f"<w:p>{written}</w:p>" in made["word/document.xml"]


def test_a_paragraph_that_is_a_computed_field_stays() -> None:
    document = open_document(docx(f"<w:p>{DATE}</w:p><w:p>{run('Text')}</w:p>"), "docx")
    assert document.texts == ("Text",)
    assert DATE in members_of(document.rebuild(["Wort"]))["word/document.xml"]


@pytest.mark.parametrize(
    "body",
    [
        run("a ") + tag("begin") + run("b ") + tag("begin") + run("c"),
        run("a ") + tag("end") + run("b") + tag("separate") + tag("end"),
        run("a ") + field("REF", field("REF", field("REF", field("REF", run("b"))))),
        run("a ") + tag("begin") + "<w:ins>" + tag("separate") + run("b") + tag("end") + "</w:ins>",
        run("a ") + field(PAGE, run("b")),
    ],
)
def test_fields_of_other_forms_lose_nothing(body: str) -> None:
    document = open_document(docx(f"<w:p>{body}</w:p>"), "docx")
    assert body in members_of(document.rebuild(document.texts))["word/document.xml"]
    made = members_of(document.rebuild([text.upper() for text in document.texts]))
    for name in ("fldChar ", "instrText>"):
        assert made["word/document.xml"].count(name) == body.count(name)
