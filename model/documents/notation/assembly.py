"""Assembly of texts from the tokens of a marked-up document: inline tags become inline codes.

Owns how a run of text and inline tags, between two borders, becomes one text of a template: what of
its edges stays outside, how white space is folded, how characters are written back. It does not
know a format: which tag is a border and which is inline, its caller says. Tags that are nested
within a text may change places with their neighbours (`model.text.marks.placing`); where some of a
text do not match, all of them keep their order.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from html.entities import html5
from typing import Literal

from model.documents.notation.template import (
    CodeTable,
    Escape,
    Frame,
    Frames,
    Piece,
    TemplateBuilder,
)
from model.text.marks.inline_codes import ANY_CODE, outer_edges, without_codes

TokenKind = Literal["text", "border", "opening", "closing", "lone", "word"]
"""Text; what no sentence goes across; inline tags; what inside a sentence stands for itself, and
what is a word of it."""

SPACES = " \t\n\r\f"
"""White space that a document may fold."""

REFERENCE = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{0,31});")
"""A reference to a character, by its number or its name."""

_FOLDED = re.compile(f"[{SPACES}]+")
_ALWAYS = {ord("&"): "&amp;", ord("<"): "&lt;", ord(">"): "&gt;"}
_NOWHERE: dict[int, str | None] = dict.fromkeys(
    [*range(9), 0x0B, 0x0C, *range(0x0E, 0x20), *range(0xD800, 0xE000), 0xFFFE, 0xFFFF]
)
"""Characters that XML has no notation for."""
_MOST = 0x10FFFF
# Of WebVTT's <c.yellow> only the first part, as </c> ends it.
_TAG_NAME = re.compile(r"</?([^\s/>.]+)")
_MAX_TOKENS = 8_000
"""Of one text, far below the number of codes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPart:
    """How a stretch stands in a run, an element with formatting that a translation has anew.

    Attributes:
        joint: What ends before the stretch a run that began earlier, and begins behind it one that
            goes on.
        around: What stands around it in the source, if it is text.
        whole: Notation of a run with that text alone.
        instead: Of what is no text the notation that needs no run around it.
    """

    joint: tuple[tuple[Piece, ...], tuple[Piece, ...]]
    around: tuple[tuple[Piece, ...], tuple[Piece, ...]] = ((), ())
    whole: Frame = field(default_factory=Frame)
    instead: tuple[Piece, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A stretch of a document.

    Attributes:
        kind: What it is.
        pieces: Its notation, which in a tag may have places for texts; of text one string.
        text: The characters that it means, if it is text, or a tag that stands for a space.
        rest: Of such a tag the notation of what it stands for beside that space.
        is_removable: It may be left out where it stands inside a text.
        is_apart: Of what stands for itself: it is seen, so words on both sides of it are two.
        part: How it stands in a run; text of a run is in an element whose opening has a frame.
        frame: Of an opening what stands around the text directly in its element.
        element: Which one a tag begins or ends, where the tag's name does not say.
    """

    kind: TokenKind
    pieces: tuple[Piece, ...]
    text: str = ""
    rest: str = ""
    is_removable: bool = False
    is_apart: bool = False
    part: RunPart | None = None
    frame: Frame | None = None
    element: str = ""


class Assembler:
    """Assembler of a template from tokens that are handed in one by one.

    Args:
        builder: Where texts are put.
        coded: A format's own notation of text, before it is written beside markup.
        escaped: From the notation of a text's source, without tags, to how its translation is
            written; if nothing is said, as in XML (`reference_escape`).
        layout: From the same to what is done with all of a translation, once it is written.
        most: Characters between two borders, as UTF-16 counts them, that a translation may have.
    """

    def __init__(
        self,
        builder: TemplateBuilder,
        *,
        coded: Escape = str,
        escaped: Callable[[str], Escape] | None = None,
        layout: Callable[[str], Escape] | None = None,
        most: int | None = None,
    ) -> None:
        self._builder = builder
        self._coded = coded
        self._escaped = escaped or reference_escape
        self._layout = layout
        self._most = most
        self._run: list[Token] = []

    def add(self, token: Token, *, is_folded: bool = True) -> None:
        """One token; white space of text is folded to single spaces unless it has a meaning."""
        if token.kind == "border" or len(self._run) >= _MAX_TOKENS:
            self.flush()
        if token.kind == "border":
            self._builder.pieces.extend(token.pieces)
            return
        if token.kind == "text":
            if ANY_CODE.search(token.text):
                token = replace(token, kind="word", text="")
            elif is_folded:
                token = replace(token, text=_FOLDED.sub(" ", token.text))
        self._run.append(token)

    def flush(self) -> None:
        """End the text that was begun."""
        run, self._run = self._run, []
        if not any(any(map(str.isalpha, token.text)) for token in run):
            self._builder.pieces.extend(_pieces(run))
            return
        inner = [
            place for place, token in enumerate(run) if token.kind == "word" or token.text.strip()
        ]
        num_after = len(run) - 1 - inner[-1]
        first, num_after = outer_edges(_pairs(run), inner[0], num_after, len(run))
        last = len(run) - num_after
        outer = _frame_behind(run[:first])
        length = sum(len(token.text) for token in run)
        self._builder.pieces.extend(_pieces(run[:first]))
        if outer is not None:
            self._fill(run[first:last], outer, length)
        else:
            before, run[first] = _parted(run[first], is_begin=True)
            after, run[last - 1] = _parted(run[last - 1], is_begin=False)
            self._builder.pieces.append(before)
            self._fill(run[first:last], Frame(), length)
            self._builder.pieces.append(after)
        self._builder.pieces.extend(_pieces(run[last:]))

    def _fill(self, run: Sequence[Token], outer: Frame, length: int) -> None:
        """A text of a run of such a length, with its place."""
        table = CodeTable()
        parts: list[str] = []
        inner: dict[str, Frame] = {}
        lead, tail = _joints(run)
        run = _with_elements(run)
        spaces = _only_spaces(run)
        for place, token in enumerate(run):
            if token.kind == "text" or place in spaces:
                parts.append(token.text)
                parts.append(table.added("lone", (token.rest,)) if token.rest else "")
            elif token.kind != "border" and not token.is_removable:
                parts.append(table.added(token.kind, _whole(token), is_apart=token.is_apart))
                inner |= {} if token.frame is None else {parts[-1]: token.frame}
        raw = "".join(
            piece
            for token in run
            if token.kind == "text"
            for piece in token.pieces
            if isinstance(piece, str)
        )
        escape = self._escaped(raw)
        text = "".join(parts)
        if self._builder.kept and without_codes(text).strip(SPACES) in self._builder.kept:
            self._builder.pieces.extend(_pieces(run))
            return
        coded = self._coded
        beside = length - len(without_codes(text))
        most = None if self._most is None else max(self._most - beside, 0)
        frames = Frames(outer=outer, inner=inner, lead=lead, tail=tail)
        slot = self._builder.slot(
            text,
            list(_pieces(run)),
            table.pieces,
            lambda said: escape(coded(said)),
            layout=str if self._layout is None else self._layout(raw),
            frames=frames,
            most=most,
        )
        self._builder.pieces.append(slot)


def xml_unescape(text: str) -> str:
    """What text means whose references are XML's: a number is that character.

    HTML reads some numbers otherwise (`html.unescape`). Names are HTML's; others stay.
    """
    return REFERENCE.sub(lambda found: _character(found[0]), text)


def _character(reference: str) -> str:
    said = reference[1:]
    if not said.startswith("#"):
        return html5.get(said, reference)
    is_hexadecimal = said[1] in "xX"
    number = int(said[2:-1], 16) if is_hexadecimal else int(said[1:-1])
    return chr(number) if number <= _MOST else reference


def reference_escape(raw: str, *, always: str = "", unescape: Escape = xml_unescape) -> Escape:
    """How text is written beside markup: with the references that its source was written with.

    Args:
        raw: Notation of the source; what it writes as `&nbsp;` or `&#8217;`, a translation does. A
            section of XML, which has no references, is written anew.
        always: Further characters that cannot stand for themselves.
        unescape: What a reference means.
    """
    table = {**_ALWAYS, **{ord(character): f"&#{ord(character)};" for character in always}}
    if "<![CDATA[" not in raw:
        table |= references_of(raw, unescape)

    def escape(text: str) -> str:
        return text.translate(_NOWHERE).translate(table)

    return escape


def references_of(raw: str, unescape: Escape = xml_unescape) -> dict[int, str]:
    """The references of a notation, by the characters that they stand for and others may too."""
    found: dict[int, str] = {}
    for reference in REFERENCE.findall(raw):
        meant = unescape(reference)
        is_plain = meant.isascii() and (meant.isalnum() or meant in " \t\n\f")
        if len(meant) == 1 and not is_plain:
            found[ord(meant)] = reference
    return found


def _parted(token: Token, *, is_begin: bool) -> tuple[str, Token]:
    """White space at an edge of text as it is written, and the text without it."""
    raw = token.pieces[0]
    if token.kind != "text" or not isinstance(raw, str):
        return "", token
    if is_begin:
        bare, text = raw.lstrip(SPACES), token.text.lstrip(SPACES)
        space = raw[: len(raw) - len(bare)]
    else:
        bare, text = raw.rstrip(SPACES), token.text.rstrip(SPACES)
        space = raw[len(bare) :]
    return (space, replace(token, pieces=(bare,), text=text)) if space else ("", token)


def _pairs(run: Sequence[Token]) -> dict[int, int]:
    """Places of start tags and of the end tags that belong to them, both ways."""
    opened: list[tuple[int, str]] = []
    found: dict[int, int] = {}
    for place, token in enumerate(run):
        if token.kind == "opening":
            opened.append((place, _element(token)))
        elif token.kind == "closing" and opened and opened[-1][1] == _element(token):
            begin = opened.pop()[0]
            found[begin], found[place] = place, begin
    return found


def _with_elements(run: Sequence[Token]) -> list[Token]:
    """The tokens of a text; where not all tags match, nothing changes places with anything."""
    tags = [token for token in run if token.kind in ("opening", "closing")]
    if len(_pairs(tags)) == len(tags):
        return list(run)
    return [
        token
        if token.kind == "text"
        else replace(token, kind="lone", is_apart=token.is_apart or token.kind == "word")
        for token in run
    ]


def _only_spaces(run: Sequence[Token]) -> frozenset[int]:
    """Places of tags that stand for a space between two words that have no other one."""
    found: set[int] = set()
    last, waiting = " ", None
    for place, token in enumerate(run):
        if token.kind == "lone" and token.text:
            waiting = place if waiting is None and last not in SPACES else waiting
            last = " "
        elif token.text or token.kind == "word":
            said = token.text or "a word"
            if waiting is not None and said[0] not in SPACES:
                found.add(waiting)
            last, waiting = said[-1], None
    return frozenset(found)


def _element(token: Token) -> str:
    if token.element:
        return token.element
    found = _TAG_NAME.match(token.pieces[0]) if isinstance(token.pieces[0], str) else None
    return found[1].lower() if found else ""


def _pieces(run: Iterable[Token]) -> Iterator[Piece]:
    for token in run:
        before, after = ((), ()) if token.part is None else token.part.around
        yield from (*before, *token.pieces, *after)


def _whole(token: Token) -> tuple[Piece, ...]:
    """What a code stands for."""
    if token.part is None:
        return token.pieces
    return token.part.instead or (*token.part.whole.begin, *token.pieces, *token.part.whole.end)


def _frame_behind(run: Sequence[Token]) -> Frame | None:
    """What stands around text in the innermost element that is open behind some tokens."""
    opened: list[Frame | None] = [None]
    for token in run:
        if token.kind == "opening":
            opened.append(token.frame)
        elif token.kind == "closing" and len(opened) > 1:
            opened.pop()
    return opened[-1]


def _joints(run: Sequence[Token]) -> tuple[tuple[Piece, ...], tuple[Piece, ...]]:
    """What ends a run that began before some tokens, and begins one that goes on behind them."""
    parts = [token.part for token in run if token.part is not None]
    return (parts[0].joint[0], parts[-1].joint[1]) if parts else ((), ())
