"""Cache of finished segments, so that what was translated already is not searched again.

Owns what is kept and for how long: the least recently used leave when the bytes are taken. A
segment is known by the digest of all that its result depends on, so a hit is what a search has
found, bit for bit. Pure but for its own state; when it is asked is
`service.models.translating.segment_search`.
"""

from collections import OrderedDict
from hashlib import blake2b

import msgspec

from model.request import DecodeRequest, Hypothesis

_DIGEST_BYTES = 32
ENTRY_BYTES = 320
"""What an entry takes beside its hypotheses: two objects and their places in a dictionary."""

Hypotheses = tuple[Hypothesis, ...]


class SegmentCache:
    """Hypotheses by digest, within a number of bytes.

    Args:
        max_bytes: That all entries together may take.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._entries: OrderedDict[bytes, bytes] = OrderedDict()
        self._decoder = msgspec.msgpack.Decoder(Hypotheses)
        self._encoder = msgspec.msgpack.Encoder()
        self.num_bytes = 0

    def __repr__(self) -> str:
        return f"<SegmentCache of {len(self._entries)} segments, {self.num_bytes} bytes>"

    def key(self, request: DecodeRequest, *, checkpoint: str, scope: str) -> bytes:
        """The digest that a segment is known by.

        Args:
            request: Its tokens, and how they are searched.
            checkpoint: Names exactly the files of the network.
            scope: Its owner; what was kept for one owner is not found by another.
        """
        whole = self._encoder.encode((scope, checkpoint, request))
        return blake2b(whole, digest_size=_DIGEST_BYTES).digest()

    def find(self, key: bytes) -> Hypotheses | None:
        """What was found for a segment; None if that is not known any more."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        self._entries.move_to_end(key)
        return self._decoder.decode(entry)

    def keep(self, key: bytes, hypotheses: Hypotheses) -> None:
        """Keep what was found for a segment, in the place of what was used least recently."""
        entry = self._encoder.encode(hypotheses)
        if len(entry) + ENTRY_BYTES > self._max_bytes:
            return
        self._drop(self._entries.pop(key, None))
        self._entries[key] = entry
        self.num_bytes += len(entry) + ENTRY_BYTES
        while self.num_bytes > self._max_bytes:
            self._drop(self._entries.popitem(last=False)[1])

    def clear(self) -> None:
        """Forget everything."""
        self._entries.clear()
        self.num_bytes = 0

    def _drop(self, entry: bytes | None) -> None:
        if entry is not None:
            self.num_bytes -= len(entry) + ENTRY_BYTES
