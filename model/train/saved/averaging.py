"""Averages of weights: over snapshots of a run, and the exponential moving average.

Owns the arithmetic and which snapshots an average is made of. Does not own their scores, nor the
files.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import get_ema_multi_avg_fn

from model.errors import TrainingError
from model.train.saved.state import AverageState, load_snapshot


class MovingAverage:
    """The exponential moving average of a network's weights.

    After update n every average moves to d · average + (1 - d) · weight with
    d = min(decay, (1 + n) / (10 + n)): early on it covers few updates, so that the random weights
    of the beginning soon weigh little. Sums are made in the weights' own type.

    Args:
        network: Its parameters, wherever they are; buffers are constants and have no average.
        decay: How much of the average stays at every update, in (0, 1).
    """

    def __init__(self, network: nn.Module, *, decay: float) -> None:
        self._weights = dict(network.named_parameters())
        self._averages = {name: weight.detach().clone() for name, weight in self._weights.items()}
        self._decay = decay
        self._num_updates = 0

    @torch.no_grad()
    def move(self) -> None:
        """Add the weights after one more update."""
        self._num_updates += 1
        decay = min(self._decay, (1 + self._num_updates) / (10 + self._num_updates))
        averages, weights = list(self._averages.values()), list(self._weights.values())
        move = get_ema_multi_avg_fn(decay)  # type: ignore[no-untyped-call]  # torch's own
        move(averages, weights, self._num_updates)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Context in which the network's weights are the averages."""
        own = {name: weight.detach().clone() for name, weight in self._weights.items()}
        self._fill(self._averages)
        try:
            yield
        finally:
            self._fill(own)

    def state(self) -> AverageState:
        """State for resuming; not a copy."""
        return AverageState(num_updates=self._num_updates, weights=self._averages)

    def restore(self, state: AverageState) -> None:
        """Restore a saved state.

        Raises:
            TrainingError: It is of another network.
        """
        if _shapes(state.weights) != _shapes(self._averages):
            raise TrainingError("the saved average of the weights is of another network")
        self._num_updates = state.num_updates
        for name, average in self._averages.items():
            average.copy_(state.weights[name])

    @torch.no_grad()
    def _fill(self, values: Mapping[str, Tensor]) -> None:
        for name, weight in self._weights.items():
            weight.copy_(values[name])


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
