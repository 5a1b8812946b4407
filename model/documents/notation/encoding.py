"""Encodings of text files: which one a file is in, and the way back to bytes.

Owns byte order marks, declarations of XML and HTML, names of encodings, and their refusals. What a
translation has that an old encoding lacks is written as a reference in XML and HTML; a format that
has no references says itself what is done about it.
"""

import codecs
import re
from dataclasses import dataclass
from typing import Literal

from model.errors import DocumentError, shown

Errors = Literal["strict", "xmlcharrefreplace"]

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_XML_DECLARATION = re.compile(
    rb"^<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([A-Za-z0-9._:-]{1,40})[\"']"
)
_META_CHARSET = re.compile(
    rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([A-Za-z0-9._:-]{1,40})",
    re.IGNORECASE,
)
_META_REACH = 4096
# As browsers read them.
_WIDER = {
    "iso8859-1": "cp1252",
    "ascii": "cp1252",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "utf-8-sig": "utf-8",
}
# Codecs of Python that no file is in; some take quadratic time.
_NO_ENCODINGS = frozenset(
    {"idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape", "utf-7"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoded:
    """The text of a file, and how it was written.

    Attributes:
        text: Its characters.
        mark: Its byte order mark, if it has one.
        codec: Python's name of its encoding.
        errors: What is done about characters that the encoding lacks.
    """

    text: str
    mark: bytes
    codec: str
    errors: Errors = "strict"

    def encoded(self, text: str) -> bytes:
        """Another text, written likewise."""
        return self.mark + text.encode(self.codec, self.errors)


def has_mark(data: bytes) -> bool:
    """Whether a file begins with a byte order mark, which stands above what it declares."""
    return data.startswith(tuple(mark for mark, _ in _MARKS))


def decoded(kind: str, data: bytes) -> Encoded:
    """A file in UTF-8, or with the mark of UTF-16.

    Raises:
        DocumentError: It is neither.
    """
    mark, codec = next(((mark, name) for mark, name in _MARKS if data.startswith(mark)), (b"", ""))
    return _decoded(kind, data, mark, codec or "utf-8", "strict")


def decoded_markup(kind: str, data: bytes) -> Encoded:
    """A file of XML or HTML, in the encoding that it declares.

    Raises:
        DocumentError: It is not in that encoding, or the encoding is not known.
    """
    mark, codec = next(((mark, name) for mark, name in _MARKS if data.startswith(mark)), (b"", ""))
    if not codec:
        match = _XML_DECLARATION.match(data) or _META_CHARSET.search(data[:_META_REACH])
        codec = _as_browsers_read(kind, match[1].decode("ascii")) if match else "utf-8"
    return _decoded(kind, data, mark, codec, "xmlcharrefreplace")


def decoded_as(kind: str, data: bytes, name: str) -> Encoded:
    """A file in an encoding that has a name, exactly that, and has ASCII's characters as ASCII has.

    Raises:
        DocumentError: It is not in that encoding, or the encoding is not known.
    """
    codec = _known(kind, name)
    ascii_bytes = bytes(range(0x80))
    if codec.startswith("iso2022") or ascii_bytes.decode().encode(codec, "replace") != ascii_bytes:
        raise _unknown(kind, name)
    return _decoded(kind, data, b"", codec, "strict")


def _decoded(kind: str, data: bytes, mark: bytes, codec: str, errors: Errors) -> Encoded:
    try:
        text = data[len(mark) :].decode(codec)
    except UnicodeError as error:
        raise DocumentError(kind, f"is not text in {codec}: {error}") from error
    return Encoded(text=text, mark=mark, codec=codec, errors=errors)


def _known(kind: str, name: str) -> str:
    """Python's name of an encoding of text."""
    try:
        info = codecs.lookup(name)
        "".encode(info.name)
    except (LookupError, ValueError) as error:  # ValueError: a NUL in the name, too
        raise _unknown(kind, name) from error
    if info.name in _NO_ENCODINGS:
        raise _unknown(kind, name)
    return info.name


def _as_browsers_read(kind: str, name: str) -> str:
    codec = _known(kind, name)
    # A declaration that can be read is not in UTF-16, whatever it says.
    is_wide = codec.startswith(("utf-16", "utf-32"))
    return _WIDER.get(codec, "utf-8" if is_wide else codec)


def _unknown(kind: str, name: str) -> DocumentError:
    return DocumentError(kind, f"is in an unknown encoding, {shown(name)}")
