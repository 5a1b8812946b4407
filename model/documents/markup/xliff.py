"""XLIFF 1.2 and 2.x: units without a translation get one, made of their source; others stay.

Owns where sources and targets are. Codes of the source are copied to the target, with their ids,
in their order; of a source that a tool has divided, so are its segments, each of which is a text.
Units and spans that are not to be translated stay, as do proposals of others. The language of
targets is said where it is not.
"""

from collections.abc import Iterable, Iterator, Sequence

from model.documents.markup.xml import Role, read_xml
from model.documents.markup.xml_events import Event, xml_events
from model.documents.notation.document import Document, DocumentOptions, document_of
from model.documents.notation.encoding import decoded_markup
from model.documents.notation.limits import DocumentLimits
from model.documents.notation.template import LanguagePlace, Piece, TemplateBuilder
from model.errors import DocumentError

# Their content is code of the document that the file was made of.
_BEGIN, _END = frozenset({"bpt", "bx", "sc", "sm"}), frozenset({"ept", "ex", "ec", "em"})
_ALONE, _PART = frozenset({"x", "cp"}), "it"
_BEGIN_PARTS = frozenset({"open", "begin"})
_SEGMENTS = frozenset({"trans-unit", "segment"})
_UNITS = frozenset({"trans-unit", "unit", "group", "file"})
_PROPOSALS = frozenset({"alt-trans", "matches", "glossary"})
_PROTECTED = "protected"


def open_xliff(data: bytes, _options: DocumentOptions, limits: DocumentLimits) -> Document:
    """A file as a document.

    Raises:
        DocumentError: It is not well-formed, no XLIFF, or beyond a limit.
    """
    encoded = decoded_markup("xliff", data)
    events = list(xml_events(encoded.text, "xliff", limits))
    root = next((event for event in events if event.kind == "start"), None)
    if root is None or root.local_name != "xliff":
        raise DocumentError("xliff", "is XML of another kind")
    builder = TemplateBuilder(kind="xliff", limits=limits)
    done = 0
    for begin, end, keeps_space in _segments(events):
        builder.pieces.extend(_between(events[done:begin]))
        _segment(builder, events[begin:end], keeps_space=keeps_space)
        done = end
    builder.pieces.extend(_between(events[done:]))
    return document_of("xliff", builder.template(), encoded.encoded)


def _between(events: Iterable[Event]) -> Iterator[Piece]:
    """What is not in a segment, with a place for the language of targets that is not said yet."""
    for event in events:
        name, needs = event.local_name, ""
        if event.kind == "start" and name == "xliff" and event.attributes.get("srcLang"):
            needs = "trgLang"
        elif event.kind == "start" and name == "file" and event.attributes.get("source-language"):
            needs = "target-language"
        if not needs or needs in event.attributes:
            yield event.raw
            continue
        end = len(event.raw.removesuffix(">").removesuffix("/"))
        yield event.raw[:end].rstrip()
        yield LanguagePlace(original="", written=f' {needs}="{{}}"'.format)
        yield event.raw[end:]


def _segments(events: Sequence[Event]) -> Iterator[tuple[int, int, bool]]:
    """From the start tag of every segment that may be translated to its end tag.

    With each comes whether its source says that white space has a meaning. Elements of other tools
    in a segment, whatever they are called, are parts of it.
    """
    allowed, spaces = [True], [False]
    begun: list[int] = []
    keeps_space = False
    num_proposals = 0
    for place, event in enumerate(events):
        name = event.local_name
        if name in _PROPOSALS:
            num_proposals += (event.kind == "start") - (event.kind == "end")
        if event.kind == "start":
            space = event.attributes.get("xml:space")
            spaces.append(spaces[-1] if space is None else space == "preserve")
            keeps_space = spaces[-1] if name == "source" and not num_proposals else keeps_space
        if event.kind == "start" and name in _UNITS:
            said = event.attributes.get("translate")
            allowed.append(allowed[-1] if said is None else said == "yes")
        if event.kind == "start" and name in _SEGMENTS:
            begun.append(place)
        if event.kind == "end" and name in _SEGMENTS:
            begin = begun.pop()
            if not begun and allowed[-1] and not num_proposals:
                yield begin, place + 1, keeps_space
        if event.kind == "end" and name in _UNITS:
            allowed.pop()
        if event.kind == "end":
            spaces.pop()


def _segment(builder: TemplateBuilder, events: Sequence[Event], *, keeps_space: bool) -> None:
    """A segment, with a target if it has none with text."""
    source, target = _element(events, "source"), _element(events, "target")
    is_translated = target is not None and any(
        event.text.strip() or event.kind == "reference" for event in events[slice(*target)]
    )
    if source is None or is_translated:
        builder.pieces.extend(event.raw for event in events)
        return
    prefix = events[source[0]].name.removesuffix("source")
    divided = _element(events, "seg-source")
    is_divided = divided is not None and any(map(_is_segment, events[slice(*divided)]))
    start, stop = divided if divided is not None and is_divided else source
    content = events[start + 1 : stop - 1]
    behind = (divided or source)[1]
    before, after = target if target is not None else (behind, behind)
    tag = events[before].raw if target is not None else f"<{prefix}target>"
    builder.pieces.extend(event.raw for event in events[:before])
    builder.pieces.append(tag.removesuffix("/>") + ">" if tag.endswith("/>") else tag)
    roles = _roles(content, is_divided=is_divided)
    space = not keeps_space
    read_xml(
        content, roles, builder, is_prose=not is_divided, is_folded=space, element=_coded_element
    )
    builder.pieces.append(f"</{prefix}target>")
    builder.pieces.extend(event.raw for event in events[after:])


def _element(events: Sequence[Event], name: str) -> tuple[int, int] | None:
    """The places of an element directly in a segment, from its start tag to behind its end tag."""
    depth, begin = 0, 0
    for place, event in enumerate(events):
        depth += event.kind == "start"
        is_own = depth == 2 and event.local_name == name
        if is_own and event.kind == "start":
            begin = place
        if is_own and event.kind == "end":
            return begin, place + 1
        depth -= event.kind == "end"
    return None


def _is_segment(event: Event) -> bool:
    """Whether a part of a source begins that a tool has divided (1.2)."""
    return event.local_name == "mrk" and event.attributes.get("mtype") == "seg"


def _roles(events: Sequence[Event], *, is_divided: bool) -> Iterator[Role]:
    """Of a source that is divided, text is in its segments, and they are no part of each other."""
    is_inside = [not is_divided]
    for event in events:
        if event.kind == "end":
            is_inside.pop()
        elif event.kind == "start":
            role = _role(event, is_inside=is_inside[-1])
            is_inside.append(is_inside[-1] or role == "prose")
            yield role


def _coded_element(event: Event) -> str:
    """Which element of the original document a code begins or ends: what both tags of it say."""
    said = event.attributes
    name = said.get("rid") or said.get("startRef") or said.get("id")
    return "" if event.local_name == _PART or name is None else f"#{name}"


def _role(event: Event, *, is_inside: bool) -> Role:
    said = event.attributes
    if said.get("translate") == "no" or said.get("mtype") == _PROTECTED or event.local_name == "ph":
        return "word"
    if event.local_name in _ALONE:
        return "lone"
    if event.local_name in _BEGIN or (
        event.local_name == _PART and said.get("pos") in _BEGIN_PARTS
    ):
        return "begin"
    if event.local_name in _END or event.local_name == _PART:
        return "end"
    return "inline" if is_inside else "prose" if _is_segment(event) else "border"
