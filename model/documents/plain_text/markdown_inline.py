"""What stands inside a line of Markdown, as CommonMark has it, and where.

Owns the way from a text to its parts: emphasis, links, images, code, HTML, escapes, formulas,
footnotes' numbers and the characters between, each with its place. markdown-it says what there is;
its rules are watched for where they are in the text. What becomes of a part in a translation is
`model.documents.plain_text.markdown_codes`.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from markdown_it import MarkdownIt
from markdown_it.common.utils import unescapeAll
from markdown_it.helpers import parseLinkDestination
from markdown_it.parser_inline import ParserInline
from markdown_it.rules_inline import StateInline
from markdown_it.rules_inline.state_inline import Scanned
from markdown_it.token import Token

from model.text.marks.inline_codes import ANY_CODE

PartKind = Literal["text", "opening", "closing", "word", "lone", "break"]

_SIGNS = re.compile(r"[\\`*_\[\]<&~$]")
_MAX_SIGNS = 3_000
"""Of one text; what has more is not looked into, because links in it would take quadratic time."""
_FORMULA = re.compile(r"(?<!\$)\$\$([^$]++)\$\$(?!\$)")
_FORMULA_SIGNS = re.compile(r"[\\^_={}<>+]")
_SHORT_FORMULA = re.compile(
    r"(?a:(?<![\w$\\]))\$(?=[^\s${])(?=[^$\n]{0,200}[\\^_={])[^$\n]{1,200}(?<!\s)\$(?a:(?![\w${]))"
)
_NOTE = re.compile(r"\[\^[\w-]{1,100}\]")
_TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9-]*+)[^<>]*?(/?)>")
_VOID_TAGS = frozenset({"area", "br", "embed", "hr", "img", "input", "source", "track", "wbr"})
_WORD_TAGS = frozenset({"code", "kbd", "samp", "var", "script", "style", "math", "svg"})
"""Elements of HTML whose content is no language."""

_EMPHASIS = re.compile(r"\*|~~")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")

_Rule = Callable[[StateInline, bool], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A stretch of a text.

    Attributes:
        kind: What it is: characters, two that belong to each other, what is a word of its sentence,
            what stands for itself, or an end of a line that is kept.
        start: Where it begins.
        end: Where it ends.
        said: What a reader of the page gets of it.
        text: The characters that it means, if it is text.
        mark: The signs of emphasis that it consists of.
        alt: Where in an image its description is.
        title: Where the title of an image or a link is, without its quotes.
        label: What a link or an image that says its label only once says of it.
    """

    kind: PartKind
    start: int
    end: int
    said: str = ""
    text: str = ""
    mark: str = ""
    alt: tuple[int, int] | None = None
    title: tuple[int, int] | None = None
    label: str | None = None

    def moved(self, by: int) -> "Part":
        """The same elsewhere."""
        alt = None if self.alt is None else (self.alt[0] + by, self.alt[1] + by)
        title = None if self.title is None else (self.title[0] + by, self.title[1] + by)
        return replace(self, start=self.start + by, end=self.end + by, alt=alt, title=title)


class InlineReader:
    """Reader of what stands inside of lines.

    Args:
        references: Definitions of links by their labels, as markdown-it notes them down.
        is_lenient: Emphasis with a sign at its edge and a letter of Chinese or Japanese beside it
            (`**注意：**请`) is read as what its author meant, if fewer signs are left over
            than in what CommonMark reads.
    """

    def __init__(self, references: Mapping[str, Any], *, is_lenient: bool = False) -> None:
        self._parser = MarkdownIt("commonmark", {"maxNesting": 50})
        self._parser.inline = _Inline()
        self._is_lenient = is_lenient
        self._environment = {"references": dict(references)} if references else {}

    def parts(self, text: str) -> list[Part]:
        """The parts of a text, in order; together they are all of it.

        A line that ends in it is one that is kept, or is in another part.
        """
        num_signs = len(_SIGNS.findall(text))
        if num_signs > _MAX_SIGNS or (num_signs == 0 and "\n" not in text):
            return list(_plain(text))
        parts = self._read(_State(text, self._parser, self._environment, []))
        if self._is_lenient and _UNSPACED.search(text):
            more = self._read(_LenientState(text, self._parser, self._environment, []))
            if _num_loose(more) < _num_loose(parts):
                return more
        return parts

    def _read(self, state: StateInline) -> list[Part]:
        inline = self._parser.inline
        inline.tokenize(state)
        for rule in inline.ruler2.getRules(""):
            rule(state)
        found = [part for token in state.tokens if (part := _part(state.src, token)) is not None]
        found.sort(key=lambda one: one.start)
        return _with_tags(state.src, list(_with_text(state.src, found)))


def _num_loose(parts: Sequence[Part]) -> int:
    """How many signs of emphasis neither begin nor end any."""
    texts = [
        part.text
        for part in parts
        if part.kind == "text" and part.end - part.start == len(part.text)
    ]
    return sum(len(_EMPHASIS.findall(text)) for text in texts)


