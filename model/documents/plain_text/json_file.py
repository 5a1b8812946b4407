"""JSON: every string that is a value is a text; names of members, numbers and layout stay.

Owns where strings are. The file is parsed as a whole first, by Python's `json`, so that a file that
is not JSON is refused, and strings are found in one that is.
"""

import json
import re
from itertools import accumulate

from model.documents.notation.document import Document, DocumentOptions, document_of
from model.documents.notation.encoding import decoded
from model.documents.notation.limits import DocumentLimits
from model.documents.notation.template import Escape, TemplateBuilder
from model.errors import DocumentError

_STRING = re.compile(r'"(?:[^"\\]|\\.)*+"')
_NAME_END = re.compile(r"\s*:")
_BRACKET = re.compile(rf"{_STRING.pattern}|[\[\]{{}}]")
_MAX_DEPTH = 500
"""Of lists and objects in each other: Python's `json` calls itself for each."""
_SURROGATE = re.compile("[\ud800-\udfff]")


def open_json(data: bytes, _options: DocumentOptions, limits: DocumentLimits) -> Document:
    """A file of JSON as a document.

    Raises:
        DocumentError: It is not JSON in UTF-8 or UTF-16, is nested too deeply, or has too many
            texts.
    """
    encoded = decoded("json", data)
    text = encoded.text
    depth, most = _depth(text), min(limits.max_depth, _MAX_DEPTH)
    if depth > most:
        raise DocumentError("json", f"is nested {depth} deep; at most {most} are read")
    try:
        json.loads(text, parse_int=str)  # `int` refuses very long numbers
    except ValueError as error:
        raise DocumentError("json", f"is not JSON: {error}") from error
    builder = TemplateBuilder(kind="json", limits=limits)
    done = 0
    for found in _STRING.finditer(text):
        if _NAME_END.match(text, found.end()):
            continue
        value = json.loads(found[0], strict=False)
        builder.pieces.append(text[done : found.start()])
        done = found.end()
        is_whole = _SURROGATE.search(value) is None
        builder.pieces.append(
            builder.plain(value, found[0], _notation(found[0])) if is_whole else found[0]
        )
    builder.pieces.append(text[done:])
    return document_of("json", builder.template(), encoded.encoded)


def _depth(text: str) -> int:
    """How many lists and objects are in each other."""
    brackets = (found[0] for found in _BRACKET.finditer(text) if found[0][0] != '"')
    return max(accumulate(1 if one in "[{" else -1 for one in brackets), default=0)


def _notation(raw: str) -> Escape:
    """How a string is written: in ASCII if it was and had to be."""
    is_ascii = "\\u" in raw and raw.isascii()
    return lambda text: json.dumps(text, ensure_ascii=is_ascii)
