"""Recent throughput of segments, and the wait for room that follows from it.

Owns the estimate behind Retry-After; reads no clock, times are passed in.
"""

from collections import deque

MIN_WAIT_SECONDS = 1.0
MAX_WAIT_SECONDS = 30.0


class Throughput:
    """Times at which the latest segments left, at most `window` of them.

    Times in which there were none to leave say nothing of the rate: whoever counts segments says
    when the first of them has come (`begin`).
    """

    def __init__(self, *, window: int = 256) -> None:
        self._departures: deque[float] = deque(maxlen=window)

    def begin(self) -> None:
        """A segment has come where there was none: what left before is forgotten."""
        self._departures.clear()

    def answered(self, now: float) -> None:
        """A segment has left at `now` seconds."""
        self._departures.append(now)

    def wait_seconds(self, num_segments: int, *, now: float) -> float:
        """Time until `num_segments` should have left, from 1 to 30 seconds.

        The rate is taken up to `now`, so it falls while nothing leaves. With fewer than two
        departures nothing is known, and the shortest wait is the answer.
        """
        if len(self._departures) < 2:
            return MIN_WAIT_SECONDS
        seconds_each = (now - self._departures[0]) / (len(self._departures) - 1)
        return min(max(num_segments * seconds_each, MIN_WAIT_SECONDS), MAX_WAIT_SECONDS)
