"""Estimate of the time that the rest of a run takes, from its parts so far.

Owns the estimate, and the measuring of dev scores and saves. Does not own when these are done
(`model.train.observer`), nor how the estimate is shown (`progress`).
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager

from model.train.config.run import RunConfig
from model.train.loop.trainer import Clock
from model.train.saved.state import Progress


class TimeLeft:
    """Estimates for one process of a run; a part that it has not done yet counts as 0 seconds.

    Args:
        run: How often there are dev scores and saves.
        progress: Where the process begins.
        fraction: Part of the run used up then.
        clock: Seconds, only ever going up.
    """

    def __init__(
        self, run: RunConfig, *, progress: Progress, fraction: float, clock: Clock
    ) -> None:
        self._run = run
        self._first = progress
        self._first_fraction = fraction
        self._clock = clock
        self._evaluation_seconds = 0.0
        self._save_seconds = 0.0

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """Context of a snapshot and its scores, which is measured if it completes."""
        started = self._clock()
        yield
        self._evaluation_seconds = self._clock() - started

    @contextmanager
    def saving(self) -> Iterator[None]:
        """Context of a save, likewise."""
        started = self._clock()
        yield
        self._save_seconds = self._clock() - started

    def seconds(self, progress: Progress, fraction: float) -> float:
        """Seconds until the last update is done, scored and saved; 0 before the first one is done.

        Args:
            progress: Of the run.
            fraction: Part of it used up.
        """
        done = fraction - self._first_fraction
        if done <= 0:
            return 0.0
        rest = (1.0 - fraction) / done
        num_updates = round((progress.update - self._first.update) * rest)
        return (
            self._spent(progress) * rest
            + self._evaluation_seconds * self._num_evaluations(progress, num_updates)
            + self._save_seconds * self._num_saves(progress, num_updates)
        )

    def seconds_to_evaluation(self, progress: Progress) -> float:
        """Seconds of training until the next snapshot is due."""
        num_updates = -progress.update % self._run.snapshot_every_updates
        return num_updates * self._update_seconds(progress)

    def _num_evaluations(self, progress: Progress, num_updates: int) -> int:
        """Number still to come: at every interval, one that is due now included, and the last."""
        update, every = progress.update, self._run.snapshot_every_updates
        is_due = update % every == 0 and progress.scored_update != update
        return math.ceil((update + num_updates) / every) - update // every + is_due

    def _num_saves(self, progress: Progress, num_updates: int) -> int:
        """Number still to come: at every interval, and at the end."""
        every = self._run.save_every_updates or math.inf
        update_seconds = self._update_seconds(progress)
        if update_seconds and self._run.save_every_minutes:
            every = min(every, 60.0 * self._run.save_every_minutes / update_seconds)
        return int(num_updates / max(every, 1.0)) + 1

    def _update_seconds(self, progress: Progress) -> float:
        return self._spent(progress) / max(progress.update - self._first.update, 1)

    def _spent(self, progress: Progress) -> float:
        return progress.elapsed_seconds - self._first.elapsed_seconds
