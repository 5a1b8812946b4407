"""HTML: which stretches of a page are text, and which tags stand inside a sentence.

Owns that choice. Inline tags become inline codes, which the text path places by alignment; what
ends a sentence stays where it is; what is not for people (code, scripts, styles, comments) or not
to be translated (`translate="no"`, the class `notranslate`, elements that the caller names) is
copied. The language of the page is where its outermost element says it. Where tags begin and end is
`model.documents.markup.html_events`. White space inside a sentence is folded, as it is on a screen,
except in `pre`. Inside of what is not to be translated nothing is, `translate="yes"` or not.
"""

import html
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial

from model.documents.markup.html_elements import (
    BLOCK_ELEMENTS,
    BUTTON_TYPES,
    ENDED_BY,
    KEPT_SPACE_ELEMENTS,
    META_NAMES,
    OWN_TEXT_ATTRIBUTES,
    READ_TAGS,
    SCOPES,
    TEXT_ATTRIBUTES,
    UNSEEN_ELEMENTS,
    UNTOUCHED_ELEMENTS,
    VOID_ELEMENTS,
)
from model.documents.markup.html_events import Event, page_events
from model.documents.notation.assembly import Assembler, Token, TokenKind, reference_escape
from model.documents.notation.document import Document, DocumentOptions, document_of
from model.documents.notation.encoding import decoded_markup
from model.documents.notation.limits import DocumentLimits
from model.documents.notation.template import (
    Escape,
    LanguagePlace,
    Piece,
    Template,
    TemplateBuilder,
)
from model.text.marks.inline_codes import ANY_CODE

_PAGE = "html"
_PARAGRAPH = "p"
_BLOCKS_WITH_END = BLOCK_ELEMENTS - VOID_ELEMENTS
_LANGUAGE_ATTRIBUTES = frozenset({"lang", "xml:lang"})
_TAG = re.compile(r"<[^<>]*+>")
_TAG_NAME = re.compile(r"<[A-Za-z][^\s/>]*")
_ATTRIBUTE = re.compile(
    r"([^\s/>=\"'][^\s/>=]*+)(?:\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+)))?"
)


def open_html(data: bytes, options: DocumentOptions, limits: DocumentLimits) -> Document:
    """A page as a document.

    Raises:
        DocumentError: It is not text in the encoding that it declares, or has too many texts.
    """
    encoded = decoded_markup("html", data)
    template = html_template(encoded.text, options, limits)
    return document_of("html", template, encoded.encoded)


def html_template(
    markup: str, options: DocumentOptions | None = None, limits: DocumentLimits | None = None
) -> Template:
    """A page, or a fragment of one, as a template.

    Args:
        markup: Any text; there is nothing that HTML does not allow.
        options: Elements by name; case does not matter.
        limits: On texts and tags.

    Raises:
        DocumentError: It is beyond a limit.
    """
    limits = limits or DocumentLimits()
    return read_page(page_events(markup, limits), "html", options or DocumentOptions(), limits)


def read_page(
    events: Iterable[Event],
    kind: str,
    options: DocumentOptions,
    limits: DocumentLimits,
    *,
    unescape: Escape = html.unescape,
    is_xml: bool = False,
) -> Template:
    """A page as a template, whatever found its events, and whatever its references mean.

    Args:
        events: Of it, which joined are the page.
        kind: Of the document, for its errors.
        options: Elements by name; case does not matter.
        limits: On texts.
        unescape: What its references mean.
        is_xml: No end tag of it is left out.

    Raises:
        DocumentError: It is beyond a limit.
    """
    builder = TemplateBuilder(kind=kind, limits=limits)
    reader = _PageReader(builder, options, unescape, is_xml=is_xml)
    for event in events:
        reader.read(event)
    reader.close()
    return builder.template()


