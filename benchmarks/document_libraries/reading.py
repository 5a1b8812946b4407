"""Reading: whether a library that reads into objects finds the texts that ours finds.

Owns files of text in notations that are rarely written, and the comparison, text by text, of what
polib, srt and webvtt-py read with what ours does. None of them tells where in a file a text is;
this asks only whether what they say of it would do.
"""

import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypedDict

import polib
import srt
import webvtt

from benchmarks.document_libraries.files import File
from model.documents.formats import open_document
from model.errors import DocumentError
from model.text.marks.inline_codes import without_codes


class Otherwise(TypedDict):
    """A file that a library reads otherwise: in how many texts, and the first of them."""

    file: str
    texts: int
    ours: str
    theirs: str


class Reading(TypedDict):
    """How many files a library was asked for, how many texts ours found, and where it differs."""

    files: int
    texts: int
    read_otherwise: list[Otherwise]


_HEADER = (
    'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n'
    '"Plural-Forms: nplurals=2; plural=n != 1;\\n"\n\n'
)
_TAG = re.compile(r"<[^<>]*>")
"""Of a cue, which is no text to ours."""
_TRANSLATION = re.compile(rb'^(msgstr(?:\[\d+\])?) ".*(?:\n".*)*', re.MULTILINE)
_CUES = "1\n00:00:01,000 --> 00:00:02,000\n{}\n\n2\n00:00:03,000 --> 00:00:04,000\nA dog.\n"
_CAPTIONS = "WEBVTT\n\n00:01.000 --> 00:02.000\n{}\n\n00:03.000 --> 00:04.000\nA dog.\n"
NOTATIONS: Mapping[str, Mapping[str, str]] = {
    "po": {
        "bell": f'{_HEADER}msgid "a\\a cat"\nmsgstr ""\n',
        "bytes as octal numbers": f'{_HEADER}msgid "caf\\303\\251"\nmsgstr ""\n',
        "bytes as hexadecimal numbers": f'{_HEADER}msgid "caf\\xc3\\xa9"\nmsgstr ""\n',
        "two strings on a line": f'{_HEADER}msgid "a " "cat"\nmsgstr ""\n',
        "no space after a keyword": f'{_HEADER}msgid"a cat"\nmsgstr""\n',
        "a keyword on its own line": f'{_HEADER}msgid\n"a cat"\nmsgstr\n""\n',
        "spaces in an index": (
            f'{_HEADER}msgid "a cat"\nmsgid_plural "cats"\nmsgstr[ 0 ] ""\nmsgstr[ 1 ] ""\n'
        ),
        "a domain": f'{_HEADER}domain "x"\nmsgid "a cat"\nmsgstr ""\n',
        "no empty line between": (f'{_HEADER}msgid "a cat"\nmsgstr ""\nmsgid "a dog"\nmsgstr ""\n'),
        "one message in two contexts": (
            f'{_HEADER}msgctxt "x"\nmsgid "a cat"\nmsgstr ""\n\nmsgid "a cat"\nmsgstr ""\n'
        ),
        "obsolete, and a previous one": (
            f'{_HEADER}#~ msgid "a dog"\n#~ msgstr ""\n\n#| msgid "x"\nmsgid "a cat"\nmsgstr ""\n'
        ),
    },
    "srt": {
        "plain": _CUES.format("A cat."),
        "tags": _CUES.format('<i>A</i> <font color="red">cat</font>'),
        "no milliseconds": _CUES.format("A cat.").replace(",000", ""),
        "no empty line between": _CUES.format("A cat.").replace("\n\n", "\n"),
        "text before the first": f"By nobody\n\n{_CUES.format('A cat.')}",
        "lines that end in CR": _CUES.format("A cat.").replace("\n", "\r"),
    },
    "vtt": {
        "plain": _CAPTIONS.format("A cat."),
        "tags": _CAPTIONS.format("<v Ann><i>A cat</i>"),
        "times in a cue": _CAPTIONS.format("A <00:01.500>cat"),
        "a note": _CAPTIONS.format("A cat.\n\nNOTE x"),
        "no empty line between": _CAPTIONS.format("A cat.").replace("\n\n0", "\n0"),
        "lines that end in CR": _CAPTIONS.format("A cat.").replace("\n", "\r"),
    },
}


def reading(found: Sequence[File]) -> dict[str, Reading]:
    """Of every library how many files and texts it was asked for, and where it read otherwise."""
    cases: dict[str, list[tuple[str, bytes]]] = {
        kind: [(name, text.encode()) for name, text in made.items()]
        for kind, made in NOTATIONS.items()
    }
    cases["po"] += [(file.name, _emptied(file.data)) for file in found if file.kind == "po"]
    return {
        library: _compared(kind, cases[kind], read) for kind, (library, read) in _LIBRARIES.items()
    }


def _compared(
    kind: str, cases: Sequence[tuple[str, bytes]], read: Callable[[bytes], Iterator[str]]
) -> Reading:
    num_texts = 0
    others: list[Otherwise] = []
    for name, data in cases:
        ours = _said(lambda data: map(without_codes, open_document(data, kind).texts), data)
        theirs = _said(read, data)
        num_texts += len(ours)
        pairs = [(one, two) for one, two in zip(ours, theirs, strict=False) if one != two]
        if len(ours) != len(theirs) or pairs:
            num = max(len(pairs), abs(len(ours) - len(theirs)))
            first = pairs[0] if pairs else (f"{len(ours)} texts", f"{len(theirs)} texts")
            others.append({"file": name, "texts": num, "ours": first[0], "theirs": first[1]})
    return {"files": len(cases), "texts": num_texts, "read_otherwise": others}


def _said(read: Callable[[bytes], Iterator[str]], data: bytes) -> list[str]:
    """Texts, or the error that came instead."""
    try:
        return [" ".join(text.split("\n")) if "\n" in text else text for text in read(data)]
    except (DocumentError, OSError, ValueError, srt.SRTParseError) as error:
        return [type(error).__name__]


def _emptied(data: bytes) -> bytes:
    """A catalogue without its translations, but for the header's."""
    header, between, rest = data.partition(b"\n\n")
    return header + between + _TRANSLATION.sub(rb'\1 ""', rest)


def _by_polib(data: bytes) -> Iterator[str]:
    # From a file: a text that is a file's name is taken for that file.
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "read.po"
        path.write_bytes(data)
        entries = polib.pofile(str(path))
    for entry in entries:
        forms = [entry.msgstr_plural[key] for key in sorted(entry.msgstr_plural)] or [entry.msgstr]
        wanted = [entry.msgid, *[entry.msgid_plural] * (len(forms) - 1)]
        if not entry.obsolete and not any(forms):
            yield from (text for text in wanted if any(map(str.isalpha, text)))


def _by_srt(data: bytes) -> Iterator[str]:
    return (_TAG.sub("", cue.content) for cue in srt.parse(data.decode()))


def _by_webvtt(data: bytes) -> Iterator[str]:
    captions = webvtt.from_string(data.decode()).captions
    return (_TAG.sub("", caption.raw_text) for caption in captions)


_LIBRARIES: Mapping[str, tuple[str, Callable[[bytes], Iterator[str]]]] = {
    "po": ("polib", _by_polib),
    "srt": ("srt", _by_srt),
    "vtt": ("webvtt-py", _by_webvtt),
}
