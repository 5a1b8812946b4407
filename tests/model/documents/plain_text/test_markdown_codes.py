"""Texts of Markdown: what is around words is codes, and titles and descriptions are texts."""

import pytest

from model.documents.formats import open_document
from model.text.marks.inline_codes import ANY_CODE, class_of

SIGNS = {"opening": "<", "closing": ">", "word": "W", "lone": "L"}


def texts_of(source: str) -> list[str]:
    """The texts of a document, with a sign for the class of each code."""
    texts = open_document(source.encode(), "md").texts
    return [ANY_CODE.sub(lambda found: SIGNS[class_of(found[0])], text) for text in texts]


def in_capitals(source: str) -> str:
    document = open_document(source.encode(), "md")
    return document.rebuild([one.upper() for one in document.texts]).decode()


@pytest.mark.parametrize(
    ("source", "texts"),
    [
        ("The **name** of _the_ ~~file~~.", ["The <name> of <the> <file>."]),
        ("See [the manual](x) and `code`.", ["See <the manual> and W."]),
        ("See [it](x \"The &quot;page\") ![a *b*](c 'd').",
         ['The "page', "a <b>", "d", "See <it> L."]),
        ("[![Build status](x)](y)", ["Build status"]),
        ("Click [![the icon](x)](y) and [`a`](b) and [](c).",
         ["the icon", "Click L and W and L."]),
        ("1\\. und \\# and \\[no](x) C:\\dir &amp;", ["1. und # and [no](x) C:\\dir &"]),
        ("a **b  \nc** d", ["a Lb", "cL d"]),
        ("- [x] a", ["a"]),
        ("| a \\| *b* | ![c](d) |\n|--|--|", ["a | <b>", "c"]),
        ("`a` **12** [1](x)", []),
    ],
)  # fmt: skip
def test_what_a_network_reads_has_no_notation(source: str, texts: list[str]) -> None:
    assert texts_of(source) == texts


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("see [a](<b c> 'd \"e\\'') f", "SEE [A](<b c> 'D \"E\\'') F"),
        ("![a dog](b.png (c d))", "![A DOG](b.png (C D))"),
        ("[![a](b)](c 'd')", "[![A](b)](c 'D')"),
        ("> a ![b\n> c](d) e", "> A ![B C](d) E"),
        ("| ![a \\| b](c 'd \\| e') |\n|--|", "| ![A \\| B](c 'D \\| E') |\n|--|"),
        ("`a` ``b ` c`` d <i>e</i>", "`a` ``b ` c`` D <i>E</i>"),
        ("a `b  \nc` d  \ne", "A `b c` D  \nE"),
    ],
)
def test_addresses_and_code_stay(source: str, expected: str) -> None:
    assert in_capitals(source) == expected
