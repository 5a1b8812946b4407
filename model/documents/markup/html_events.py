"""Events of an HTML page with their places: what Python's HTML parser finds, and where.

Owns the way from a page to events that, one after another, are the whole page: nothing of it is
lost or written anew. What of it is translated is `model.documents.markup.html`.

A stretch is text only if a browser could not read a tag in it. Whatever the parser takes for text
although it has `<` before a letter, `/`, `!` or `?` (a tag that never ends, a declaration of no
known form) stays as it is. The parser is fed once and not asked to make sense of an end that it
waits for, so its time is linear in the page. What the parsers of Python's releases read otherwise
(titles, sections, references in attributes) is read in one way here.
"""

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from itertools import pairwise
from typing import Literal

from model.documents.markup.html_elements import RAW_ELEMENTS
from model.documents.notation.limits import DocumentLimits, check_events

EventKind = Literal["start", "end", "empty", "text", "comment", "other"]

_MARKUP = re.compile(r"<[A-Za-z/!?]")
_SECTION = "<!["
_CDATA = "<![CDATA["
_FOREIGN = frozenset({"svg", "math"})

_LINE_END = "\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A stretch of a page.

    Attributes:
        kind: What it is. "empty" is a tag that closes itself, "other" what is kept as it is.
        raw: Its characters.
        name: Of a tag, in lower case.
        attributes: Of a start tag: names in lower case, values without references.
        text: The characters that it means, if it is text.
    """

    kind: EventKind
    raw: str
    name: str = ""
    attributes: tuple[tuple[str, str | None], ...] = ()
    text: str = ""


def page_events(markup: str, limits: DocumentLimits | None = None) -> Iterator[Event]:
    """The events of a page; joined, their raw characters are the page.

    Raises:
        DocumentError: There are too many.
    """
    parser = _Places(markup, limits or DocumentLimits())
    parser.feed(markup)
    found = [*parser.found, (len(markup) - len(parser.rawdata), _rest(parser))]
    if found[0][0] > 0:
        found.insert(0, (0, Event(kind="other", raw="")))
    found.append((len(markup), Event(kind="other", raw="")))
    for (start, event), (end, _) in pairwise(found):
        raw = markup[start:end]
        if not raw:
            continue
        kind = event.kind
        if kind == "text" and _MARKUP.search(raw):
            kind = "other"
        text = html.unescape(raw) if kind == "text" else ""
        yield Event(kind=kind, raw=raw, name=event.name, attributes=event.attributes, text=text)


def _rest(parser: "_Places") -> Event:
    """What the parser waits for the end of."""
    return Event(kind="other" if parser.cdata_elem else "text", raw="")


class _Places(HTMLParser):
    """Python's parser, noting down what begins where."""

    def __init__(self, markup: str, limits: DocumentLimits) -> None:
        super().__init__(convert_charrefs=True)
        self._limits = limits
        self.found: list[tuple[int, Event]] = []
        self._lines = [0, *(match.end() for match in re.finditer(_LINE_END, markup))]
        self._num_foreign = 0

    def set_cdata_mode(self, elem: str, *, escapable: bool = False) -> None:
        """Looking for no tags up to an end tag; a title, where later parsers ask, is as others."""
        if not escapable:
            super().set_cdata_mode(elem)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._num_foreign += tag in _FOREIGN
        self._note(Event(kind="start", raw="", name=tag, attributes=tuple(attrs)))
        if tag in RAW_ELEMENTS:
            self.set_cdata_mode(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._note(Event(kind="empty", raw="", name=tag, attributes=tuple(attrs)))
        if tag in RAW_ELEMENTS and not self._num_foreign:
            self.set_cdata_mode(tag)  # a browser does not see the slash

    def handle_endtag(self, tag: str) -> None:
        self._num_foreign -= tag in _FOREIGN and self._num_foreign > 0
        self._note(Event(kind="end", raw="", name=tag))

    def handle_data(self, data: str) -> None:
        self._note(Event(kind="other" if self.cdata_elem else "text", raw=data))

    def handle_comment(self, data: str) -> None:
        self._note(Event(kind="comment", raw=data))

    def handle_decl(self, decl: str) -> None:
        self._note(Event(kind="other", raw=decl))

    def handle_pi(self, data: str) -> None:
        self._note(Event(kind="comment", raw=data))

    def unknown_decl(self, data: str) -> None:
        self._note(Event(kind="comment", raw=data))

    def parse_html_declaration(self, i: int) -> int:
        """What begins with `<!`; later parsers would not ask for sections."""
        if self.rawdata.startswith(_SECTION, i):
            return self.parse_marked_section(i)
        return super().parse_html_declaration(i)

    def parse_marked_section(self, i: int, report: int = 1) -> int:
        """A section of XML inside drawings and formulas, and a comment elsewhere."""
        is_section = self._num_foreign > 0 and self.rawdata.startswith(_CDATA, i)
        end = self.rawdata.find("]]>" if is_section else ">", i + 3)
        if end < 0:
            return -1
        if report:
            self.unknown_decl(self.rawdata[i + 3 : end])
        return end + (3 if is_section else 1)

    def _note(self, event: Event) -> None:
        line, column = self.getpos()
        self.found.append((self._lines[line - 1] + column, event))
        check_events("html", len(self.found), self._limits)
