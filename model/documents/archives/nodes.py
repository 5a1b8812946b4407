"""What a paragraph of Office Open XML is made of: runs, items in and beside them, elements around.

Owns these types, and the way from them back to events. How they are read is
`model.documents.archives.runs`.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from model.documents.markup.xml_events import Event

RUN, PROPERTIES = "r", "rPr"


@dataclass(slots=True, kw_only=True, eq=False)
class Run:
    """A run while it is read.

    Attributes:
        name: Of its element, with its prefix.
        begin: Its start tag and its properties.
        end: Its end tag as it is written; nothing where it ends behind a border.
        num_items: Of what it holds, so far.
        depth: Elements of its properties that are open.
        formatting: Its properties, as far as people see them, once it has an item.
    """

    name: str
    begin: list[Event]
    end: str = ""
    num_items: int = 0
    depth: int = 0
    formatting: str = ""

    @property
    def closing(self) -> str:
        """An end tag of it."""
        return self.end or f"</{self.name}>"

    def takes(self, event: Event) -> bool:
        """Whether an event is one of its properties, or white space beside them; it has it then."""
        is_tag = event.local_name == PROPERTIES and event.kind in ("start", "end")
        if self.num_items or not (self.depth or is_tag or is_blank([event])):
            return False
        self.begin.append(event)
        self.depth += is_tag * (1 if event.kind == "start" else -1)
        return True


@dataclass(slots=True, kw_only=True, eq=False)
class Item:
    """Something in a paragraph.

    Attributes:
        kind: Text; what else is in a run; what is beside runs, a word or none; a tag around runs.
        events: In order; a text's are its start tag, it, and its end tag.
        run: What it is in.
        is_first: The run begins with it.
        is_last: The run ends behind it.
        is_removable: It means nothing.
    """

    kind: Literal["text", "inner", "beside", "word", "open", "close"]
    events: list[Event]
    run: Run | None = None
    is_first: bool = False
    is_last: bool = False
    is_removable: bool = False


@dataclass(slots=True, kw_only=True, eq=False)
class Element:
    """An element around runs: its tags, and what is in it."""

    opening: list[Event]
    closing: list[Event] = field(default_factory=list)
    inner: "list[Node]" = field(default_factory=list)


Node = Item | Element


def has_text(node: Node) -> bool:
    """Whether it is text, or an element around text."""
    return isinstance(node, Element) or node.kind == "text"


def is_blank(events: Iterable[Event]) -> bool:
    """Whether nothing is there but white space."""
    return all(event.kind == "text" and not event.raw.strip() for event in events)


def events_of(nodes: Iterable[Node]) -> list[Event]:
    """All events of some nodes, as they are in the document."""
    found: list[Event] = []
    for node in nodes:
        if isinstance(node, Element):
            found += [*node.opening, *events_of(node.inner), *node.closing]
            continue
        if node.run is not None and node.is_first:
            found += node.run.begin
        found += node.events
        if node.run is not None and node.is_last:
            found.append(Event(kind="end", raw=node.run.closing, name=node.run.name))
    return found
