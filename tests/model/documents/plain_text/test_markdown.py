"""Markdown: blocks of its dialects keep their lines, links keep their definitions."""

from collections.abc import Iterator
from random import Random

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from model.documents.formats import open_document
from model.text.marks.inline_codes import without_codes
from support.library_texts import NUM_DOCUMENTS

ENDS = ["\n", "\r\n", "\r"]
DEFINED = {"The guide": "/guide", "start/here's": "/start", "`Vec`": "/vec", "#12": "/12"}
DEFINITIONS = [f"[{label}]: {address}" for label, address in DEFINED.items()]
MARKS = ["", "", "", "> ", "- ", "1. ", "> - ", "  ", "    ", "# "]
LINES = [
    "one line", "another  ", "see [the guide], [the Guide][] or [a][the guide]", "[no] [`Vec`]",
    "![The guide][] and [a **b** c][start/here's]", "[![the guide]][#12]", "fixed ([#12])",
    "[^1]: first note", "[^note]:", "[^1]: word", ": what it is", ":", ":::", "::: tip", ":::note",
    "[!NOTE]", "[!tip]- A title", "[!NOTE]title", "$$", "$$ a = b $$", "$$ a = b", "c $$", "$$ d",
    "an $$a = b$$ inside", "$$$", "+++", "---", "===", "```", "| a | [the guide] |", "|---|---|",
    "", "", "<div>", "\\[the guide]", "`[the guide]`", "[the", "guide]", "[[the guide]]",
    "\U00100000", "\0", '!!! a "b c"', '=== "tab"', "    inner", "        inner",
]  # fmt: skip


def in_capitals(text: str) -> str:
    document = open_document(text.encode(), "md")
    return document.rebuild([one.upper() for one in document.texts]).decode()


def texts_of(text: str) -> list[str]:
    return list(open_document(text.encode(), "md").texts)


def soup(chance: Random) -> str:
    """Lines in any order, with and without definitions, that end in any way."""
    made = [chance.choice(MARKS) + chance.choice(LINES) for _ in range(chance.randrange(60))]
    made += ["", *DEFINITIONS] if chance.random() < 0.7 else []
    return chance.choice(ENDS).join(made)


def links_of(tokens: list[Token]) -> Iterator[str]:
    """Where the links and images of a page lead, in order."""
    for token in tokens:
        yield from (str(token.attrs[name]) for name in ("href", "src") if name in token.attrs)
        yield from links_of(token.children or [])


@pytest.mark.parametrize("seed", range(20 * NUM_DOCUMENTS))
def test_texts_that_come_back_give_the_same_bytes(seed: int) -> None:
    source = soup(Random(seed))
    document = open_document(source.encode(), "md")
    assert document.rebuild(document.texts).decode() == source


@pytest.mark.parametrize("seed", range(20 * NUM_DOCUMENTS))
def test_links_of_a_translation_lead_where_those_of_the_source_did(seed: int) -> None:
    chance = Random(seed)
    kinds = [
        "[{}]", "[{}][]", "[other words][{}]", "![{}]", "**[{}]**", "[![{}]][the guide]",
        "[nobody knows]", "`[{}]`", "\\[{}]", "[words](/address)", "word",
        "[[{}] in it][the guide]",
    ]  # fmt: skip
    lines = [
        " ".join(
            chance.choice(kinds).format(chance.choice(list(DEFINED)))
            for _ in range(chance.randrange(1, 6))
        )
        for _ in range(20)
    ]
    source = chance.choice(["\n", "\n\n", "\n\n- "]).join([*lines, "\n"]) + "\n".join(DEFINITIONS)
    document = open_document(source.encode(), "md")
    said = [one.replace("other", "no").replace("The guide", "Das Buch") for one in document.texts]
    parser = MarkdownIt("commonmark")
    before = list(links_of(parser.parse(source)))
    assert list(links_of(parser.parse(document.rebuild(said).decode()))) == before
    assert before


