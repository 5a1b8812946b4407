"""Encodings: which a file is in, which names are known, and which file is refused."""

import html
import xml.etree.ElementTree as ET

import pytest

from model.documents.formats import open_document
from model.documents.notation.encoding import decoded, decoded_markup
from model.errors import DocumentError
from support.made_documents import epub, members_of


@pytest.mark.parametrize("codec", ["utf-32", "utf-32-be"])
@pytest.mark.parametrize("kind", ["txt", "md", "srt", "csv", "json", "po", "html", "xml", "xliff"])
def test_utf32_is_refused_by_name(kind: str, codec: str) -> None:
    mark = b"" if codec == "utf-32" else b"\0\0\xfe\xff"
    with pytest.raises(DocumentError) as caught:
        open_document(mark + "Open the file.".encode(codec), kind)
    assert caught.value.problem == (
        "is text in UTF-32; files of text are UTF-8, or UTF-16 with its mark"
    )


@pytest.mark.parametrize("codec", ["utf-8", "utf-8-sig", "utf-16"])
def test_marks_tell_the_encoding(codec: str) -> None:
    data = "Öffne 文件".encode(codec)
    file = decoded("txt", data)
    assert (file.text, file.encoded(file.text)) == ("Öffne 文件", data)


@pytest.mark.parametrize(
    ("label", "codec", "text"),
    [
        ("x-sjis", "cp932", "①猫"),
        ("Windows-31J", "cp932", "①猫"),
        ("shift_jis", "cp932", "①猫"),
        ("windows-874", "cp874", "แมว…"),
        ("TIS-620", "cp874", "แมว…"),
        ("x-gbk", "gb18030", "猫"),
        ("x-cp1252", "cp1252", "“cat”"),
        ("iso-8859-8-i", "iso8859-8", "חתול"),
        ("iso-8859-9", "cp1254", "“kedi” ş"),
        ("ks_c_5601-1989", "cp949", "똠"),
        ("euc-kr", "cp949", "똠"),
        ("x-mac-cyrillic", "mac-cyrillic", "кот"),
        ("unicode", "utf-8", "кот"),
    ],
)
def test_names_mean_what_browsers_know_them_for(label: str, codec: str, text: str) -> None:
    data = f"<meta charset={label}><p>{text}</p>".encode(codec)
    file = decoded_markup("html", data)
    assert text in file.text
    assert file.encoded(file.text) == data


TRANSLATED = "Schön „gut“ – 5 € ① ¥ — · 똠"


def translated(declared: str, kind: str) -> bytes:
    """A file that declares an encoding, with a translation that has more characters."""
    head = f'<?xml version="1.0" encoding="{declared}"?>'
    unit = "<trans-unit id='1'><source>Good evening</source></trans-unit>"
    body = "<r>Good evening</r>" if kind == "xml" else f"<xliff version='1.2'>{unit}</xliff>"
    return open_document((head + body).encode(), kind).rebuild([TRANSLATED])


@pytest.mark.parametrize("kind", ["xml", "xliff"])
@pytest.mark.parametrize("declared", ["US-ASCII", "ISO-8859-1", "ISO-8859-9", "utf-8"])
def test_parsers_read_what_xml_in_an_old_encoding_became(declared: str, kind: str) -> None:
    texts = [one.text for one in ET.fromstring(translated(declared, kind)).iter()]
    assert texts[-1] == TRANSLATED


@pytest.mark.parametrize(
    "declared", ["US-ASCII", "ISO-8859-1", "GB2312", "GBK", "Shift_JIS", "EUC-KR", "TIS-620"]
)
def test_xml_is_written_in_the_very_encoding_that_it_declares(declared: str) -> None:
    said = html.unescape(translated(declared, "xml").decode(declared))
    assert said.endswith(f"<r>{TRANSLATED}</r>")


def test_a_page_of_a_book_is_written_in_the_very_encoding_that_it_declares() -> None:
    page = '<?xml version="1.0" encoding="US-ASCII"?><html><p>Good evening</p></html>'
    document = open_document(epub(page), "epub")
    rebuilt = members_of(document.rebuild([TRANSLATED] * len(document.texts)))
    said = rebuilt["o/p 1.xhtml"]
    assert (said.isascii(), TRANSLATED in html.unescape(said)) == (True, True)


def test_what_xml_has_beyond_its_declaration_stays() -> None:
    data = '<?xml version="1.0" encoding="ISO-8859-1"?><r><a>“Yes”</a><b>—</b></r>'.encode("cp1252")
    document = open_document(data, "xml")
    assert document.texts == ("“Yes”",)
    assert document.rebuild(document.texts) == data
    assert document.rebuild(["„Ja“ —"]) == data.replace(b"\x93Yes\x94", b"&#8222;Ja\x93 \x97")


@pytest.mark.parametrize(
    "head",
    [
        '<r><a><![CDATA[<meta charset="gb2312">]]></a>',
        '<?xml version="1.0"?><r><meta http-equiv="Content-Type" content="a; charset=latin1"/>',
        '<r><!-- <meta charset="nonsense"> -->',
    ],
)
@pytest.mark.parametrize("codec", ["utf-8", "utf-8-sig"])
def test_a_meta_element_says_no_encoding_of_xml(head: str, codec: str) -> None:
    data = f"{head}<b>Müller geht über die Straße</b></r>".encode(codec)
    document = open_document(data, "xml")
    assert document.texts[-1] == "Müller geht über die Straße"
    rebuilt = document.rebuild([*document.texts[:-1], "去“猫”"])
    assert rebuilt == data.replace("Müller geht über die Straße".encode(), "去“猫”".encode())


def test_a_meta_element_says_no_encoding_of_a_page_of_a_book() -> None:
    page = (
        '<?xml version="1.0"?><html><head><meta http-equiv="Content-Type" content="text/html; '
        'charset=iso-8859-1"/></head><body><p>Müller geht über die Straße</p></body></html>'
    )
    document = open_document(epub(page), "epub")
    assert "Müller geht über die Straße" in document.texts
    made = document.rebuild(
        ["去“猫”" if text.startswith("Müller") else text for text in document.texts]
    )
    assert members_of(made)["o/p 1.xhtml"] == page.replace("Müller geht über die Straße", "去“猫”")
