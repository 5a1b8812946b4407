"""Room for uploads on their way through the router: how many one address has, how many bytes all.

Owns these limits and their refusals. What has come of an upload is what it takes: whoever announces
much and sends slowly shuts nobody out. A router knows no keys, so an upload counts for the address
that it comes from, and each address leaves a part of the room to the others, as each caller of a
server does. Pure; where the bytes are is `service.router.uploads`.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from service.documents.room import share_of, slowdown
from service.errors import RETRY_AFTER_SECONDS

_full = partial(slowdown, seconds=RETRY_AFTER_SECONDS)


@dataclass(slots=True, eq=False)
class _Place:
    """Bytes that are held for one upload."""

    address: str
    num_bytes: int = 0


class UploadRoom:
    """Bytes that uploads take together while the router has them.

    Args:
        max_bytes: Of all uploads.
        max_per_address: Uploads of one address at once.

    Attributes:
        num_bytes: That are held now.
    """

    def __init__(self, *, max_bytes: int, max_per_address: int) -> None:
        self._max_bytes = max_bytes
        self._max_per_address = max_per_address
        self._places: dict[str, list[_Place]] = {}
        self.num_bytes = 0

    def __repr__(self) -> str:
        return f"UploadRoom({self.num_bytes} of {self._max_bytes} bytes)"

    @contextmanager
    def held(self, address: str) -> Iterator[Callable[[int], None]]:
        """Room for one upload until the block is left: none at first, whatever it announces.

        Args:
            address: Whom it counts for.

        Yields:
            What holds more: called with all bytes that have come so far, it raises as this does.

        Raises:
            RequestError: A 429: there is no room.
        """
        own = self._places.setdefault(address, [])
        place = _Place(address)
        own.append(place)
        try:
            if len(own) > self._max_per_address:
                words = f"{len(own)} documents would arrive from you at once"
                raise _full(words, value=len(own), limit=self._max_per_address)
            yield partial(self._hold, place)
        finally:
            self.num_bytes -= place.num_bytes
            own.remove(place)
            if not own:
                del self._places[address]

    def _hold(self, place: _Place, num_bytes: int) -> None:
        """Hold so many bytes for an upload, if fewer are held."""
        more = num_bytes - place.num_bytes
        if more <= 0:
            return
        taken = self.num_bytes + more
        if taken > self._max_bytes:
            words = f"{taken} bytes of documents would arrive at once"
            raise _full(words, value=taken, limit=self._max_bytes)
        own_bytes = sum(one.num_bytes for one in self._places[place.address]) + more
        share = share_of(self._max_bytes - (taken - own_bytes))
        if own_bytes > max(num_bytes, share):  # one document may have more than a share
            words = f"{own_bytes} bytes of documents would arrive from you at once"
            raise _full(words, value=own_bytes, limit=share)
        place.num_bytes += more
        self.num_bytes = taken