class _Inline(ParserInline):
    """Rules of CommonMark, with strikethrough, formulas and notes, that say where they are."""

    def __init__(self) -> None:
        super().__init__()
        self.ruler.before("escape", "formula", _formula)
        self.ruler.before("link", "note", _note)
        places: dict[str, _Rule] = dict(
            zip(self.ruler.get_active_rules(), self.ruler.getRules(""), strict=True)
        )
        for name, rule in places.items():
            is_pair = name in ("emphasis", "strikethrough")
            self.ruler.at(name, _placed_signs(rule) if is_pair else _placed(rule))

    def parse(self, _src: str, _md: MarkdownIt, _env: Any, tokens: list[Token]) -> list[Token]:
        """Nothing of what is in an image, which is read by itself."""
        return tokens


class _State(StateInline):
    def push(self, ttype: str, tag: str, nesting: Literal[-1, 0, 1]) -> Token:
        token = super().push(ttype, tag, nesting)
        token.meta["at"] = self.pos
        return token


class _LenientState(_State):
    def scanDelims(self, start: int, canSplitWord: bool) -> Scanned:  # noqa: FBT001, N802, N803  # its name
        """Signs, which beside letters that have no spaces between words open and close."""
        scanned = super().scanDelims(start, canSplitWord)
        end = start + scanned.length
        before, after = self.src[max(0, start - 1) : start], self.src[end : end + 1]
        can_open, can_close = scanned.can_open, scanned.can_close
        if canSplitWord and after.strip() and _UNSPACED.match(before):
            can_open = True
        if canSplitWord and before.strip() and _UNSPACED.match(after):
            can_close = True
        return Scanned(can_open, can_close, scanned.length)


def _placed(rule: _Rule) -> _Rule:
    """A rule after which the last token says where what it found begins and ends."""

    def placed(state: StateInline, silent: bool) -> bool:  # noqa: FBT001  # as it is called
        start, num_before = state.pos, len(state.tokens)
        is_found = rule(state, silent)
        if is_found and not silent and len(state.tokens) > num_before:
            state.tokens[-1].meta.setdefault("span", (start, state.pos))
            if state.tokens[-1].type == "image":
                label_end = state.md.helpers.parseLinkLabel(state, start + 1, False)
                state.tokens[-1].meta["label_end"] = label_end
        return is_found

    return placed


def _placed_signs(rule: _Rule) -> _Rule:
    """A rule that makes tokens of signs, one behind the other."""

    def placed(state: StateInline, silent: bool) -> bool:  # noqa: FBT001  # as it is called
        start = state.pos
        is_found = rule(state, silent)
        place = state.pos if is_found and not silent else start
        for token in reversed(state.tokens):
            if place <= start:
                break
            place -= len(token.content)
            token.meta["at"] = place
        return is_found

    return placed


def _formula(state: StateInline, silent: bool) -> bool:  # noqa: FBT001  # as it is called
    found = _FORMULA.match(state.src, state.pos, state.posMax)
    if found is None or not _FORMULA_SIGNS.search(found[1]):
        found = _SHORT_FORMULA.match(state.src, state.pos, state.posMax)
    return _taken(state, found, "formula", silent=silent)


def _note(state: StateInline, silent: bool) -> bool:  # noqa: FBT001  # as it is called
    found = _NOTE.match(state.src, state.pos, state.posMax)
    return _taken(state, found, "note", silent=silent)


def _taken(state: StateInline, found: re.Match[str] | None, name: str, *, silent: bool) -> bool:
    if found is None:
        return False
    if not silent:
        state.push(name, "", 0).content = found[0]
    state.pos = found.end()
    return True


def _part(text: str, token: Token) -> Part | None:
    """What a token is; nothing, if it is characters, or a part with another token."""
    place = token.meta.get("at", 0)
    start, end = token.meta.get("span", (place, place))
    name = token.type.removesuffix("_open").removesuffix("_close")
    kind: PartKind = "opening" if token.nesting > 0 else "closing"
    part = None
    match name:
        case "em" | "s" | "strong":
            num = 1 if name == "em" else 2
            first = place - 1 if token.type == "strong_open" else place
            mark = text[first : first + num]
            part = Part(kind=kind, start=first, end=first + num, said=token.type, mark=mark)
        case "link" if token.markup == "autolink":
            if token.nesting < 0:
                part = Part(kind="word", start=start, end=end, said=text[start:end])
        case "link" if token.nesting > 0:
            part = Part(kind=kind, start=place - 1, end=place, said=_leading(token, "href"))
        case "link":
            part = _ended(text, Part(kind=kind, start=place, end=end, said=name), start + 1)
        case "image":
            alt = (start + len("!["), token.meta["label_end"])
            part = Part(kind="lone", start=alt[1], end=end, said=_leading(token, "src"), alt=alt)
            part = replace(_ended(text, part, alt[0]), start=start)
        case "code_inline" | "formula":
            part = Part(kind="word", start=start, end=end, said=f"{name} {token.content}")
        case "html_inline" | "note":
            part = Part(kind="lone", start=start, end=end, said=f"{name} {token.content}")
        case "text_special":
            part = _special(token.content, start, end)
        case "hardbreak":
            part = Part(kind="break", start=start, end=end, said=name)
    return part


