"""Files of a run: the state it resumes from and the snapshots of its weights.

Owns their format, and that the state before the latest one stays beside it. Does not own when they
are written, nor which snapshots are kept (`model.train.saved.retention`). Nothing read here can
execute code: the state is loaded with `weights_only=True`, snapshots are safetensors.
"""

import logging
import pickle
import re
import zipfile
import zlib
from collections.abc import Mapping, Sequence, Set
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from model.errors import TrainingError
from model.system.out_of_memory import is_out_of_memory
from model.system.paths import utf8_name
from model.train.data.batching import BatchPosition
from model.train.files import reason_of, remove, whole_file

_LOGGER = logging.getLogger("dragoman.train")

STATE_FILE = "state.pt"
PREVIOUS_STATE_FILE = "state-previous.pt"
"""The save before the latest one, for the case that that one cannot be read."""

_NUMBER = re.compile(r"\d{8,}")
"""Of an update, in the names of weights."""

_SUM = "crc32"
"""What a snapshot keeps the checksum of its weights under: safetensors has none of its own."""

_UNREADABLE = (
    OSError,
    EOFError,
    RuntimeError,
    TypeError,
    ValueError,
    pickle.UnpicklingError,
    zipfile.BadZipFile,
    zlib.error,
)
"""What torch and zipfile raise at a file that is no state, or a damaged one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Progress of a run: counters, best score and position in the data.

    Attributes:
        update: Updates done.
        position: The next batch.
        elapsed_seconds: Seconds of training, those before a resume included.
        num_source_tokens: Source tokens read so far, without padding.
        num_target_tokens: Target tokens learnt from so far.
        scoring: How scores are measured, from `Validator.scoring`, the metric first.
        best_score: Dev score of the best snapshot so far, larger is better, or None.
        best_ties: What its ties were broken by, from `DevScore.rank`; states of earlier
            versions have none.
        best_update: Its update. After a resume that scores in another way it is there without a
            score, until the next snapshot has one.
        num_snapshots_since_best: Snapshots scored since `best_score` was first reached, which
            none of them surpassed; 0 without a score.
        scored_update: The update of the latest snapshot that dev text has scored, or None.
        snapshot_updates: Updates of the latest snapshots, oldest first, none left out between
            them.
        num_skipped_updates: Updates whose loss or gradient was not finite.
        num_skipped_in_a_row: Those since the last one that was finite.
    """

    update: int = 0
    position: BatchPosition = field(default_factory=BatchPosition)
    elapsed_seconds: float = 0.0
    num_source_tokens: int = 0
    num_target_tokens: int = 0
    scoring: str = ""
    best_score: float | None = None
    best_ties: tuple[float, ...] = ()
    best_update: int | None = None
    num_snapshots_since_best: int = 0
    scored_update: int | None = None
    snapshot_updates: tuple[int, ...] = ()
    num_skipped_updates: int = 0
    num_skipped_in_a_row: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AverageState:
    """A moving average of weights as it is saved.

    Attributes:
        num_updates: Updates it has taken in.
        weights: By name.
    """

    num_updates: int
    weights: Mapping[str, Tensor]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedState:
    """Contents of a state besides weights, moments and random generators.

    Attributes:
        progress: Counters and position in the data.
        average: The weights' moving average, if there was one.
        is_latest: It is the latest state, not the one before it.
    """

    progress: Progress
    average: AverageState | None
    is_latest: bool


def has_state(folder: Path) -> bool:
    """Whether a folder holds a state, or the one before it."""
    return any((folder / name).exists() for name in (STATE_FILE, PREVIOUS_STATE_FILE))


def save_state(
    folder: Path,
    *,
    transformer: nn.Module,
    optimiser: torch.optim.Optimizer,
    progress: Progress,
    fingerprint: str,
    average: AverageState | None = None,
    is_latest_whole: bool = True,
) -> None:
    """Write everything that an exact resume needs.

    Args:
        folder: Gets `state.pt`, replaced atomically; the one it replaces becomes
            `state-previous.pt`.
        transformer: Its weights.
        optimiser: Its moments.
        progress: Counters and position in the data.
        fingerprint: Of the experiment; a state only fits the experiment it was made by.
        average: The weights' moving average, if there is one.
        is_latest_whole: Whether the `state.pt` that is replaced could be read. One that could
            not is dropped, and `state-previous.pt` stays what it is.

    Raises:
        TrainingError: It cannot be written, such as on a full disk; earlier states are whole.
    """
    path = folder / STATE_FILE
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    state = {
        "fingerprint": fingerprint,
        "transformer": transformer.state_dict(),
        "optimiser": optimiser.state_dict(),
        "progress": asdict(progress),
        "random": {"cpu": torch.get_rng_state(), "cuda": cuda},
    }
    if average is not None:
        state["average"] = {
            "num_updates": average.num_updates,
            "weights": dict(average.weights),
        }
    previous = path.with_name(PREVIOUS_STATE_FILE) if is_latest_whole else None
    what = f"the state of update {progress.update}"
    with whole_file(path, what, previous=previous) as partial, partial.open("wb") as output:
        torch.save(state, output)


