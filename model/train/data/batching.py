"""Batches of sentence pairs: by tokens, of similar lengths, the same for the same seed and epoch.

Owns which pairs make a batch and in which order batches come; positions in that order can be
saved and taken up again. Does not own tensors' devices or the network.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from model.errors import DataError

IGNORED = -100
"""Label of a target position that carries no loss; torch's default."""


class Pairs(Protocol):
    """Tokenised sentence pairs, wherever they are kept.

    Attributes:
        source_lengths: (P,) source tokens with EOS, to plan batches by.
        target_lengths: (P,) target tokens with EOS, likewise.
    """

    source_lengths: NDArray[np.int64]
    target_lengths: NDArray[np.int64]

    def __len__(self) -> int: ...

    def epoch_copies(self, epoch: int) -> NDArray[np.int64]:
        """(P,) how often each pair occurs in one epoch."""

    def rows(
        self, indices: Sequence[int], *, epoch: int, number: int
    ) -> tuple[list[NDArray[np.int32]], list[NDArray[np.int32]]]:
        """Source and target ids, EOS at the end, of the pairs of a batch.

        Args:
            indices: Of the pairs.
            epoch: Epoch of the batch.
            number: Its number in the epoch; what is random depends on nothing else.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """One padded batch.

    Attributes:
        source_ids: (B, S) int64, EOS included, padded with pad_id.
        target_ids: (B, T) int64, what the decoder reads: the start token, then the target.
        labels: (B, T) int64, what it should say: the target, then EOS; `IGNORED` is padding.
        num_source_tokens: Source tokens with EOS, without padding.
        num_target_tokens: Labels that are not `IGNORED`.
    """

    source_ids: Tensor
    target_ids: Tensor
    labels: Tensor
    num_source_tokens: int
    num_target_tokens: int

    def to(self, device: torch.device) -> "Batch":
        """The batch on another device; itself when it is there already.

        One that is pinned is copied while the host goes on.
        """
        return replace(
            self,
            source_ids=self.source_ids.to(device, non_blocking=True),
            target_ids=self.target_ids.to(device, non_blocking=True),
            labels=self.labels.to(device, non_blocking=True),
        )

    def pinned(self, device: torch.device) -> "Batch":
        """The batch where a GPU can fetch it by itself; itself where `device` is none."""
        if device.type != "cuda":
            return self
        return replace(
            self,
            source_ids=self.source_ids.pin_memory(),
            target_ids=self.target_ids.pin_memory(),
            labels=self.labels.pin_memory(),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchPosition:
    """Position in the data: the next batch is number `index` of epoch `epoch`."""

    epoch: int = 0
    index: int = 0


def plan_epoch(
    source_lengths: NDArray[np.int64],
    target_lengths: NDArray[np.int64],
    *,
    copies: NDArray[np.int64],
    max_tokens: int,
    seed: int,
    epoch: int,
) -> list[NDArray[np.int64]]:
    """Batches of pair indices for one epoch, in a random order.

    Pairs are sorted by target, then source length, ties in random order; a batch is closed when
    one more pair would make either padded side larger than `max_tokens`.

    Args:
        source_lengths: (P,) source tokens of each pair, with EOS.
        target_lengths: (P,) target tokens of each pair, with EOS.
        copies: (P,) how often each pair occurs in an epoch.
        max_tokens: Limit of B·S and of B·T.
        seed: Seed of the run.
        epoch: Number of the epoch; another epoch has other batches in another order.
    """
    generator = np.random.default_rng([seed, epoch])
    if not copies.any():
        return []
    pairs = generator.permutation(np.repeat(np.arange(len(copies)), copies))
    order = np.lexsort((source_lengths[pairs], target_lengths[pairs]))
    pairs = pairs[order]
    widths: list[int] = np.maximum(source_lengths[pairs], target_lengths[pairs]).tolist()
    batches = []
    begin, widest = 0, 0
    for end, width in enumerate(widths):
        widest = max(widest, width)
        if end > begin and widest * (end + 1 - begin) > max_tokens:
            batches.append(pairs[begin:end])
            begin, widest = end, width
    batches.append(pairs[begin:])
    return [batches[number] for number in generator.permutation(len(batches))]


def make_batch(
    pairs: Pairs,
    indices: Sequence[int] | NDArray[np.int64],
    *,
    pad_id: int,
    start_id: int,
    epoch: int = 0,
    number: int = 0,
) -> Batch:
    """Pad the pairs at `indices` into one batch, number `number` of `epoch`."""
    sources, targets = pairs.rows([int(index) for index in indices], epoch=epoch, number=number)
    num_source, num_target = (max(map(len, side)) for side in (sources, targets))
    source_ids = np.full((len(sources), num_source), pad_id, dtype=np.int64)
    target_ids = np.full((len(sources), num_target), pad_id, dtype=np.int64)
    labels = np.full((len(sources), num_target), IGNORED, dtype=np.int64)
    target_ids[:, 0] = start_id
    for row, (source, target) in enumerate(zip(sources, targets, strict=True)):
        source_ids[row, : len(source)] = source
        target_ids[row, 1 : len(target)] = target[:-1]
        labels[row, : len(target)] = target
    return Batch(
        source_ids=torch.from_numpy(source_ids),
        target_ids=torch.from_numpy(target_ids),
        labels=torch.from_numpy(labels),
        num_source_tokens=sum(map(len, sources)),
        num_target_tokens=sum(map(len, targets)),
    )


class BatchStream:
    """An endless stream of batches and its position.

    Args:
        pairs: The text.
        max_tokens: Limit of either padded side of a batch.
        seed: Seed of the run.
        pad_id: Padding.
        start_id: What the decoder reads first.
        position: Where to begin.

    Raises:
        DataError: There is no pair.
    """

    def __init__(
        self,
        pairs: Pairs,
        *,
        max_tokens: int,
        seed: int,
        pad_id: int,
        start_id: int,
        position: BatchPosition | None = None,
    ) -> None:
        if len(pairs) == 0:  # an epoch may be empty, all of them may not
            raise DataError("there is no sentence pair to train on")
        self._pairs = pairs
        self._max_tokens = max_tokens
        self._seed = seed
        self._pad_id = pad_id
        self._start_id = start_id
        self._position = position or BatchPosition()
        self._plan = self._make_plan()

    @property
    def position(self) -> BatchPosition:
        """The next batch, the first of another epoch where one has just ended."""
        if self._position.index < len(self._plan):
            return self._position
        return BatchPosition(epoch=self._position.epoch + 1)

    @property
    def epoch(self) -> int:
        """That of the latest batch."""
        return self._position.epoch

    def __iter__(self) -> Iterator[Batch]:
        return self

    def __next__(self) -> Batch:
        while self._position.index >= len(self._plan):
            self._position = BatchPosition(epoch=self._position.epoch + 1)
            self._plan = self._make_plan()
        epoch, number = self._position.epoch, self._position.index
        self._position = BatchPosition(epoch=epoch, index=number + 1)
        return make_batch(
            self._pairs,
            self._plan[number],
            pad_id=self._pad_id,
            start_id=self._start_id,
            epoch=epoch,
            number=number,
        )

    def _make_plan(self) -> list[NDArray[np.int64]]:
        return plan_epoch(
            self._pairs.source_lengths,
            self._pairs.target_lengths,
            copies=self._pairs.epoch_copies(self._position.epoch),
            max_tokens=self._max_tokens,
            seed=self._seed,
            epoch=self._position.epoch,
        )