def _leading(token: Token, attribute: str) -> str:
    """What a link or an image is, and where it leads."""
    return f"{token.type} {token.attrs[attribute]} {'title' in token.attrs}"


def _special(meant: str, start: int, end: int) -> Part:
    """A character that is written as an escape or a reference."""
    is_plain = meant.isprintable() and not meant.isspace() and not ANY_CODE.search(meant)
    if is_plain or meant in ("\xa0", "\xad"):
        return Part(kind="text", start=start, end=end, said=meant, text=meant)
    return Part(kind="lone", start=start, end=end, said=f"special {meant}")


def _ended(text: str, part: Part, label_start: int) -> Part:
    """The end of a link or an image, with its title, or with the label that it has to say."""
    after = text[part.start + 1 : part.end]
    if not after.startswith("("):
        return part if after.strip("[]") else replace(part, label=text[label_start : part.start])
    place = part.start + 2 + len(after[1:]) - len(after[1:].lstrip())
    address = parseLinkDestination(text, place, part.end)
    place = address.pos if address.ok else place
    bare = text[place : part.end - 1]
    title = bare.strip()
    if len(title) < len('""') or not bare[:1].isspace():
        return part
    start = place + bare.index(title)
    return replace(part, title=(start + 1, start + len(title) - 1))


def unescaped(title: str) -> str:
    """The characters that a title of a link means."""
    return unescapeAll(title)


def _plain(text: str) -> Iterator[Part]:
    """The lines of a text that is not looked into."""
    done = 0
    for found in re.finditer(r"\n", text):
        yield _text(text, done, found.start())
        yield Part(kind="break", start=found.start(), end=found.end(), said="hardbreak")
        done = found.end()
    yield _text(text, done, len(text))


def _text(text: str, start: int, end: int) -> Part:
    return Part(kind="text", start=start, end=end, said=text[start:end], text=text[start:end])


def _with_text(text: str, parts: Iterable[Part]) -> Iterator[Part]:
    """Parts with the characters between them."""
    done = 0
    for part in parts:
        if part.start > done:
            yield _text(text, done, part.start)
        yield part
        done = part.end
    if done < len(text):
        yield _text(text, done, len(text))


def _with_tags(text: str, parts: list[Part]) -> list[Part]:
    """Parts whose tags of HTML are pairs where they match, and words if they hold no language."""
    opened: list[tuple[str, int]] = []
    joined: list[tuple[int, int]] = []
    for place, part in enumerate(parts):
        tag = _TAG.fullmatch(text, part.start, part.end) if part.kind == "lone" else None
        if part.kind == "opening":
            opened.append(("", place))
        elif part.kind == "closing":
            while opened and opened.pop()[0]:
                pass
        elif tag is None or not part.said.startswith("html") or tag[3]:
            continue
        elif not tag[1] and tag[2].lower() not in _VOID_TAGS:
            opened.append((tag[2].lower(), place))
        elif opened and opened[-1][0] == tag[2].lower():
            first = opened.pop()[1]
            if tag[2].lower() in _WORD_TAGS:
                joined.append((first, place))
                continue
            parts[first] = replace(parts[first], kind="opening")
            parts[place] = replace(part, kind="closing")
    done = len(parts)
    for first, last in reversed(joined):
        if last < done:  # not inside of another one
            start, end, done = parts[first].start, parts[last].end, first
            said = "".join(one.said for one in parts[first : last + 1])
            parts[first : last + 1] = [Part(kind="word", start=start, end=end, said=said)]
    return parts


def is_same(one: Sequence[tuple[PartKind, str]], other: Sequence[tuple[PartKind, str]]) -> bool:
    """Whether a reader gets the same of two texts, given what each part is and says.

    Emphasis around the same words may be in any order.
    """
    return _normal(one) == _normal(other)


def _normal(said: Sequence[tuple[PartKind, str]]) -> list[tuple[PartKind, str]]:
    found: list[tuple[PartKind, str]] = []
    for kind, words in said:
        if not words:
            continue
        if kind == "text" and found and found[-1][0] == "text":
            found[-1] = (kind, found[-1][1] + words)
            continue
        place = len(found)
        if kind in ("opening", "closing"):
            while place and found[place - 1][0] == kind and found[place - 1][1] > words:
                place -= 1
        found.insert(place, (kind, words))
    return found
