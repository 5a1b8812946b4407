"""Encodings: which a file is in, which names are known, and which file is refused."""

import pytest

from model.documents.formats import open_document
from model.documents.notation.encoding import decoded, decoded_markup
from model.errors import DocumentError


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
