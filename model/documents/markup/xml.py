"""XML of no known kind: prose is where an element has text of its own, and its tags are inside it.

Owns that rule, and how events of any XML become tokens by the roles of their elements. An element
with text between its tags has prose, so elements in it are inside a sentence; all others are
borders. The caller may say otherwise by name. `translate="no"` and `xml:space` are honoured.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal

from model.documents.markup.xml_attributes import ReadAttributes, tag_pieces
from model.documents.markup.xml_events import Event, xml_events
from model.documents.notation.assembly import Assembler, Token, TokenKind
from model.documents.notation.document import Document, DocumentOptions, document_of
from model.documents.notation.encoding import decoded_markup
from model.documents.notation.limits import DocumentLimits
from model.documents.notation.template import (
    LanguagePlace,
    Piece,
    Template,
    TemplateBuilder,
)

Role = Literal[
    "border",
    "prose",
    "inline",
    "unseen",
    "aside",
    "inset",
    "word",
    "lone",
    "begin",
    "end",
    "skipped",
]
"""What no sentence goes across; the same, with text in it; what is inside a sentence; the same,
of which nothing is seen; what stands in a sentence with texts of its own: beside its words, or as
one; what is copied: as a word of its sentence, beside its words, as what begins or ends an element
around them, or as a border."""

_COPIED: dict[Role | None, TokenKind] = {
    "word": "word",
    "lone": "lone",
    "begin": "opening",
    "end": "closing",
    "skipped": "border",
}
_WRAPPER = "text"


def open_xml(data: bytes, options: DocumentOptions, limits: DocumentLimits) -> Document:
    """A file as a document.

    Raises:
        DocumentError: It is not well-formed, declares entities, or is beyond a limit.
    """
    encoded = decoded_markup("xml", data)
    events = list(xml_events(encoded.text, "xml", limits))
    builder = TemplateBuilder(kind="xml", limits=limits)
    read_xml(events, mixed_roles(events, options), builder, says_space=True)
    return document_of("xml", builder.template(), encoded.encoded)


def xml_template(
    markup: str, options: DocumentOptions | None = None, limits: DocumentLimits | None = None
) -> Template:
    """A text with tags, of which there need be no outermost one, as a template.

    Raises:
        DocumentError: It is not well-formed, declares entities, or is beyond a limit.
    """
    limits, options = limits or DocumentLimits(), options or DocumentOptions()
    is_whole = markup.lstrip().startswith(("<?xml", "<!DOCTYPE"))
    wrapped = markup if is_whole else f"<{_WRAPPER}>{markup}</{_WRAPPER}>"
    events = list(xml_events(wrapped, "xml", limits))
    roles = list(mixed_roles(events, options))
    if not is_whole:
        events, roles = events[1:-1], roles[1:]
    builder = TemplateBuilder(kind="xml", limits=limits)
    read_xml(events, roles, builder, says_space=True)
    return builder.template()


def mixed_roles(events: Sequence[Event], options: DocumentOptions) -> Iterator[Role]:
    """The role of every element, in the order of their start tags."""
    has_text = _elements_with_text(events)
    opened: list[tuple[bool, bool]] = []  # of every open element: it is inline, it has text
    number = 0
    for event in events:
        if event.kind == "end":
            opened.pop()
        elif event.kind == "start":
            is_inside = not options.has_outline or (bool(opened) and any(opened[-1]))
            is_inline = event.name in options.inline_elements or (
                is_inside and event.name not in options.splitting_elements
            )
            opened.append((is_inline, has_text[number]))
            number += 1
            if event.name in options.ignored_elements or event.attributes.get("translate") == "no":
                yield "word" if is_inline else "skipped"
            else:
                yield "inline" if is_inline else "prose"


def _elements_with_text(events: Sequence[Event]) -> list[bool]:
    """For every element, in the order of their start tags, whether text stands directly in it."""
    has_text: list[bool] = []
    opened: list[int] = []
    for event in events:
        if event.kind == "start":
            opened.append(len(has_text))
            has_text.append(False)
        elif event.kind == "end":
            opened.pop()
        elif (event.text.strip() or event.kind == "reference") and opened:
            has_text[opened[-1]] = True
    return has_text


def read_xml(
    events: Iterable[Event],
    roles: Iterable[Role],
    builder: TemplateBuilder,
    *,
    is_prose: bool = True,
    is_folded: bool = True,
    says_space: bool = False,
    attributes: ReadAttributes | None = None,
    element: Callable[[Event], str] = lambda _: "",
) -> None:
    """Put events into a template.

    Args:
        events: Of a file, or of a part of one in which elements begin and end.
        roles: Of its elements, in the order of their start tags.
        builder: Where texts are put.
        is_prose: There is text outside of elements of that role.
        is_folded: White space has no meaning.
        says_space: It has one where an element's `xml:space` says so.
        attributes: Which are read by people, and are texts.
        element: Of the start tag of what begins or ends an element around words, which that is.
    """
    reader = _Reader(
        builder,
        iter(roles),
        num_prose=int(is_prose),
        is_folded=is_folded,
        says_space=says_space,
        attributes=attributes or {},
        element=element,
    )
    for event in events:
        reader.read(event)
    reader.close()


class _Reader:
    def __init__(
        self,
        builder: TemplateBuilder,
        roles: Iterator[Role],
        *,
        num_prose: int,
        is_folded: bool,
        says_space: bool,
        attributes: ReadAttributes,
        element: Callable[[Event], str],
    ) -> None:
        self._attributes = attributes
        self._element = element
        self._says_space = says_space
        self._is_folded = [is_folded]  # in the file, and in every open element
        self._builder = builder
        self._assembler = Assembler(builder)
        self._outer: list[tuple[Assembler, list[Piece], int]] = []
        self._roles = roles
        self._opened: list[Role] = []
        self._num_prose = num_prose
        self._copied: list[Event] = []
        self._copied_depth = 0

    def read(self, event: Event) -> None:
        """One event of the file."""
        role = self._role(event)
        is_copied = event.kind == "start" and role in _COPIED
        if self._copied_depth or is_copied:
            self._copy(event, role)
            return
        match event.kind:
            case "text" if event.is_language:
                place = LanguagePlace(original=event.raw)
                self._assembler.add(Token(kind="border", pieces=(place,)))
            case "text" if self._num_prose:
                token = Token(kind="text", pieces=(event.raw,), text=event.text)
                self._assembler.add(token, is_folded=self._is_folded[-1])
            case "reference" if self._num_prose:
                self._assembler.add(Token(kind="word", pieces=(event.raw,)))
            case "start" | "end" if role in ("inline", "unseen"):
                self._inline(event, is_apart=role == "inline")
            case "start" if role in ("aside", "inset"):
                self._begin_aside(event)
            case "end" if role in ("aside", "inset"):
                self._end_aside(event, "word" if role == "inset" else "lone")
            case "comment" if self._num_prose:
                self._assembler.add(Token(kind="lone", pieces=(event.raw,)))
            case _:
                self._num_prose += (role == "prose") * (1 if event.kind == "start" else -1)
                self._assembler.add(Token(kind="border", pieces=self._tag(event)))

    def _tag(self, event: Event) -> tuple[Piece, ...]:
        return tag_pieces(event, self._attributes, self._builder)

    def close(self) -> None:
        """The events have come to their end."""
        self._assembler.flush()

    def _role(self, event: Event) -> Role | None:
        """The role of the element that a tag begins or ends."""
        if event.kind == "start":
            self._opened.append(next(self._roles))
            said = event.attributes.get("xml:space") if self._says_space else None
            self._is_folded.append(self._is_folded[-1] if said is None else said != "preserve")
            return self._opened[-1]
        if event.kind == "end":
            self._is_folded.pop()
            return self._opened.pop()
        return None

    def _inline(self, event: Event, *, is_apart: bool) -> None:
        """A tag inside a sentence; one that closes itself, or stands for a space, is one token."""
        if event.raw.endswith("/>") or event.text:
            self._assembler.add(
                Token(
                    kind="lone",
                    pieces=self._tag(event),
                    text=event.text,
                    rest=event.rest,
                    is_apart=is_apart,
                )
            )
        elif event.raw:
            kind: TokenKind = "opening" if event.kind == "start" else "closing"
            self._assembler.add(Token(kind=kind, pieces=self._tag(event)))

    def _begin_aside(self, event: Event) -> None:
        """The sentence waits until what stands in it has been read."""
        self._outer.append((self._assembler, self._builder.pieces, self._num_prose))
        self._assembler = Assembler(self._builder)
        self._builder.pieces = [*self._tag(event)]
        self._num_prose = 0

    def _end_aside(self, event: Event, kind: TokenKind) -> None:
        self._assembler.flush()
        pieces = (*self._builder.pieces, event.raw)
        self._assembler, self._builder.pieces, self._num_prose = self._outer.pop()
        self._assembler.add(Token(kind=kind, pieces=pieces, is_apart=kind == "lone"))

    def _copy(self, event: Event, role: Role | None) -> None:
        """One more event of an element that is copied."""
        self._copied.append(event)
        self._copied_depth += (event.kind == "start") - (event.kind == "end")
        if self._copied_depth:
            return
        copied, self._copied = self._copied, []
        is_said = any(any(map(str.isalnum, one.raw)) for one in copied[1:-1])
        kind = "lone" if role == "word" and not is_said else _COPIED[role]
        raw, element = "".join(one.raw for one in copied), self._element(copied[0])
        self._assembler.add(
            Token(kind=kind, pieces=(raw,), is_apart=kind == "lone", element=element)
        )
