"""Recorder of a run: the journal, and TensorBoard events and curves made from it during the run.

Owns that the three agree, and that a run trains without the packages that draw. Does not own what
is measured, nor the output on the terminal.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from model.errors import TrainingError
from model.train.files import reason_of, unwritable
from model.train.records.journal import JOURNAL_FILE, Event, Journal, JournalEntry, Value

if TYPE_CHECKING:
    from model.train.records.events import EventWriter

_LOGGER = logging.getLogger("dragoman.train")

_DRAW_EVERY_SECONDS = 60.0


class RunRecorder:
    """Journal, events and curves of one run; a context manager.

    Args:
        folder: Of the run.
        update: Where the run begins or is resumed.
        is_resumed: It is resumed.
        clock: Seconds since 1970.
    """

    def __init__(
        self, folder: Path, *, update: int, is_resumed: bool, clock: Callable[[], float]
    ) -> None:
        self._folder = folder
        self._clock = clock
        self._draw_curves: Callable[[Sequence[JournalEntry], Path], bool] | None = None
        self._drawn_at = clock()
        self._events: EventWriter | None = None
        self._open_events = ExitStack()
        with ExitStack() as stack:
            journal = Journal(folder, update=update, is_resumed=is_resumed)
            self._journal = stack.enter_context(journal)
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
        try:
            self._stack.close()
        except OSError as problem:
            failure = unwritable(self._folder / JOURNAL_FILE, problem)
            if error is None:
                raise failure from problem
            error.add_note(str(failure))  # the error that ended the run is the one to raise

    @property
    def entries(self) -> Sequence[JournalEntry]:
        """All entries so far, in order."""
        return self._journal.entries

    def first_command(self) -> str:
        """The command that began the run; that of a resume lacks flags such as `--start-from`."""
        return next(entry.text("command") for entry in self.entries if entry.event == "start")

    def note(self, event: Event, *, update: int, fields: Mapping[str, Value]) -> None:
        """Record an event.

        Raises:
            TrainingError: The journal cannot be written. TensorBoard events that cannot be are
                only warned of, once.
        """
        entry = self._journal.append(event, update=update, time=self._clock(), fields=fields)
        if self._events is not None:
            try:
                self._events.write(entry)
            except OSError as error:  # no reason to end a run: the journal has the figures
                _LOGGER.warning("tensorboard_ended", extra={"fields": {"reason": reason_of(error)}})
                self._close_events()

    def draw_if_due(self) -> None:
        """Draw the curves so far, unless they were drawn within the last interval."""
        if self._clock() - self._drawn_at >= _DRAW_EVERY_SECONDS:
            self.draw()

    def draw(self) -> bool:
        """Draw the curves so far; false if there are none, or no package to draw them."""
        if self._draw_curves is None:
            return False
        self._drawn_at = self._clock()
        try:
            return self._draw_curves(self.entries, self._folder)
        except TrainingError as error:  # likewise
            _LOGGER.warning("curves_not_drawn", extra={"fields": {"reason": str(error)}})
            return False

    def _close_events(self) -> None:
        """Close the events if they are open; a failure is only a warning."""
        self._events = None
        try:
            self._open_events.close()
        except OSError as error:
            fields = {"reason": reason_of(error)}
            _LOGGER.warning("tensorboard_cut_short", extra={"fields": fields})

    def _open_drawings(self, stack: ExitStack) -> None:
        missing = []
        try:
            from model.train.records.events import EventWriter  # noqa: PLC0415  # an extra

            writer = EventWriter(self._folder, self._journal.entries, time=self._clock())
            self._events = self._open_events.enter_context(writer)
            stack.callback(self._close_events)
        except ImportError:
            missing.append("tensorboard (live events)")
        except OSError as error:
            _LOGGER.warning("tensorboard_off", extra={"fields": {"reason": str(error)}})
        try:
            from model.train.records.curves import draw_curves  # noqa: PLC0415  # an extra

            self._draw_curves = draw_curves
        except ImportError:
            missing.append("matplotlib (curves.png)")
        if missing:
            fields = {
                "missing": ", ".join(missing),
                "reason": f"figures are in {JOURNAL_FILE} all the same;"
                " pip install -e '.[train]' adds what is missing",
            }
            _LOGGER.warning("packages_missing", extra={"fields": fields})
