"""Inline codes of Markdown: links whose text is translated while their label is not, and formulas.

Owns which links of a text are references to definitions, and which parts of a text become codes. A
link that says its label only once (`[label]`, `[label][]`) says it twice when its text is another,
so that it still leads to its definition.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from model.documents.notation.template import CodeTable
from model.text.marks.inline_codes import CodeClass

IsDefined = Callable[[str], bool]
"""Whether there is a definition of a label."""

_CODE = r"``[^`]++(?:`[^`]++)*+``(?!`)|(?<!`)`[^`]++`(?!`)"
_INLINE = re.compile(
    rf"\\[^\w\s]|{_CODE}|<[A-Za-z/!?][^<>]*+>"
    r"|(?<!\$)\$\$(?P<formula>[^$]++)\$\$(?!\$)|(?P<opening>!?\[)"
    r"|(?P<closing>\])(?:(?P<address>\([^()]*+(?:\([^()]*+\)[^()]*+)*+\))"
    r"|\[(?P<label>(?:[^\[\]\\]|\\.)*+)\])?"
)
_CODES = re.compile(_CODE)
_BOX = re.compile(r"\[[ xX]\][ \t]")
_FORMULA_SIGNS = re.compile(r"[\\^_={}<>+]")
_MAX_LABEL = 999
"""Characters of a label (CommonMark 0.31.2, "Link label")."""
_MAX_CODES = 8_000
"""Of one text, far below the number of codes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """A stretch of a text that becomes a code.

    Attributes:
        start: Where it begins.
        end: Where it ends.
        code_class: Of which class.
        written: What stands for it in a translation.
    """

    start: int
    end: int
    code_class: CodeClass
    written: str


def coded(text: str, is_defined: IsDefined, table: CodeTable) -> str:
    """A text with codes instead of what leads to definitions, and of display math.

    Args:
        text: It has no inline codes.
        is_defined: Whether there is a definition of a label.
        table: Where codes are noted down.
    """
    parts: list[str] = []
    done = 0
    for one in sorted(_parts(text, is_defined), key=lambda part: part.start):
        if one.start < done:
            continue  # inside of a link that is a word
        parts += [text[done : one.start], table.added(one.code_class, (one.written,))]
        done = one.end
    return "".join([*parts, text[done:]])


def _parts(text: str, is_defined: IsDefined) -> list[_Part]:
    found: list[_Part] = []
    opened: list[re.Match[str]] = []
    box = _BOX.match(text)  # of a task, whatever labels there are
    place = 0 if box is None else box.end()
    while len(found) < _MAX_CODES and (sign := _INLINE.search(text, place)):
        place = sign.end()
        if sign["opening"]:
            opened.append(sign)
        elif sign["formula"] and _FORMULA_SIGNS.search(sign["formula"]):
            found.append(_word(text, sign.start(), sign.end()))
        elif sign["closing"]:
            opening = opened.pop() if opened else None
            if sign["label"] and not is_defined(sign["label"]):
                place = sign.end("closing")  # it may be a link of its own
            elif opening is not None:
                found += _link(text, opening, sign, is_defined)
    return found


def _link(
    text: str, opening: re.Match[str], closing: re.Match[str], is_defined: IsDefined
) -> Iterator[_Part]:
    """What stands around the text of a link with a label, or all of it if that has no words."""
    start, end = opening.start(), closing.end()
    is_long = closing.start() - opening.end() > _MAX_LABEL
    if closing["address"] or (is_long and not closing["label"]):
        return
    label = closing["label"] or text[opening.end() : closing.start()]
    if not closing["label"]:
        if not is_defined(label):
            return
        if not any(map(str.isalpha, _CODES.sub("", label))):
            yield _word(text, start, end)
            return
    yield _Part(start=start, end=opening.end(), code_class="opening", written=opening[0])
    yield _Part(start=closing.start(), end=end, code_class="closing", written=f"][{label}]")


def _word(text: str, start: int, end: int) -> _Part:
    return _Part(start=start, end=end, code_class="word", written=text[start:end])
