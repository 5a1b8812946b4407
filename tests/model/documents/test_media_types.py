"""Media types of files: the charset that is said is the one that the file is in."""

import pytest

from model.documents.media_types import media_type_of_file

PO = b'# x\nmsgid ""\nmsgstr "Content-Type: text/plain; charset=%s\\n"\n'


@pytest.mark.parametrize(
    ("kind", "head", "said"),
    [
        ("txt", b"", "text/plain; charset=utf-8"),
        ("txt", "é".encode(), "text/plain; charset=utf-8"),
        ("txt", "é".encode("utf-8-sig"), "text/plain; charset=utf-8"),
        ("txt", "é".encode("utf-16"), "text/plain; charset=utf-16"),
        ("csv", b"\xfe\xff" + "é".encode("utf-16-be"), "text/csv; charset=utf-16"),
        ("txt", b"<meta charset=gb2312>", "text/plain; charset=utf-8"),
        ("html", b"<meta charset=GB2312>", "text/html; charset=gb2312"),
        ("html", b"<p>a", "text/html; charset=utf-8"),
        ("html", b"<meta charset=utf-16>", "text/html; charset=utf-8"),
        ("html", "<meta charset=gb2312>".encode("utf-8-sig"), "text/html; charset=utf-8"),
        ("html", b'<?xml version="1.0" encoding="koi8-r"?>', "text/html; charset=koi8-r"),
        ("po", PO % b"EUC-JP", "text/x-gettext-translation; charset=euc-jp"),
        ("po", PO % b"CHARSET", "text/x-gettext-translation; charset=utf-8"),
        ("po", b'msgid "a"\nmsgstr ""\n', "text/x-gettext-translation; charset=utf-8"),
        ("xml", b'<?xml version="1.0" encoding="koi8-r"?>', "application/xml"),
        ("srt", "é".encode("utf-16"), "application/x-subrip"),
        ("docx", b"PK", None),
    ],
)
def test_the_charset_is_that_of_the_file(kind: str, head: bytes, said: str | None) -> None:
    found = media_type_of_file(kind, head)
    assert found == said if said else "charset" not in found
