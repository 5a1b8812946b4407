"""OpenDocument (.odt, .odp, .ods): text of paragraphs and headings, with spans and links inside.

Owns which elements are inside a sentence. Footnotes, frames and comments are texts of their own,
and the sentence that they stand in is one. Fields (page numbers, dates, references) are words that
stay, as formulas are; deleted text stays. So does what a cell of a workbook shows of a formula, a
number or a date: programs write that anew. A cell that says its text twice says it once in a
translation. A tag that stands for spaces is a space where two words have no other. Descriptions of
pictures, charts and the document's own properties have texts too.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from model.documents.archives.archive import Archive, archived_document
from model.documents.markup.xml import Role, read_xml
from model.documents.markup.xml_events import Event, xml_events
from model.documents.notation.document import Document, DocumentOptions
from model.documents.notation.limits import DocumentLimits
from model.documents.notation.template import Template, TemplateBuilder
from model.errors import DocumentError

_PARTS = ("content.xml", "styles.xml")
_META = "meta.xml"
_OBJECT = re.compile(r"[^/]+/content\.xml")
"""A chart, or another document in this one."""
_MANIFEST = "META-INF/manifest.xml"
_PARAGRAPHS = frozenset({"text:p", "text:h"})
_PROSE = _PARAGRAPHS | frozenset(
    """
    svg:title svg:desc presentation:header-decl presentation:footer-decl text:index-title-template
    dc:title dc:subject dc:description meta:keyword
    """.split()  # noqa: SIM905  # one list a line
)
_INLINE = frozenset(
    """
    text:span text:a text:s text:bookmark text:bookmark-start text:bookmark-end text:meta text:ruby
    text:ruby-base text:reference-mark text:reference-mark-start text:reference-mark-end
    text:soft-page-break text:change text:change-start text:change-end office:annotation-end
    text:toc-mark text:toc-mark-start text:toc-mark-end text:alphabetical-index-mark text:text-input
    """.split()  # noqa: SIM905  # one list a line
)
# Of the text's own elements those that hold paragraphs.
_BORDERS = frozenset(
    """
    text:tab text:line-break text:note-body text:section text:list text:list-item
    text:list-header text:numbered-paragraph text:table-of-content text:index-body text:index-title
    text:illustration-index text:table-index text:object-index text:user-index text:bibliography
    text:alphabetical-index
    """.split()  # noqa: SIM905
)
_SKIPPED = frozenset(
    {"text:tracked-changes", "table:tracked-changes", "text:note-citation", "office:scripts"}
)
# What is anchored in a sentence and is no part of it, but for formulas. Elements of other programs
# hold words of the sentence itself, as content controls (loext:) do.
_ASIDES = frozenset({"text:note", "office:annotation"})
_ASIDE_PREFIXES = ("draw:", "dr3d:", "math:", "table:", "form:", "presentation:", "chart:", "svg:")
_OBJECT_IN_FRAME = "draw:object"
# Not what is chosen from lists: a form sends it.
_LABELLED = ("button", "checkbox", "radio", "fixed-text", "frame")
_ATTRIBUTES = {
    "a": {"title"},
    **{name: {"title"} for name in ("help-message", "error-message")},
    **{name: {"label", "title"} for name in _LABELLED},
}
"""What is told of a link or of a cell, and what stands on buttons."""
_CELLS = frozenset({"table:table-cell", "table:covered-table-cell"})
_FORMULA, _STRING = "table:formula", "office:string-value"
_VALUES = (_FORMULA, _STRING)
_STRING_VALUE = re.compile(r"\s+office:string-value\s*=\s*(?:\"[^\"]*+\"|'[^']*+')")
_SPACES, _NUMBER_OF_SPACES = "text:s", "text:c"
_FEW = re.compile(r"[1-9][0-9]{0,3}", re.ASCII)
_NUMBER_IN_TAG = re.compile(r"(\stext:c\s*=\s*[\"'])[0-9]+([\"'])")
_IN_CELLS = frozenset({"office:annotation", "draw:text-box", "draw:custom-shape"})
"""What stands in a cell and is no part of what it shows."""


def open_odt(data: bytes, _options: DocumentOptions, limits: DocumentLimits) -> Document:
    """A text document.

    Raises:
        DocumentError: It is no archive, encrypted, damaged, or beyond a limit.
    """
    return _open("odt", data, limits)


def open_odp(data: bytes, _options: DocumentOptions, limits: DocumentLimits) -> Document:
    """A presentation; errors as of `open_odt`."""
    return _open("odp", data, limits)


def open_ods(data: bytes, _options: DocumentOptions, limits: DocumentLimits) -> Document:
    """A workbook; errors as of `open_odt`."""
    return _open("ods", data, limits)


def _open(kind: str, data: bytes, limits: DocumentLimits) -> Document:
    archive = Archive(kind, data, limits)
    if not any(name in archive.names for name in _PARTS):  # a template may have styles alone
        raise DocumentError(kind, "is an archive without the parts of this format")
    if _MANIFEST in archive.names and "encryption-data" in archive.text(_MANIFEST).text:
        raise DocumentError(kind, "is encrypted")

    def read(name: str, text: str) -> Template:
        events = _spaced(_said_once(list(xml_events(text, kind, limits))))
        builder = TemplateBuilder(kind=kind, limits=limits)
        is_object = _OBJECT.fullmatch(name) is not None
        roles = _workbook_roles(events) if kind == "ods" or is_object else _roles(events)
        if is_object:
            roles = _roles_of_paragraphs(events, roles)
        read_xml(events, roles, builder, is_prose=False, attributes=_ATTRIBUTES)
        return builder.template()

    objects = filter(_OBJECT.fullmatch, archive.names)
    names = [name for name in (*_PARTS, *objects, _META) if name in archive.names]
    return archived_document(kind, archive, names, limits, read)


def _said_once(events: Sequence[Event]) -> list[Event]:
    """Events where a cell says what it holds in its paragraphs alone.

    Some programs write it into an attribute as well, which is what is shown where both differ.
    """
    found = list(events)
    cells: list[tuple[int, list[str]]] = []
    num_beside = 0
    for place, event in enumerate(events):
        if event.name in _IN_CELLS:
            num_beside += (event.kind == "start") - (event.kind == "end")
        if event.kind == "text" and cells and not num_beside:
            cells[-1][1].append(event.text)
        if event.name not in _CELLS:
            continue
        if event.kind == "start":
            cells.append((place, []))
            continue
        start, said = cells.pop()
        cell = events[start]
        value = None if _FORMULA in cell.attributes else cell.attributes.get(_STRING)
        if value is not None and "".join(value.split()) == "".join("".join(said).split()):
            rest = {name: one for name, one in cell.attributes.items() if name != _STRING}
            raw = _STRING_VALUE.sub("", cell.raw, count=1)
            found[start] = replace(cell, raw=raw, attributes=rest)
    return found


def _spaced(events: Sequence[Event]) -> list[Event]:
    """Events whose tags that stand for spaces say so."""
    found = list(events)
    for place, event in enumerate(events):
        number = event.attributes.get(_NUMBER_OF_SPACES, "1")
        if event.name != _SPACES or event.kind != "start" or not _FEW.fullmatch(number):
            continue
        end = events[place + 1]
        if end.kind != "end":
            continue
        fewer = _NUMBER_IN_TAG.sub(rf"\g<1>{int(number) - 1}\g<2>", event.raw) + end.raw
        rest = fewer if int(number) > 1 else ""
        found[place] = replace(event, raw=event.raw + end.raw, text=" ", rest=rest)
        found[place + 1] = replace(end, raw="")
    return found


def _roles(events: Sequence[Event]) -> Iterator[Role]:
    is_inside = [False]
    starts = [event for event in events if event.kind == "start"]
    place = 0
    for event in events:
        if event.kind == "end":
            is_inside.pop()
        elif event.kind == "start":
            place += 1
            role = _role(event.name, is_inside=is_inside[-1])
            if role == "aside" and _is_inset(starts[place - 1 : place + 1]):
                role = "inset"
            is_own = role in ("aside", "inset")
            is_inside.append(role == "prose" or (not is_own and is_inside[-1]))
            yield role


def _is_inset(starts: Sequence[Event]) -> bool:
    """Whether a frame stands among letters, as they do, and has an object, as formulas are."""
    anchor = starts[0].attributes.get("text:anchor-type")
    return anchor == "as-char" and starts[-1].name == _OBJECT_IN_FRAME


def _workbook_roles(events: Sequence[Event]) -> Iterator[Role]:
    """Roles where paragraphs of cells that do not hold a text are left as they are."""
    starts = [event for event in events if event.kind in ("start", "end")]
    roles = _roles(events)
    computed = [False]
    for event in starts:
        is_place = event.name in _CELLS or event.name in _IN_CELLS
        if event.kind == "end":
            del computed[len(computed) - is_place :]
            continue
        if is_place:
            computed.append(event.name in _CELLS and not _holds_text(event))
        role = next(roles)
        yield "skipped" if computed[-1] and event.name in _PARAGRAPHS else role


def _roles_of_paragraphs(events: Iterable[Event], roles: Iterable[Role]) -> Iterator[Role]:
    """Roles where paragraphs alone have text: in charts, descriptions are ranges of cells."""
    starts = (event for event in events if event.kind == "start")
    for event, role in zip(starts, roles, strict=True):
        is_text = role == "prose" and event.name not in _PARAGRAPHS
        yield "border" if is_text else role


def _holds_text(cell: Event) -> bool:
    kind = cell.attributes.get("office:value-type", "string")
    return kind == "string" and not any(name in cell.attributes for name in _VALUES)


def _role(name: str, *, is_inside: bool) -> Role:
    if name in _PROSE:
        return "prose"
    if name in _SKIPPED:
        return "skipped"
    if not is_inside or name in _BORDERS:
        return "border"
    if name in _INLINE:
        return "unseen"
    if name in _ASIDES or name.startswith(_ASIDE_PREFIXES):
        return "aside"
    return "word" if name.startswith("text:") else "inline"
