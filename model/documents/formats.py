"""Formats of documents: what opens each kind, and the one way to open a document of any of them.

Owns that list. Kinds and their names are `model.documents.kinds`, which is all that most who ask
need to import; it reads none of them.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from model.documents.document import Document, DocumentOptions
from model.documents.epub import open_epub
from model.documents.gettext import open_po
from model.documents.html import open_html
from model.documents.json_file import open_json
from model.documents.kinds import KINDS
from model.documents.limits import DocumentLimits, check_size
from model.documents.markdown import open_markdown
from model.documents.office import open_docx, open_pptx, open_xlsx
from model.documents.opendocument import open_odp, open_ods, open_odt
from model.documents.plain import open_plain
from model.documents.subtitles import open_srt, open_vtt
from model.documents.table import open_csv, open_tsv
from model.documents.xliff import open_xliff
from model.documents.xml import open_xml
from model.errors import InputError, shown

Open = Callable[[bytes, DocumentOptions, DocumentLimits], Document]

_OPENERS: Mapping[str, Open] = MappingProxyType(
    {
        "txt": open_plain,
        "md": open_markdown,
        "html": open_html,
        "xml": open_xml,
        "srt": open_srt,
        "vtt": open_vtt,
        "po": open_po,
        "json": open_json,
        "csv": open_csv,
        "tsv": open_tsv,
        "docx": open_docx,
        "pptx": open_pptx,
        "xlsx": open_xlsx,
        "odt": open_odt,
        "ods": open_ods,
        "odp": open_odp,
        "epub": open_epub,
        "xliff": open_xliff,
    }
)


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
    return _OPENERS[kind](data, options or DocumentOptions(), limits)
