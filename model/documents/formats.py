"""Kinds of documents: the list of formats, and the one way to open a document of any of them.

Owns the names of kinds, which are the endings of their files too, and their media types. It reads
none of them.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from model.documents.archives.epub import open_epub
from model.documents.archives.office import open_docx, open_pptx, open_xlsx
from model.documents.archives.opendocument import open_odp, open_ods, open_odt
from model.documents.markup.html import open_html
from model.documents.markup.xliff import open_xliff
from model.documents.markup.xml import open_xml
from model.documents.notation.document import Document, DocumentOptions
from model.documents.notation.limits import DocumentLimits, check_size
from model.documents.plain_text.gettext import open_po
from model.documents.plain_text.json_file import open_json
from model.documents.plain_text.markdown import open_markdown
from model.documents.plain_text.plain import open_plain
from model.documents.plain_text.subtitles import open_srt, open_vtt
from model.documents.plain_text.table import open_csv, open_tsv
from model.errors import InputError, shown

Open = Callable[[bytes, DocumentOptions, DocumentLimits], Document]

_OFFICE = "application/vnd.openxmlformats-officedocument"
_OPENERS: Mapping[str, tuple[Open, str]] = MappingProxyType(
    {
        "txt": (open_plain, "text/plain"),
        "md": (open_markdown, "text/markdown"),
        "html": (open_html, "text/html"),
        "xml": (open_xml, "application/xml"),
        "srt": (open_srt, "application/x-subrip"),
        "vtt": (open_vtt, "text/vtt"),
        "po": (open_po, "text/x-gettext-translation"),
        "json": (open_json, "application/json"),
        "csv": (open_csv, "text/csv"),
        "tsv": (open_tsv, "text/tab-separated-values"),
        "docx": (open_docx, f"{_OFFICE}.wordprocessingml.document"),
        "pptx": (open_pptx, f"{_OFFICE}.presentationml.presentation"),
        "xlsx": (open_xlsx, f"{_OFFICE}.spreadsheetml.sheet"),
        "odt": (open_odt, "application/vnd.oasis.opendocument.text"),
        "ods": (open_ods, "application/vnd.oasis.opendocument.spreadsheet"),
        "odp": (open_odp, "application/vnd.oasis.opendocument.presentation"),
        "epub": (open_epub, "application/epub+zip"),
        "xliff": (open_xliff, "application/xliff+xml"),
    }
)
_OTHER_ENDINGS = MappingProxyType(
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

KINDS = tuple(_OPENERS)
"""All kinds."""


def kind_of(name: str) -> str | None:
    """The kind of a file by the ending of its name; None if there is no such kind."""
    ending = name.rpartition(".")[2].lower() if "." in name else ""
    ending = _OTHER_ENDINGS.get(ending, ending)
    return ending if ending in _OPENERS else None


def media_type(kind: str) -> str:
    """The media type of a kind."""
    return _OPENERS[kind][1]


def open_document(
    data: bytes,
    kind: str,
    *,
    options: DocumentOptions | None = None,
    limits: DocumentLimits | None = None,
) -> Document:
    """A document, read from its bytes.

    Args:
        data: The file.
        kind: One of `KINDS`.
        options: What is not to be translated.
        limits: What is refused.

    Raises:
        InputError: There is no such kind.
        DocumentError: The file is damaged, encrypted, too large or of another kind.
    """
    if kind not in _OPENERS:
        raise InputError(f"there is no document of kind {shown(kind)}", value=kind, limit=KINDS)
    limits = limits or DocumentLimits()
    check_size(kind, len(data), limits)
    return _OPENERS[kind][0](data, options or DocumentOptions(), limits)
