"""Texts of one part of Office Open XML: from its events to tokens of sentences.

Owns which elements hold text, which end a sentence, and which stay. Formatting and links are pairs
of inline codes (`model.documents.archives.run_tokens`). Where there are none, or they cannot be
pairs, what lies between two stretches of text, the end of one run and the beginning of the next, is
one code; where the formatting is the same, as editors leave it by the dozen, it is none.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from operator import attrgetter

from model.documents.archives.nodes import PROPERTIES, RUN, Run
from model.documents.archives.office_types import (
    CELLS,
    CHART,
    HAS_BARE_TEXT,
    KEEPS_SPACE,
    MASTER,
    NEW_CHART,
    SHEET,
    THREADS,
    TITLED,
    WORKBOOK,
)
from model.documents.archives.page_texts import PAGE_TEXTS, add_page_text
from model.documents.archives.run_tokens import run_tokens
from model.documents.archives.runs import Stretch, is_apart, seen_formatting
from model.documents.markup.xml_attributes import tag_pieces
from model.documents.markup.xml_events import Event
from model.documents.notation.assembly import Assembler, Token
from model.documents.notation.template import Piece, TemplateBuilder

_TITLES = frozenset({"title", "subject", "description", "keywords"})
"""Of the properties of a document those that people write."""
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
_CELLS_IN_CHARTS = frozenset({"strCache", "multiLvlStrCache", "strDim"})
"""What a chart in a workbook shows of its cells, and a program reads there anew."""
_CELL, _FORMULA, _VALUE, _CELL_TYPE, _STRING = "c", "f", "v", "t", "str"
"""A cell of a sheet that holds a string as its value, which stays where a formula gives it."""
_MOST_IN_CELL = 32_767
"""Characters that Excel reads of a cell; it repairs a file that has more."""
_BETWEEN_RUNS = frozenset({"t", "r", "proofErr"})
_HYPHENS = {"noBreakHyphen": "\u2011", "softHyphen": ""}
"""Elements of a run that are characters; of the second nothing is read, as of the character."""
_PARAGRAPH = "p"
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
    "textpath": {"string"},
    **{name: {"alt"} for name in _VML_SHAPES},
}
_DRAWN_TEXT = "a:t"
_CODE = re.compile(r"_x((?!D[89A-F])[0-9A-F]{4})_", re.IGNORECASE)
_LIKE_CODE = re.compile(r"_(?=x[0-9A-Fa-f]{4}_)")
_NEEDS_CODE = re.compile(r"[\x00-\x08\x0b-\x1f\ufffe\uffff]")


def _text_names(part_type: str) -> frozenset[str]:
    """Names of elements that hold text, in a part."""
    if TITLED.fullmatch(part_type):
        return _TITLES
    if HAS_BARE_TEXT.fullmatch(part_type):
        return frozenset({"t", "text"})
    if NEW_CHART.fullmatch(part_type):
        return frozenset({"t", "v", "pt"})
    return frozenset({"t", "v"} if CHART.fullmatch(part_type) else {"t"})


def without_kept(part_type: str, events: Iterator[Event]) -> Iterator[Event]:
    """Events without the text of what nobody sees, or what has places in it that people are at.

    Of masters and layouts a placeholder's text is shown by no slide; a comment that mentions people
    says with numbers where.
    """
    names = ("sp", "ph") if MASTER.fullmatch(part_type) else ("threadedComment", "mention")
    if not any(one.fullmatch(part_type) for one in (MASTER, THREADS)):
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


class PartReader:
    """From events of a part to tokens: text, and what is between."""

    def __init__(self, builder: TemplateBuilder, part_type: str) -> None:
        self._has_codes = WORKBOOK.fullmatch(part_type) is not None
        self._is_sheet = SHEET.fullmatch(part_type) is not None
        self._is_own_value = False
        self._builder = builder
        self._assembler = Assembler(
            builder,
            coded=_coded if self._has_codes else str,
            most=_MOST_IN_CELL if CELLS.fullmatch(part_type) else None,
        )
        self._text_names = _text_names(part_type)
        self._skipped = _SKIPPED | (_CELLS_IN_CHARTS if builder.kind == "xlsx" else frozenset())
        self._keeps_space = KEEPS_SPACE.fullmatch(part_type) is not None
        self._stretches: list[Stretch] = []
        self._runs: list[Run | None] = []
        self._begun: Run | None = None
        self._kept: list[Event] = []
        self._kept_depth = 0
        self._is_in_text = False
        self._is_page_text = False

    def read(self, event: Event) -> None:
        """One event of the part."""
        name, is_tag = event.local_name, event.kind in ("start", "end")
        if self._kept or (name in self._skipped and event.kind == "start"):
            self._keep(event)
            return
        if name in PAGE_TEXTS:
            self._is_page_text = event.kind == "start"
        if event.kind == "text" and self._is_page_text:
            add_page_text(event.raw, self._builder)
            return
        if is_tag and name in _HYPHENS and self._runs and self._runs[-1] is not None:
            self._note_run(event)
            self._stretches += _hyphen(event)
            return
        if is_tag:
            self._note_run(event)
            event = self._tag(event)
        self._stretches.append((event, event.kind == "text" and self._is_in_text))
        if is_tag and (name in _BORDERS or (self._is_sheet and name == _CELL)):
            self.close()

    def _keep(self, event: Event) -> None:
        """One more event of an element that stays, which is one in the end."""
        self._kept.append(event)
        self._kept_depth += (event.kind == "start") - (event.kind == "end")
        if self._kept_depth == 0:
            raw, text = ("".join(map(attrgetter(name), self._kept)) for name in ("raw", "text"))
            one = Event(kind="other", raw=raw, name=self._kept[0].name, text=text)
            self._stretches.append((one, False))
            self._kept = []

    def _note_run(self, event: Event) -> None:
        """Which run is open; a paragraph in it, of a text box, is in none."""
        name, run = event.local_name, self._runs[-1] if self._runs else None
        if name in (RUN, _PARAGRAPH):
            if event.kind == "end":
                self._runs.pop()
            else:
                self._runs.append(Run(name=event.name, begin=[event]) if name == RUN else None)
        elif run is not None and not run.takes(event):
            run.num_items += 1

    def _tag(self, event: Event) -> Event:
        """A tag, of text or of a cell, and what it says of the text behind it."""
        name, is_start = event.local_name, event.kind == "start"
        if name in self._text_names:
            self._is_in_text = is_start
            return self._spaced(event) if is_start else event
        if self._is_sheet and name in (_CELL, _FORMULA):
            is_string = event.attributes.get(_CELL_TYPE) == _STRING
            self._is_own_value = is_start and name == _CELL and is_string
        elif self._is_own_value and name == _VALUE:
            self._is_in_text = is_start
        return event

    def close(self) -> None:
        """End the text that was begun."""
        stretches, self._stretches = self._stretches, []
        tokens = run_tokens(stretches, self._begun, self._notation, self._meant)
        for token in tokens or self._plain_tokens(stretches):
            self._assembler.add(token, is_folded=False)
        self._assembler.flush()
        self._begun = self._runs[-1] if self._runs else None

    def _plain_tokens(self, stretches: Sequence[Stretch]) -> Iterator[Token]:
        """Tokens where what lies between two stretches of text is one code, or none."""
        between: list[Event] = []
        properties = ""
        for event, is_text in stretches:
            if not is_text or event.raw.startswith("<"):
                between.append(event)
                continue
            if between:
                names, own = _parted(between)
                own = own if RUN in names else properties
                is_same = own == properties and names <= _BETWEEN_RUNS
                yield Token(
                    kind="lone",
                    pieces=self._notation(between),
                    is_removable=is_same,
                    is_apart=is_apart(between),
                )
                between, properties = [], own
            yield Token(kind="text", pieces=(event.raw,), text=self._meant(event.text))
        yield Token(kind="border", pieces=self._notation(between))

    def _meant(self, text: str) -> str:
        return without_codes_of_cells(text) if self._has_codes else text

    def _notation(self, events: Sequence[Event]) -> tuple[Piece, ...]:
        found: list[Piece] = []
        for event in events:
            found += tag_pieces(event, _ATTRIBUTES, self._builder)
        return tuple(found)

    def _spaced(self, event: Event) -> Event:
        """A beginning of text that says that its white space is meant."""
        is_own = self._keeps_space and event.name != _DRAWN_TEXT
        if not is_own or "xml:space" in event.attributes or event.raw.endswith("/>"):
            return event
        return replace(event, raw=f'{event.raw[:-1]} xml:space="preserve">')


def _hyphen(event: Event) -> Iterator[Stretch]:
    """A tag of a hyphen as an element of text, whose tags are not written."""
    name = event.name.removesuffix(event.local_name) + "t"
    text = _HYPHENS[event.local_name]
    if event.kind == "end":
        yield replace(event, name=name), False
        return
    yield replace(event, raw="" if text else event.raw, name=name), False
    if text:
        yield replace(event, kind="text", text=text), True


def without_codes_of_cells(text: str) -> str:
    """A text whose characters that a workbook writes as _x0007_ are these."""
    return _CODE.sub(_meant, text)


def _meant(code: re.Match[str]) -> str:
    return chr(int(code[1], 16))


def _coded(text: str) -> str:
    """A text with codes for what XML has not, and for what would be read as a code."""
    text = _LIKE_CODE.sub("_x005F_", text)
    return _NEEDS_CODE.sub(lambda found: f"_x{ord(found[0]):04X}_", text)


def _parted(events: Sequence[Event]) -> tuple[frozenset[str], str]:
    """Names of elements between two runs, and the formatting of the later."""
    names: set[str] = set()
    properties: list[str] = []
    is_inside = False
    for event in events:
        name = event.local_name
        if name == RUN and event.kind == "start":
            properties = []
        is_own = name == PROPERTIES and event.kind in ("start", "end")
        if is_inside or is_own:
            properties.append(event.raw)
        elif event.kind != "text" or event.raw.strip():
            names.add(name or event.kind)
        is_inside = event.kind == "start" if is_own else is_inside
    return frozenset(names), seen_formatting("".join(properties))
