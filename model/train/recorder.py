"""Keeps what a run measures: the journal, and what is drawn from it while the run goes on.

Owns that journal, TensorBoard events and curves agree, and that a run trains without the packages
that draw. Does not own what is measured, nor what is said on the terminal.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from model.train.journal import Event, Journal, Record, Value

if TYPE_CHECKING:
    from model.train.events import EventWriter

LOGGER = logging.getLogger("dragoman.train")

_DRAW_EVERY_SECONDS = 60.0


class RunRecorder:
    """Records one run; a context manager.

    Args:
        folder: Of the run.
        update: Where the run begins or goes on.
        clock: Seconds since 1970.
    """

    def __init__(self, folder: Path, *, update: int, clock: Callable[[], float]) -> None:
        self._folder = folder
        self._clock = clock
        self._draw_curves: Callable[[Sequence[Record], Path], bool] | None = None
        self._drawn_at = clock()
        self._events: EventWriter | None = None
        with ExitStack() as stack:
            self._journal = stack.enter_context(Journal(folder, update=update))
            self._open_drawings(stack)
            self._stack = stack.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.close()

    @property
    def records(self) -> Sequence[Record]:
        """Everything that happened so far, in order."""
        return self._journal.records

    def note(self, event: Event, *, update: int, fields: Mapping[str, Value]) -> None:
        """Write down an event."""
        record = self._journal.append(event, update=update, time=self._clock(), fields=fields)
        if self._events is not None:
            self._events.write(record)

    def draw_if_due(self) -> None:
        """Draw the curves so far, unless that was done a moment ago."""
        if self._clock() - self._drawn_at >= _DRAW_EVERY_SECONDS:
            self.draw()

    def draw(self) -> bool:
        """Draw the curves so far; whether there are any, and the package to draw them."""
        if self._draw_curves is None:
            return False
        self._drawn_at = self._clock()
        try:
            return self._draw_curves(self.records, self._folder)
        except OSError as error:  # no reason to end a run: the journal has the figures
            LOGGER.warning("the curves cannot be drawn: %s", error)
            return False

    def _open_drawings(self, stack: ExitStack) -> None:
        missing = []
        try:
            from model.train.events import EventWriter  # noqa: PLC0415  # an extra

            writer = EventWriter(self._folder, self._journal.records, time=self._clock())
            self._events = stack.enter_context(writer)
        except ImportError:
            missing.append("tensorboard (live events)")
        except OSError as error:
            LOGGER.warning("no TensorBoard events are written: %s", error)
        try:
            from model.train.curves import draw_curves  # noqa: PLC0415  # an extra

            self._draw_curves = draw_curves
        except ImportError:
            missing.append("matplotlib (curves.png)")
        if missing:
            LOGGER.warning(
                "not installed: %s; figures are in metrics.jsonl all the same;"
                " pip install 'dragoman[train]' adds what is missing",
                ", ".join(missing),
            )