class _Untouched:
    """Element that is being copied, up to its end tag, or to what ends it without one."""

    def __init__(self, name: str, tag: Iterable[Piece], *, is_block: bool, is_xml: bool) -> None:
        self.name = name
        self.is_block = is_block
        self.tag = tuple(tag)
        self.raw: list[str] = []  # behind it
        self._ended_by: frozenset[str] = frozenset() if is_xml else ENDED_BY.get(name, frozenset())
        self._depth = 1
        self._opened: Counter[str] = Counter()  # blocks in it

    def is_left(self, event: Event) -> bool:
        """Whether a tag, which it does not have any more, ends it or an element around it."""
        if event.kind in ("start", "empty"):
            return event.name in self._ended_by and not any(self._opened[one] for one in SCOPES)
        is_outer = (
            event.kind == "end"
            and event.name in _BLOCKS_WITH_END
            and event.name != self.name
            and not self._opened[event.name]
        )
        # An end tag of a paragraph behind a block has none to end.
        is_stray = event.name == _PARAGRAPH and any(self._opened.values())
        return is_outer and not is_stray and (not self.is_block or bool(self._ended_by))

    def take(self, event: Event) -> bool:
        """One more event; whether it was the last."""
        self.raw.append(event.raw)
        is_start = event.kind == "start" and event.name not in VOID_ELEMENTS
        step = is_start - (event.kind == "end")
        if event.name in BLOCK_ELEMENTS:
            self._opened[event.name] = max(0, self._opened[event.name] + step)
        if event.name == self.name:
            self._depth += step
        return self._depth == 0


class _PageReader:
    def __init__(
        self,
        builder: TemplateBuilder,
        options: DocumentOptions,
        unescape: Escape,
        *,
        is_xml: bool,
    ) -> None:
        self._builder = builder
        self._is_xml = is_xml
        escaped = partial(reference_escape, unescape=unescape)
        self._assembler = Assembler(builder, escaped=escaped)
        self._ignored = _lowered(options.ignored_elements)
        inline = _lowered(options.inline_elements)
        self._blocks = (BLOCK_ELEMENTS | _lowered(options.splitting_elements)) - inline
        self._untouched: _Untouched | None = None
        self._num_kept_space = 0

    def read(self, event: Event) -> None:
        """One event of the page."""
        if self._untouched is not None and self._untouched.is_left(event):
            self._end_untouched()
        if self._untouched is not None:
            if self._untouched.take(event):
                self._end_untouched()
            return
        match event.kind:
            case "text":
                token = Token(kind="text", pieces=(event.raw,), text=event.text)
                self._assembler.add(token, is_folded=self._num_kept_space == 0)
            case "comment":
                self._assembler.add(Token(kind="lone", pieces=(event.raw,)))
            case "other":
                self._assembler.add(Token(kind="border", pieces=(event.raw,)))
            case "end":
                self._end(event)
            case "start" | "empty":
                self._start(event)

    def close(self) -> None:
        """The page has come to its end."""
        if self._untouched is not None:
            self._end_untouched()
        self._assembler.flush()

    def _end(self, event: Event) -> None:
        if event.name in KEPT_SPACE_ELEMENTS:
            self._num_kept_space = max(0, self._num_kept_space - 1)
        kind: TokenKind = "border" if event.name in self._blocks else "closing"
        self._assembler.add(Token(kind=kind, pieces=(event.raw,)))

    def _start(self, event: Event) -> None:
        is_block, is_void = event.name in self._blocks, event.name in VOID_ELEMENTS
        if not is_void and self._is_untouched(event):
            is_read = event.name in READ_TAGS and not self._is_kept(event)
            tag = self._tag(event) if is_read else (event.raw,)
            self._untouched = _Untouched(event.name, tag, is_block=is_block, is_xml=self._is_xml)
            return
        if event.name in KEPT_SPACE_ELEMENTS:
            self._num_kept_space += 1
        kind: TokenKind = "border" if is_block else "lone" if is_void else "opening"
        pieces = (event.raw,) if self._is_untouched(event) else tuple(self._tag(event))
        is_apart = is_void and event.name not in UNSEEN_ELEMENTS
        self._assembler.add(Token(kind=kind, pieces=pieces, is_apart=is_apart))

    def _end_untouched(self) -> None:
        untouched, self._untouched = self._untouched, None
        if untouched is not None:
            raw = "".join(untouched.raw)
            has_text = any(map(str.isalnum, _TAG.sub("", raw)))
            kind: TokenKind = "border" if untouched.is_block else "word" if has_text else "lone"
            token = Token(kind=kind, pieces=(*untouched.tag, raw), is_apart=kind == "lone")
            self._assembler.add(token)

    def _is_untouched(self, event: Event) -> bool:
        return event.name in UNTOUCHED_ELEMENTS or self._is_kept(event)

    def _is_kept(self, event: Event) -> bool:
        """Whether somebody says that an element is not to be translated."""
        attributes = dict(reversed(event.attributes))
        return (
            event.name in self._ignored
            or (attributes.get("translate") or "").lower() == "no"
            or "notranslate" in (attributes.get("class") or "").split()
        )

    def _tag(self, event: Event) -> Iterator[Piece]:
        """A start tag, with places for its language and for what people read in its attributes."""
        raw, done = event.raw, 0
        for name, start, end in _changing_values(event):
            if name in _LANGUAGE_ATTRIBUTES:
                yield raw[done:start]
                yield LanguagePlace(original=raw[start:end])
                done = end
                continue
            value = html.unescape(raw[start:end])
            if not any(map(str.isalpha, value)) or ANY_CODE.search(value):
                continue
            yield raw[done:start]
            escape = _attribute_escape(raw[start:end], quote=raw[start - 1])
            yield self._builder.slot(value, (raw[start:end],), {}, escape)
            done = end
        yield raw[done:]