def test_front_matter_between_plus_signs_stays() -> None:
    source = '+++\ntitle = "A page"\n\ndraft = false\n+++\n\ntext\n'
    assert in_capitals(source) == source.replace("text", "TEXT")
    assert texts_of("+++\nno end\n") == ["+++ no end"]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("> [!NOTE]\n> Useful\n> text.\n", "> [!NOTE]\n> USEFUL TEXT.\n"),
        ("> before\n> [!Tip]- A title\n> text\n", "> BEFORE\n> [!Tip]- A TITLE\n> TEXT\n"),
        ("> [!note] note\n", "> [!note] NOTE\n"),
        ("> [!NOTE]\ntext\n", "> [!NOTE]\nTEXT\n"),
        ("[!a](b) c\n[!a]: d\n", "[!A](b) C [!A]: D\n"),
        ("[^1]: One\n[^b]: word\n", "[^1]: ONE\n[^b]: WORD\n"),
        ("text\n[^b]: one\n    more\n", "TEXT\n[^b]: ONE MORE\n"),
        ("> text\n[^b]:\n  one\n", "> TEXT\n[^b]:\n  ONE\n"),
        (":::warning A b\nDo not.\n:::\nmore\n", ":::warning A b\nDO NOT.\n:::\nMORE\n"),
        ("- one\n  ::: tip\n  two\n  :::\n", "- ONE\n  ::: tip\n  TWO\n  :::\n"),
        ("one\n$$\n\\a = b\n- c\n===\n$$\ntwo\n", "ONE\n$$\n\\a = b\n- c\n===\n$$\nTWO\n"),
        ("> $$ a\n> + b $$ (eq:1)\n> c\n", "> $$ a\n> + b $$ (eq:1)\n> C\n"),
        ("$$ a = b $$\n$$c$$ {#d}\n", "$$ a = b $$\n$$c$$ {#d}\n"),
        ("- is $$v = \\text{d}$$ here\n", "- IS $$v = \\text{d}$$ HERE\n"),
        ("is $$\na = b\n$$ here\n\nb\n$$\n", "IS $$ a = b $$ HERE\n\nB $$\n"),
        ("$$\n\na\n\n$$ b $$ c\n$$$ d\n", "$$\n\nA\n\n$$ B $$ C $$$ D\n"),
        ("Term\n: one\n  more\n: two\n", "TERM\n: ONE MORE\n: TWO\n"),
        (
            "[^1]: One.\n\n    Two\n    more.\n\n        code\n\nend\n",
            "[^1]: ONE.\n\n    TWO MORE.\n\n        code\n\nEND\n",
        ),
        ("Term\n:   One\n\n    Two\n\n    - three\n", "TERM\n:   ONE\n\n    TWO\n\n    - THREE\n"),
        (
            '!!! note "Important"\n    Save it\n    now.\n\n    Do.\n\nend\n',
            '!!! note "IMPORTANT"\n    SAVE IT NOW.\n\n    DO.\n\nEND\n',
        ),
        (
            '=== "Tab one"\n\n    text\n\n        code\n',
            '=== "TAB ONE"\n\n    TEXT\n\n        code\n',
        ),
        ("??? a\n\n    !!! b\n        c\n\n    d\n", "??? a\n\n    !!! b\n        C\n\n    D\n"),
        ("!!! note\n\ntext\n", "!!! NOTE\n\nTEXT\n"),
        ("Term\n\n: one\n\nat 10\n:30 and :a:\n", "TERM\n\n: ONE\n\nAT 10 :30 AND :A:\n"),
    ],
)
def test_blocks_of_dialects_keep_their_lines(source: str, expected: str) -> None:
    assert in_capitals(source) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("see [The Guide] now", "SEE [THE GUIDE][The Guide] NOW"),
        ("> see [the\n> guide][] now", "> SEE [THE GUIDE][the guide] NOW"),
        ("![the guide]", "![THE GUIDE][the guide]"),
        ("[a [b]][start/here's] c", "[A [B]][start/here's] C"),
        ("| [the guide] |\n|---|", "| [THE GUIDE][the guide] |\n|---|"),
        ("of [`Vec`] and ([#12][])", "OF [`Vec`] AND ([#12][])"),
        ("[the guide](x 'y (z)') [the guide][a]", "[THE GUIDE](x 'Y (Z)') [THE GUIDE][A]"),
        ("[a][b][the guide]", "[A][B][the guide]"),
        ("\\[the guide] [x [the guide]", "\\[THE GUIDE] \\[X [THE GUIDE][the guide]"),
        ("`[the guide]` or not", "`[the guide]` OR NOT"),
        ("- [x] [the guide]\n- [ ] c\n\n[x]: y", "- [x] [THE GUIDE][the guide]\n- [ ] C\n\n[x]: y"),
    ],
)  # fmt: skip
def test_a_link_whose_text_is_another_says_its_label(source: str, expected: str) -> None:
    definitions = "\n\n" + "\n".join(DEFINITIONS) + "\n"
    assert in_capitals(source + definitions) == expected + definitions


def test_what_is_written_around_links_is_no_text() -> None:
    source = "see [The guide] and [`Vec`]\n\n[`Vec`]\n\n" + "\n".join(DEFINITIONS)
    assert list(map(without_codes, texts_of(source))) == ["see The guide and "]
    assert texts_of("see [the guide]\n") == ["see [the guide]"]


def test_a_text_has_no_more_codes_than_there_are() -> None:
    source = "[the guide] " * 20_000 + "\n\n" + DEFINITIONS[0]
    document = open_document(source.encode(), "md")
    assert document.rebuild(document.texts).decode() == source
