"""Runs of a paragraph of Office Open XML, and the elements that they nest in.

Owns what of a paragraph is text, what is in a run beside text, what is beside runs, and which
elements hold runs as a link does. Paragraphs whose elements do not nest in these ways are told.
What becomes an inline code is `model.documents.archives.run_tokens`'s.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal

from model.documents.archives.fields import FIELD, is_computed, with_fields
from model.documents.archives.nodes import (
    RUN,
    Element,
    Item,
    Node,
    Run,
    events_of,
    has_text,
    is_blank,
)
from model.documents.markup.xml_events import Event

WORDS = frozenset({"fld", "oMath"})
"""Elements beside runs that are words of their sentence."""
_HOLD_RUNS = frozenset(
    {"hyperlink", "ins", "moveTo", "smartTag", "fldSimple", "dir", "bdo", "customXml", "sdtContent"}
)
_CONTROL, _CONTROLLED = "sdt", "sdtContent"
_TOLD_FIRST = re.compile(r"\w+Pr|fldData")
"""Of an element that holds runs what stands before them."""
_MAX_DEPTH = 50
"""Elements in each other, which are gone through by calls in each other."""
_MAX_PROPERTIES = 200
"""Events of properties, of a run that goes on behind borders: they are gone through at each."""
_CHECKS = frozenset({"proofErr"})
_FIELD_TYPE, _SIMPLE, _INSTRUCTION = "fldCharType", "fldSimple", "instr"
_RANGE = re.compile(r"(\w+)(Start|End)")
_STEPS = {"begin": 1, "end": -1, "Start": 1, "End": -1}
_EDITING = re.compile(
    r"\s(?:err|dirty|smtClean|lang|altLang)\s*=\s*(?:\"[^\"]*+\"|'[^']*+')"
    r"|<(?:[\w.-]+:)?(?:lang|noProof)(?:\s[^<>]*)?/>"
)
"""What a program notes in formatting for its spelling checks."""
_NO_PROPERTIES = re.compile(r"<[^\s<>/]++\s*+(?:/>|>\s*+</[^\s<>/]++\s*+>)")

_SEEN = frozenset(
    """
    drawing pict object sym ruby oMath fld fldChar footnoteReference endnoteReference footnoteRef
    endnoteRef pgNum dayShort dayLong monthShort monthLong yearShort yearLong
    """.split()  # noqa: SIM905  # one list a line
)
"""What people see between two words, as no bookmark is."""

Stretch = tuple[Event, bool]
"""An event, and whether it is text to be translated."""


class NotNestedError(Exception):
    """Elements of a paragraph are not in each other in a way that is known here."""


def seen_formatting(properties: str) -> str:
    """Properties of a run, as they are written, without what nobody sees of them."""
    seen = _EDITING.sub("", properties).strip()
    return "" if _NO_PROPERTIES.fullmatch(seen) else seen


def is_apart(events: Iterable[Event]) -> bool:
    """Whether something of it is seen, so that letters before it and behind it are two words."""
    return any(event.local_name in _SEEN for event in events)


def is_range(events: Iterable[Event]) -> bool:
    """Whether some of it is a field, or begins or ends a range of a document."""
    tags = [event.local_name for event in events if event.kind in ("start", "end")]
    return any(name == FIELD or _RANGE.fullmatch(name) for name in tags)


def nested(stretches: Sequence[Stretch], begun: Run | None) -> list[Node]:
    """What stands between two borders, elements as such.

    Args:
        stretches: In order.
        begun: The run that the first of them is in.

    Raises:
        NotNestedError: Text is outside of runs, runs are in each other, or around text are elements
            of which it is not known that they may hold runs, or which cannot be moved; or the run
            that was begun has more properties than any program writes.
    """
    if begun is not None and len(begun.begin) > _MAX_PROPERTIES:
        raise NotNestedError
    reader = _ItemReader(begun)
    for event, is_text in stretches:
        reader.read(event, is_text=is_text)
    reader.close()
    nodes = _tree(reader.items)
    _check_parts(nodes)
    return nodes


class _ItemReader:
    def __init__(self, begun: Run | None) -> None:
        self.items: list[Item] = []
        self._run = None
        if begun is not None:
            self._run = Run(name=begun.name, begin=begun.begin)
            self._note(self._run)
        self._text: Item | None = None
        self._inner: list[Event] = []
        self._depth = 0

    def read(self, event: Event, *, is_text: bool) -> None:
        """One event."""
        if self._run is None:
            self._read_beside(event, is_text=is_text)
        elif self._text is not None:
            self._read_text(self._text, event, is_text=is_text)
        elif is_text or (event.local_name == RUN and event.kind == "start"):
            raise NotNestedError
        elif event.local_name == RUN and event.kind == "end":
            self._end_run(self._run, event)
        elif event.local_name == "t" and event.kind == "start" and self._depth <= 0:
            self._end_inner()
            self._text = Item(kind="text", events=[event])
        elif self._inner or not self._run.takes(event):
            self._inner.append(event)
            self._depth += (event.kind == "start") - (event.kind == "end")

    def close(self) -> None:
        """There are no more; a run may go on behind a border."""
        self._end_inner()
        if self._run is not None and self._run.num_items == 0:
            self.items.append(Item(kind="beside", events=self._run.begin))

    def _end_inner(self) -> None:
        inner, self._inner, self._depth = self._inner, [], 0
        if inner and self._run is not None:
            self._add(self._run, Item(kind="inner", events=inner, is_removable=is_blank(inner)))

    def _read_beside(self, event: Event, *, is_text: bool) -> None:
        if is_text:
            raise NotNestedError
        if event.kind == "start" and event.local_name == RUN:
            self._run = Run(name=event.name, begin=[event])
        elif event.kind in ("start", "end"):
            kind: Literal["open", "close"] = "open" if event.kind == "start" else "close"
            self.items.append(Item(kind=kind, events=[event]))
        else:
            is_word = event.local_name in WORDS and any(map(str.isalnum, event.text))
            item = Item(kind="word" if is_word else "beside", events=[event])
            item.is_removable = is_blank([event])
            self.items.append(item)

    def _read_text(self, item: Item, event: Event, *, is_text: bool) -> None:
        item.events.append(event)
        if event.kind != "end":
            if not is_text or len(item.events) > 2:
                raise NotNestedError
            return
        self._text = None
        if len(item.events) == 2:
            item.kind, item.is_removable = "inner", True
        if self._run is not None:
            self._add(self._run, item)

    def _end_run(self, run: Run, event: Event) -> None:
        self._end_inner()
        run.end = event.raw
        if run.num_items == 0:
            events = [*run.begin, event]
            self.items.append(Item(kind="beside", events=events, is_removable=True))
        elif self.items:
            self.items[-1].is_last = True
        else:
            self.items.append(Item(kind="beside", events=[event]))
        self._run = None

    def _add(self, run: Run, item: Item) -> None:
        item.run, item.is_first = run, run.num_items == 0
        self._note(run)
        self.items.append(item)

    def _note(self, run: Run) -> None:
        """There is one more item; its properties come before the first."""
        if run.num_items == 0:
            run.formatting = seen_formatting("".join(event.raw for event in run.begin[1:]))
        run.num_items += 1


def _tree(items: Iterable[Item]) -> list[Node]:
    """Items, those between tags that belong to each other as elements; other tags as they are."""
    levels: list[list[Node]] = [[]]
    opened: list[Item] = []
    for item in items:
        if item.kind == "open":
            if len(opened) >= _MAX_DEPTH:
                raise NotNestedError
            opened.append(item)
            levels.append([])
        elif item.kind == "close" and opened:
            tag = opened.pop()
            inner = with_fields(levels.pop())
            element = Element(opening=tag.events, closing=item.events, inner=inner)
            levels[-1].append(_known(element))
        else:
            levels[-1].append(item)
    while opened:
        inner = levels.pop()
        levels[-1] += [opened.pop(), *inner]
    return with_fields(levels[0])


def _known(element: Element) -> Node:
    """An element that may change places; one without text is beside runs."""
    name = element.opening[0].local_name
    if not any(map(has_text, element.inner)):
        is_word = any(isinstance(one, Item) and one.kind == "word" for one in element.inner)
        return Item(
            kind="word" if is_word else "beside",
            events=[*element.opening, *events_of(element.inner), *element.closing],
            is_removable=name in _CHECKS,
        )
    if name == _SIMPLE and _is_computed(element):
        return Item(kind="word", events=events_of([element]))
    while element.inner and _is_told_first(first := element.inner[0]):
        element.opening = [*element.opening, *events_of([first])]
        del element.inner[0]
    if name == _CONTROL:
        return _controlled(element)
    if name not in _HOLD_RUNS or not _is_closed(events_of(element.inner)):
        raise NotNestedError
    return element


def _is_computed(element: Element) -> bool:
    said = {name.rpartition(":")[2]: value for name, value in element.opening[0].attributes.items()}
    shown = "".join(one.text for one in events_of(element.inner) if one.kind == "text")
    return is_computed(said.get(_INSTRUCTION, ""), shown)


def _controlled(element: Element) -> Element:
    """A content control as one element, which holds what its content does."""
    held = [one for one in element.inner if isinstance(one, Element)]
    if len(held) != 1 or held[0].opening[0].local_name != _CONTROLLED:
        raise NotNestedError
    place = element.inner.index(held[0])
    if any(map(has_text, element.inner[:place] + element.inner[place + 1 :])):
        raise NotNestedError
    before, after = events_of(element.inner[:place]), events_of(element.inner[place + 1 :])
    return Element(
        opening=[*element.opening, *before, *held[0].opening],
        closing=[*held[0].closing, *after, *element.closing],
        inner=held[0].inner,
    )


def _is_told_first(node: Node) -> bool:
    if isinstance(node, Element) or node.kind != "beside":
        return False
    tag = node.events[0]
    return node.is_removable or _TOLD_FIRST.fullmatch(tag.local_name) is not None


def _is_closed(events: Iterable[Event]) -> bool:
    """Whether all fields and ranges that begin in it end in it."""
    opened: Counter[tuple[str, str]] = Counter()
    for event in events:
        if event.kind != "start":
            continue
        said = {name.rpartition(":")[2]: value for name, value in event.attributes.items()}
        if event.local_name == FIELD:
            opened[FIELD, ""] += _STEPS.get(said.get(_FIELD_TYPE, ""), 0)
        elif found := _RANGE.fullmatch(event.local_name):
            opened[found[1], said.get("id", "")] += _STEPS[found[2]]
    return not any(opened.values())


def _check_parts(nodes: list[Node]) -> None:
    """Refuse tags without a partner that are not at the ends.

    Raises:
        NotNestedError: One stands between text.
    """
    places = [place for place, node in enumerate(nodes) if _is_content(node)]
    for node in nodes[places[0] : places[-1]] if places else ():
        if isinstance(node, Item) and node.kind in ("open", "close"):
            raise NotNestedError


def _is_content(node: Node) -> bool:
    return has_text(node) or (isinstance(node, Item) and node.kind == "word")
