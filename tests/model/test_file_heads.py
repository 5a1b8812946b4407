"""First bytes of files as those who write them make them."""

import bz2
import gzip
import io
import lzma
import zipfile

import pytest

from model.file_heads import other_than_utf8


def _zipped() -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(zipfile.ZipInfo("a"), "text")
    return stream.getvalue()


@pytest.mark.parametrize(
    ("data", "what"),
    [
        ("text".encode("utf-16"), "text in UTF-16"),
        ("\ufefftext".encode("utf-16-be"), "text in UTF-16"),
        ("text".encode("utf-32"), "text in UTF-32"),
        ("\ufefftext".encode("utf-32-be"), "text in UTF-32"),
        (gzip.compress(b"text", mtime=0), "packed by gzip"),
        (bz2.compress(b"text"), "packed by bzip2"),
        (lzma.compress(b"text"), "packed by xz"),
        (b"\x28\xb5\x2f\xfd\x04\x00\x21\x00\x00text", "packed by zstd"),
        (_zipped(), "packed by zip"),
        ("\ufefftext".encode(), None),
        (b"BZh9 and more", None),
        (b"PK", None),
        (b"\xff", None),
        (b"", None),
    ],
)
def test_what_is_no_utf8_is_known_by_its_first_bytes(data: bytes, what: str | None) -> None:
    assert other_than_utf8(data) == other_than_utf8(data[:10]) == what
