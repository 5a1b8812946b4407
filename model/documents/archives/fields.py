"""Complex fields of Word: the runs from a field's beginning to its end as one node.

Owns what of a paragraph is a field, and whether what it shows is words, which are translated inside
of it, or a word that a program writes anew, such as the number of a page. So no word comes into a
field's result, or out of it. A field that begins elsewhere than it ends, or that divides a run, is
left as it is.
"""

import re
from collections.abc import Sequence

from model.documents.archives.nodes import Element, Item, Node, events_of, has_text
from model.documents.markup.xml_events import Event

FIELD, _TYPE = "fldChar", "fldCharType"
_INSTRUCTION = "instrText"
_MAX_DEPTH = 3
"""Fields in each other's results; others stay as they are."""
_COMPUTED = re.compile(
    r"\s*(?:PAGE|NUMPAGES|SECTION|SECTIONPAGES|DATE|TIME|CREATEDATE|SAVEDATE|PRINTDATE|EDITTIME"
    r"|NUMWORDS|NUMCHARS|FILENAME|FILESIZE|AUTHOR|LASTSAVEDBY|USERNAME|REVNUM|SEQ|PAGEREF)\b",
    re.IGNORECASE,
)
"""Instructions whose results programs write anew, and which are no words."""


def with_fields(nodes: Sequence[Node]) -> list[Node]:
    """Nodes side by side, in which each field that is whole there is one."""
    found: list[Node] = []
    begun: list[int] = []  # where in what was found fields begin
    for node in nodes:
        found.append(node)
        for step in _steps(node):
            if step == "begin" and len(begun) < _MAX_DEPTH:
                begun.append(len(found) - 1)
            elif step == "end" and begun:
                start = begun.pop()
                found[start:] = _joined(found[start:])
    return found


def is_computed(instruction: str, shown: str) -> bool:
    """Whether what a field shows is no language: a program writes it anew, or it has no letters."""
    return _COMPUTED.match(instruction) is not None or not any(map(str.isalpha, shown))


def _joined(nodes: list[Node]) -> list[Node]:
    """The nodes of a field as one, if they are whole runs."""
    first, last = nodes[0], nodes[-1]
    middle = next((at for at, node in enumerate(nodes) if "separate" in _steps(node)), None)
    is_own = _steps(last) == ["end"] and _steps(first) in (["begin"], ["begin", "separate"])
    if not is_own or not _begins_run(first) or not _ends_run(last):
        return nodes
    if middle is None or not any(map(has_text, nodes)):
        return [Item(kind="beside", events=events_of(nodes))]
    shown = events_of(nodes[middle + 1 : -1])
    said = "".join(event.text for event in events_of(nodes) if event.local_name == _INSTRUCTION)
    text = "".join(event.text for event in shown if event.kind == "text")
    if any(map(has_text, nodes[: middle + 1])):
        return [Item(kind="word", events=events_of(nodes))]
    is_divided = not _ends_run(nodes[middle]) or not _begins_run(last)
    if is_divided or is_computed(said, text):
        return [Item(kind="word", events=events_of(nodes))]
    opening, closing = events_of(nodes[: middle + 1]), events_of([last])
    return [Element(opening=opening, closing=closing, inner=nodes[middle + 1 : -1])]


def _steps(node: Node) -> list[str]:
    """What fields do in a node: begin, change to what they show, end."""
    if isinstance(node, Element) or node.kind != "inner":
        return []
    return [_type(one) for one in node.events if one.local_name == FIELD and one.kind == "start"]


def _type(event: Event) -> str:
    said = {name.rpartition(":")[2]: value for name, value in event.attributes.items()}
    return said.get(_TYPE, "")


def _begins_run(node: Node) -> bool:
    return isinstance(node, Item) and (node.run is None or node.is_first)


def _ends_run(node: Node) -> bool:
    return isinstance(node, Item) and (node.run is None or node.is_last)
