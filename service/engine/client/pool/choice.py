"""Choice of the replica that gets a segment: one is filled before the next, then least work first.

Pure: no clock, no event loop, no engine. Who the replicas are, and what becomes of the segments of
one that is lost, is `service.engine.client.pool.pool`.
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Load of a replica.

    Attributes:
        num_rows: Beam rows of its segments, running or waiting.
        num_row_steps: The work of these segments: beams × an estimate of tokens.
        is_ready: It accepts segments.
        is_silent: It was not heard of for so long that something may be wrong with it.
    """

    num_rows: int = 0
    num_row_steps: int = 0
    is_ready: bool = True
    is_silent: bool = False

    def with_segment(self, *, num_rows: int, num_row_steps: int) -> "Load":
        """The same with one more segment."""
        return replace(
            self,
            num_rows=self.num_rows + num_rows,
            num_row_steps=self.num_row_steps + num_row_steps,
        )


def candidates(loads: Sequence[Load]) -> list[int]:
    """Places of the replicas that may get a segment: those that speak, or else all that are ready.

    Empty where none is ready.
    """
    ready = [place for place, load in enumerate(loads) if load.is_ready]
    return [place for place in ready if not loads[place].is_silent] or ready


def choose(loads: Sequence[Load], *, num_rows: int, fill_rows: int) -> int | None:
    """The place of the replica that gets a segment of so many rows; None where none is ready.

    Args:
        loads: Of the replicas.
        num_rows: Beam rows of the segment.
        fill_rows: Rows up to which one replica is filled before the next gets any.
    """
    able = candidates(loads)
    if not able:
        return None
    with_room = [place for place in able if loads[place].num_rows + num_rows <= fill_rows]
    if with_room:
        return min(
            with_room, key=lambda place: (-loads[place].num_rows, loads[place].num_row_steps, place)
        )
    return min(able, key=lambda place: (loads[place].num_row_steps, place))


def assign(
    loads: Sequence[Load], row_steps: Sequence[int], *, num_rows: int, fill_rows: int
) -> list[int]:
    """The places of the replicas that get the segments of one request, one after the other.

    What `choose` would say of each if the segments before it were there already, in time that
    grows with segments and replicas, not with their product.

    Args:
        loads: Of the replicas; at least one is ready.
        row_steps: The work of every segment.
        num_rows: Beam rows of each.
        fill_rows: As of `choose`.
    """
    able = candidates(loads)
    rows = {place: loads[place].num_rows for place in able}
    work = {place: loads[place].num_row_steps for place in able}
    filling = sorted(able, key=lambda place: (-rows[place], work[place], place), reverse=True)
    emptiest: list[tuple[int, int]] = []
    assigned = []
    for steps in row_steps:
        while filling and rows[filling[-1]] + num_rows > fill_rows:
            filling.pop()
        if filling:
            place = filling[-1]
        else:
            if not emptiest:
                emptiest = [(work[place], place) for place in able]
                heapq.heapify(emptiest)
            place = emptiest[0][1]
            heapq.heapreplace(emptiest, (work[place] + steps, place))
        rows[place] += num_rows
        work[place] += steps
        assigned.append(place)
    return assigned
