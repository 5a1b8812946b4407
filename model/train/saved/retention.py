"""Retention of a run's files on disk: states, snapshots, averages.

Owns which snapshots are kept (those that a saved state refers to stay as long as a run may be
resumed from it), and that one process at a time trains in a folder. Does not own the files' formats
(`state`), nor when something is saved.
"""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import torch

from model.checkpoint.manifest import CONFIG_FILE
from model.errors import TrainingError
from model.nn.transformer import Transformer
from model.train.files import PARTIAL_SUFFIX, check_writable, locked_folder, naming_files, remove
from model.train.saved.averaging import MovingAverage
from model.train.saved.state import (
    Progress,
    average_path,
    best_update_before,
    list_averages,
    list_snapshots,
    load_snapshot,
    load_state,
    prune,
    save_average,
    save_snapshot,
    save_state,
    snapshot_path,
    update_of,
)

_LOGGER = logging.getLogger("dragoman.train")

CHECKPOINT_FOLDER = "checkpoint"
"""Where, in a run's folder, its checkpoint is put."""

RETIRED_SUFFIX = ".old"
"""Of a checkpoint's folder that another one is taking the place of."""


class RunFiles:
    """The states and snapshots of one run.

    Args:
        folder: Of the run.
        transformer: The network that is trained.
        optimiser: Its optimiser.
        average: The moving average of its weights, if it has one.
        fingerprint: Of the experiment.
        num_snapshots: Snapshots kept, the latest ones.
    """

    def __init__(
        self,
        folder: Path,
        *,
        transformer: Transformer,
        optimiser: torch.optim.Optimizer,
        average: MovingAverage | None,
        fingerprint: str,
        num_snapshots: int,
    ) -> None:
        self._folder = folder
        self._transformer = transformer
        self._optimiser = optimiser
        self._average = average
        self._fingerprint = fingerprint
        self._num_snapshots = num_snapshots
        self._saved_best: tuple[int | None, ...] = ()
        self._is_latest_whole = True

    def save(self, progress: Progress) -> None:
        """Save the state; the one before it stays.

        Raises:
            TrainingError: It cannot be written; the states before it are whole.
        """
        save_state(
            self._folder,
            transformer=self._transformer,
            optimiser=self._optimiser,
            progress=progress,
            fingerprint=self._fingerprint,
            average=None if self._average is None else self._average.state(),
            is_latest_whole=self._is_latest_whole,
        )
        self._is_latest_whole = True
        self._saved_best = (*self._saved_best[-1:], progress.best_update)

    def restore(self) -> Progress:
        """Restore the latest state that is whole.

        Raises:
            TrainingError: There is none, or it belongs to another experiment.
        """
        state = load_state(
            self._folder,
            transformer=self._transformer,
            optimiser=self._optimiser,
            fingerprint=self._fingerprint,
            device=next(self._transformer.parameters()).device,
        )
        if self._average is not None and state.average is not None:
            self._average.restore(state.average)
        self._is_latest_whole = state.is_latest
        self._saved_best = (state.progress.best_update,)
        if state.is_latest:
            self._saved_best = (best_update_before(self._folder), *self._saved_best)
        return replace(state.progress, snapshot_updates=self._latest_updates(state.progress))

    def remove_later(self, progress: Progress) -> None:
        """Remove snapshots later than `progress`: the run will make them again.

        They were written after the state that a run is resumed from: they are of later updates,
        or of its own update, of which the state does not say that it was scored. Left there, they
        would be taken for this run's own. What a killed run had only begun goes with them: files,
        and its checkpoint's folder.

        Raises:
            TrainingError: Something cannot be removed.
        """
        later = [
            path
            for path in (*list_snapshots(self._folder), *list_averages(self._folder))
            if not _is_known(path, progress)
        ]
        for path in (*later, *_begun(self._folder)):
            remove(path)
        if later:
            fields = {"update": progress.update, "num_snapshots": len(later)}
            _LOGGER.info("later_snapshots_removed", extra={"fields": fields})

    def has_snapshot(self, update: int) -> bool:
        """Whether the snapshot of an update, and its average, are there and can be read.

        One that cannot be read is warned of.
        """
        paths = [snapshot_path(self._folder, update)]
        if self._average is not None:
            paths.append(average_path(self._folder, update))
        if not all(path.exists() for path in paths):
            return False
        try:
            for path in paths:
                load_snapshot(path)
        except TrainingError as error:
            _LOGGER.warning("snapshot_made_again", extra={"fields": {"reason": str(error)}})
            return False
        return True

    def snapshot(self, update: int) -> None:
        """Write the weights, and their moving average if there is one.

        Raises:
            TrainingError: They cannot be written.
        """
        save_snapshot(self._folder, self._transformer, update)
        if self._average is not None:
            with self._average.in_place():
                save_average(self._folder, self._transformer, update)

    @contextmanager
    def scored_weights(self) -> Iterator[None]:
        """Context in which the network has the weights that are scored: the average, if any."""
        if self._average is None:
            yield
        else:
            with self._average.in_place():
                yield

    def prune(self, progress: Progress) -> None:
        """Remove old snapshots that no state refers to.

        The best one stays, and so does the best one of a saved state: the run may
        be resumed from there. Of moving averages only the latest stays besides.

        Raises:
            TrainingError: One cannot be removed.
        """
        spoken_of = (*self._saved_best, progress.best_update)
        keep = {update for update in spoken_of if update is not None}
        prune(list_snapshots(self._folder), num_kept=self._num_snapshots, keep=keep)
        prune(list_averages(self._folder), num_kept=1, keep=keep)

    def _latest_updates(self, progress: Progress) -> tuple[int, ...]:
        """Updates of the latest snapshots without a gap between them.

        More files may be there: an older one that was kept as the best.
        """
        there = [path for path in list_snapshots(self._folder) if _is_known(path, progress)]
        found = {update_of(path) for path in there}
        removed = [update for update in progress.snapshot_updates if update not in found]
        return tuple(
            update for update in progress.snapshot_updates if update > max(removed, default=-1)
        )


