"""What a workbook prints over and under its pages: text between codes that begin with `&`.

Owns those codes: of the three parts of a line, of formatting, of what is filled in. Excel reads 255
characters and repairs a file that has more, so a translation is cut before it makes a line longer.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from model.documents.notation.assembly import Assembler, Token, TokenKind, xml_unescape
from model.documents.notation.template import TemplateBuilder
from model.text.marks.inline_codes import ANY_CODE, without_codes

PAGE_TEXTS = frozenset(
    f"{pages}{place}" for pages in ("odd", "even", "first") for place in ("Header", "Footer")
)
"""Names of elements that hold such a line."""

_MOST = 255
_STRETCH = re.compile(
    r"(?P<and>&amp;&amp;)|&amp;(?:(?P<part>[LCR])|(?P<filled>[PN](?:[+-]\d+)?|[DTFAZ])"
    r"|(?P<format>G|[BIUESXYOH]|\d+|K[0-9A-Fa-f]{6}|K\d\d[+-]\d{3}|(?:\"|&quot;)[^\"&<]*(?:\"|&quot;)))"
    r"|(?P<said>(?:[^&]|&(?!amp;))+)|(?P<other>&amp;)"
)
_OTHERWISE = re.compile(r"&#0*38;|&#[xX]0*26;|<")
"""Notations of `&`, and of text, that no program writes here."""
_KINDS: dict[str, TokenKind] = {"part": "border", "filled": "word", "format": "lone"}


def add_page_text(raw: str, builder: TemplateBuilder) -> None:
    """Put a line, as it is written in XML, into a template."""
    length = len(xml_unescape(raw))
    if _OTHERWISE.search(raw) or length > _MOST:
        builder.pieces.append(raw)
        return
    room = _Room()
    assembler = Assembler(builder, coded=room.coded)
    num_before = len(builder.texts)
    for token in _tokens(raw):
        assembler.add(token, is_folded=False)
    assembler.flush()
    room.divide(length, builder.texts[num_before:])


@dataclass(slots=True)
class _Room:
    """Room for the translations of a line: the same for each stretch between two codes."""

    most: int = _MOST

    def divide(self, length: int, texts: Sequence[str]) -> None:
        """Share what the codes of a line of such a length leave."""
        said = [without_codes(text) for text in texts]
        rest = length - sum(len(text) + text.count("&") for text in said)
        num_stretches = sum(len(ANY_CODE.findall(text)) + 1 for text in texts)
        self.most = (_MOST - rest) // max(num_stretches, 1)

    def coded(self, text: str) -> str:
        """A stretch of text, as it is written between codes."""
        said = " ".join(text.splitlines()) if "\n" in text or "\r" in text else text
        # A number would be read as part of the size of letters that may stand before it.
        said = f" {said}" if said[:1].isdigit() else said
        while len(said) + said.count("&") > self.most:
            said = said[:-1]
        return said.replace("&", "&&")


def _tokens(raw: str) -> Iterator[Token]:
    for found in _STRETCH.finditer(raw):
        name = found.lastgroup or ""
        if name in ("and", "said"):
            text = "&" if name == "and" else xml_unescape(found[0])
            yield Token(kind="text", pieces=(found[0],), text=text)
        else:
            yield Token(kind=_KINDS.get(name, "border"), pieces=(found[0],))
