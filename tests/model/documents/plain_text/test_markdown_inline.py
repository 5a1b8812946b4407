"""Parts of a line of Markdown: they are all of it, and say where what CommonMark finds is."""

import pytest

from model.documents.plain_text.markdown_inline import InlineReader, Part

REFERENCES = {"THE GUIDE": {"href": "/guide", "title": ""}}


def parts_of(text: str, *, is_lenient: bool = False) -> list[tuple[str, str]]:
    """Kinds of parts and how they are written; together they are the text."""
    found: list[Part] = InlineReader(REFERENCES, is_lenient=is_lenient).parts(text)
    assert "".join(text[part.start : part.end] for part in found) == text
    return [(part.kind, text[part.start : part.end]) for part in found]


def codes_of(text: str, *, is_lenient: bool = False) -> list[str]:
    """What is no text."""
    return [how for kind, how in parts_of(text, is_lenient=is_lenient) if kind != "text"]


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("***a** b* _c_ __d__ e_f_g", ["*", "**", "**", "*", "_", "_", "__", "__"]),
        ("~~~a~~~", ["~~", "~~"]),
        ("[a](<b c> 'd') [e](f\\(g (h))", ["[", "](<b c> 'd')", "[", "](f\\(g (h))"]),
        ("[![a](b)](c) ![]( x )", ["[", "![a](b)", "](c)", "![]( x )"]),
        ("[the guide] [a][The Guide] [b]", ["[", "]", "[", "][The Guide]"]),
        ("`` a ` b `` `c", ["`` a ` b ``"]),
        ("<b>a</b> <i>b <br> <kbd>*c*</kbd>",
         ["<b>", "</b>", "<i>", "<br>", "<kbd>*c*</kbd>"]),
        ("<code>a <code>*b*</code></code>", ["<code>a <code>*b*</code></code>"]),
        ("<http://a.b/*c*> a@b", ["<http://a.b/*c*>"]),
        ("$$a*b*c = d$$ $a_1 b_2$ $5 or *6$*", ["$$a*b*c = d$$", "$a_1 b_2$", "*", "*"]),
        ("a[^1] [^b c]", ["[^1]"]),
        ("a  \nb\\\nc `d  \ne`", ["\n", "\\\n", "`d  \ne`"]),
        ("&#10;&ensp;&amp;\\*", ["&#10;", "&ensp;"]),
    ],
)  # fmt: skip
def test_what_is_no_text_is_found_with_its_place(text: str, codes: list[str]) -> None:
    assert codes_of(text) == codes


def test_escapes_and_references_mean_their_characters() -> None:
    parts = InlineReader({}).parts("\\*a\\b &amp;&nbsp;&nosuch;")
    assert "".join(part.text for part in parts) == "*a\\b &\xa0&nosuch;"


def test_places_of_titles_and_descriptions() -> None:
    text = "![a *b*](c \"d e\") [f](g\n(h)) [i](j) [k](l 'm \\' n')"
    parts = InlineReader({}).parts(text)
    titles = [text[slice(*part.title)] for part in parts if part.title is not None]
    assert titles == ["d e", "h", "m \\' n"]
    assert [text[slice(*part.alt)] for part in parts if part.alt is not None] == ["a *b*"]


def test_a_label_that_is_said_once_is_known() -> None:
    parts = InlineReader(REFERENCES).parts("[the guide] ![the guide][] [a][the guide]")
    assert [part.label for part in parts if part.label is not None] == ["the guide"] * 2


@pytest.mark.parametrize("text", ["**注意：**请", "打开**“设置”**页", "~~「旧」~~的"])
def test_emphasis_with_a_sign_beside_letters_without_spaces_is_meant(text: str) -> None:
    assert codes_of(text) == []
    assert len(codes_of(text, is_lenient=True)) == 2


def test_what_is_meant_leaves_no_signs_over() -> None:
    text = "打开**“设置”**页面，选择**语言**。"
    assert codes_of(text) == ["**"] * 2  # around what is between the words that are meant
    assert codes_of(text, is_lenient=True) == ["**"] * 4


def test_emphasis_that_commonmark_reads_is_read_before_what_is_meant() -> None:
    text = "***设“q” a** 置* 2 * 3"
    assert codes_of(text, is_lenient=True) == codes_of(text)


def test_a_text_of_more_signs_than_are_read_is_not_looked_into() -> None:
    assert parts_of("[" * 4_000 + "\n*a*") == [
        ("text", "[" * 4_000), ("break", "\n"), ("text", "*a*"),
    ]  # fmt: skip
