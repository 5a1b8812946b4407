"""Encodings of text files: which one a file is in, and the way back to bytes.

Owns byte order marks, declarations of XML and HTML, names of encodings, and their refusals. What a
translation has that an old encoding lacks is written as a reference in XML and HTML, in XML also
what only browsers take for a part of it; a format that has no references says itself what is done
about it.
"""

import codecs
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

from model.errors import DocumentError, shown

Errors = Literal["strict", "xmlcharrefreplace"]

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# The first begins with the mark of UTF-16, behind which no text has a NUL.
_UTF32_MARKS = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
_XML_DECLARATION = re.compile(
    rb"^<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([A-Za-z0-9._:-]{1,40})[\"']"
)
_META_CHARSET = re.compile(
    rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([A-Za-z0-9._:-]{1,40})",
    re.IGNORECASE,
)
_META_REACH = 4096
# As browsers read them (WHATWG, Encoding, section 4.2).
_WIDER: Mapping[str, str] = MappingProxyType(
    {
        "iso8859-1": "cp1252",
        "ascii": "cp1252",
        "iso8859-9": "cp1254",
        "iso8859-11": "cp874",
        "tis-620": "cp874",
        "gb2312": "gb18030",
        "gbk": "gb18030",
        "shift_jis": "cp932",
        "euc_kr": "cp949",
        "utf-8-sig": "utf-8",
    }
)
# Labels of the same table that Python does not know, by its own name of what they mean.
_LABELS: Mapping[str, str] = MappingProxyType(
    {
        label: codec
        for codec, labels in {
            "utf-8": "unicode-1-1-utf-8 unicode11utf8 unicode20utf8 x-unicode20utf8",
            "utf-16-le": "csunicode iso-10646-ucs-2 ucs-2 unicode unicodefeff",
            "utf-16-be": "unicodefffe",
            "iso8859-2": "iso88592",
            "iso8859-3": "iso88593",
            "iso8859-4": "iso88594",
            "iso8859-5": "iso88595",
            "iso8859-6": "csiso88596e csiso88596i iso-8859-6-e iso-8859-6-i iso88596",
            "iso8859-7": "iso88597 sun_eu_greek",
            "iso8859-8": "csiso88598e iso-8859-8-e iso88598 visual"
            " csiso88598i iso-8859-8-i logical",
            "iso8859-10": "iso885910",
            "iso8859-13": "iso885913",
            "iso8859-14": "iso885914",
            "iso8859-15": "csisolatin9 iso885915",
            "koi8-r": "koi koi8",
            "koi8-u": "koi8-ru",
            "mac-roman": "csmacintosh mac x-mac-roman",
            "mac-cyrillic": "x-mac-cyrillic x-mac-ukrainian",
            "cp874": "dos-874 iso885911 windows-874",
            "cp1250": "x-cp1250",
            "cp1251": "x-cp1251",
            "cp1252": "iso88591 x-cp1252",
            "cp1253": "x-cp1253",
            "cp1254": "iso88599 x-cp1254",
            "cp1255": "x-cp1255",
            "cp1256": "x-cp1256",
            "cp1257": "x-cp1257",
            "cp1258": "x-cp1258",
            "gbk": "csgb2312 gb_2312 gb_2312-80 x-gbk",
            "big5": "cn-big5 x-x-big5",
            "euc_jp": "cseucpkdfmtjapanese x-euc-jp",
            "cp932": "windows-31j x-sjis",
            "cp949": "cseuckr csksc56011987 iso-ir-149 ks_c_5601-1989 ksc_5601 windows-949",
        }.items()
        for label in labels.split()
    }
)
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
        declared: Python's name of the encoding that its other readers take it for, which has fewer
            characters than `codec`, or nothing.
    """

    text: str
    mark: bytes
    codec: str
    errors: Errors = "strict"
    declared: str = ""

    def encoded(self, text: str) -> bytes:
        """Another text, written likewise."""
        if self.declared:
            # What the file itself has beyond its declaration stays as it is written there.
            new = set(text) - set(self.text)
            lacking = (ord(one) for one in new if not self._has_declared(one))
            text = text.translate({code: f"&#{code};" for code in lacking})
        return self.mark + text.encode(self.codec, self.errors)

    def _has_declared(self, character: str) -> bool:
        written = character.encode(self.codec, "ignore")
        return written.decode(self.declared, "ignore") == character


def has_mark(data: bytes) -> bool:
    """Whether a file begins with a byte order mark, which stands above what it declares."""
    return data.startswith((*(mark for mark, _ in _MARKS), *_UTF32_MARKS))


def decoded(kind: str, data: bytes) -> Encoded:
    """A file in UTF-8, or with the mark of UTF-16.

    Raises:
        DocumentError: It is neither.
    """
    mark, codec = _marked(kind, data)
    return _decoded(kind, data, mark, codec or "utf-8", "strict")


def decoded_markup(kind: str, data: bytes) -> Encoded:
    """A file of XML or HTML, in the encoding that it declares.

    Both are read as browsers read; a `meta` element declares it in HTML alone. What is new in a
    file of XML is written so that parsers read it too, which know no wider encoding than the one
    that is declared.

    Raises:
        DocumentError: It is not in that encoding, or the encoding is not known.
    """
    mark, codec = _marked(kind, data)
    if codec:
        return _decoded(kind, data, mark, codec, "xmlcharrefreplace")
    name = _declared(kind, data)
    codec = _as_browsers_read(kind, name) if name else "utf-8"
    file = _decoded(kind, data, mark, codec, "xmlcharrefreplace")
    exact = _known(kind, name) if name and kind != "html" else ""
    return replace(file, declared=exact) if exact in _WIDER and codec != "utf-8" else file


def charset_of_text(head: bytes) -> str:
    """The name, as a reply over HTTP says it, of the encoding of a file that `decoded` reads.

    Args:
        head: Its first bytes.
    """
    return "utf-16" if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8"


def charset_of_page(head: bytes) -> str:
    """The same of a page that `decoded_markup` reads; its first 4,096 bytes are enough."""
    name = "" if has_mark(head) else _declared("html", head)
    if not name or _as_browsers_read("html", name) == "utf-8":
        return charset_of_text(head)
    return name.lower()


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


def _marked(kind: str, data: bytes) -> tuple[bytes, str]:
    """The byte order mark of a file, and the codec that it tells, if there is one.

    Raises:
        DocumentError: It is that of UTF-32.
    """
    if data.startswith(_UTF32_MARKS):
        raise DocumentError(
            kind, "is text in UTF-32; files of text are UTF-8, or UTF-16 with its mark"
        )
    return next(((mark, name) for mark, name in _MARKS if data.startswith(mark)), (b"", ""))


def _declared(kind: str, data: bytes) -> str:
    """The encoding that a file of XML or HTML says it is in, or nothing."""
    match = _XML_DECLARATION.match(data)
    if match is None and kind == "html":
        match = _META_CHARSET.search(data[:_META_REACH])
    return match[1].decode("ascii") if match else ""


def _decoded(kind: str, data: bytes, mark: bytes, codec: str, errors: Errors) -> Encoded:
    try:
        text = data[len(mark) :].decode(codec)
    except UnicodeError as error:
        raise DocumentError(kind, f"is not text in {codec}: {error}") from error
    return Encoded(text=text, mark=mark, codec=codec, errors=errors)


def _known(kind: str, name: str) -> str:
    """Python's name of an encoding of text."""
    try:
        info = codecs.lookup(_LABELS.get(name.lower(), name))
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
