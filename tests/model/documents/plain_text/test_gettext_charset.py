"""Catalogues in other charsets than UTF-8: read and written as GNU gettext does it."""

import re
import shutil
import subprocess
from pathlib import Path
from random import Random

import polib
import pytest

from model.documents.formats import open_document
from model.errors import DocumentError

NEEDS_GETTEXT = pytest.mark.skipif(
    shutil.which("msgconv") is None, reason="GNU gettext is not installed"
)
HEADER = (
    'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset={}\\n"\n'
    '"Plural-Forms: nplurals=2; plural=n != 1;\\n"\n\n'
)
CHARSETS = {
    "ISO-8859-1": "àéîõüßÅÆØ",
    "ISO-8859-2": "ąłľśšťžŕőß",
    "ISO-8859-3": "ħĥıĝĵċ",
    "ISO-8859-4": "ąĸŗĩļēģ",
    "ISO-8859-5": "привет",
    "ISO-8859-6": "مرحبا",
    "ISO-8859-7": "γειάσου",
    "ISO-8859-8": "שלום",
    "ISO-8859-9": "ğışİç",
    "ISO-8859-13": "ąčęėįšųūž",
    "ISO-8859-14": "ŵŷḃḋ",
    "ISO-8859-15": "œŒŸŠž€é",
    "KOI8-R": "Привет",
    "KOI8-U": "їєіґ",
    "KOI8-T": "тоҷикӣ",
    "CP850": "éàü",
    "CP866": "Привет",
    "CP874": "สวัสดี",
    "CP932": "日本語示",
    "CP949": "한국어똠",
    "CP950": "繁體中文功",
    "CP1250": "ąłśžő",
    "CP1251": "Привет",
    "CP1252": "œž€é",
    "CP1253": "γειά",
    "CP1254": "ğış",
    "CP1255": "שלום",
    "CP1256": "مرحباپ",
    "CP1257": "ąčęė",
    "GB2312": "简体中文",
    "EUC-JP": "日本語表示ソ",
    "EUC-KR": "한국어",
    "BIG5": "繁體中文功許蓋",
    "BIG5-HKSCS": "繁體中文嘅",
    "GBK": "简體中文嘅",
    "GB18030": "简體中文😀",
    "SHIFT_JIS": "日本語表示ソ",
    "JOHAB": "한국어",
    "TIS-620": "สวัสดี",
    "UTF-8": "é日😀",
}
"""Charsets that GNU gettext lists and Python knows, with characters of theirs."""
READ_BY_GETTEXT = [one for one in CHARSETS if one != "CP1255"]
"""Version 0.21 of GNU gettext aborts in that one's Hebrew."""


def catalogue(charset: str, letters: str, chance: Random) -> str:
    """Messages of letters of a charset, of which some have a translation."""

    def word() -> str:
        return "".join(chance.choice(f"{letters}{letters} aB%") for _ in range(12))

    entries = [
        f'# {word()}\n#: a.c:{number}\nmsgid "{number} {word()}\\n"\n"{word()}"\n'
        f'msgstr "{chance.choice(["", word()])}"\n\n'
        for number in range(40)
    ]
    plural = f'msgid "one {word()}"\nmsgid_plural "all {word()}"\nmsgstr[0] ""\nmsgstr[1] ""\n'
    return HEADER.format(charset) + "".join(entries) + plural


def forms(one: polib.POEntry) -> tuple[str, ...]:
    return tuple(one.msgstr_plural.values()) or (one.msgstr,)


def in_utf8(data: bytes) -> str:
    """A catalogue that GNU gettext has brought into UTF-8."""
    command = ["msgconv", "--no-wrap", "--to-code=UTF-8"]
    made = subprocess.run(command, input=data, capture_output=True, check=False)
    assert (made.returncode, made.stderr) == (0, b""), made.stderr.decode()
    return made.stdout.decode()


