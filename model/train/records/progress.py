"""Progress output of a run: a bar on a terminal, one line an event elsewhere.

Owns the figures of the updates since the last report (means, tokens a second) and the layout of
all lines; never prints text of a corpus. Every line is logged with its event's name and
fields, so that a formatter can write them as JSON. Does not own the time left (`time_left`).
"""

import logging
import math
from collections.abc import Mapping
from types import TracebackType
from typing import NoReturn, Self, TextIO

from tqdm import tqdm

from model.train.loop.trainer import UpdateResult
from model.train.records.journal import Value, finite
from model.train.records.time_left import TimeLeft
from model.train.saved.state import Progress

_LOGGER = logging.getLogger("dragoman.train")


class ProgressReporter:
    """Reporter of updates; a context manager, since a bar must be closed.

    Args:
        stream: Where the bar goes if it is a terminal.
        progress: Where the run begins.
        fraction: Part of the run used up at its beginning.
        time_left: Says how long it still takes.
    """

    def __init__(
        self, *, stream: TextIO, progress: Progress, fraction: float, time_left: TimeLeft
    ) -> None:
        self._last = progress
        self._time_left = time_left
        self._window = _Window()
        self._bar: tqdm[NoReturn] | None = None
        if stream.isatty():
            layout = "{percentage:5.1f}%|{bar}| {desc}"
            self._bar = tqdm(
                total=1.0,
                initial=fraction,
                file=stream,
                bar_format=layout,
                dynamic_ncols=True,
                mininterval=0.5,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.close()

    def add(self, result: UpdateResult, progress: Progress, *, fraction: float) -> None:
        """Count one update, and move the bar.

        Args:
            result: Of the update.
            progress: Of the run, that update included.
            fraction: Part of the run used up.
        """
        self._window.add(result)
        if self._bar is not None:
            self._bar.set_description_str(self._brief(progress, fraction), refresh=False)
            self._bar.update(fraction - self._bar.n)

    def report(self, progress: Progress, *, fraction: float) -> dict[str, Value]:
        """Report the progress and begin to count anew.

        Returns:
            Fields of a "progress" event, about the updates since the last report.
        """
        fields: dict[str, Value] = {
            "epoch": self._window.epoch + 1,
            **self._window.fields(),
            "tokens_per_second": round(self._speed(progress), 1),
            "num_source_tokens": progress.num_source_tokens,
            "num_target_tokens": progress.num_target_tokens,
            "num_skipped_updates": progress.num_skipped_updates,
            "elapsed_seconds": round(progress.elapsed_seconds, 1),
            "seconds_left": round(self._time_left.seconds(progress, fraction)),
            "next_evaluation_seconds": round(self._time_left.seconds_to_evaluation(progress)),
        }
        self._last = progress
        self._window = _Window()
        if self._bar is None:
            shown = finite({"update": progress.update, **fields})
            _LOGGER.info("progress", extra={"fields": shown})
        return fields

    def say(self, line: str, *, event: str, fields: Mapping[str, Value]) -> None:
        """A line of its own above the bar, or an event of the log where there is none.

        Args:
            line: As on a terminal.
            event: Its name in the log.
            fields: Of the event; numbers that are not finite, which JSON does not have, become
                None.
        """
        if self._bar is None:
            _LOGGER.info(event, extra={"fields": finite(fields)})
        else:
            self._bar.write(line, file=self._bar.fp)

    def _brief(self, progress: Progress, fraction: float) -> str:
        """Short line that fits beside a bar on eighty columns."""
        left = _duration(self._time_left.seconds(progress, fraction))
        evaluation = _duration(self._time_left.seconds_to_evaluation(progress))
        return (
            f"update {progress.update} loss {self._window.loss:.3f}"
            f" {self._speed(progress):.0f} tokens/s left {left} evaluation in {evaluation}"
        )

    def _speed(self, progress: Progress) -> float:
        """Source and target tokens a second of training since the last report."""
        seconds = progress.elapsed_seconds - self._last.elapsed_seconds
        num_tokens = (progress.num_source_tokens + progress.num_target_tokens) - (
            self._last.num_source_tokens + self._last.num_target_tokens
        )
        return num_tokens / max(seconds, 1e-9)


class _Window:
    """Means over some updates; figures that are not finite are left out of them."""

    def __init__(self) -> None:
        self.epoch = 0
        self.learning_rate = 0.0
        self._loss_sum = 0.0
        self._num_tokens = 0
        self._norm_sum = 0.0
        self._num_norms = 0
        self._max_norm = math.nan

    def add(self, result: UpdateResult) -> None:
        self.epoch = result.epoch
        self.learning_rate = result.learning_rate
        if math.isfinite(result.loss):
            self._loss_sum += result.loss * result.num_target_tokens
            self._num_tokens += result.num_target_tokens
        if math.isfinite(result.gradient_norm):
            self._norm_sum += result.gradient_norm
            self._max_norm = max(result.gradient_norm, self._max_norm)  # NaN loses
            self._num_norms += 1

    @property
    def loss(self) -> float:
        """Mean over target tokens, in nats; NaN without any."""
        return self._loss_sum / self._num_tokens if self._num_tokens else math.nan

    @property
    def gradient_norm(self) -> float:
        """Mean over updates; NaN without any."""
        return self._norm_sum / self._num_norms if self._num_norms else math.nan

    def fields(self) -> dict[str, Value]:
        return {
            "loss": self.loss,
            "learning_rate": self.learning_rate,
            "gradient_norm": self.gradient_norm,
            "max_gradient_norm": self._max_norm,
        }


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}"
