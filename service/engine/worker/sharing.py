"""Order of turns among the lanes of an engine: its time is shared, not its steps.

Owns which lane has the next turn. A step of a large network over many rows may take a hundred times
that of a small one, so a step each would have the small one wait a hundred times its own work.
Lanes are charged the time that their turns took, divided by their share, and the lowest charge goes
first: start-time fair queueing (Goyal, Vin, Cheng 1996), as the classes share a lane
(`service.engine.worker.scheduler`). A lane that had nothing to do begins at the charge of the one
that had the last turn: it has no claim to the past.

So a lane that has something to do has its share of the time, less one turn of each other lane,
whatever the others hold; and a flood in one lane delays a sentence of another by as much time as
that takes itself, for each lane that is busy, and one turn of each. Pure; knows no clock.
"""

from collections.abc import Iterable

INTERACTIVE_SHARE = 0.8
"""Weight of a lane in which somebody waits for an answer."""
BULK_SHARE = 0.2
"""Weight of a lane that has bulk alone."""


class LaneTurns:
    """Turns of lanes that share the time by weight.

    Args:
        num_lanes: Lanes, which are numbered from 0.
    """

    def __init__(self, num_lanes: int) -> None:
        self._charges = [0.0] * num_lanes
        self._last_turns = list(range(-num_lanes, 0))
        self._num_turns = 0
        self._level = 0.0

    def __repr__(self) -> str:
        return f"<LaneTurns {self._charges}>"

    def next(self, busy: Iterable[int]) -> int | None:
        """The lane that has the next turn, of those that have something to do; None if none has."""
        lanes = list(busy)
        if not lanes:
            return None
        for lane in lanes:
            self._charges[lane] = max(self._charges[lane], self._level)
        chosen = min(lanes, key=lambda lane: (self._charges[lane], self._last_turns[lane]))
        self._level = self._charges[chosen]
        self._last_turns[chosen] = self._num_turns
        self._num_turns += 1
        return chosen

    def charge(self, lane: int, seconds: float, *, share: float) -> None:
        """A turn of a lane took so long.

        Args:
            lane: Whose.
            seconds: It took.
            share: Weight of the lane in that turn.
        """
        self._charges[lane] += seconds / share
