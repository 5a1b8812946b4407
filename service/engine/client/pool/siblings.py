"""Common part of the clients of a pool's engines, and the type of what starts one.

Owns the types alone. Which replicas there are is `service.engine.client.pool.pool`.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass

from service.engine.client.client import EngineClient
from service.engine.client.pending import Pending
from service.engine.client.segment_room import SegmentRoom


@dataclass(frozen=True, slots=True, kw_only=True)
class Siblings:
    """Common part of clients that take over each other's segments.

    Attributes:
        room: Places of segments: their limit is one for all.
        numbers: Of segments; none of them is used twice.
        on_orphaned: Called with what a lost engine had.
    """

    room: SegmentRoom
    numbers: Iterator[int]
    on_orphaned: Callable[[Mapping[int, Pending]], None]


StartEngine = Callable[[Siblings], Awaitable[EngineClient]]
"""Starts an engine in one place of a pool, with its processors or its device."""
