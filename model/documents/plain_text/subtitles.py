"""Subtitles (SubRip, WebVTT): the text of every cue; numbers, times, notes and styles stay.

Owns where a cue's text is, its tags and references, and its lines. A cue is one text, because its
sentences go across its lines, and is written back in at most as many lines; a cue of several
speakers, each with a dash, is one text a line, as is one whose lines all end with a sentence. Tags
and the times inside of a cue are inline codes. A reference is the character that it means, in
SubRip too, which has none by itself.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate, groupby
from types import MappingProxyType

from model.documents.notation.assembly import (
    REFERENCE,
    SPACES,
    Assembler,
    Token,
    TokenKind,
    references_of,
    xml_unescape,
)
from model.documents.notation.document import Document, DocumentOptions, document_of
from model.documents.notation.encoding import decoded
from model.documents.notation.limits import DocumentLimits
from model.documents.notation.lines import lines_of
from model.documents.notation.template import Escape, TemplateBuilder
from model.errors import DocumentError
from model.text.sentences.segmenter import sentence_spans

_TIME = r"(?:\d{1,3}:)?\d{1,3}:\d{1,2}(?:[,.:]\d{1,9})?"
_TIMING = re.compile(rf"[ \t]*{_TIME}[ \t]*-[- ]?>[ \t]*{_TIME}")
_NUMBER = re.compile(r"-?\d{1,9}")
_BREAK = re.compile(r"\r\n?|\n")
_TAG = re.compile(
    r"(?P<closing></[A-Za-z][^<>\r\n]{0,200}>)"
    r"|(?P<lone><(?:\d{1,3}:)?\d{1,3}:\d{1,2}[.,]\d{1,9}>|<br[ ]?/?>|\{\\[^{}\r\n]{0,200}\})"
    r"|(?P<opening><[A-Za-z][^<>\r\n]{0,200}>)"
    rf"|(?P<reference>{REFERENCE.pattern})",
    re.IGNORECASE,
)
"""Tags, times at which words are sung, and settings ({\\an8}); references, which are text."""
_KINDS: Mapping[str, TokenKind] = MappingProxyType({"opening": "opening", "closing": "closing"})
_TAG_LIKE = re.compile(r"<(?=/?[A-Za-z][^<>\r\n]{0,200}>)")
_REFERENCE_LIKE = re.compile(rf"(?={REFERENCE.pattern})&")
_NO_TEXT = frozenset({"Cc", "Cs", "Zl", "Zp"})
"""Categories of characters that no line is written with."""
_WHOLE = r"<[^<>\r\n]{0,200}>|\{[^{}\r\n]{0,200}\}|&#?[A-Za-z0-9]{1,32};"
"""Tags, settings and references, into which nothing goes."""
_WIDE = (
    "[\u3005-\u3007\u3041-\u3096\u309d\u309e\u30a1-\u30ff\u3400-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff]"
)
"""Letters of Chinese and Japanese, which have no spaces between words."""
_NEVER_FIRST = "[\u3005ぁぃぅぇぉっゃゅょゎァィゥェォッャュョヮ・ーヽヾゝゞ]"
_SIGNS, _CLOSERS = "，、。！？", "」』”’）》】"
_CUT = re.compile(
    rf"{_WHOLE}|(?P<clear>(?<=\S)\s+|(?<=[{_SIGNS}])[{_CLOSERS}]*+(?![{_SIGNS}…：；]|\s|\Z))"
    rf"|(?P<narrow>(?<={_WIDE})(?={_WIDE})(?!{_NEVER_FIRST}))"
)
"""Where a line may end: at a space or behind a sign, and if there is none, between two letters."""
_SPEAKER = re.compile(r"(?:\s|<[^<>]{0,200}>|\{[^{}]{0,200}\}){0,20}+[-–—]")
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
    lines = lines_of(encoded.text)
    num_cues = 0
    place = 0
    while place < len(lines):
        builder.pieces.append(lines[place])
        place += 1
        if _TIMING.match(lines[place - 1]) is None:
            continue
        num_cues += 1
        end = _end_of_cue(kind, lines, place)
        for has_text, group in groupby(lines[place:end], _is_text):
            if has_text:
                _add_cue(builder, list(group))
            else:
                builder.pieces.extend(group)
        place = end
    if encoded.text.strip() and not num_cues and kind == "srt":
        raise DocumentError(kind, "has no cue: no line has two times with --> between")
    return document_of(kind, builder.template(), encoded.encoded)


def _end_of_cue(kind: str, lines: list[str], place: int) -> int:
    """Where a cue ends whose text begins on a line.

    In WebVTT that is an empty line, or one with an arrow. SubRip ends cues by the next one's times,
    with or without its number: a cue may have empty lines, and none need stand between two.
    """
    is_srt = kind == "srt"
    ends = (
        at
        for at in range(place, len(lines))
        if (_TIMING.match(lines[at]) if is_srt else "-->" in lines[at] or not lines[at].strip())
    )
    end = next(ends, len(lines))
    has_number = is_srt and place < end < len(lines) and _NUMBER.fullmatch(lines[end - 1].strip())
    return end - 1 if has_number else end


def _is_text(line: str) -> bool:
    """Whether a line of a cue is read out; times that nothing reads as such are left alone."""
    return bool(line.strip()) and "-->" not in line


def _add_cue(builder: TemplateBuilder, lines: Sequence[str]) -> None:
    """Put the lines of a cue into a template."""
    is_apart = len(lines) > _MAX_LINES or any(map(_SPEAKER.match, lines)) or _are_sentences(lines)
    for group in [[line] for line in lines] if is_apart else [lines]:
        raw = "".join(group)
        bare = raw.rstrip("\r\n")
        assembler = Assembler(builder, escaped=partial(_escaped, builder.kind), layout=_in_lines)
        for token in _tokens(bare):
            assembler.add(token)
        assembler.flush()
        builder.pieces.append(raw[len(bare) :])


def _are_sentences(lines: Sequence[str]) -> bool:
    """Whether each of several lines ends where a sentence does."""
    if len(lines) == 1:
        return False
    said = ["".join(token.text for token in _tokens(line)).strip() for line in lines]
    text = " ".join(said)
    ends = accumulate(said, lambda end, line: end + 1 + len(line), initial=-1)
    return {*ends} - {-1} <= {end for _, end in sentence_spans(text, "")}


def _tokens(raw: str) -> Iterator[Token]:
    """The lines of a cue as text and tags; a reference that is no text of a line stays as it is."""
    done = 0
    for found in _TAG.finditer(raw):
        name = found.lastgroup
        if name == "reference" and _is_text_of_line(xml_unescape(found[0])):
            continue
        yield from _texts(raw[done : found.start()])
        is_apart = found[0].startswith("<br")
        yield Token(kind=_KINDS.get(name or "", "lone"), pieces=(found[0],), is_apart=is_apart)
        done = found.end()
    yield from _texts(raw[done:])


def _texts(raw: str) -> Iterator[Token]:
    if raw:
        yield Token(kind="text", pieces=(raw,), text=xml_unescape(raw))


def _is_text_of_line(meant: str) -> bool:
    return not any(one in SPACES or unicodedata.category(one) in _NO_TEXT for one in meant)


def _escaped(kind: str, raw: str) -> Escape:
    """How text is written: with the references of its source, and with those that it needs."""
    table = references_of(raw)
    if kind == "vtt":
        table.setdefault(ord("<"), "&lt;")

    def escape(text: str) -> str:
        if ord("&") not in table:
            text = _REFERENCE_LIKE.sub("&amp;", text)
        return _TAG_LIKE.sub("&lt;", text.translate(table))

    return escape


def _in_lines(raw: str) -> Escape:
    """How a translation is written in the lines of its source, or fewer: about equally long."""
    breaks: list[str] = _BREAK.findall(raw)

    def written(text: str) -> str:
        lines, rest = [], text.replace("-->", "→")
        for left in range(len(breaks) + 1, 1, -1):
            place = _cut(rest, left)
            lines.append(rest[:place].rstrip())
            rest = rest[place:].lstrip()
        return (breaks or ["\n"])[0].join(line for line in [*lines, rest] if line)

    return written


def _cut(text: str, num_lines: int) -> int:
    """Where the first of so many lines ends: at the place nearest to its share of what is seen.

    Text without such a place, as one long word is, is not cut.
    """
    places: dict[str, list[tuple[int, int]]] = {"clear": [], "narrow": []}
    num_unseen = 0
    for found in _CUT.finditer(text):
        if found.lastgroup is None:
            num_unseen += len(found[0])
        else:
            places[found.lastgroup].append((found.end(), found.end() - num_unseen))
    share = (len(text) - num_unseen) // num_lines
    nearest = places["clear"] or places["narrow"]
    return min(nearest, key=lambda one: abs(one[1] - share), default=(len(text), 0))[0]
