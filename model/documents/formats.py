"""Kinds of documents: the list of formats, and the one way to open a document of any of them.

Owns the names of kinds, the endings of their files and their media types. It reads none of them.
"""

from collections.abc import Callable

from model.documents.document import Document, DocumentOptions
from model.documents.html import open_html
from model.documents.limits import DocumentLimits, check_size
from model.errors import InputError

Open = Callable[[bytes, DocumentOptions, DocumentLimits], Document]

_OPENERS: dict[str, Open] = {
    "html": open_html,
}

KINDS = tuple(_OPENERS)
"""All kinds."""


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
        raise InputError("there is no such kind of document", value=kind, limit=KINDS)
    limits = limits or DocumentLimits()
    check_size(kind, len(data), limits)
    return _OPENERS[kind](data, options or DocumentOptions(), limits)
