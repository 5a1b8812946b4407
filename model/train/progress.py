"""What a run says while it runs: a bar on a terminal, plain lines elsewhere.

Owns the figures (tokens a second, time left) and their layout; never prints text of a corpus.
"""

import logging
from types import TracebackType
from typing import NoReturn, Self, TextIO

from tqdm import tqdm

from model.train.state import Progress

LOGGER = logging.getLogger("dragoman.train")


class ProgressReporter:
    """Reports updates; a context manager, since a bar must be closed.

    Args:
        stream: Where the bar goes if it is a terminal.
        progress: Where the run begins.
        fraction: Part of the run used up at its beginning.
    """

    def __init__(self, *, stream: TextIO, progress: Progress, fraction: float) -> None:
        self._last = self._first = progress
        self._first_fraction = fraction
        self._loss_sum = 0.0
        self._loss_tokens = 0
        self._bar: tqdm[NoReturn] | None = None
        if stream.isatty():
            layout = "{percentage:5.1f}%|{bar}| {postfix}"
            self._bar = tqdm(total=1.0, initial=fraction, file=stream, bar_format=layout)

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

    def add(self, *, loss: float, num_target_tokens: int) -> None:
        """Count one update's loss, a mean over so many tokens, in nats."""
        self._loss_sum += loss * num_target_tokens
        self._loss_tokens += num_target_tokens

    def report(self, progress: Progress, *, fraction: float, learning_rate: float) -> None:
        """Say where the run is; losses and speeds are since the last report."""
        last = self._last
        seconds = progress.elapsed_seconds - last.elapsed_seconds
        num_tokens = (progress.num_source_tokens + progress.num_target_tokens) - (
            last.num_source_tokens + last.num_target_tokens
        )
        line = (
            f"update {progress.update} epoch {progress.position.epoch + 1}"
            f" loss {self._loss_sum / max(1, self._loss_tokens):.3f} rate {learning_rate:.2e}"
            f" tokens/s {num_tokens / max(seconds, 1e-9):.0f}"
            f" left {_duration(self._seconds_left(progress, fraction))}"
        )
        if progress.num_skipped_updates:
            line += f" skipped {progress.num_skipped_updates}"
        self._last = progress
        self._loss_sum, self._loss_tokens = 0.0, 0
        if self._bar is None:
            LOGGER.info("%s", line)
        else:
            self._bar.set_postfix_str(line, refresh=False)
            self._bar.update(fraction - self._bar.n)

    def say(self, line: str) -> None:
        """A line of its own, above the bar if there is one."""
        if self._bar is None:
            LOGGER.info("%s", line)
        else:
            self._bar.write(line)

    def _seconds_left(self, progress: Progress, fraction: float) -> float:
        done = fraction - self._first_fraction
        spent = progress.elapsed_seconds - self._first.elapsed_seconds
        return spent * (1.0 - fraction) / done if done > 0 else 0.0


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}"
