"""Plain text: every line a text of its own, because a line's end is a sentence's.

Owns nothing else. What stands in a line and is no language, the text path finds by itself.
"""

from model.documents.notation.document import Document, DocumentOptions, document_of
from model.documents.notation.encoding import decoded
from model.documents.notation.limits import DocumentLimits
from model.documents.notation.template import TemplateBuilder


def open_plain(data: bytes, _options: DocumentOptions, limits: DocumentLimits) -> Document:
    """Plain text as a document.

    Raises:
        DocumentError: It is not text in UTF-8 or UTF-16, or has too many lines.
    """
    encoded = decoded("txt", data)
    builder = TemplateBuilder(kind="txt", limits=limits)
    for line in encoded.text.splitlines(keepends=True):
        bare = line.rstrip()
        builder.pieces += [builder.plain(bare, bare, str), line[len(bare) :]]
    return document_of("txt", builder.template(), encoded.encoded)
