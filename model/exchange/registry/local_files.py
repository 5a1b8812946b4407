"""Folders that stand for a server: `file://` addresses, answered as HTTP would.

Owns status, length, validator and range of a local file. What may name such an address is
`model.exchange.registry.listing`'s.
"""

import os
import re
import stat
from email.message import Message
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urlsplit
from urllib.request import url2pathname

_RANGE = re.compile(r"bytes=([0-9]{1,19})-")


class LocalReply:
    """Answer to a request for a local file; `model.exchange.registry.transport.Reply` says what.

    Attributes:
        status: 200, 206, 404 or 416.
        headers: Length, validator and range.
        url: What was asked for.
    """

    def __init__(self, url: str, status: int, headers: Message, stream: BinaryIO | None) -> None:
        self.url = url
        self.status = status
        self.headers = headers
        self._stream = stream

    def read(self, size: int) -> bytes:
        """The next bytes, at most `size`; none at the end."""
        return b"" if self._stream is None else self._stream.read(size)

    def close(self) -> None:
        """Close the file."""
        if self._stream is not None:
            self._stream.close()


def open_local(url: str, method: str, headers: dict[str, str]) -> LocalReply:
    """Answer a request for a `file://` address; its query is not looked at.

    Raises:
        OSError: The file is there and cannot be read.
        ValueError: The address is no path here.
    """
    parts = urlsplit(url)
    if parts.netloc not in {"", "localhost"}:
        raise ValueError(f"{parts.netloc} is another machine")
    answer = Message()
    try:
        stream = Path(url2pathname(parts.path)).open("rb")  # noqa: SIM115  # the reply closes it
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return LocalReply(url, 404, answer, None)
    found = os.fstat(stream.fileno())
    if not stat.S_ISREG(found.st_mode):
        stream.close()
        return LocalReply(url, 404, answer, None)
    validator = f'"{found.st_mtime_ns:x}-{found.st_size:x}"'
    answer["ETag"] = validator
    start = _start(headers, validator)
    if start > found.st_size:
        stream.close()
        return LocalReply(url, 416, answer, None)
    answer["Content-Length"] = str(found.st_size - start)
    if start:
        answer["Content-Range"] = f"bytes {start}-{found.st_size - 1}/{found.st_size}"
        stream.seek(start)
    if method == "HEAD":
        stream.close()
        return LocalReply(url, 200, answer, None)
    return LocalReply(url, 206 if start else 200, answer, stream)


def _start(headers: dict[str, str], validator: str) -> int:
    match = _RANGE.fullmatch(headers.get("Range", ""))
    is_same = headers.get("If-Range", validator) == validator
    return int(match[1]) if match and is_same else 0
