"""Subtitles (SubRip, WebVTT): the text of every cue; numbers, times, notes and styles stay.

Owns where a cue's text is, and its lines. A cue is one text, because its sentences go across its
lines, and is written back in at most as many lines; a cue of several speakers, each with a dash,
is one text a line. Tags inside a cue are marks, which the text path carries by itself.
"""

import re
from collections.abc import Callable, Iterator

from model.documents.notation.document import Document, DocumentOptions, document_of
from model.documents.notation.encoding import decoded
from model.documents.notation.limits import DocumentLimits
from model.documents.notation.template import Piece, TemplateBuilder
from model.errors import DocumentError

_TIMING = re.compile(
    r"[ \t]*(?:\d{1,3}:)?\d{1,3}:\d\d[,.]\d{1,3}[ \t]*-->[ \t]*(?:\d{1,3}:)?\d{1,3}:\d\d[,.]\d{1,3}"
)
_BREAK = re.compile(r"(?<=[^<\s])\s+(?![^<>]{0,200}>)|(?<=[，、。！？])(?=\S)")
_SPEAKER = re.compile(r"\s*[-–—]")
_MAX_LINES = 8
"""Of a cue that is one text; one of more lines is no subtitle, and a text a line."""


def open_srt(data: bytes, _options: DocumentOptions, limits: DocumentLimits) -> Document:
    """A file of SubRip as a document; errors as of `open_vtt`."""
    return _open("srt", data, limits)


def open_vtt(data: bytes, _options: DocumentOptions, limits: DocumentLimits) -> Document:
    """A file of WebVTT as a document.

    Raises:
        DocumentError: It is not text in UTF-8 or UTF-16, has no cue, or too many.
    """
    return _open("vtt", data, limits)


def _open(kind: str, data: bytes, limits: DocumentLimits) -> Document:
    encoded = decoded(kind, data)
    if kind == "vtt" and not encoded.text.startswith("WEBVTT"):
        raise DocumentError(kind, "does not begin with WEBVTT")
    builder = TemplateBuilder(kind=kind, limits=limits)
    lines = re.findall(r"[^\n]*\n|[^\n]+", encoded.text)
    num_cues = 0
    place = 0
    while place < len(lines):
        builder.pieces.append(lines[place])
        place += 1
        if _TIMING.match(lines[place - 1]) is None:
            continue
        num_cues += 1
        end = place
        while end < len(lines) and lines[end].strip():
            end += 1
        builder.pieces.extend(_cue(builder, lines[place:end]))
        place = end
    if encoded.text.strip() and not num_cues and kind == "srt":
        raise DocumentError(kind, "has no cue: no line has two times with --> between")
    return document_of(kind, builder.template(), encoded.encoded)


def _cue(builder: TemplateBuilder, lines: list[str]) -> Iterator[Piece]:
    if not lines:
        return
    is_dialogue = len(lines) > _MAX_LINES or any(map(_SPEAKER.match, lines))
    for group in [[line] for line in lines] if is_dialogue else [lines]:
        raw = "".join(group)
        bare = raw.rstrip("\r\n")
        text = " ".join(line.strip() for line in group)
        break_ = "\r\n" if group[0].endswith("\r\n") else "\n"
        yield builder.plain(text, bare, _in_lines(len(group), break_))
        yield raw[len(bare) :]


def _in_lines(num_lines: int, line_break: str) -> Callable[[str], str]:
    """How a translation is written in so many lines, or fewer: about equally long ones."""

    def written(text: str) -> str:
        lines, rest = [], text.replace("-->", "→")
        for left in range(num_lines, 1, -1):
            place = _cut(rest, left)
            lines.append(rest[:place].rstrip())
            rest = rest[place:].lstrip()
        return line_break.join(line for line in [*lines, rest] if line)

    return written


def _cut(text: str, num_lines: int) -> int:
    """Where the first of so many lines ends: at the space nearest to its share.

    Text without spaces, as in Chinese, is cut behind a sign or at its share.
    """
    share = len(text) // num_lines
    spaces = [match.end() for match in _BREAK.finditer(text)]
    if spaces:
        return min(spaces, key=lambda place: abs(place - share))
    return len(text) if text.isascii() else share
