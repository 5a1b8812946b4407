"""Files a run leaves behind: the state it resumes from and the snapshots of its weights.

Owns their format and that they are written whole or not at all. Nothing read here can execute
code: the state is loaded with `weights_only=True`, snapshots are safetensors.
"""

import os
import pickle
import zipfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from model.errors import TrainingError
from model.train.batching import BatchPosition

STATE_FILE = "state.pt"


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a run is.

    Attributes:
        update: Updates done.
        position: The next batch.
        elapsed_seconds: Seconds of training, those before a resume included.
        num_source_tokens: Source tokens read so far, without padding.
        num_target_tokens: Target tokens learnt from so far.
        metric: What scores are: "loss" (negated, so that larger is better) or "BLEU".
        best_score: Dev score of the best snapshot so far, larger is better, or None.
        best_update: Its update.
    """

    update: int = 0
    position: BatchPosition = field(default_factory=BatchPosition)
    elapsed_seconds: float = 0.0
    num_source_tokens: int = 0
    num_target_tokens: int = 0
    metric: str = "loss"
    best_score: float | None = None
    best_update: int | None = None


def save_state(
    folder: Path,
    *,
    transformer: nn.Module,
    optimiser: torch.optim.Optimizer,
    progress: Progress,
    fingerprint: str,
) -> None:
    """Write everything that a resumed run needs to go on exactly as this one would.

    Args:
        folder: Gets `state.pt`, replaced atomically.
        transformer: Its weights.
        optimiser: Its moments.
        progress: Counters and position in the data.
        fingerprint: Of the experiment; a state only fits the experiment it was made by.
    """
    path = folder / STATE_FILE
    partial = path.with_suffix(".partial")
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    with partial.open("wb") as output:
        torch.save(
            {
                "fingerprint": fingerprint,
                "transformer": transformer.state_dict(),
                "optimiser": optimiser.state_dict(),
                "progress": asdict(progress),
                "random": {"cpu": torch.get_rng_state(), "cuda": cuda},
            },
            output,
        )
        output.flush()
        os.fsync(output.fileno())
    partial.replace(path)


def load_state(
    folder: Path,
    *,
    transformer: nn.Module,
    optimiser: torch.optim.Optimizer,
    fingerprint: str,
    device: torch.device,
) -> Progress:
    """Restore what `save_state` wrote, the random generators included.

    Raises:
        TrainingError: There is no state, it is damaged, or it belongs to another experiment.
    """
    path = folder / STATE_FILE
    if not zipfile.is_zipfile(path):  # torch's older format, a bare pickle, is not even tried
        raise TrainingError(f"{path}: no state to resume from: missing, or not a state")
    try:
        state: dict[str, Any] = torch.load(path, map_location=device, weights_only=True)
        found = state["fingerprint"]
    except (OSError, EOFError, RuntimeError, pickle.UnpicklingError, KeyError, TypeError) as error:
        raise TrainingError(f"{path}: no state to resume from: {error}") from error
    if found != fingerprint:
        raise TrainingError(
            f"{path}: the state belongs to another experiment (fingerprint {found}, now"
            f" {fingerprint}); resume with the experiment file it was made by"
        )
    transformer.load_state_dict(state["transformer"])
    optimiser.load_state_dict(state["optimiser"])
    torch.set_rng_state(state["random"]["cpu"].cpu())
    if device.type == "cuda":
        torch.cuda.set_rng_state_all([item.cpu() for item in state["random"]["cuda"]])
    counters = dict(state["progress"])
    position = BatchPosition(**counters.pop("position"))
    return Progress(position=position, **counters)


def snapshot_path(folder: Path, update: int) -> Path:
    """Where the snapshot of one update lies."""
    return folder / f"snapshot-{update:08d}.safetensors"


def save_snapshot(folder: Path, transformer: nn.Module, update: int) -> Path:
    """Write the weights of one update, atomically, and return the path."""
    path = snapshot_path(folder, update)
    partial = path.with_suffix(".partial")
    tensors = {name: t.detach().cpu().contiguous() for name, t in transformer.state_dict().items()}
    save_file(tensors, partial)
    partial.replace(path)
    return path


def list_snapshots(folder: Path) -> list[Path]:
    """Snapshots of a run, oldest first."""
    return sorted(folder.glob("snapshot-*.safetensors"))


def prune_snapshots(folder: Path, *, num_kept: int, keep: frozenset[Path]) -> None:
    """Remove all but the latest `num_kept` snapshots and those in `keep`."""
    for path in list_snapshots(folder)[:-num_kept]:
        if path not in keep:
            path.unlink()


def load_latest_snapshot(folder: Path, transformer: nn.Module) -> None:
    """Give a network the weights of a run's latest snapshot.

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
    """Read the weights of a snapshot.

    Raises:
        TrainingError: The file is missing or damaged.
    """
    try:
        return load_file(path)
    except (OSError, SafetensorError) as error:
        raise TrainingError(f"{path}: not a snapshot: {error}") from error
