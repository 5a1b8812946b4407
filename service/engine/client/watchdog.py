"""Watchdog of the engine: silence for too long, or no progress while segments are pending.

Owns the sums of time and their limit, and what of any time was watched: fronts are watched by that
too (`service.fronts.handle`). Reads no clock, times are passed in.
"""

from service.engine.messages import EngineCounters, EngineMessage


class WatchedTime:
    """Time from one look to the next, as far as it was watched.

    When the process itself was held up (a suspended machine, a stopped container), what it watches
    was not given a chance to be heard, and is not blamed: a look that comes late counts two
    intervals at most.

    Args:
        interval_seconds: From one look to the next.
        now: When the watch starts.
    """

    def __init__(self, *, interval_seconds: float, now: float) -> None:
        self._max_seconds = 2 * interval_seconds
        self._looked_at = now

    def __repr__(self) -> str:
        return f"<WatchedTime looked_at={self._looked_at:.1f}>"

    def since_last_look(self, *, now: float) -> float:
        """Seconds that were watched since this was called last; `now` is the next look."""
        seconds = min(now - self._looked_at, self._max_seconds)
        self._looked_at = now
        return seconds


class Watchdog:
    """Sums of the time without a message, and of the time without progress while there was work.

    The engine sends its counters now and then even when it is idle, so silence is a sign as well. A
    step that takes long is none, as long as it takes less than the limit.

    Time counts as far as it was watched.

    Args:
        hang_seconds: Silence or standstill that makes a hang.
        now: When the watch starts.

    Attributes:
        interval_seconds: How often `is_hung` should be asked.
    """

    def __init__(self, *, hang_seconds: float, now: float) -> None:
        self.interval_seconds = hang_seconds / 8
        self._hang_seconds = hang_seconds
        self._time = WatchedTime(interval_seconds=self.interval_seconds, now=now)
        self._silent_seconds = 0.0
        self._stuck_seconds = 0.0
        self._progress = (0, 0, 0)

    def __repr__(self) -> str:
        return f"<Watchdog silent={self._silent_seconds:.1f} stuck={self._stuck_seconds:.1f}>"

    def observe(self, message: EngineMessage) -> None:
        """Take note of a message from the engine."""
        self._silent_seconds = 0.0
        if not isinstance(message, EngineCounters):
            return
        num_answers = message.num_finished + message.num_cancelled + message.num_failed
        progress = (message.num_steps, message.num_admissions, num_answers)
        if progress != self._progress:  # none of them ever falls
            self._progress = progress
            self._stuck_seconds = 0.0

    def is_hung(self, *, now: float, has_work: bool) -> bool:
        """Whether one of the two has lasted too long.

        Args:
            now: The time.
            has_work: Segments are pending.
        """
        watched_seconds = self._time.since_last_look(now=now)
        self._silent_seconds += watched_seconds
        self._stuck_seconds = self._stuck_seconds + watched_seconds if has_work else 0.0
        return max(self._silent_seconds, self._stuck_seconds) >= self._hang_seconds