def _is_known(path: Path, progress: Progress) -> bool:
    """Whether a snapshot was written, and scored, before a state was saved."""
    is_scored = progress.scored_update == progress.update
    return update_of(path) < progress.update + is_scored


def remove_retired(folder: Path) -> None:
    """Remove replaced checkpoints that a killed process left behind.

    While there is no other checkpoint, they stay.

    Raises:
        TrainingError: One cannot be removed.
    """
    if (folder / CHECKPOINT_FOLDER / CONFIG_FILE).is_file():
        for path in folder.glob(f".{CHECKPOINT_FOLDER}.*{RETIRED_SUFFIX}"):
            remove(path)


def _begun(folder: Path) -> list[Path]:
    """Unfinished files of a process that was killed while it wrote, and its checkpoint's folder.

    Hidden files are not the run's: another command may be writing translations into the folder.
    """
    found = [
        path
        for path in folder.glob(f"*{PARTIAL_SUFFIX}")
        if not path.is_dir() and not path.name.startswith(".")
    ]
    found += folder.glob(f".{CHECKPOINT_FOLDER}.*{PARTIAL_SUFFIX}")
    return found


@contextmanager
def opened_folder(folder: Path) -> Iterator[None]:
    """A run's folder, made if missing and locked until the block or the process ends.

    A file system without locks does not keep other processes out.

    Raises:
        TrainingError: It cannot be made, or another process trains in it.
    """
    with naming_files(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with locked_folder(folder) as is_ours:
        if is_ours is False:
            raise TrainingError(
                f"{folder}: another process is training in this folder; wait for it, stop it, or"
                " choose another output folder"
            )
        yield


def check_folder(folder: Path, *, has_state: bool, resume: bool) -> None:
    """Check that a folder can hold a new run, or the run to resume, and its checkpoint.

    Raises:
        TrainingError: It cannot, and the message gives the remedy; or nothing can be written there.
    """
    if folder.is_dir():
        check_writable(folder)
    if (folder / CONFIG_FILE).is_file():
        raise TrainingError(
            f"{folder}: is a checkpoint, whose files a run would replace; choose another output"
            " folder"
        )
    checkpoint = folder / CHECKPOINT_FOLDER
    is_checkpoint = (checkpoint / CONFIG_FILE).is_file() and not checkpoint.is_symlink()
    if os.path.lexists(checkpoint) and not is_checkpoint:
        raise TrainingError(
            f"{checkpoint}: exists and is not a checkpoint, so the run's cannot be put there; move"
            " it away, or choose another output folder"
        )
    if resume:
        if not has_state:
            raise TrainingError(f"{folder}: holds no state to resume from")
    elif has_state:
        raise TrainingError(
            f"{folder}: holds a run already; resume it, or choose another output folder"
        )
    elif list_snapshots(folder) or list_averages(folder):
        raise TrainingError(
            f"{folder}: holds snapshots but no state to resume from; move them away, or choose"
            " another output folder"
        )