def _lowered(names: Iterable[str]) -> frozenset[str]:
    return frozenset(map(str.lower, names))


def _changing_values(event: Event) -> list[tuple[str, int, int]]:
    """Where in a tag the values are that people read, or that say the language of the page."""
    attributes = dict(reversed(event.attributes))
    changing = {name for name in attributes if _is_readable(event.name, name, attributes)}
    changing |= _LANGUAGE_ATTRIBUTES & attributes.keys() if event.name == _PAGE else set()
    begin = _TAG_NAME.match(event.raw)
    if not changing or begin is None:
        return []
    found = list(_ATTRIBUTE.finditer(event.raw, begin.end()))
    # Where a tag can be read in two ways, it stays as it is. Which references without a `;` are
    # read depends on the parser's release.
    values = [(one[1].lower(), _without_references(_value(one))) for one in found]
    if values != [(name, _without_references(value)) for name, value in event.attributes]:
        return []
    return [
        (one[1].lower(), *one.span(one.lastindex))
        for one in found
        if one[1].lower() in changing and one.lastindex is not None and one.lastindex > 1
    ]


def _value(attribute: re.Match[str]) -> str | None:
    index = attribute.lastindex or 1
    return html.unescape(attribute[index]) if index > 1 else None


def _without_references(value: str | None) -> str | None:
    return value and html.unescape(value)


def _is_readable(element: str, name: str, attributes: dict[str, str | None]) -> bool:
    if name == "value":
        is_button = (attributes.get("type") or "").lower() in BUTTON_TYPES
        return element == "input" and is_button
    if name == "content":
        meta_name = attributes.get("name") or attributes.get("property") or ""
        return element == "meta" and meta_name.lower() in META_NAMES
    return name in TEXT_ATTRIBUTES or (element, name) in OWN_TEXT_ATTRIBUTES


def _attribute_escape(raw: str, *, quote: str) -> Escape:
    if quote in "\"'":
        return reference_escape(raw, always=quote, unescape=html.unescape)
    escape = reference_escape(raw, always='"', unescape=html.unescape)
    return lambda text: f'"{escape(text)}"'
