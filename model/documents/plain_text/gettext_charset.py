"""Charset of a catalogue: the one that its header declares, and the way back to bytes.

Owns where the declaration is, and what follows from it. Where the charset has all characters of the
translations they are written in it; otherwise the catalogue is in UTF-8 and its header says so, as
GNU gettext does it. What the strings of a catalogue are, `gettext` knows.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from model.documents.notation.encoding import charset_of_text, decoded, decoded_as, has_mark

_HEADER = re.compile(
    rb"^msgid[ \t]*+(?:\"\"\s*+)++msgstr[ \t]*+((?:\"(?:[^\"\\\n]|\\.)*+\"\s*+)++)", re.MULTILINE
)
_CHARSET = re.compile(rb"charset=([^\s\"\\]{1,40}+)")
"""As long as a name of a charset may be."""
_UNDECIDED = frozenset({"charset", "ascii", "us-ascii", "ansi_x3.4-1968"})
"""What a template declares before anybody has said more, and what is in every charset."""
_ESCAPE = re.compile(r"((?:\\[0-7]{1,3}|\\x[0-9A-Fa-f]{2})++)|\\(.)")
_BYTE = re.compile(r"\\(?:x(..)|([0-7]+))")
_MEANINGS = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogueText:
    """The characters of a catalogue, and how they are written.

    Attributes:
        text: They.
        mark: Its byte order mark, if it has one.
        codec: Python's name of its charset.
        is_declared: A header says its charset.
        spellings: Lines for which the charset has another notation too, as they were written.
    """

    text: str
    mark: bytes
    codec: str
    is_declared: bool
    spellings: Mapping[str, bytes]

    def meant(self, string: str) -> str:
        """What the inside of a quoted string means."""

        def character(found: re.Match[str]) -> str:
            if found[1] is None:
                return _MEANINGS.get(found[2], found[2])
            return _bytes_of(found[1]).decode(self._codec_of_bytes, errors="replace")

        return _ESCAPE.sub(character, string)

    def encoded(self, text: str) -> bytes:
        """The catalogue with translations, in its charset or, if that lacks some, in UTF-8."""
        if not self.is_declared:
            return self.mark + text.encode(self.codec)
        try:
            return b"\n".join(map(self._line, text.split("\n")))
        except UnicodeEncodeError:
            data = self._with_bytes_of_utf8(text).encode()
            found = _declaration(data)  # anew: translations may stand before it
            assert found is not None  # a header is never translated
            return data[: found.start(1)] + b"UTF-8" + data[found.end(1) :]

    @property
    def _codec_of_bytes(self) -> str:
        return "utf-8" if self.mark or self.codec == "ascii" else self.codec

    def _line(self, line: str) -> bytes:
        return self.spellings.get(line) or line.encode(self.codec)

    def _with_bytes_of_utf8(self, text: str) -> str:
        """A text whose strings give no character by other bytes than UTF-8 has for it."""

        def escape(found: re.Match[str]) -> str:
            data = _bytes_of(found[1] or "")
            if data.isascii():
                return found[0]
            meant = data.decode(self._codec_of_bytes, errors="replace")
            return "".join(f"\\{byte:03o}" for byte in meant.encode())

        return "\n".join(
            line if line.startswith("#") else _ESCAPE.sub(escape, line) for line in text.split("\n")
        )


def decoded_catalogue(data: bytes) -> CatalogueText:
    """A catalogue in the charset that it declares, else in UTF-8, or with a byte order mark.

    Raises:
        DocumentError: It is not in that charset, or the charset is not known.
    """
    found = None if has_mark(data) else _declaration(data)
    if found is None:
        file = decoded("po", data)
        return CatalogueText(
            text=file.text, mark=file.mark, codec=file.codec, is_declared=False, spellings={}
        )
    name = found[1].decode("ascii", "replace")
    is_undecided = name.lower() in _UNDECIDED
    file = decoded("po", data) if is_undecided else decoded_as("po", data, name)
    codec = "ascii" if is_undecided else file.codec
    return CatalogueText(
        text=file.text,
        mark=b"",
        codec=codec,
        is_declared=True,
        spellings=dict(_spellings(file.text, data, codec)),
    )


def charset_of_catalogue(head: bytes) -> str:
    """The charset of a catalogue, as a reply over HTTP says it.

    Args:
        head: Its first bytes, with its header.
    """
    found = None if has_mark(head) else _declaration(head)
    name = found[1].decode("ascii", "replace").lower() if found else ""
    return charset_of_text(head) if not name or name in _UNDECIDED else name


def _declaration(data: bytes) -> re.Match[bytes] | None:
    """Where the header of a catalogue, which may be any of its entries, says its charset."""
    header = _HEADER.search(data)
    return _CHARSET.search(data, *header.span(1)) if header else None


def _spellings(text: str, data: bytes, codec: str) -> Iterator[tuple[str, bytes]]:
    """Lines that would be written in other bytes than they are."""
    for line, written in zip(text.split("\n"), data.split(b"\n"), strict=True):
        if line.encode(codec, "replace") != written:
            yield line, written


def _bytes_of(escapes: str) -> bytes:
    numbers = (int(one or two, 16 if one else 8) for one, two in _BYTE.findall(escapes))
    return bytes(number & 0xFF for number in numbers)
