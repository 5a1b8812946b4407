"""Catalogues: ours finds, and writes, what polib and GNU gettext read in generated ones."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from random import Random

import polib
import pytest

from model.documents.formats import open_document
from model.errors import DocumentError
from support.library_texts import NUM_DOCUMENTS, line, translated

HEADER = (
    'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n'
    '"Plural-Forms: nplurals=2; plural=n != 1;\\n"\n\n'
)
ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r", "\v": "\\v"}
CHARACTERS = "abcXYZ  é猫\"'\\\n\t\r\v%{}<>&#~ 1"
MSGCAT = shutil.which("msgcat")


def quoted(chance: Random, text: str) -> str:
    """A text as one string, or as several on one line or on many."""

    def string(part: str) -> str:
        return '"' + "".join(ESCAPES.get(one, one) for one in part) + '"'

    if chance.random() < 0.5:
        return string(text)
    cuts = sorted(chance.sample(range(len(text) + 1), min(3, len(text))))
    parts = [text[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    return "\n".join([*['""'] * chance.randrange(2), *map(string, parts)])


def entry(chance: Random, number: int) -> Iterator[str]:
    """A message with a name of its own, with a translation or without."""
    if chance.random() < 0.3:
        yield f"# {number}\n#: a.c:{number}\n"
    if chance.random() < 0.2:
        yield '#, fuzzy\n#| msgid "before"\n'
    if chance.random() < 0.2:
        yield f"msgctxt {quoted(chance, line(chance, others=CHARACTERS))}\n"

    def said() -> str:
        is_said = chance.random() < 0.3
        return quoted(chance, line(chance, others=CHARACTERS)) if is_said else '""'

    text = f"{number}{line(chance, others=CHARACTERS)}"
    yield f"msgid {quoted(chance, text)}\n"
    if chance.random() < 0.3:
        several = f"%{line(chance, others=CHARACTERS)}"
        yield f"msgid_plural {quoted(chance, several)}\n"
        yield f"msgstr[0] {said()}\nmsgstr[1] {said()}\n"
    else:
        yield f"msgstr {said()}\n"
    yield chance.choice(["\n", "\n\n", ""])


def catalogue(chance: Random) -> str:
    """Sixty messages, and one that is obsolete."""
    entries = "".join("".join(entry(chance, number)) for number in range(60))
    return f'{HEADER}{entries}#~ msgid "obsolete"\n#~ msgstr ""\n'


Message = tuple[str | None, str, str, tuple[str, ...]]
"""Its context, what it says of one and of several, and all forms of its translation."""


def messages(data: str, folder: Path) -> list[Message]:
    """What polib reads; from a file, as it takes a text that is a file's name for that file."""
    path = folder / "read.po"
    path.write_bytes(data.encode())
    return [
        (one.msgctxt, one.msgid, one.msgid_plural, forms(one))
        for one in polib.pofile(str(path))
        if not one.obsolete
    ]


def forms(one: polib.POEntry) -> tuple[str, ...]:
    return tuple(one.msgstr_plural.values()) if one.msgid_plural else (one.msgstr,)


def filled(message: Message) -> tuple[str, ...]:
    """The forms of a translation after what is missing was translated."""
    _, single, several, said = message
    wanted = [single, *[several] * (len(said) - 1)]
    if not any(map(str.isalpha, single + several)):
        return said
    return tuple(
        form or (translated(one) if any(map(str.isalpha, one)) else one)
        for form, one in zip(said, wanted, strict=True)
    )


def texts(message: Message) -> Iterator[str]:
    """What of a message is translated, form by form."""
    _, single, several, said = message
    wanted = [single, *[several] * (len(said) - 1)]
    yield from (
        one
        for form, one in zip(said, wanted, strict=True)
        if not form and any(map(str.isalpha, one))
    )


def as_gettext_reads(data: str) -> str:
    """A catalogue that GNU gettext has read and written anew."""
    assert MSGCAT is not None
    command = [MSGCAT, "--no-wrap", "-"]
    made = subprocess.run(command, input=data.encode(), capture_output=True, check=False)
    assert made.returncode == 0, made.stderr.decode()
    return made.stdout.decode()


@pytest.mark.parametrize("is_gnu", [False, True])
@pytest.mark.parametrize("seed", range(NUM_DOCUMENTS))
def test_messages_are_what_polib_and_gettext_read(seed: int, is_gnu: bool, tmp_path: Path) -> None:
    if is_gnu and MSGCAT is None:
        pytest.skip("GNU gettext is not installed")
    source = catalogue(Random(seed))
    read = as_gettext_reads if is_gnu else str
    before = messages(read(source), tmp_path)
    assert len(before) == 60
    document = open_document(source.encode(), "po")
    assert list(document.texts) == [text for one in before for text in texts(one)]
    rebuilt = document.rebuild([translated(text) for text in document.texts]).decode()
    after = messages(read(rebuilt), tmp_path)
    assert after == [(*one[:3], filled(one)) for one in before]


@pytest.mark.parametrize(
    ("entry", "texts", "rebuilt"),
    [
        ('msgid\n"a cat"\nmsgstr\n""\n', ["a cat"], 'msgid\n"a cat"\nmsgstr\n"A CAT"\n'),
        ('msgid"a " "cat"\nmsgstr""\n', ["a cat"], 'msgid"a " "cat"\nmsgstr"A CAT"\n'),
        (
            'msgid "a cat"\nmsgid_plural "cats"\nmsgstr[ 0 ] ""\nmsgstr [1] ""\n',
            ["a cat", "cats"],
            'msgid "a cat"\nmsgid_plural "cats"\nmsgstr[ 0 ] "A CAT"\nmsgstr [1] "CATS"\n',
        ),
        (
            'domain "pets"\nmsgid "a cat"\nmsgstr ""\n',
            ["a cat"],
            'domain "pets"\nmsgid "a cat"\nmsgstr "A CAT"\n',
        ),
        (
            'msgid "\\aa \\143at \\303\\251\\x21"\nmsgstr ""\n',
            ["\aa cat é!"],
            'msgid "\\aa \\143at \\303\\251\\x21"\nmsgstr "\aA CAT É!"\n',
        ),
    ],
)
def test_what_gettext_reads_and_polib_may_not(entry: str, texts: list[str], rebuilt: str) -> None:
    if MSGCAT is not None:
        assert as_gettext_reads(HEADER + entry)
    document = open_document((HEADER + entry).encode(), "po")
    assert list(document.texts) == texts
    made = document.rebuild([text.upper() for text in document.texts]).decode()
    assert made == HEADER + rebuilt
    if MSGCAT is not None:
        assert as_gettext_reads(made)


@pytest.mark.parametrize("entry", ['msgid "a"\nmsgstr\n', 'msgid\n\n# x\n"a"\nmsgstr ""\n'])
def test_a_keyword_that_no_string_follows_is_named(entry: str) -> None:
    with pytest.raises(DocumentError, match=r"has a msg(id|str) that no string follows"):
        open_document(entry.encode(), "po")