def with_translations(data: bytes, letters: str) -> bytes:
    """A catalogue whose texts are their own translations, with letters behind."""
    document = open_document(data, "po")
    return document.rebuild([f"{text} {letters}" for text in document.texts])


@NEEDS_GETTEXT
@pytest.mark.parametrize("charset", READ_BY_GETTEXT)
def test_every_charset_is_read_and_written_as_gettext_does_it(charset: str) -> None:
    letters = CHARSETS[charset]
    text = catalogue(charset, letters, Random(charset))
    data = text.encode(charset)
    unified = in_utf8(data).encode()
    assert open_document(data, "po").texts == open_document(unified, "po").texts
    result = with_translations(data, letters)
    assert f"charset={charset}".encode() in result
    assert in_utf8(result) == in_utf8(with_translations(unified, letters))


@NEEDS_GETTEXT
@pytest.mark.parametrize("charset", sorted({*READ_BY_GETTEXT} - {"UTF-8", "GB18030"}))
def test_what_a_charset_lacks_makes_the_catalogue_one_of_utf8(charset: str, tmp_path: Path) -> None:
    data = catalogue(charset, CHARSETS[charset], Random(charset)).encode(charset)
    result = with_translations(data, "😀")
    assert b"charset=UTF-8\\n" in result
    assert in_utf8(result) == in_utf8(with_translations(in_utf8(data).encode(), "😀"))
    before = {line for line in data.decode(charset).splitlines() if not line.startswith("msgstr")}
    gone = before - set(result.decode().splitlines())
    assert gone == {f'"Content-Type: text/plain; charset={charset}\\n"'}
    path = tmp_path / "made.po"
    path.write_bytes(result)
    said = [form for one in polib.pofile(str(path)) for form in forms(one) if "😀" in form]
    assert len(said) == len(open_document(data, "po").texts)


@pytest.mark.parametrize("charset", CHARSETS)
def test_all_that_is_not_translated_comes_back_byte_for_byte(charset: str) -> None:
    letters = CHARSETS[charset]
    data = catalogue(charset, letters, Random(charset)).encode(charset)
    result = with_translations(data, letters)
    empty = re.compile(rb'msgstr(?:\[\d\])? "".*?(?=\n\n|\nmsgstr|\Z)', re.DOTALL)
    header, rest = data.split(b"\n\n", 1)
    assert result.startswith(header)
    stays = empty.split(rest)
    assert len(stays) > 10
    place = 0
    for stretch in stays:
        place = result.index(stretch, place) + len(stretch)
    whole = re.sub(rb'msgstr(\[\d\])? ""', rb'msgstr\1 "said"', rest)
    said = header + b"\n\n" + whole
    assert open_document(said, "po").rebuild([]) == said


def test_lines_that_a_charset_writes_in_two_ways_stay_as_they_were() -> None:
    header = HEADER.format("CP932").encode()
    old, new = b"\x87\x90 \xed\x40 NEC", "≒ 纊 NEC".encode("cp932")
    assert (old.decode("cp932"), old != new) == ("≒ 纊 NEC", True)
    data = header + b"# " + old + b'\nmsgid "' + old + b'"\nmsgstr ""\n'
    result = open_document(data, "po").rebuild(["訳"])
    assert result == data[:-3] + b'"' + "訳".encode("cp932") + b'"\n'


@NEEDS_GETTEXT
def test_bytes_that_a_string_gives_as_numbers_are_in_the_charset_too() -> None:
    data = (HEADER.format("ISO-8859-1") + 'msgid "caf\\351 \\xe8\\\\351"\nmsgstr ""\n').encode()
    document = open_document(data, "po")
    assert document.texts == ("café è\\351",)
    assert in_utf8(data) == in_utf8(in_utf8(data).encode())
    assert 'msgid "café è\\\\351"' in in_utf8(data)
    fits, fits_not = document.rebuild(["é"]), document.rebuild(["猫"])
    assert b'msgid "caf\\351 \\xe8\\\\351"' in fits
    assert b"caf\\303\\251 \\303\\250\\\\351" in fits_not
    for result, said in ((fits, "é"), (fits_not, "猫")):
        assert f'msgid "café è\\\\351"\nmsgstr "{said}"' in in_utf8(result)


