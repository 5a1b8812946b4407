"""Pulses of a cluster's workers: which of them have work and do not get on, pure.

Owns the times, also those between two looks. Who is asked, and what becomes of one that hangs, is
the driver's.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

_LOOK_SECONDS = 10.0  # between two looks, at most


@dataclass(slots=True)
class _Pulse:
    num_steps: int
    since: float


class Pulses:
    """Steps of workers, and since when there have been no more.

    Args:
        limit_seconds: A worker hangs that has had work for so long without a step; 0 for never.
        clock: Of seconds.
    """

    def __init__(self, limit_seconds: float, clock: Callable[[], float]) -> None:
        self._limit_seconds = limit_seconds
        self._clock = clock
        self._pulses: dict[int, _Pulse] = {}
        self._last_look = clock()

    def has_work(self, worker: int) -> None:
        """A worker that had nothing to do has something now: its time begins."""
        self._pulses[worker] = _Pulse(0, self._clock())

    def beat(self, worker: int, num_steps: int) -> None:
        """A worker says how many steps it has done in all; one that is not watched may be late."""
        pulse = self._pulses.get(worker)
        if pulse is not None and num_steps > pulse.num_steps:
            pulse.num_steps, pulse.since = num_steps, self._clock()

    def forget(self, worker: int) -> None:
        """A worker is lost, or has nothing to do."""
        self._pulses.pop(worker, None)

    @property
    def watched(self) -> Iterable[int]:
        """Workers that have work."""
        return self._pulses.keys()

    @property
    def limit_seconds(self) -> float:
        """After so long without a step one hangs; 0 for never."""
        return self._limit_seconds

    def seconds_to_look(self) -> float | None:
        """Until `hung` is to be asked again; None for never."""
        if not self._limit_seconds:
            return None
        due = self._last_look + min(_LOOK_SECONDS, self._limit_seconds / 4)
        return max(0.0, due - self._clock())

    def hung(self) -> list[int]:
        """Workers that hang.

        If the last look is more than half of the limit ago, the driver itself was stopped: all
        times begin anew.
        """
        now = self._clock()
        gap, self._last_look = now - self._last_look, now
        if not self._limit_seconds:
            return []
        if gap > self._limit_seconds / 2:
            for pulse in self._pulses.values():
                pulse.since = now
        return [
            worker
            for worker, pulse in self._pulses.items()
            if now - pulse.since >= self._limit_seconds
        ]
