"""Progress of a bulk job: rows of all rows, those that failed, the time that is left.

Owns what of it is shown: a bar on a terminal, elsewhere a line now and then.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from model.offline.bulk.blocks import Receipt

SECONDS_BETWEEN_LINES = 30.0


class BulkProgress:
    """Counts of one command.

    Args:
        num_rows: Of the whole job.
        num_done: Of blocks that were finished before.
        clock: Seconds, only ever going up.
        show: Gets a line; None where a bar shows it.
    """

    def __init__(
        self,
        *,
        num_rows: int,
        num_done: int,
        clock: Callable[[], float],
        show: Callable[[str], object] | None,
    ) -> None:
        self.num_rows = num_rows
        self.num_done = num_done
        self.num_bad_rows = 0
        self._num_first = num_done
        self._clock = clock
        self._show = show
        self._started = self._shown = clock()

    @property
    def seconds_left(self) -> float | None:
        """What is left by the speed so far; None before anything is done."""
        num_own = self.num_done - self._num_first
        if not num_own:
            return None
        return (self._clock() - self._started) / num_own * (self.num_rows - self.num_done)

    def add(self, receipt: Receipt) -> None:
        """Count a block, and show a line if it is time."""
        self.num_done += receipt.num_rows
        self.num_bad_rows += receipt.num_bad_rows
        now = self._clock()
        if self._show is not None and now - self._shown >= SECONDS_BETWEEN_LINES:
            self._shown = now
            self._show(self.line())

    def line(self) -> str:
        """The state in words."""
        left = self.seconds_left
        time_left = "" if left is None else f"; {in_words(left)} left"
        bad = f", {self.num_bad_rows:,} bad" if self.num_bad_rows else ""
        return f"{self.num_done:,} of {self.num_rows:,} rows{bad}{time_left}"


def in_words(seconds: float) -> str:
    """A duration as people say it."""
    minutes = round(seconds / 60)
    if minutes < 2:
        return f"{round(seconds)} s"
    return f"{minutes} min" if minutes < 120 else f"{minutes / 60:.1f} h"


@contextmanager
def shown_progress(
    *, num_rows: int, num_done: int, clock: Callable[[], float]
) -> Iterator[Callable[[Receipt], object]]:
    """What a command calls for each block that is finished."""
    from tqdm import tqdm

    is_terminal = sys.stderr.isatty()
    progress = BulkProgress(
        num_rows=num_rows,
        num_done=num_done,
        clock=clock,
        show=None if is_terminal else lambda line: print(f"dragoman: {line}", file=sys.stderr),
    )
    with tqdm(total=num_rows, initial=num_done, unit=" rows", disable=not is_terminal) as bar:

        def add(receipt: Receipt) -> None:
            progress.add(receipt)
            bar.update(receipt.num_rows)
            if progress.num_bad_rows:
                bar.set_postfix_str(f"{progress.num_bad_rows} bad")

        yield add
