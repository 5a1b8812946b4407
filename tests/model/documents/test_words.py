"""What the network reads of words that a document has tags in."""

import pytest

from model.documents.formats import open_document
from model.text.marks.carrying import carry
from model.text.marks.finding import find_marks
from support.made_documents import docx, odt

CUE = "WEBVTT\n\n00:01.000 --> 00:02.000\n"
INS = "<w:ins w:id='1'>{}</w:ins>"


def run(text: str, properties: str = "") -> str:
    made = f"<w:rPr>{properties}</w:rPr>" if properties else ""
    return f"<w:r>{made}<w:t xml:space='preserve'>{text}</w:t></w:r>"


def read_by_network(kind: str, data: bytes) -> str:
    (text,) = open_document(data, kind).texts
    carried = carry(text, find_marks(text), ("X1", "X2"))
    assert carried is not None
    return carried.shown


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        (
            run("the 2") + run("nd", "<w:vertAlign w:val='superscript'/>") + run(" of May"),
            "the 2nd of May",
        ),
        (
            run("hel") + "<w:bookmarkStart w:id='0'/><w:bookmarkEnd w:id='0'/>" + run("lo now"),
            "hello now",
        ),
        (run("my col") + INS.format(run("o")) + run("urs"), "my colours"),
        (run("a tree") + INS.format(run("s")) + run(" fell"), "a trees fell"),
        (run("un") + "<w:r><w:lastRenderedPageBreak/><w:t>done</w:t></w:r>", "undone"),
        (
            run("un") + "<w:del w:id='1'><w:r><w:delText>x</w:delText></w:r></w:del>" + run("do"),
            "undo",
        ),
        (run("one") + "<w:r><w:drawing/></w:r>" + run("two"), "one two"),
        (run("one") + "<w:r><w:sym w:char='F04A'/><w:t>two</w:t></w:r>", "one two"),
    ],
)  # fmt: skip
def test_words_of_word(body: str, shown: str) -> None:
    assert read_by_network("docx", docx(f"<w:p>{body}</w:p>")) == shown


@pytest.mark.parametrize(
    ("kind", "text", "shown"),
    [
        ("html", "<p>in<wbr>ter<wbr>national</p>", "international"),
        ("html", "<p>The <b>house</b>s<!-- x -->!</p>", "The houses!"),
        ("html", "<p>a<img src='x'>b</p>", "a b"),
        ("html", "<p>one<svg></svg>two</p>", "one two"),
        ("html", "<p>mis<b>nes<i>ted</b>, te</i>xt</p>", "misnested, text"),
        ("md", "The **house**s, un*believ*able in<wbr>deed\n", "The houses, unbelievable indeed"),
        ("md", "one![](a.png)two\n", "one two"),
        ("md", "one[![](a.png)](b)two\n", "one two"),
        ("vtt", f"{CUE}Won<00:00:01.500>der<00:00:01.700>ful\n", "Wonderful"),
        ("srt", "1\n00:00:01,000 --> 00:00:02,000\none<br>two\n", "one two"),
    ],
)  # fmt: skip
def test_words_of_texts(kind: str, text: str, shown: str) -> None:
    assert read_by_network(kind, text.encode()) == shown


def test_words_of_open_document() -> None:
    body = "<text:p>un<text:soft-page-break/>done H<text:span>2</text:span>O</text:p>"
    assert read_by_network("odt", odt(body)) == "undone H2O"
