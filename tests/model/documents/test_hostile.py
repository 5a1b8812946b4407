"""Files that are made to cost much: refused in one sentence, in bounded time and memory."""

import tracemalloc
from collections.abc import Callable
from contextlib import suppress

import pytest

from model.documents.formats import open_document
from model.documents.markup.xml import xml_template
from model.documents.notation.limits import DocumentLimits
from model.errors import DocumentError
from support.made_documents import archive, docx, epub, members_of, xlsx

CELL_OF_STRINGS = "<c " + " ".join(f"a{number}-t='str'" for number in range(30_000)) + "/>"
ENTITIES = "".join(
    f"<!ENTITY {name} '{f'&{before};' * 10}'>"
    for before, name in zip("abcdefg", "bcdefgh", strict=True)
)
LAUGHS = f"<!DOCTYPE x [<!ENTITY a 'ha'>{ENTITIES}]><x>&h;</x>"


def bomb(num_bytes: int, *, declared: int | None = None) -> bytes:
    """A text document whose body is zeros, of which its directory says another number."""
    made = bytearray(docx("0" * num_bytes))
    if declared is not None:
        place = made.find(b"word/document.xml", made.find(b"PK\x01\x02")) - 22
        made[place : place + 4] = declared.to_bytes(4, "little")
    return bytes(made)


def peak_of(action: Callable[[], object]) -> int:
    """The most memory of Python's objects while something is done."""
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def refusal(data: bytes, kind: str, limits: DocumentLimits | None = None) -> str:
    with pytest.raises(DocumentError) as caught:
        open_document(data, kind, limits=limits)
    return str(caught.value)


def test_a_member_is_never_unpacked_beyond_what_its_directory_says() -> None:
    data = bomb(30_000_000, declared=1000)
    said: list[str] = []
    assert peak_of(lambda: said.append(refusal(data, "docx"))) < 5_000_000
    assert said[0].startswith("the docx document has a damaged member 'word/document.xml'")


def test_a_bomb_is_refused_before_it_is_unpacked() -> None:
    data = bomb(30_000_000)
    said: list[str] = []
    limits = DocumentLimits(max_read_bytes=1_000_000)
    assert peak_of(lambda: said.append(refusal(data, "docx", limits))) < 5_000_000
    assert "bytes of XML; at most 1000000 are read" in said[0]


@pytest.mark.parametrize("kind", ["xml", "xliff"])
def test_laughs_are_not_multiplied(kind: str) -> None:
    assert refusal(LAUGHS.encode(), kind) == (
        f"the {kind} document declares entities, which are not read"
    )


def test_a_declared_attribute_is_not_copied_for_every_element() -> None:
    long = f"<!DOCTYPE t [<!ATTLIST a b CDATA '{'x' * 50_000}'>]><t>{'<a/>' * 12_000}</t>"
    assert peak_of(lambda: xml_template(long)) < 20_000_000
    many = "".join(f"b{number} CDATA 'c' " for number in range(8))
    elements = "<a c=''/>" * 12_000
    several = f"<!DOCTYPE t [<!ATTLIST a {many}>]><t>{elements}</t>"
    assert peak_of(lambda: xml_template(several)) < 30_000_000


def test_attributes_that_expat_would_look_through_for_every_element_are_few() -> None:
    given = "".join(f"b{number} CDATA 'c' " for number in range(9))
    assert refusal(f"<!DOCTYPE t [<!ATTLIST a {given}>]><t/>".encode(), "xml") == (
        "the xml document declares more than 8 attributes of an element with a default"
    )
    implied = "".join(f"b{number} CDATA #IMPLIED " for number in range(201))
    assert refusal(f"<!DOCTYPE t [<!ATTLIST a {implied}>]><t/>".encode(), "xml") == (
        "the xml document declares more than 200 attributes of an element"
    )


@pytest.mark.parametrize("cut", [10, 100, -30])
@pytest.mark.parametrize("kind", ["docx", "epub"])
def test_an_archive_that_was_cut_off_is_none(kind: str, cut: int) -> None:
    whole = docx("<w:p/>") if kind == "docx" else epub("<html/>")
    assert refusal(whole[:cut], kind).startswith(f"the {kind} document is no zip archive")


