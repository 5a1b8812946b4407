"""Formats of documents: what opens each kind, and the one way to open a document of any of them.

Owns that list. Kinds and their names are `model.documents.kinds`, which is all that most who ask
need to import; it reads none of them.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from model.documents.archives.epub import open_epub
from model.documents.archives.office import open_docx, open_pptx, open_xlsx
from model.documents.archives.opendocument import open_odp, open_ods, open_odt
from model.documents.kinds import KINDS
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
