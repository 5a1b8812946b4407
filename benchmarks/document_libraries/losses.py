"""Losses: what of a file is not in what a program wrote after reading it.

Owns how two files are compared: bytes; members of an archive; elements, attributes and comments of
XML and HTML, as lxml finds them; lines of text. Order does not count, nor do the letters' case and
white space in values, so that a translation in capitals is only what it changes beside its texts.
"""

import io
import zipfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, fields

from lxml import etree

ARCHIVES = frozenset({"docx", "pptx", "xlsx", "odt", "ods", "odp", "epub"})
MARKUP = frozenset({"xliff", "html"})
_LIST = "[Content_Types].xml"
"""Names each part, or the ending of several: its elements say nothing of what is lost."""
_XML_ENDINGS = (".xml", ".rels", ".xhtml", ".opf", ".ncx", ".vml", ".rdf")


@dataclass(frozen=True, slots=True, kw_only=True)
class Losses:
    """What is not there any more, in numbers, of one file or of several.

    Attributes:
        files: Files that were compared.
        failed: Of these, such that could not be read or written.
        same_bytes: Of these, such that came back byte for byte; of an archive, all its members.
        members: Members of archives that are gone.
        changed_members: Members whose bytes are others.
        elements: Elements of XML and HTML.
        attributes: Attributes with their values.
        comments: Comments and processing instructions.
        lines: Lines of files that are no archives.
    """

    files: int = 0
    failed: int = 0
    same_bytes: int = 0
    members: int = 0
    changed_members: int = 0
    elements: int = 0
    attributes: int = 0
    comments: int = 0
    lines: int = 0

    def __add__(self, other: "Losses") -> "Losses":
        both = {
            one.name: getattr(self, one.name) + getattr(other, one.name) for one in fields(self)
        }
        return Losses(**both)


def losses(kind: str, before: bytes, after: bytes | None) -> Losses:
    """What a file of a kind has lost; None if nothing came back."""
    if after is None:
        return Losses(files=1, failed=1)
    if kind not in ARCHIVES:
        found = _of_text(kind, before, after)
        return Losses(files=1, same_bytes=int(before == after)) + found
    old, new = _members(before), _members(after)
    changed = [name for name in old if name in new and old[name] != new[name]]
    found = Losses(
        files=1,
        same_bytes=int(old == new),
        members=len(old.keys() - new.keys()),
        changed_members=len(changed),
    )
    for name in changed:
        if name.lower().endswith(_XML_ENDINGS) and name != _LIST:
            found += _of_markup("xml", old[name], new[name])
    return found


def _members(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _of_text(kind: str, before: bytes, after: bytes) -> Losses:
    old, new = (
        Counter(data.decode("utf-8-sig", "surrogateescape").lower().splitlines(keepends=True))
        for data in (before, after)
    )
    lines = Losses(lines=(old - new).total())
    return lines + _of_markup(kind, before, after) if kind in MARKUP else lines


def _of_markup(kind: str, before: bytes, after: bytes) -> Losses:
    old, new = (Counter(_parts(kind, data)) for data in (before, after))
    gone = Counter(part[0] for part in (old - new).elements())
    return Losses(elements=gone["element"], attributes=gone["attribute"], comments=gone["comment"])


def _parts(kind: str, data: bytes) -> Iterator[tuple[str, ...]]:
    """Elements, attributes and comments, each with what it says."""
    parser = etree.HTMLParser() if kind == "html" else etree.XMLParser(resolve_entities=False)
    for one in etree.fromstring(data, parser).getroottree().iter():
        if not isinstance(one.tag, str):
            yield "comment", "".join((one.text or "").lower().split())
            continue
        yield "element", one.tag
        for name, value in one.attrib.items():
            yield "attribute", one.tag, str(name), "".join(str(value).lower().split())
