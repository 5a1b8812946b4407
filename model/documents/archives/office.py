"""Office Open XML (.docx, .pptx, .xlsx): text of paragraphs, whose runs have their formatting.

Owns where text is in these formats: in `t` elements, which stand in runs, which stand in paragraphs
or, in a workbook, in strings; in comments and in a document's own properties; in attributes that
describe pictures, shapes and tables, or tell where a link goes. What lies between two stretches of
a paragraph's text, the end of one run and the beginning of the next with its formatting, is one
inline code; where the formatting is the same, as editors leave it by the dozen, it is none. Fields,
text that was deleted or moved away, formulas and phonetic readings stay; names of a table's columns
too, because a workbook has them twice. Which parts have text, their types say.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from model.documents.archives.archive import Archive, archived_document
from model.documents.archives.package import part_types
from model.documents.archives.page_texts import PAGE_TEXTS, add_page_text
from model.documents.markup.xml_attributes import tag_pieces
from model.documents.markup.xml_events import Event, xml_events
from model.documents.notation.assembly import Assembler, Token
from model.documents.notation.document import Document, DocumentOptions
from model.documents.notation.limits import DocumentLimits
from model.documents.notation.template import Piece, Template, TemplateBuilder
from model.errors import DocumentError

_OWN_STRING = b"inlineStr"
_TITLES = frozenset({"title", "subject", "description", "keywords"})
"""Of the properties of a document those that people write."""
_HAS_PAGE_TEXT = re.compile(r"<(?:[\w.-]+:)?(?:odd|even|first)(?:Header|Footer)|\stooltip=")
_CELLS_NAME = "sheetData"
_LONGEST_PREFIX = 64
_END_OF_CELLS = re.compile(
    rf"<(?:/(?:[^\s<>/:]{{1,{_LONGEST_PREFIX}}}:)?{_CELLS_NAME}\s*+>"
    rf"|(?:[^\s<>/:]{{1,{_LONGEST_PREFIX}}}:)?{_CELLS_NAME}\s*+/>)",
    re.ASCII,
)
_END_TAG = re.compile(r"</([^\s<>/]++)\s*+>\s*+\Z", re.ASCII)
_BORDERS = (
    _TITLES
    | PAGE_TEXTS
    | frozenset(
        """
    p si is text comment br cr tab ptab txbxContent tbl tc pt tx
    """.split()  # noqa: SIM905  # one list a line
    )
)
# Fields, what was deleted or is somewhere else now, readings, formulas, numbers of a chart.
_SKIPPED = frozenset(
    {"fld", "instrText", "delText", "moveFrom", "rPh", "rt", "oMath", "numCache", "numLit"}
)
_CELLS = frozenset({"strCache", "multiLvlStrCache"})
_CELLS_IN_CHARTS = {"docx": frozenset[str](), "pptx": frozenset[str](), "xlsx": _CELLS}
"""What a chart in a workbook shows of its cells, and a program reads there anew."""
_BETWEEN_RUNS = frozenset({"t", "r", "proofErr"})
_PROPERTIES = "rPr"
_DESCRIBED = frozenset({"descr", "title"})
_VML_SHAPES = (
    "shape",
    "rect",
    "roundrect",
    "oval",
    "line",
    "polyline",
    "arc",
    "curve",
    "image",
    "group",
)
_ATTRIBUTES = {
    "cNvPr": _DESCRIBED,
    "docPr": _DESCRIBED,
    "tblCaption": {"val"},
    "tblDescription": {"val"},
    "hyperlink": {"tooltip"},
    "hlinkClick": {"tooltip"},
    "hlinkHover": {"tooltip"},
    **{name: {"alt"} for name in _VML_SHAPES},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Format:
    """Differences of the three formats.

    Attributes:
        main: Types of a part without which it is not of the kind.
        parts: Types of all parts with text.
    """

    main: re.Pattern[str]
    parts: re.Pattern[str]


_OPEN = r"application/vnd\.openxmlformats-officedocument\."
_OWN = r"application/vnd\.ms-"
_TITLED = re.compile(r"application/vnd\.openxmlformats-package\.core-properties\+xml")
_CHART = re.compile(rf"{_OPEN}drawingml\.chart\+xml")
_DRAWN = (
    rf"{_CHART.pattern}|{_OPEN}drawingml\.(?:diagramData|chartshapes)\+xml"
    rf"|{_OWN}office\.drawingml\.diagramDrawing\+xml|{_TITLED.pattern}"
)
_MASTER = re.compile(rf"{_OPEN}presentationml\.slide(?:Master|Layout)\+xml")
_WORD = rf"(?:{_OPEN}wordprocessingml|{_OWN}word)\.[A-Za-z.]+\.main\+xml"
_POWER_POINT = rf"(?:{_OPEN}presentationml|{_OWN}powerpoint)\.[A-Za-z.]+\.main\+xml"
_EXCEL = rf"(?:{_OPEN}spreadsheetml|{_OWN}excel)\.[A-Za-z.]+\.main\+xml"
_THREADS = re.compile(rf"{_OWN}excel\.threadedcomments\+xml")
_SHEET = re.compile(rf"{_OPEN}spreadsheetml\.worksheet\+xml")
_TABLE = re.compile(rf"{_OPEN}spreadsheetml\.table\+xml")
_FORMATS = {
    "docx": _Format(
        main=re.compile(_WORD),
        parts=re.compile(
            rf"{_WORD}|{_DRAWN}"
            rf"|{_OPEN}wordprocessingml\.(?:header|footer|footnotes|endnotes|comments)\+xml"
        ),
    ),
    "pptx": _Format(
        main=re.compile(_POWER_POINT),
        parts=re.compile(
            rf"{_DRAWN}|{_OPEN}presentationml\.(?:slide|notesSlide|comments)\+xml"
            rf"|{_MASTER.pattern}|{_OWN}powerpoint\.comments\+xml"
        ),
    ),
    "xlsx": _Format(
        main=re.compile(_EXCEL),
        parts=re.compile(
            rf"{_SHEET.pattern}|{_DRAWN}|{_OPEN}drawing\+xml"
            rf"|{_OPEN}spreadsheetml\.(?:sharedStrings|comments)\+xml|{_THREADS.pattern}"
        ),
    ),
}
_KEEPS_SPACE = re.compile(rf"{_WORD}|{_OPEN}(?:wordprocessingml|spreadsheetml)\..+")
"""Parts whose text has to say that white space at its ends is meant; drawings must not."""
_WORKBOOK = re.compile(rf"{_OPEN}spreadsheetml\..+")
"""Parts that write characters which XML has not as _x0007_."""
_HAS_BARE_TEXT = re.compile(rf"{_OPEN}presentationml\.comments\+xml|{_THREADS.pattern}")
"""Parts whose `text` elements have no runs."""
_DRAWN_TEXT = "a:t"
_CODE = re.compile(r"_x((?!D[89A-F])[0-9A-F]{4})_", re.IGNORECASE)
_LIKE_CODE = re.compile(r"_(?=x[0-9A-Fa-f]{4}_)")
_NEEDS_CODE = re.compile(r"[\x00-\x08\x0b-\x1f\ufffe\uffff]")


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
    archive, layout = Archive(kind, data, limits), _FORMATS[kind]
    types = part_types(kind, archive, limits)
    if not any(map(layout.main.fullmatch, types.values())):
        raise DocumentError(kind, "is an archive without the parts of this format")
    tables = [name for name, said in types.items() if _TABLE.fullmatch(said)]
    columns = _column_names(kind, archive, tables, limits)

    def read(name: str, text: str) -> Template:
        builder = TemplateBuilder(kind=kind, limits=limits, kept=columns)
        reader = _RunReader(builder, types[name], skipped=_SKIPPED | _CELLS_IN_CHARTS[kind])
        parted = _behind_cells(text) if name in numbers else None
        builder.pieces, text = ([], text) if parted is None else parted
        events = _without_kept(types[name], xml_events(text, kind, limits))
        for event in islice(events, int(parted is not None), None):
            reader.read(event)
        reader.close()
        return builder.template()

    names = [name for name, said in types.items() if layout.parts.fullmatch(said)]
    numbers, unread = set(), set()
    for name in names:
        part = archive.read(name) if _SHEET.fullmatch(types[name]) else _OWN_STRING
        if _OWN_STRING not in part:  # a large table of cells that have no text of their own
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
    kind: str, archive: Archive, tables: Sequence[str], limits: DocumentLimits
) -> frozenset[str]:
    """Names of columns of all tables in a workbook."""
    return frozenset(
        _CODE.sub(_meant, event.attributes.get("name", ""))
        for name in tables
        for event in xml_events(archive.text(name).text, kind, limits)
        if event.kind == "start" and event.local_name == "tableColumn"
    )


def _text_names(part_type: str) -> frozenset[str]:
    """Names of elements that hold text, in a part."""
    if _TITLED.fullmatch(part_type):
        return _TITLES
    if _HAS_BARE_TEXT.fullmatch(part_type):
        return frozenset({"t", "text"})
    return frozenset({"t", "v"} if _CHART.fullmatch(part_type) else {"t"})


def _without_kept(part_type: str, events: Iterator[Event]) -> Iterator[Event]:
    """Events without the text of what nobody sees, or what has places in it that people are at.

    Of masters and layouts a placeholder's text is shown by no slide; a comment that mentions people
    says with numbers where.
    """
    names = ("sp", "ph") if _MASTER.fullmatch(part_type) else ("threadedComment", "mention")
    if not any(one.fullmatch(part_type) for one in (_MASTER, _THREADS)):
        yield from events
        return
    held: list[Event] = []
    for event in events:
        held.append(event)
        if event.local_name == names[0] and event.kind == "start":
            yield from held[:-1]
            held = [event]
        elif event.local_name == names[0] and event.kind == "end":
            is_kept = any(one.local_name == names[1] for one in held)
            for one in held:
                yield replace(one, kind="other") if is_kept and one.kind == "text" else one
            held = []
    yield from held


class _RunReader:
    """From events of a part to tokens: text, and what is between."""

    def __init__(
        self, builder: TemplateBuilder, part_type: str, *, skipped: frozenset[str]
    ) -> None:
        self._has_codes = _WORKBOOK.fullmatch(part_type) is not None
        self._builder = builder
        self._assembler = Assembler(builder, coded=_coded if self._has_codes else str)
        self._text_names = _text_names(part_type)
        self._skipped = skipped
        self._keeps_space = _KEEPS_SPACE.fullmatch(part_type) is not None
        self._between: list[Event] = []
        self._properties = ""
        self._is_in_text = False
        self._is_page_text = False
        self._num_skipped = 0

    def read(self, event: Event) -> None:
        """One event of the part."""
        name = event.local_name
        if name in self._skipped:
            self._num_skipped += (event.kind == "start") - (event.kind == "end")
        if name in PAGE_TEXTS:
            self._is_page_text = event.kind == "start"
        if event.kind == "text" and self._is_page_text:
            add_page_text(event.raw, self._builder)
            return
        if event.kind == "text" and self._is_in_text and self._num_skipped == 0:
            self._end_between()
            text = _CODE.sub(_meant, event.text) if self._has_codes else event.text
            token = Token(kind="text", pieces=(event.raw,), text=text)
            self._assembler.add(token, is_folded=False)
            return
        if name in self._text_names and event.kind in ("start", "end"):
            self._is_in_text = event.kind == "start"
            if self._is_in_text and self._num_skipped == 0:
                event = self._spaced(event)
        self._between.append(event)
        if name in _BORDERS and event.kind in ("start", "end"):
            self.close()

    def close(self) -> None:
        """End the text that was begun."""
        self._assembler.add(Token(kind="border", pieces=self._pieces()))
        self._between = []
        self._properties = ""

    def _end_between(self) -> None:
        """What lies between two stretches of text, or before the first."""
        if not self._between:
            return
        names, properties = _parted(self._between)
        properties = properties if "r" in names else self._properties
        is_same = properties == self._properties and names <= _BETWEEN_RUNS
        token = Token(kind="lone", pieces=self._pieces(), is_removable=is_same)
        self._assembler.add(token)
        self._between = []
        self._properties = properties

    def _pieces(self) -> tuple[Piece, ...]:
        found: list[Piece] = []
        for event in self._between:
            found += tag_pieces(event, _ATTRIBUTES, self._builder)
        return tuple(found)

    def _spaced(self, event: Event) -> Event:
        """A beginning of text that says that its white space is meant."""
        is_own = self._keeps_space and event.name != _DRAWN_TEXT
        if not is_own or "xml:space" in event.attributes or event.raw.endswith("/>"):
            return event
        return replace(event, raw=f'{event.raw[:-1]} xml:space="preserve">')


def _meant(code: re.Match[str]) -> str:
    return chr(int(code[1], 16))


def _coded(text: str) -> str:
    """A text with codes for what XML has not, and for what would be read as a code."""
    text = _LIKE_CODE.sub("_x005F_", text)
    return _NEEDS_CODE.sub(lambda found: f"_x{ord(found[0]):04X}_", text)


def _parted(events: Sequence[Event]) -> tuple[frozenset[str], str]:
    """Names of elements between two runs, and the formatting of the later, as it is written."""
    names: set[str] = set()
    properties: list[str] = []
    is_inside = False
    for event in events:
        name = event.local_name
        if name == "r" and event.kind == "start":
            properties = []
        is_own = name == _PROPERTIES and event.kind in ("start", "end")
        if is_inside or is_own:
            properties.append(event.raw)
        elif event.kind != "text" or event.raw.strip():
            names.add(name or event.kind)
        is_inside = event.kind == "start" if is_own else is_inside
    return frozenset(names), "".join(properties)