def load_state(
    folder: Path,
    *,
    transformer: nn.Module,
    optimiser: torch.optim.Optimizer,
    fingerprint: str,
    device: torch.device,
) -> LoadedState:
    """Restore what `save_state` wrote, random generators included.

    If the latest state is missing or damaged, the one before it is used, and a line of the log
    says so.

    Raises:
        TrainingError: There is no whole state, it belongs to another experiment or another
            version of this program, or there is not enough memory for it.
    """
    path, state = _read_latest(folder, device)
    found = state["fingerprint"]
    if found != fingerprint:
        raise TrainingError(
            f"{path}: the state belongs to another experiment (fingerprint {found}, now"
            f" {fingerprint}); resume with the experiment file it was made by"
        )
    progress = _progress(path, state["progress"])
    try:
        transformer.load_state_dict(state["transformer"])
        optimiser.load_state_dict(state["optimiser"])
    except (RuntimeError, ValueError, MemoryError, OSError) as error:
        if is_out_of_memory(error):
            raise _no_memory(path, error) from error
        raise TrainingError(f"{path}: of another network: {error}") from error
    torch.set_rng_state(state["random"]["cpu"].cpu())
    if device.type == "cuda":
        num_devices = torch.cuda.device_count()
        torch.cuda.set_rng_state_all([item.cpu() for item in state["random"]["cuda"][:num_devices]])
    return LoadedState(
        progress=progress,
        average=AverageState(**state["average"]) if "average" in state else None,
        is_latest=path.name == STATE_FILE,
    )


def best_update_before(folder: Path) -> int | None:
    """The best update in `state-previous.pt`, or None.

    Only its counters are read, none of its tensors. A file that cannot be read is warned of.
    """
    path = folder / PREVIOUS_STATE_FILE
    if not path.exists():
        return None
    try:
        with utf8_name(path) as name:
            state = torch.load(name, map_location="cpu", mmap=True, weights_only=True)
        found: int | None = state["progress"]["best_update"]
    except (*_UNREADABLE, LookupError) as error:
        fields = {"path": str(path), "reason": reason_of(error)}
        _LOGGER.warning("state_unreadable", extra={"fields": fields})
        return None
    return found


def _read_latest(folder: Path, device: torch.device) -> tuple[Path, dict[str, Any]]:
    latest, previous = folder / STATE_FILE, folder / PREVIOUS_STATE_FILE
    _check_readable(latest)
    try:
        return latest, _read_state(latest, device)
    except TrainingError as error:
        if is_out_of_memory(error) or not previous.exists():
            raise
        state = _read_state(previous, device)
        update = state["progress"]["update"]
        fields = {"path": str(previous), "update": update, "reason": str(error)}
        _LOGGER.warning("previous_state_taken", extra={"fields": fields})
        return previous, state


def _check_readable(path: Path) -> None:
    """Raise if a file may not be read, which does not mean that it is damaged.

    Raises:
        TrainingError: It is there, and the system does not open it.
    """
    try:
        path.open("rb").close()
    except FileNotFoundError:
        pass
    except OSError as error:
        raise TrainingError(f"{path}: cannot be read: {reason_of(error)}") from error


def _read_state(path: Path, device: torch.device) -> dict[str, Any]:
    """A state, every byte of it checked, which torch does not do by itself.

    Raises:
        TrainingError: It is missing, damaged, or no state; or, raised from an error that
            `is_out_of_memory` knows, there is not enough memory for it.
    """
    if not zipfile.is_zipfile(path):  # torch's older format, a bare pickle, is not even tried
        raise TrainingError(f"{path}: no state to resume from: missing, or not a state")
    try:
        with zipfile.ZipFile(path) as archive:
            damaged = archive.testzip()
        if damaged is not None:
            raise TrainingError(f"{path}: no state to resume from: {damaged} is damaged")
        state: dict[str, Any] = torch.load(path, map_location=device, weights_only=True)
        missing = {"fingerprint", "transformer", "optimiser", "progress", "random"} - set(state)
    except (*_UNREADABLE, MemoryError) as error:
        if is_out_of_memory(error):
            raise _no_memory(path, error) from error
        raise TrainingError(f"{path}: no state to resume from: {error}") from error
    if missing:
        raise TrainingError(f"{path}: no state to resume from: lacks {', '.join(sorted(missing))}")
    return state


