"""Backlog of one connection: what its client may send ahead of the answers.

Owns the bytes that came and are not parsed, how they are cut, and when reading pauses. Whose turn
it is to parse is `service.http.protocol`'s.

A client may send its next requests before it has its answers, and one read can bring thousands of
them. Every request that is parsed costs some hundred times its bytes, so only `MAX_QUEUED` are
parsed ahead. What they leave stays bytes, and when there are too many of these, nothing is read.
"""

from uvicorn.protocols.http.flow_control import FlowControl

MAX_QUEUED = 4
"""Parsed requests that wait for the one in flight."""
MAX_BACKLOG_BYTES = 64 * 1024
"""Bytes that wait before reading pauses; the last read may bring some 250 KiB more."""
MAX_PIECES = 100
"""Pieces that are parsed before others have their turn."""

_PIECE_BYTES = 64 * 1024
_END = b"\n\r\n"  # of every head, and of every body in chunks


class Backlog:
    """Unparsed bytes of a connection, in pieces of which each ends at most one head."""

    def __init__(self) -> None:
        self._data = b""
        self._place = 0
        self._given = b""  # the last two bytes: an end may be divided

    def __len__(self) -> int:
        return len(self._data) - self._place

    def __repr__(self) -> str:
        return f"Backlog({len(self)} bytes)"

    def add(self, data: bytes) -> None:
        """Take what came."""
        self._data = self._data[self._place :] + data if self else data
        self._place = 0

    def take(self, num_of_body: int = 0) -> bytes:
        """The next piece; there must be bytes.

        Args:
            num_of_body: So many of them are certainly of a body, in which no head can end.
        """
        end = self._find_end() if num_of_body == 0 else self._end_within(num_of_body)
        piece = self._data[self._place : end]
        self._place = end
        self._given = (self._given + piece[-2:])[-2:]
        if end == len(self._data):
            self.clear()
        return piece

    @property
    def rest(self) -> bytes:
        """All of them."""
        return self._data[self._place :]

    def clear(self) -> None:
        """Drop everything."""
        self._data = b""
        self._place = 0

    def _end_within(self, num_bytes: int) -> int:
        return self._place + min(num_bytes, _PIECE_BYTES, len(self))

    def _find_end(self) -> int:
        start = self._place
        divided = (self._given + self._data[start : start + 2]).find(_END)
        if divided >= 0:
            return start + divided + len(_END) - len(self._given)
        stop = min(start + _PIECE_BYTES, len(self._data))
        first = self._data.find(b"\n", start, stop)  # the fastest way to find that there is none
        found = -1 if first < 0 else self._data.find(_END, first, stop)
        return stop if found < 0 else found + len(_END)


class ReadFlow(FlowControl):
    """Uvicorn's flow control, which the request in flight may resume, unless it is held."""

    _is_held = False
    _is_over = False

    @property
    def is_held(self) -> bool:
        """Whether reading pauses until `release`."""
        return self._is_held

    def hold(self) -> None:
        """Read no more until `release`."""
        self._is_held = True
        self.pause_reading()

    def release(self) -> None:
        """Read on."""
        if self._is_held:
            self._is_held = False
            self.resume_reading()

    def end(self) -> None:
        """End of reading: the client sends no more."""
        self._is_over = True

    def resume_reading(self) -> None:
        """Read on, if nothing is against it."""
        if not self._is_held and not self._is_over:
            super().resume_reading()
