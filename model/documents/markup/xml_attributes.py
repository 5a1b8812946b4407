"""Attributes of XML that people read, as descriptions of pictures are: texts inside of a tag.

Owns where the value of an attribute is in a tag, and how its translation is written there. Which
attributes of which elements are read by people, formats say.
"""

import re
from collections.abc import Collection, Iterator, Mapping

from model.documents.markup.xml_events import Event
from model.documents.notation.assembly import SPACES, reference_escape
from model.documents.notation.template import Piece, TemplateBuilder

ReadAttributes = Mapping[str, Collection[str]]
"""Of elements, by local name, the local names of attributes that people read."""

_ATTRIBUTE = re.compile(r"\s(?P<name>[^\s=<>/\"']+)\s*=\s*(?P<value>\"[^\"]*+\"|'[^']*+')")
_NOT_ITSELF = "\"'\n\r\t"
"""Characters that end a value, or are read as spaces in it."""


def tag_pieces(
    event: Event, attributes: ReadAttributes, builder: TemplateBuilder
) -> tuple[Piece, ...]:
    """A stretch of a file; if it is the start tag of such an element, with places for texts."""
    read = attributes.get(event.local_name, ()) if event.kind == "start" else ()
    if not any(name.rpartition(":")[2] in read for name in event.attributes):
        return (event.raw,)
    return tuple(_parts(event, read, builder))


def _parts(event: Event, read: Collection[str], builder: TemplateBuilder) -> Iterator[Piece]:
    done = 0
    for found in _ATTRIBUTE.finditer(event.raw):
        if found["name"].rpartition(":")[2] not in read:
            continue
        raw = found["value"][1:-1].strip(SPACES)
        begin = event.raw.index(raw, found.start("value") + 1)
        text = event.attributes[found["name"]].strip(SPACES)
        yield event.raw[done:begin]
        yield builder.plain(text, raw, reference_escape(raw, always=_NOT_ITSELF))
        done = begin + len(raw)
    yield event.raw[done:]