def _no_memory(path: Path, error: BaseException) -> TrainingError:
    return TrainingError(f"{path}: not enough memory to load the state, which stays: {error}")


def _progress(path: Path, found: Mapping[str, Any]) -> Progress:
    """The counters of a state.

    Raises:
        TrainingError: They are not the ones that this version keeps.
    """
    differing = {"best_ties", *found} ^ {item.name for item in fields(Progress)}
    if differing:
        raise TrainingError(
            f"{path}: the state is of another version of Dragoman, which has to go on with it:"
            f" {', '.join(sorted(differing))}"
        )
    return Progress(**{**found, "position": BatchPosition(**found["position"])})


def snapshot_path(folder: Path, update: int) -> Path:
    """Path of the snapshot of one update."""
    return folder / f"snapshot-{update:08d}.safetensors"


def average_path(folder: Path, update: int) -> Path:
    """Path of the moving average of the weights after one update."""
    return folder / f"ema-{update:08d}.safetensors"


def save_snapshot(folder: Path, transformer: nn.Module, update: int) -> Path:
    """Write the weights of one update, atomically, and return the path.

    Raises:
        TrainingError: They cannot be written, such as on a full disk.
    """
    return _save_weights(snapshot_path(folder, update), transformer)


def save_average(folder: Path, transformer: nn.Module, update: int) -> Path:
    """Write a network whose weights are the averages, as `save_snapshot` does."""
    return _save_weights(average_path(folder, update), transformer)


def list_snapshots(folder: Path) -> list[Path]:
    """Snapshots of a run, oldest first; other files beside them are ignored."""
    return _list_weights(folder, "snapshot")


def list_averages(folder: Path) -> list[Path]:
    """Moving averages of a run, oldest first, likewise."""
    return _list_weights(folder, "ema")


def _list_weights(folder: Path, kind: str) -> list[Path]:
    paths = folder.glob(f"{kind}-*.safetensors")
    numbered = (path for path in paths if _NUMBER.fullmatch(path.stem.removeprefix(f"{kind}-")))
    return sorted(numbered, key=update_of)


def update_of(path: Path) -> int:
    """The update that a snapshot or an average is of."""
    return int(path.stem.rpartition("-")[2])


def prune(paths: Sequence[Path], *, num_kept: int, keep: Set[int]) -> None:
    """Remove all but the latest `num_kept` of `paths` and those of the updates in `keep`.

    Raises:
        TrainingError: One cannot be removed.
    """
    for path in paths[:-num_kept]:
        if update_of(path) not in keep:
            remove(path)


def load_latest_snapshot(folder: Path, transformer: nn.Module) -> None:
    """Load a run's latest snapshot into a network.

    Raises:
        TrainingError: There is none, it is damaged, or it is of a network of another shape.
    """
    paths = list_snapshots(folder)
    if not paths:
        raise TrainingError(f"{folder}: holds no snapshot to start from")
    try:
        transformer.load_state_dict(dict(load_snapshot(paths[-1])))
    except RuntimeError as error:
        raise TrainingError(f"{paths[-1]}: of another network: {error}") from error


def load_snapshot(path: Path) -> Mapping[str, Tensor]:
    """Read the weights of a snapshot, every byte of them checked.

    Raises:
        TrainingError: The file is missing or damaged.
    """
    try:
        with utf8_name(path) as name, safe_open(name, framework="pt") as opened:
            facts = opened.metadata() or {}
            tensors = {key: opened.get_tensor(key) for key in opened.keys()}  # noqa: SIM118  # no mapping
    except (OSError, SafetensorError) as error:
        raise TrainingError(f"{path}: not a snapshot: {error}") from error
    if facts.get(_SUM) not in {None, _checksum(tensors)}:  # older ones have none
        raise TrainingError(f"{path}: not a snapshot: its weights are damaged")
    return tensors


def _save_weights(path: Path, transformer: nn.Module) -> Path:
    tensors = {name: t.detach().cpu().contiguous() for name, t in transformer.state_dict().items()}
    with whole_file(path, "a snapshot") as partial:
        save_file(tensors, partial, metadata={_SUM: _checksum(tensors)})
        partial.chmod(0o644)  # safetensors hides it from other users
    return path


def _checksum(tensors: Mapping[str, Tensor]) -> str:
    """CRC-32 of all values, by the tensors' names."""
    found = 0
    for _, tensor in sorted(tensors.items()):
        found = zlib.crc32(tensor.contiguous().reshape(-1).view(torch.uint8).numpy().data, found)
    return f"{found:08x}"
