"""Random fragments of HTML, sound and broken, with text that looks like markup."""

import random
from collections.abc import Sequence

WORDS = (
    *("The", "cat", "sees", "the", "river.", "She", "sells", "a", "letter!", "Nobody", "waits"),
    *("&amp;", "&lt;b&gt;", "&lt;script&gt;", "x", "{name}", "&nbsp;", "&copy;", "7.30", "a&b"),
    *("https://a.example/b?c=1", "5 < 6", "猫。", "😀", "&#8217;", "\U00100001", "%s", "'n\""),
    *("&quot;yes&quot;", "**bold**", "`code`"),
)
INLINE = ("b", "i", "a href='x?a=1&amp;b=2'", 'span title="A cat\'s river"', "em", "x-tag")
BLOCKS = ("p", "div", "li", "h1", "td", "blockquote", "pre")
UNTOUCHED = ("code", "span class=notranslate", "i translate='no'", "kbd")
EMPTY = ("<br>", "<img alt='The cat' src=x>", "<hr/>", "<!-- a <b> comment -->", "<wbr>", "<br/>")
BROKEN = (
    "<p", "</", "<", "</>", "<!", "<!-- never", "<b <i>", "</b>", "</p>", "</div>", "<a title='x>",
    "&", "&#", "&#x", "<![CDATA[ a > b ]]>", "<?php x ?>", "<![x]>", "<3", "</3>", "<b/>", "<p>",
    "<script>if (a<b) c('</p>')</script>", "<textarea><b>x</textarea>", "<title>The cat</title>",
)  # fmt: skip


def random_page(chance: random.Random, *, is_broken: bool) -> str:
    """A fragment; a sound one has elements that nest."""
    parts: list[str] = []
    _fill(parts, chance, 0, is_broken=is_broken)
    return "".join(parts)


def _fill(parts: list[str], chance: random.Random, depth: int, *, is_broken: bool) -> None:
    for _ in range(chance.randint(1, 5)):
        draw = chance.random()
        if draw < 0.5 or depth > 4:
            words = chance.choices(WORDS, k=chance.randint(1, 8))
            parts.append(" ".join(words))
            is_tag = words[-1] == "<" and not is_broken  # with what follows
            parts.append(chance.choice([" " * is_tag, " ", "\n  "]))
        elif draw < 0.6:
            parts.append(chance.choice(EMPTY))
        elif draw < 0.7 and is_broken:
            parts.append(chance.choice(BROKEN))
        else:
            _element(parts, chance, depth, is_broken=is_broken)


def _element(parts: list[str], chance: random.Random, depth: int, *, is_broken: bool) -> None:
    names: Sequence[str] = chance.choice([INLINE, BLOCKS, INLINE, UNTOUCHED])
    if depth == 0:
        names = BLOCKS
    tag = chance.choice(names)
    parts.append(f"<{tag}>")
    _fill(parts, chance, depth + (2 if names is UNTOUCHED else 1), is_broken=is_broken)
    if not is_broken or chance.random() > 0.1:
        parts.append(f"</{tag.split()[0]}>")
