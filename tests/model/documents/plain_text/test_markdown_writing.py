"""Translated lines of Markdown: what is written renders as what the text says."""

from collections import Counter
from collections.abc import Callable
from random import Random

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from model.documents.formats import open_document
from model.text.marks.inline_codes import is_closing, is_opening
from support.library_texts import NUM_DOCUMENTS

WORDS = ["word", "a", "Zwei", "12", "x_y", "C:\\dir", "-", "“q”"]
INLINE = [
    "**{}**", "*{}*", "_{}_", "__{}__", "~~{}~~", "[{}](x)", '[{}](<a b> "t w")', "[{}](y 'q')",
    "`{}`", "``{} ` b``", "![{}](i.png)", "![{}](i.png 'ti')", "[![{}](j.png)](k)", "{} {}",
    "{}, {}", "\\*{}", "\\[{}\\]", "&lt;{}&gt;", "<kbd>{}</kbd>", "<http://x.y>", "[the]",
    "[{}][the]", "![the]", "**{}**{}", "***{}** {}*", "{}\n{}", "[](x)", "{}!", "{}", "{}",
]  # fmt: skip
BLOCKS = ["{}", "- {}", "> {}", "# {}", "1. {}", "- [x] {}", "| {} | b |\n|---|---|\n| {} | d |"]


def inline(chance: Random, depth: int) -> str:
    if depth == 0:
        return chance.choice(WORDS)
    form = chance.choice(INLINE)
    return form.format(inline(chance, depth - 1), inline(chance, depth - 1))


def page(chance: Random) -> str:
    blocks = []
    for _ in range(chance.randrange(1, 5)):
        form = chance.choice(BLOCKS)
        lines = [
            " ".join(inline(chance, chance.randrange(4)) for _ in range(chance.randrange(1, 4)))
            for _ in range(2)
        ]
        between = "\n  " if form[0] in "-1" else "\n> " if form[0] == ">" else " "
        blocks.append(form.format(*(line.replace("\n", between) for line in lines)))
    return "\n\n".join([*blocks, "[the]: /the 'T'\n"])


def glued(text: str) -> str:
    return text.replace(" ", "")


def framed(text: str) -> str:
    return f"字{glued(text)}字"


def punctuated(text: str) -> str:
    return "".join(
        f"{one}“" if is_opening(one) else f"：」{one}" if is_closing(one) else one for one in text
    )


def hostile(text: str) -> str:
    chance = Random(text)
    return "".join(
        chance.choice("*_[]<&\\!|#(~$") if one.isalpha() and chance.random() < 0.3 else one
        for one in text
    )


def elements(tokens: list[Token]) -> Counter[str]:
    """What a page consists of, with where its links and images lead."""
    found: Counter[str] = Counter()
    for token in tokens:
        name = "s_open" if token.content == "<del>" else token.type
        if token.type == "html_inline" and token.content in ("<em>", "<strong>"):
            name = f"{token.content[1:-1]}_open"
        if not name.startswith(("text", "softbreak")) and not name.endswith("_close"):
            found[name] += token.content not in ("</em>", "</strong>", "</del>")
        found.update(str(token.attrs[one]) for one in ("href", "src") if one in token.attrs)
        found += elements(token.children or [])
    return +found


@pytest.mark.parametrize("say", [str.upper, glued, framed, punctuated, hostile])
@pytest.mark.parametrize("seed", range(20 * NUM_DOCUMENTS))
def test_a_translation_has_the_elements_of_its_source(seed: int, say: Callable[[str], str]) -> None:
    source = page(Random(seed))
    document = open_document(source.encode(), "md")
    assert document.rebuild(document.texts).decode() == source
    translated = document.rebuild([say(text) for text in document.texts]).decode()
    parser = MarkdownIt("commonmark").enable(["strikethrough", "table"])
    assert elements(parser.parse(translated)) == elements(parser.parse(source)), translated


@pytest.mark.parametrize(
    ("source", "said", "expected"),
    [
        ("a **b** c", "o< b >c", "o **b** c"),
        ("a **b** c", "打开<设置：>页面", "打开**设置**：页面"),
        ("a **b** c", "打开<“设置”>页面", "打开“**设置**”页面"),
        ("a _b_ c", "这<非常>重要", "这*非常*重要"),
        ("a _b_ c", "This <very> one", "This _very_ one"),
        ("a **[b](x)** c", "打开<[设置]>页面", "打开[**设置**](x)页面"),
        ("a **`b`** c", "打开<W>页面", "打开 **`b`** 页面"),
        ("*a* **b** c", "<文件><的名称>是", "*文件***的名称**是"),
        ("**a** **b** c", "<文件><名称>是", "**文件** **名称**是"),
        ("a **b** c", "all gone <>", "all gone "),
        ("a b", "a *b* <c> & [d](e) &amp; `f`", "a \\*b\\* \\<c> \\& \\[d\\](e) \\&amp; \\`f\\`"),
        ("a b", "2 * 3 < x_y [z] & c!", "2 * 3 < x_y [z] & c!"),
        ("a \\* b &lt; c", "2 * 3 < 4", "2 \\* 3 &lt; 4"),
        ("a b", "C:\\", "C:\\\\"),
        ("a \\\\ b", "x_y C:\\", "x_y C:\\\\"),
        ("**a** b", "<>1. und", "1\\. und"),
        ("1\\. a", "1. und", "1\\. und"),
        ("\\- a", "- und", "\\- und"),
        ("a b", "# und", "\\# und"),
        ("# 1. a", "1. und", "# 1. und"),
        ("| a b |\n|--|", "a | b", "| a \\| b |\n|--|"),
        ("see! [a](b) c", "siehe![das] da", "siehe\\![das](b) da"),
    ],
)  # fmt: skip
def test_what_is_written_is_the_plainest_that_says_it(
    source: str, said: str, expected: str
) -> None:
    document = open_document(source.encode(), "md")
    codes = iter(one for one in document.texts[-1] if one >= "\U00100000")
    has_codes = any(one >= "\U00100000" for one in document.texts[-1])
    text = "".join(next(codes) if has_codes and one in "<>[]W" else one for one in said)
    assert document.rebuild([*document.texts[:-1], text]).decode() == expected