@pytest.mark.parametrize("charset", ["CHARSET", "ASCII", "US-ASCII"])
def test_a_template_that_declares_no_charset_is_in_utf8_as_soon_as_it_has_to_be(
    charset: str,
) -> None:
    data = (HEADER.format(charset) + 'msgid "a cat"\nmsgstr ""\n').encode()
    document = open_document(data, "po")
    assert document.rebuild(["Eine Katze"]) == data[:-3] + b'"Eine Katze"\n'
    assert document.rebuild(["猫"]) == (
        data[:-3].replace(f"={charset}".encode(), b"=UTF-8") + '"猫"\n'.encode()
    )
    existing = data + '# é\nmsgid "x"\nmsgstr "é"\n'.encode()
    assert open_document(existing, "po").rebuild(["y"]) == existing.replace(b'""\n#', b'"y"\n#')


def test_a_header_may_stand_behind_messages(tmp_path: Path) -> None:
    message = 'msgid "a cat"\nmsgstr ""\n\n'
    said = 'msgid "caf\\351"\nmsgstr "caf\\351"\n\n'
    data = (message + said + HEADER.format("ISO-8859-1")).encode()
    document = open_document(data, "po")
    fits = document.rebuild(["Kätzchen"])
    assert fits == data.replace(b'msgstr ""\n\n', 'msgstr "Kätzchen"\n\n'.encode("latin-1"), 1)
    result = document.rebuild(["一只猫" * 20])
    assert result.decode() == (
        (message.replace('msgstr ""', f'msgstr "{"一只猫" * 20}"') + said + HEADER.format("UTF-8"))
        .replace("\\351", "\\303\\251")
    )  # fmt: skip
    path = tmp_path / "made.po"
    path.write_bytes(result)
    assert polib.pofile(str(path)).metadata["Content-Type"] == "text/plain; charset=UTF-8"


def test_a_mark_stands_above_what_the_header_says_and_no_header_is_utf8() -> None:
    text = HEADER.format("ISO-8859-1") + 'msgid "naïve"\nmsgstr ""\n'
    for codec in ("utf-8-sig", "utf-16"):
        document = open_document(text.encode(codec), "po")
        assert document.texts == ("naïve",)
        assert document.rebuild(["猫"]).decode(codec) == text[:-3] + '"猫"\n'
    message = 'msgid "<meta charset=koi8-r> naïve"\nmsgstr ""\n'
    assert open_document(message.encode(), "po").texts == ("<meta charset=koi8-r> naïve",)


@pytest.mark.parametrize(
    ("charset", "problem"),
    [
        ("KLINGON-1", "is in an unknown encoding, 'KLINGON-1'"),
        ("VISCII", "is in an unknown encoding, 'VISCII'"),
        ("ISO-2022-JP", "is in an unknown encoding, 'ISO-2022-JP'"),
        ("UTF-16", "is in an unknown encoding, 'UTF-16'"),
        ("UTF-7", "is in an unknown encoding, 'UTF-7'"),
        ("utf-8-sig", "is in an unknown encoding, 'utf-8-sig'"),
        ("rot13", "is in an unknown encoding, 'rot13'"),
        ("a\0b", r"is in an unknown encoding, 'a\x00b'"),
        ("a" * 200, f"is in an unknown encoding, '{'a' * 40}'"),
        ("EUC-JP", "is not text in euc_jp: "),
        ("UTF-8", "is not text in utf-8: "),
    ],
)
def test_what_nobody_can_read_is_named(charset: str, problem: str) -> None:
    data = HEADER.format(charset).encode() + b'msgid "na\xefve"\nmsgstr ""\n'
    with pytest.raises(DocumentError) as caught:
        open_document(data, "po")
    assert str(caught.value).startswith(f"the po document {problem}")
