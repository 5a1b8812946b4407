"""EPUB: the pages that the package lists, read as HTML is, contents, title and language.

Owns where these are. Pages are XML, so Expat finds their tags; which of them are inside a sentence
is what HTML says (`model.documents.markup.html`). A page may be a drawing (SVG), which is read as
any XML is; drawings inside of pages are pictures, and stay.
"""

import posixpath
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from urllib.parse import unquote

from model.documents.archives.archive import Archive, archived_document
from model.documents.markup.html import read_page
from model.documents.markup.html_elements import BLOCK_ELEMENTS, VOID_ELEMENTS
from model.documents.markup.html_events import Event as PageEvent
from model.documents.markup.xml import Role, mixed_roles, read_xml
from model.documents.markup.xml_events import Event, xml_events
from model.documents.notation.assembly import xml_unescape
from model.documents.notation.document import Document, DocumentOptions
from model.documents.notation.limits import DocumentLimits
from model.documents.notation.template import Template, TemplateBuilder
from model.errors import DocumentError

_CONTAINER = "META-INF/container.xml"
_ENCRYPTION = "META-INF/encryption.xml"
_PAGE = "application/xhtml+xml"
_CONTENTS = "application/x-dtbncx+xml"
_DRAWING = "image/svg+xml"
_NO_TEXT_OF_DRAWINGS = frozenset(
    f"{prefix}{name}" for prefix in ("", "svg:") for name in ("style", "script", "metadata")
)
_LANGUAGE = "dc:language"
_TITLES = frozenset({"dc:title", "dc:description"})


def open_epub(data: bytes, options: DocumentOptions, limits: DocumentLimits) -> Document:
    """A book.

    Raises:
        DocumentError: It is no archive, encrypted, damaged, no EPUB, or beyond a limit.
    """
    archive = Archive("epub", data, limits)
    package = _package(archive, limits)
    kinds = _members(archive, package, limits)
    names = [package, *(name for name in kinds if name in archive.names and name != package)]
    if not _encrypted(archive, limits).isdisjoint(names):
        raise DocumentError("epub", "is encrypted")

    def read(name: str, text: str) -> Template:
        events = xml_events(text, "epub", limits)
        if kinds.get(name) == _PAGE:
            page = (_page_event(event) for event in events if event.raw)
            return read_page(page, "epub", options, limits, unescape=xml_unescape, is_xml=True)
        builder = TemplateBuilder(kind="epub", limits=limits)
        if kinds.get(name) == _DRAWING:
            found = list(events)
            ignored = options.ignored_elements | _NO_TEXT_OF_DRAWINGS
            roles = mixed_roles(found, replace(options, ignored_elements=ignored))
        else:
            found = _with_language(list(events))
            roles = _roles(found)
        read_xml(found, roles, builder, is_prose=False)
        return builder.template()

    return archived_document("epub", archive, names, limits, read)


def _package(archive: Archive, limits: DocumentLimits) -> str:
    """The name of the member that lists all others."""
    for event in archive.events(_CONTAINER, limits):
        if event.kind == "start" and event.local_name == "rootfile":
            return event.attributes.get("full-path", "")
    raise DocumentError("epub", f"names no package in {_CONTAINER}")


def _encrypted(archive: Archive, limits: DocumentLimits) -> frozenset[str]:
    """Names of members that cannot be read; of many books only fonts are."""
    if _ENCRYPTION not in archive.names:
        return frozenset()
    return frozenset(
        unquote(event.attributes.get("URI", ""))
        for event in archive.events(_ENCRYPTION, limits)
        if event.kind == "start" and event.local_name == "CipherReference"
    )


def _members(archive: Archive, package: str, limits: DocumentLimits) -> dict[str, str]:
    """Names of pages and tables of contents, with their media types."""
    folder = posixpath.dirname(package)
    listed: list[tuple[str, str, str]] = []
    read_in_order: set[str] = set()
    for event in archive.events(package, limits):
        said = event.attributes
        if event.local_name == "item":
            href = unquote(said.get("href", "").partition("#")[0])
            name = posixpath.normpath(posixpath.join(folder, href))
            listed.append((said.get("id", ""), name, said.get("media-type", "")))
        elif event.local_name == "itemref":
            read_in_order.add(said.get("idref", ""))
    return {
        name: media_type
        for own_id, name, media_type in listed
        if media_type in (_PAGE, _CONTENTS) or (media_type == _DRAWING and own_id in read_in_order)
    }


def _with_language(events: Sequence[Event]) -> list[Event]:
    """The events of a package, in which the language of the book is one if it has only one."""
    places = [
        place
        for place, (before, event) in enumerate(pairwise(events), start=1)
        if before.kind == "start" and before.name == _LANGUAGE and event.kind == "text"
    ]
    found = list(events)
    if len(places) == 1:
        found[places[0]] = replace(found[places[0]], is_language=True)
    return found


def _roles(events: list[Event]) -> Iterator[Role]:
    """Of a package the title is text, of a table of contents whatever it calls text."""
    for event in events:
        if event.kind == "start":
            is_text = event.name in _TITLES or event.local_name == "text"
            yield "prose" if is_text else "border"


def _page_event(event: Event) -> PageEvent:
    """An event of XML as one of a page.

    An element that closes itself is what it is in XML: it has no content. A reference that nothing
    here knows is kept as a comment is.
    """
    if event.kind == "reference":
        return PageEvent(kind="comment", raw=event.raw)
    name = event.local_name.lower()
    attributes = tuple((key.lower(), value) for key, value in event.attributes.items())
    is_empty = event.kind == "start" and event.raw.endswith("/>")
    if is_empty and name not in VOID_ELEMENTS:
        return PageEvent(kind="other" if name in BLOCK_ELEMENTS else "comment", raw=event.raw)
    return PageEvent(
        kind=event.kind, raw=event.raw, name=name, attributes=attributes, text=event.text
    )
