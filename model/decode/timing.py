"""Time of steps: seconds by part, summed over all steps.

Owns the names of the parts and a stopwatch. A lap costs a fraction of a microsecond, so it is
always on and a profile needs no other build and no other path. On a CUDA device a lap is the time
to launch work, not to do it.
"""

from collections.abc import Callable
from typing import Literal

StepPart = Literal[
    "embedding", "self_attention", "cross_attention", "feed_forward", "output", "search"
]
STEP_PARTS: tuple[StepPart, ...] = (
    "embedding",
    "self_attention",
    "cross_attention",
    "feed_forward",
    "output",
    "search",
)


class Stopwatch:
    """Adds the time between two laps to a part.

    Args:
        clock: Seconds, only ever going up.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._last = clock()
        self.seconds: dict[StepPart, float] = dict.fromkeys(STEP_PARTS, 0.0)

    def start(self) -> None:
        """Begin a lap; what was before counts for nothing."""
        self._last = self._clock()

    def lap(self, part: StepPart) -> None:
        """End a lap, which was spent on `part`, and begin the next."""
        now = self._clock()
        self.seconds[part] += now - self._last
        self._last = now
