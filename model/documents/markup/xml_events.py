"""Events of an XML file with their places: what Expat finds, and where.

Owns the way from a file to events that, one after another, are the whole file. What of it is text
is for the formats to say. Declared entities are refused, as are elements nested without end, and
what is declared of attributes is bounded, so nothing grows while it is read; nothing outside the
file is ever asked for.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.entities import html5
from itertools import pairwise
from typing import Literal
from xml.parsers.expat import ErrorString, ExpatError, ParserCreate

from model.documents.notation.limits import DocumentLimits, check_events
from model.errors import DocumentError

_MAX_DECLARED = 200
"""Declared attributes of an element: Expat goes through all of them at each of its start tags."""
_MAX_DEFAULTS = 8
"""Those with a default, as every start tag with attributes has a place for each."""

EventKind = Literal["start", "end", "text", "reference", "comment", "other"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A stretch of a file.

    Attributes:
        kind: What it is. A tag that closes itself is a start and an end without characters. A
            reference is one to what a foreign declaration gives, and nobody here knows.
        raw: Its characters.
        name: Of a tag, with the prefix that it is written with.
        attributes: Of a start tag, by name as written, with the defaults that the file declares.
            Tags without any of their own share them.
        text: The characters that it means, if it is text. A format may say of a tag that it stands
            for a space, and `rest` is then the notation of what it stands for beside that.
        is_language: It is text that a format knows for the tag of the document's language.
    """

    kind: EventKind
    raw: str
    name: str = ""
    attributes: dict[str, str] = field(default_factory=dict)
    text: str = ""
    rest: str = ""
    is_language: bool = False

    @property
    def local_name(self) -> str:
        """The name without its prefix."""
        return self.name.rpartition(":")[2]


def xml_events(text: str, kind: str, limits: DocumentLimits) -> Iterator[Event]:
    """The events of a file; joined, their raw characters are the file.

    Args:
        text: It, without a byte order mark.
        kind: Of the document, for its errors.
        limits: On depth.

    Raises:
        DocumentError: It is not well-formed, declares entities or too many attributes, or is
            nested too deeply.
    """
    data = text.encode("utf-8", "surrogatepass")
    yield from _joined(_placed(data, _Finder(kind, limits).found(data)))


def _placed(data: bytes, found: list[tuple[int, Event]]) -> Iterator[Event]:
    """Events with their characters."""
    found.append((len(data), Event(kind="other", raw="")))
    for (start, event), (end, _) in pairwise(found):
        raw = data[start:end].decode()
        if not raw and event.kind not in ("start", "end"):
            continue
        if event.kind == "other" and raw.startswith("&"):
            # A name that a foreign declaration gives, as XHTML's have &nbsp;
            meant = html5.get(raw[1:])
            yield Event(kind="text" if meant else "reference", raw=raw, text=meant or "")
            continue
        yield Event(
            kind=event.kind,
            raw=raw,
            name=event.name,
            attributes=event.attributes,
            text=event.text,
        )


def _joined(events: Iterator[Event]) -> Iterator[Event]:
    """Events, those of text that follow each other as one."""
    texts: list[Event] = []
    for event in events:
        if event.kind == "text":
            texts.append(event)
            continue
        yield from _as_one(texts)
        texts = []
        yield event
    yield from _as_one(texts)


def _as_one(texts: list[Event]) -> Iterator[Event]:
    if texts:
        raw, text = "".join(one.raw for one in texts), "".join(one.text for one in texts)
        yield Event(kind="text", raw=raw, text=text)


class _Finder:
    """Expat, noting down what begins where, in bytes."""

    def __init__(self, kind: str, limits: DocumentLimits) -> None:
        self._kind = kind
        self._limits = limits
        self._depth = 0
        self._found: list[tuple[int, Event]] = []
        self._num_declared: Counter[str] = Counter()
        self._defaults: dict[str, dict[str, str]] = {}
        self._parser = parser = ParserCreate("utf-8")
        parser.specified_attributes = True  # it would copy a default at every tag
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text
        parser.CommentHandler = self._comment
        parser.StartCdataSectionHandler = self._begin_section
        parser.EndCdataSectionHandler = self._end_section
        parser.AttlistDeclHandler = self._declare
        parser.EntityDeclHandler = self._refuse_entity
        parser.DefaultHandler = self._other

    def found(self, data: bytes) -> list[tuple[int, Event]]:
        """What begins where."""
        try:
            self._parser.Parse(data, True)
        except ExpatError as error:
            raise DocumentError(
                self._kind,
                f"is not well-formed XML: {ErrorString(error.code)} on line {error.lineno}",
            ) from error
        return self._found

    def _note(self, event: Event) -> None:
        self._found.append((self._parser.CurrentByteIndex, event))
        check_events(self._kind, len(self._found), self._limits)

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > self._limits.max_depth:
            raise DocumentError(
                self._kind, f"has elements nested more than {self._limits.max_depth} deep"
            )
        defaults = self._defaults.get(name, {})
        given = {**defaults, **attributes} if attributes else defaults
        self._note(Event(kind="start", raw="", name=name, attributes=given))

    def _end(self, name: str) -> None:
        self._depth -= 1
        self._note(Event(kind="end", raw="", name=name))

    def _text(self, data: str) -> None:
        self._note(Event(kind="text", raw="", text=data))

    def _comment(self, _data: str) -> None:
        self._note(Event(kind="comment", raw=""))

    def _begin_section(self) -> None:
        self._note(Event(kind="text", raw=""))

    def _end_section(self) -> None:
        self._note(Event(kind="text", raw=""))

    def _other(self, _data: str) -> None:
        self._note(Event(kind="other", raw=""))

    def _declare(
        self, element: str, name: str, _type: str, default: str | None, *_is_required: object
    ) -> None:
        """Keep an attribute's default, of which the first declaration counts."""
        self._num_declared[element] += 1
        if self._num_declared[element] > _MAX_DECLARED:
            raise self._too_many(_MAX_DECLARED, "")
        if default is None:
            return
        defaults = self._defaults.setdefault(element, {})
        defaults.setdefault(name, default)
        if len(defaults) > _MAX_DEFAULTS:
            raise self._too_many(_MAX_DEFAULTS, " with a default")

    def _too_many(self, limit: int, which: str) -> DocumentError:
        return DocumentError(
            self._kind, f"declares more than {limit} attributes of an element{which}"
        )

    def _refuse_entity(self, *_declared: object) -> None:
        raise DocumentError(self._kind, "declares entities, which are not read")
