"""Blocks of Markdown, as CommonMark and the dialects around it have them.

Owns the parser, with rules for what the dialects add and no sentence goes across: footnotes,
definitions of terms, alerts, admonitions and tabs of MkDocs, containers between lines of `:::`,
display math between `$$`. What of a block is text, and what stands around it, is
`model.documents.plain_text.markdown_lines`.
"""

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock, paragraph
from markdown_it.token import Token

_LEAD = re.compile(r"\[\^[^\[\]\s]{1,100}+\]:[ \t]*+|:[ \t]++")
_ALERT = re.compile(r"\[![A-Za-z][\w|-]{0,40}+\][+-]?(?:[ \t]++|\Z)")
_ADMONITION = re.compile(
    r"(?:(?:!!!|\?\?\?\+?)[ \t]++[\w-]++(?:[ \t]++[\w-]++)*+(?:[ \t]++\"(?P<title>[^\"]*+)\")?"
    r"|===[!+]{0,2}[ \t]++\"(?P<tab>[^\"]*+)\")[ \t]*+"
)
_MATH = "$$"
_AFTER_MATH = re.compile(r"[ \t]*+(?:\([^()]*+\)|\{[^{}]*+\})?[.,;]?[ \t]*+")
_ENDED = ["paragraph", "reference", "blockquote", "list"]
"""What these blocks end, without an empty line before them."""
_NUM_INNER = 4
"""Spaces before what is inside of a note, a definition or an admonition."""

_Write = Callable[[], None]
_Find = Callable[[StateBlock, int, int], _Write | None]


class BlockReader:
    """Reader of blocks, for one document or for parts of it."""

    def __init__(self) -> None:
        self._parser = _parser()

    def blocks(self, text: str) -> tuple[list[Token], Mapping[str, Any]]:
        """The tokens of all blocks, in order, and the definitions of links by their labels."""
        noted: dict[str, Any] = {}
        tokens = self._parser.parse(text, noted)
        return tokens, noted.get("references", {})

    def is_paragraph(self, line: str) -> bool:
        """Whether a line is a paragraph where it begins one, and where it goes on with one."""
        return all(
            [token.type for token in self.blocks(text)[0]]
            == ["paragraph_open", "inline", "paragraph_close"]
            for text in (line, f"a\n{line}")
        )


def _parser() -> MarkdownIt:
    """A parser of blocks, which leaves lines as they are."""
    parser = MarkdownIt("commonmark", {"maxNesting": 50}).enable("table")
    for find in (_math, _container, _alert, _admonition, _lead):
        parser.block.ruler.before("blockquote", find.__name__, _rule(find), {"alt": _ENDED})
    return parser.disable(["inline", "text_join"])


def _rule(find: _Find) -> Callable[[StateBlock, int, int, bool], bool]:
    """A rule of the parser, which asks what begins on a line, or only whether something does."""

    def rule(state: StateBlock, line: int, end: int, silent: bool) -> bool:  # noqa: FBT001  # as it is called
        write = None if state.is_code_block(line) else find(state, line, end)
        if write is not None and not silent:
            write()
        return write is not None

    return rule


def _line(state: StateBlock, line: int) -> str:
    """What a line says, without what stands before it: quotes, bullets, space."""
    return state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]]


def _lead(state: StateBlock, line: int, end: int) -> _Write | None:
    """A footnote, or the definition of a term: a paragraph behind `[^1]:` or a colon."""
    lead = _LEAD.match(_line(state, line))
    return None if lead is None else partial(_write_paragraph, state, line, end, lead.end())


def _alert(state: StateBlock, line: int, _end: int) -> _Write | None:
    """The first line of an alert, `[!NOTE]`, which may have a title."""
    content = _line(state, line)
    kind = _ALERT.match(content)
    return None if kind is None else partial(_write, state, line, line, content[kind.end() :])


def _admonition(state: StateBlock, line: int, end: int) -> _Write | None:
    """The first line of an admonition or a tab of MkDocs, with paragraphs inside behind it."""
    head = _ADMONITION.fullmatch(_line(state, line))
    if head is None or not _has_inner(state, line + 1, end):
        return None

    def write() -> None:
        _write(state, line, line, head["title"] or head["tab"] or "")
        _write_inner(state, end)

    return write


def _container(state: StateBlock, line: int, _end: int) -> _Write | None:
    """A line that begins or ends a container."""
    return partial(_write, state, line, line) if _line(state, line).startswith(":::") else None


def _math(state: StateBlock, line: int, end: int) -> _Write | None:
    """Display math on lines of its own, without an empty line in it."""
    last = _last_of_math(state, line, end)
    return None if last is None else partial(_write, state, line, last)


def _write_paragraph(state: StateBlock, line: int, end: int, num_before: int) -> None:
    """A paragraph, without the characters before its text, and those that are inside with it."""
    paragraph(state, line, end, False)
    inline = state.tokens[-2]
    inline.content = inline.content[num_before:]
    if inline.content.startswith("\n"):
        inline.content, inline.map = inline.content[1:], [line + 1, state.line]
    _write_inner(state, end)


def _has_inner(state: StateBlock, line: int, end: int) -> bool:
    """Whether the next line that is not empty is inside of what stands before it."""
    line = state.skipEmptyLines(line)
    return line < end and state.sCount[line] >= state.blkIndent + _NUM_INNER


def _write_inner(state: StateBlock, end: int) -> None:
    """Blocks that are inside of what was written last."""
    if not _has_inner(state, state.line, end):
        return
    state.blkIndent += _NUM_INNER
    state.level += 1
    state.md.block.tokenize(state, state.line, end)
    state.level -= 1
    state.blkIndent -= _NUM_INNER


def _write(state: StateBlock, line: int, last: int, title: str = "") -> None:
    """Lines that stay as they are, up to a last one, but for a title on the first."""
    state.line = last + 1
    if title.strip():
        inline = state.push("inline", "", 0)
        inline.content, inline.map, inline.children = title.strip(), [line, line + 1], []


def _last_of_math(state: StateBlock, begin: int, end: int) -> int | None:
    """The line on which display math ends, if it begins on a line and ends at all."""
    first = _line(state, begin)
    if not first.startswith(_MATH) or first.startswith("$", len(_MATH)):
        return None
    formula, sign, after = first[len(_MATH) :].partition(_MATH)
    if sign:
        return begin if formula.strip() and _AFTER_MATH.fullmatch(after) else None
    searched = state.env.get("without_end_of_math", range(0))
    if begin in searched:
        return None
    line = begin + 1
    while line < end and state.sCount[line] >= state.blkIndent and not state.isEmpty(line):
        _, sign, after = _line(state, line).partition(_MATH)
        if sign and _AFTER_MATH.fullmatch(after):
            return line
        if sign:
            break
        line += 1
    state.env["without_end_of_math"] = range(begin, line)  # so that no line is searched twice
    return None
