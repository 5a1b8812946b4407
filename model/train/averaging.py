"""Averages of snapshots: the mean of every weight over several updates of one run.

Owns the arithmetic and which snapshots an average is made of. Does not own their scores.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor

from model.errors import TrainingError
from model.train.state import load_snapshot


def average_snapshots(paths: Sequence[Path]) -> dict[str, Tensor]:
    """The mean of every tensor over the snapshots, in float64, given back in their own type.

    Raises:
        TrainingError: There is no snapshot, one is damaged, or they are of different networks.
    """
    if not paths:
        raise TrainingError("there is no snapshot to average")
    first = load_snapshot(paths[0])
    sums = {name: tensor.double() for name, tensor in first.items()}
    for path in paths[1:]:
        other = load_snapshot(path)
        if _shapes(other) != _shapes(first):
            raise TrainingError(f"{path}: not of the same network as {paths[0]}")
        for name, tensor in other.items():
            sums[name] += tensor.double()
    return {name: (total / len(paths)).to(first[name].dtype) for name, total in sums.items()}


def last_snapshots(paths: Sequence[Path], counts: Sequence[int]) -> dict[int, list[Path]]:
    """For each count, the latest so many of `paths`; counts above their number are left out."""
    return {count: list(paths[-count:]) for count in counts if 1 <= count <= len(paths)}


def _shapes(tensors: Mapping[str, Tensor]) -> dict[str, tuple[torch.Size, torch.dtype]]:
    return {name: (tensor.shape, tensor.dtype) for name, tensor in tensors.items()}
