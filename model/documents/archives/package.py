"""Packages of Office Open XML: what each part of an archive is, by the package's own list of types.

Owns that list. A part may have any name: programs agree on what they write into the list, not on
where parts lie. Which types have text is for the formats to say.
"""

from collections.abc import Mapping

from model.documents.archives.archive import Archive
from model.documents.notation.limits import DocumentLimits, check_read

_TYPES = "[Content_Types].xml"


def part_types(kind: str, archive: Archive, limits: DocumentLimits) -> Mapping[str, str]:
    """The types of an archive's members, by name; none if it is no package.

    Names are the same in any case, as the standard has it. A part's own type stands before that of
    its ending.

    Raises:
        DocumentError: The list is damaged or beyond a limit.
    """
    if _TYPES not in archive.names:
        return {}
    check_read(kind, archive.size([_TYPES]), limits)
    endings: dict[str, str] = {}
    own: dict[str, str] = {}
    for event in archive.events(_TYPES, limits):
        if event.kind != "start":
            continue
        said = event.attributes
        if event.local_name == "Default":
            endings[said.get("Extension", "").lower()] = said.get("ContentType", "")
        elif event.local_name == "Override":
            own[said.get("PartName", "").lstrip("/").lower()] = said.get("ContentType", "")
    lowered = {name: name.lower() for name in archive.names if name != _TYPES}
    return {
        name: own.get(part) or endings.get(part.rpartition(".")[2], "")
        for name, part in lowered.items()
    }
