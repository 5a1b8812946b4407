"""Kinds of documents: their names, which are the endings of their files too, and media types.

Owns that list. What opens a kind is `model.documents.formats`, which imports the readers of all.
"""

from collections.abc import Mapping
from types import MappingProxyType

_OFFICE = "application/vnd.openxmlformats-officedocument"
_MEDIA_TYPES: Mapping[str, str] = MappingProxyType(
    {
        "txt": "text/plain",
        "md": "text/markdown",
        "html": "text/html",
        "xml": "application/xml",
        "srt": "application/x-subrip",
        "vtt": "text/vtt",
        "po": "text/x-gettext-translation",
        "json": "application/json",
        "csv": "text/csv",
        "tsv": "text/tab-separated-values",
        "docx": f"{_OFFICE}.wordprocessingml.document",
        "pptx": f"{_OFFICE}.presentationml.presentation",
        "xlsx": f"{_OFFICE}.spreadsheetml.sheet",
        "odt": "application/vnd.oasis.opendocument.text",
        "ods": "application/vnd.oasis.opendocument.spreadsheet",
        "odp": "application/vnd.oasis.opendocument.presentation",
        "epub": "application/epub+zip",
        "xliff": "application/xliff+xml",
    }
)
_OTHER_ENDINGS: Mapping[str, str] = MappingProxyType(
    {
        "htm": "html",
        "xhtml": "html",
        "markdown": "md",
        "text": "txt",
        "pot": "po",
        "xlf": "xliff",
        "tab": "tsv",
    }
)

KINDS = tuple(_MEDIA_TYPES)
"""All kinds."""
ENDINGS = (*KINDS, *_OTHER_ENDINGS)
"""All endings of files that have a kind."""


def kind_of(name: str) -> str | None:
    """The kind of a file by the ending of its name; None if there is no such kind."""
    ending = name.rpartition(".")[2].lower() if "." in name else ""
    ending = _OTHER_ENDINGS.get(ending, ending)
    return ending if ending in _MEDIA_TYPES else None


def media_type(kind: str) -> str:
    """The media type of a kind."""
    return _MEDIA_TYPES[kind]
