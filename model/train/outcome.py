"""Outcome of a run (complete, stopped or failed) in its journal and its report.

Owns that each of them is recorded. The form of a report is `model.train.records.report`'s.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from model.errors import DragomanError
from model.train.config.experiment import Experiment
from model.train.data.filtering import CorpusReport
from model.train.records.recorder import RunRecorder
from model.train.records.report import ReportFacts, Scored, read_card, score_fields, write_report
from model.train.saved.retention import CHECKPOINT_FOLDER
from model.train.saved.state import Progress


class RunOutcome:
    """Recorder of one run's outcome.

    Args:
        experiment: What was run.
        folder: Of the run.
        reports: What became of each training corpus.
        recorder: Has the journal.
    """

    def __init__(
        self,
        experiment: Experiment,
        folder: Path,
        *,
        reports: tuple[CorpusReport, ...],
        recorder: RunRecorder,
    ) -> None:
        self._experiment = experiment
        self._folder = folder
        self._reports = reports
        self._recorder = recorder

    def write(self, progress: Progress, *, scored: Mapping[str, Scored] | None) -> None:
        """Record the final scores, which are None when the run was stopped, and write the report.

        Raises:
            TrainingError: A file cannot be written.
        """
        for name, item in (scored or {}).items():
            fields = score_fields(name, item.evaluation)
            self._recorder.note("score", update=progress.update, fields=fields)
        self._write_report(progress, scored=scored)

    def write_error(self, progress: Progress, error: Exception) -> None:
        """Record the error that ended the run, and write the report.

        A failure to write is added to the error as a note.
        """
        text = str(error)
        if not isinstance(error, DragomanError):  # its words alone may not say what it is
            text = f"{type(error).__name__}: {text}"

        def note() -> None:
            self._recorder.note("error", update=progress.update, fields={"text": text})

        def report() -> None:
            self._write_report(progress, scored=None, error=text)

        for write in (note, report):
            _try_to(write, error)

    def _write_report(
        self,
        progress: Progress,
        *,
        scored: Mapping[str, Scored] | None,
        error: str | None = None,
    ) -> None:
        facts = ReportFacts(
            progress=progress,
            entries=self._recorder.entries,
            reports=self._reports,
            has_curves=self._recorder.draw(),
            card=None if scored is None else read_card(self._folder / CHECKPOINT_FOLDER),
            scored=scored or {},
            error=error,
        )
        write_report(self._folder, self._experiment, facts)


def _try_to(write: Callable[[], None], error: Exception) -> None:
    try:
        write()
    except Exception as problem:  # whatever it is, it must not hide what ended the run
        error.add_note(str(problem))