def test_a_book_whose_pages_are_encrypted_is_named_so_and_fonts_may_be() -> None:
    members: dict[str, str | bytes] = dict(members_of(epub("<html><p>One.</p></html>")))
    reference = "<e><CipherData><CipherReference URI='{}'/></CipherData></e>"
    name = "META-INF/encryption.xml"
    fonts = archive({**members, name: reference.format("o/font.otf")})
    assert "One." in open_document(fonts, "epub").texts
    pages = archive({**members, name: reference.format("o/p%201.xhtml")})
    assert refusal(pages, "epub") == "the epub document is encrypted"


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("md", b"---\r\n" + b"\r\n" * 50_000),
        ("md", b"> " * 20_000 + b"a"),
        ("md", b"[a]: b\n" * 20_000),
        ("md", b"+++\n" + b"a\n" * 50_000),
        ("md", b"$$ a\n" * 20_000),
        ("md", b"- $$ a\n  $$ a\n" * 10_000),
        ("md", b"[^1]: a\n" * 20_000),
        ("md", b"> [!NOTE]\n" * 20_000),
        ("md", b"a [a] $$a\\ ``a](a <a " * 10_000 + b"\n\n[a]: b\n"),
        ("md", b"[" * 50_000 + b"a" + b"]" * 50_000 + b"\n\n[a]: b\n"),
        ("md", b"!!! a\n" * 20_000 + b"    a\n"),
        ("md", b"".join(b"    " * depth + b"!!! a\n" for depth in range(300)) * 5),
        ("md", b"[^1]: a\n\n    b\n\n" * 5_000),
        ("md", b"![a" * 900 + b"](b)" * 900),
        ("md", b"**a****b" * 300 + b"\n\n" + b"*[a](b 'c')" * 20_000),
        ("md", (b"[a" * 700 + b"](b)" * 700 + b"\n\n") * 5),
        ("srt", b"1\n00:01.000 --> 00:02.000\n" + b"a b\n" * 20_000),
        ("html", b"<a " * 30_000),
        ("html", b"<!--" * 30_000),
        ("html", b"<a b='" * 30_000),
        ("html", b"<script>" * 30_000),
        ("html", b"<p" + b" a" * 50_000),
        ("html", b"&" * 100_000),
        ("json", b'"' + b"\\" * 100_001),
        ("json", b"[" * 100_000),
        ("csv", b'"' * 100_001),
        ("po", b'msgid ""\n' + b'"a"\n' * 50_000 + b'msgstr ""\n'),
        ("po", b'msgid "a"\n' * 50_000),
        ("po", b'msgid ""\nmsgstr ""\n"Language: de\\n"\n' + b"\n" * 200_000),
        ("xlsx", xlsx("", sheets=[CELL_OF_STRINGS])),
        ("xml", b"<a>" * 50_000),
        ("xml", b"<x " + b" ".join(b"a%d='1'" % number for number in range(20_000)) + b"/>"),
        ("txt", b"\x0b" * 100_000),
    ],
)
@pytest.mark.timeout(20)
def test_time_is_not_quadratic_in_what_is_repeated(kind: str, data: bytes) -> None:
    """Each of these would take a minute or for ever if a rule went back to where it began."""
    with suppress(DocumentError):
        document = open_document(data, kind)
        document.rebuild([text.upper() for text in document.texts])


@pytest.mark.parametrize("codec", ["punycode", "idna", "unicode_escape", "utf_7", "rot13", "zip"])
def test_codecs_that_no_file_is_in_are_unknown(codec: str) -> None:
    data = f"<?xml version='1.0' encoding='{codec}'?><a>b</a>".encode()
    assert refusal(data, "xml") == f"the xml document is in an unknown encoding, {codec!r}"


def test_an_entry_of_a_catalogue_has_so_many_forms() -> None:
    entry = b'msgid "a"\nmsgid_plural "b"\n' + b"".join(
        b'msgstr[%d] ""\n' % number for number in range(200)
    )
    assert "an entry of more than 100 fields" in refusal(entry, "po")


def test_lines_of_markdown_are_counted_before_they_are_parsed() -> None:
    assert refusal(b"# a\n" * 11, "md", DocumentLimits(max_texts=10)) == (
        "the md document has 11 lines; at most 10 are read"
    )


def test_a_list_of_types_is_no_larger_than_what_is_read() -> None:
    made = archive({"[Content_Types].xml": " " * 3_000_000})
    said = refusal(made, "docx", DocumentLimits(max_read_bytes=1_000_000))
    assert "has 3000000 bytes of XML; at most 1000000 are read" in said


def test_a_sheet_of_numbers_is_not_looked_through() -> None:
    rows = "<c><v>1</v></c>" * 3_000
    own = f"<s><c t='inlineStr'><is><t>Own</t></is></c>{rows[:150]}</s>"
    made = xlsx("<si><t>Hello</t></si>", sheets=(f"<s>{rows}</s>", own))
    found = open_document(made, "xlsx", limits=DocumentLimits(max_events=1_000))
    assert found.texts == ("Hello", "Own")
