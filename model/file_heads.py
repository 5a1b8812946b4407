"""First bytes of files: what they say of one that is not text in UTF-8.

Owns byte order marks and the marks of packed files, as words for errors. Files of the reader that
unpacks or decodes them never come here.
"""

import codecs
import re

_HEADS = (
    (codecs.BOM_UTF32_LE, "text in UTF-32"),  # begins as the next one does
    (codecs.BOM_UTF16_LE, "text in UTF-16"),
    (codecs.BOM_UTF16_BE, "text in UTF-16"),
    (codecs.BOM_UTF32_BE, "text in UTF-32"),
    (b"\x1f\x8b", "packed by gzip"),
    (b"\xfd7zXZ\0", "packed by xz"),
    (b"\x28\xb5\x2f\xfd", "packed by zstd"),
    (b"PK\x03\x04", "packed by zip"),
)
_BZIP2 = re.compile(rb"BZh[1-9]1AY&SY")


def other_than_utf8(head: bytes) -> str | None:
    """What a file is by its first bytes, of which ten are enough; None if nothing says that.

    Args:
        head: They.
    """
    if _BZIP2.match(head):
        return "packed by bzip2"
    return next((what for mark, what in _HEADS if head.startswith(mark)), None)
