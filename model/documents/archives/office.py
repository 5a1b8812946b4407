"""Office Open XML (.docx, .pptx, .xlsx): text of paragraphs, whose runs have their formatting.

Owns where text is in these formats: in `t` elements, which stand in runs, which stand in paragraphs
or, in a workbook, in strings; in comments and in a document's own properties; in attributes that
describe pictures, shapes and tables, or tell where a link goes. Text that was deleted or moved,
formulas, what fields of a slide show and phonetic readings stay; names of columns of tables and
of fields of pivot tables too, because a workbook has them twice. Which parts have text, their types
say; what becomes an inline code, `model.documents.archives.office_reader` and
`model.documents.archives.run_tokens`.
"""

import re
from collections.abc import Iterator, Mapping
from itertools import chain, islice

from model.documents.archives.archive import Archive, archived_document
from model.documents.archives.office_reader import PartReader, without_codes_of_cells, without_kept
from model.documents.archives.office_types import FORMATS, PIVOT_CACHE, SHEET, TABLE
from model.documents.archives.package import part_types
from model.documents.markup.xml_events import Event, xml_events
from model.documents.notation.assembly import SPACES
from model.documents.notation.document import Document, DocumentOptions
from model.documents.notation.limits import DocumentLimits
from model.documents.notation.template import Piece, Template, TemplateBuilder
from model.errors import DocumentError

_OWN_STRINGS = re.compile(
    rb"inlineStr|<(?:[\w.-]+:)?c\s(?=[^<>]*?\bt\s*+=\s*+[\"']str[\"'])[^<>]*+>"
    rb"\s*+<(?:[\w.-]+:)?v[\s>]"
)
"""Cells with a text of their own: as an element, or as a value that no formula gives.

A tag is read twice at most, however often it says `t="str"`.
"""
_HAS_PAGE_TEXT = re.compile(r"<(?:[\w.-]+:)?(?:odd|even|first)(?:Header|Footer)|\stooltip=")
_CACHE_FIELD = re.compile(r"(<(?:[\w.-]+:)?cacheField\s(?:[^<>\"']++|\"[^<\"]*+\"|'[^<']*+')*+)>")
_CELLS_NAME = "sheetData"
_LONGEST_PREFIX = 64
_END_OF_CELLS = re.compile(
    rf"<(?:/(?:[^\s<>/:]{{1,{_LONGEST_PREFIX}}}:)?{_CELLS_NAME}\s*+>"
    rf"|(?:[^\s<>/:]{{1,{_LONGEST_PREFIX}}}:)?{_CELLS_NAME}\s*+/>)",
    re.ASCII,
)
_END_TAG = re.compile(r"</([^\s<>/]++)\s*+>\s*+\Z", re.ASCII)


def open_docx(data: bytes, _options: DocumentOptions, limits: DocumentLimits) -> Document:
    """A text document; errors as of `open_xlsx`."""
    return _open("docx", data, limits)


def open_pptx(data: bytes, _options: DocumentOptions, limits: DocumentLimits) -> Document:
    """A presentation; errors as of `open_xlsx`."""
    return _open("pptx", data, limits)


def open_xlsx(data: bytes, _options: DocumentOptions, limits: DocumentLimits) -> Document:
    """A workbook.

    Raises:
        DocumentError: It is no archive, encrypted, damaged, of another format, or beyond a limit.
    """
    return _open("xlsx", data, limits)


def _open(kind: str, data: bytes, limits: DocumentLimits) -> Document:
    archive, layout = Archive(kind, data, limits), FORMATS[kind]
    types = part_types(kind, archive, limits)
    if not any(map(layout.main.fullmatch, types.values())):
        raise DocumentError(kind, "is an archive without the parts of this format")
    columns = _column_names(archive, types, limits)

    def read(name: str, text: str) -> Template:
        builder = TemplateBuilder(kind=kind, limits=limits, kept=columns)
        reader = PartReader(builder, types[name])
        parted = _behind_cells(text) if name in numbers else None
        builder.pieces, text = ([], text) if parted is None else parted
        events = without_kept(types[name], xml_events(text, kind, limits))
        for event in islice(events, int(parted is not None), None):
            reader.read(event)
        reader.close()
        return builder.template()

    names = [name for name, said in types.items() if layout.parts.fullmatch(said)]
    numbers, unread = set(), set()
    for name in names:
        part = archive.read(name) if SHEET.fullmatch(types[name]) else None
        # A large table of cells that have no text of their own is not read.
        if part is not None and _OWN_STRINGS.search(part) is None:
            numbers.add(name)
            unread |= set() if _has_page_text(part) else {name}
    if archive.size([name for name in names if name not in unread]) > limits.max_read_bytes:
        unread = numbers
    names = [name for name in names if name not in unread]
    return archived_document(kind, archive, names, limits, read)


def _has_page_text(sheet: bytes) -> bool:
    """Whether words may stand behind the cells of a sheet, and it can be parted there."""
    text = sheet.decode("latin-1")  # tags are ASCII in every encoding that has them here
    found = _end_of_cells(text)
    return found is not None and _HAS_PAGE_TEXT.search(text, found[0]) is not None


def _behind_cells(text: str) -> tuple[list[Piece], str] | None:
    """A sheet as what is before the end of its cells, and the rest as an element."""
    found = _end_of_cells(text)
    if found is None:
        return None
    place, name = found
    return [text[:place]], f"<{name}>{text[place:]}"


def _end_of_cells(text: str) -> tuple[int, str] | None:
    """Where the cells of a sheet end, and the element that ends the sheet.

    None where there are no cells, or something else than the end of an element ends the sheet.
    """
    found, at = None, len(text)
    while found is None and (at := text.rfind(_CELLS_NAME, 0, at)) >= 0:
        # No further back: many such words would take quadratic time.
        begin = text.rfind("<", max(0, at - _LONGEST_PREFIX - len("</:")), at)
        found = _END_OF_CELLS.match(text, begin) if begin >= 0 else None
    last = text.rfind("</")
    end = _END_TAG.match(text, last) if found is not None and found.end() <= last else None
    return None if found is None or end is None else (found.end(), end[1])


def _column_names(
    archive: Archive, types: Mapping[str, str], limits: DocumentLimits
) -> frozenset[str]:
    """Names of columns that cells say too, as texts are: without white space around."""
    tables = [name for name, said in types.items() if TABLE.fullmatch(said)]
    caches = [name for name, said in types.items() if PIVOT_CACHE.fullmatch(said)]
    events = chain(
        chain.from_iterable(archive.events(name, limits) for name in tables),
        chain.from_iterable(_cache_fields(archive, name, limits) for name in caches),
    )
    return frozenset(
        without_codes_of_cells(event.attributes.get("name", "")).strip(SPACES)
        for event in events
        if event.kind == "start" and event.local_name in ("tableColumn", "cacheField")
    )


def _cache_fields(archive: Archive, name: str, limits: DocumentLimits) -> Iterator[Event]:
    """The fields of a pivot table's cache, without their values, which may be any number."""
    tags = (found[1] for found in _CACHE_FIELD.finditer(archive.text(name).text))
    fields = "".join(f"{tag.removesuffix('/')}/>" for tag in tags)
    return xml_events(f"<fields>{fields}</fields>", "xlsx", limits)
