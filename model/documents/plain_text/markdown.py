"""Markdown: the file around its lines.

Owns the encoding, the front matter and the limit on lines. What of the lines is text is
`model.documents.plain_text.markdown_lines`, which with the parser is loaded for Markdown alone.
"""

import re

from model.documents.notation.document import Document, DocumentOptions, document_of
from model.documents.notation.encoding import decoded
from model.documents.notation.limits import DocumentLimits
from model.documents.notation.lines import lines_of
from model.documents.notation.template import TemplateBuilder
from model.errors import DocumentError

_FRONT_MATTER = re.compile(
    r"(?:---[ \t]*+\r?\n(?:[^\n]*+\n)*?(?:---|\.\.\.)"  # one way for every line
    r"|\+\+\+[ \t]*+\r?\n(?:[^\n]*+\n)*?\+\+\+)[ \t]*+(?:\r?\n|\Z)"
)


def open_markdown(data: bytes, _options: DocumentOptions, limits: DocumentLimits) -> Document:
    """A file of Markdown as a document.

    Raises:
        DocumentError: It is not text in UTF-8 or UTF-16, or has too many lines.
    """
    from model.documents.plain_text.markdown_lines import (  # noqa: PLC0415  # only Markdown waits for its parser
        add_lines,
    )

    encoded = decoded("md", data)
    builder = TemplateBuilder(kind="md", limits=limits)
    front = _FRONT_MATTER.match(encoded.text)
    begin = front.end() if front else 0
    lines = lines_of(encoded.text[begin:])
    if len(lines) > limits.max_texts:
        raise DocumentError("md", f"has {len(lines)} lines; at most {limits.max_texts} are read")
    builder.pieces.append(encoded.text[:begin])
    add_lines(builder, lines)
    return document_of("md", builder.template(), encoded.encoded)
