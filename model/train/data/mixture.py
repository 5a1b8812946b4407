"""Composition of an epoch: how often each pair occurs, and in which segmentation.

Owns the weights of corpora and the temperature over directions. All randomness depends on the seed
and the batch's position alone, so that a resumed run reads the same. Does not
own the order of batches.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from model.errors import DataError
from model.train.data.store import StoredPairs
from model.train.data.subwords import SegmentDrawer

Rows = tuple[list[NDArray[np.int32]], list[NDArray[np.int32]]]
"""Source and target ids of some pairs."""

_MAX_DENOMINATOR = 10**6  # of copies: the smallest that an experiment may give is 1 over it
_STREAM = 2_718_281  # keeps these random numbers apart from those of the order of batches


@dataclass(frozen=True, slots=True, kw_only=True)
class MixtureEntry:
    """Consecutive pairs with the same number of copies.

    Attributes:
        direction: Number of their direction.
        num_pairs: How many there are.
        copies: How often each occurs in an epoch.
    """

    direction: int
    num_pairs: int
    copies: float

    @property
    def size(self) -> Fraction:
        """Pairs that an epoch has of them, on average."""
        copies = Fraction(self.copies).limit_denominator(_MAX_DENOMINATOR)  # 0.3 is 3/10 here
        return copies * self.num_pairs


def apply_temperature(
    entries: Sequence[MixtureEntry], temperature: float
) -> tuple[MixtureEntry, ...]:
    """Entries with copies changed so that a direction of n pairs has a share of n^(1/T).

    The length of an epoch stays as it is (Arivazhagan et al. 2019, section 4.2).

    Args:
        entries: With the copies that the experiment gives.
        temperature: T, at least 1.
    """
    if temperature == 1.0:
        return tuple(entries)
    sizes: dict[int, float] = {}
    for entry in entries:
        size = entry.num_pairs * entry.copies
        sizes[entry.direction] = sizes.get(entry.direction, 0.0) + size
    powers = {number: size ** (1.0 / temperature) for number, size in sizes.items()}
    scale = sum(sizes.values()) / sum(powers.values())
    return tuple(
        replace(
            entry,
            copies=entry.copies * powers[entry.direction] * scale / sizes[entry.direction],
        )
        for entry in entries
    )


def epoch_copies(entries: Sequence[MixtureEntry], *, seed: int, epoch: int) -> NDArray[np.int64]:
    """(P,) how often each pair occurs in one epoch.

    Pairs of an entry are dealt out from an endless repetition of one random order, so after k
    epochs each has occurred k · copies times, rounded down or up.
    """
    parts = [
        _entry_copies(entry, seed=(seed, _STREAM, number), epoch=epoch)
        for number, entry in enumerate(entries)
    ]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """Settings of subword sampling, by side.

    Attributes:
        source: For the sources; None leaves them alone.
        target: For the targets, likewise.
        eos_id: Put at the end of both sides.
        num_tags: Tokens before the text of a source, which stay.
        max_length: A segmentation with more tokens gives way to the stored one.
        batch_tokens: Limit of a batch's padded side; one that would exceed it, likewise.
    """

    source: SegmentDrawer | None
    target: SegmentDrawer | None
    eos_id: int
    num_tags: int
    max_length: int
    batch_tokens: int


class TrainingPairs:
    """Stored pairs, repeated and segmented anew; see `model.train.data.batching.Pairs`.

    Args:
        stored: The pairs.
        entries: How often they occur, entry after entry.
        seed: Of the run.
        drawing: None to read every pair in its best segmentation.

    Raises:
        DataError: The copies leave less than one pair an epoch, or nothing of an entry.
    """

    def __init__(
        self,
        stored: StoredPairs,
        entries: Sequence[MixtureEntry],
        *,
        seed: int,
        drawing: Drawing | None = None,
    ) -> None:
        for entry in entries:
            if not entry.size:
                raise DataError(
                    f"data.temperature leaves {entry.copies:g} copies of {entry.num_pairs:,} pairs;"
                    f" at least {1 / _MAX_DENOMINATOR:g} can be drawn"
                )
        num_pairs = float(sum(entry.size for entry in entries))
        if num_pairs < 1.0:
            raise DataError(f"data.train.copies leave {num_pairs:g} pairs an epoch; at least 1")
        self._stored = stored
        self._entries = tuple(entries)
        self._seed = seed
        self._drawing = drawing
        self.source_lengths = stored.source_lengths
        self.target_lengths = stored.target_lengths
        if drawing is not None:
            self._plan_for_longer_rows(drawing)

    def __len__(self) -> int:
        return len(self._stored)

    @property
    def copies(self) -> tuple[float, ...]:
        """How often a pair of each entry occurs in an epoch, on average."""
        return tuple(entry.copies for entry in self._entries)

    def epoch_copies(self, epoch: int) -> NDArray[np.int64]:
        """(P,) how often each pair occurs in one epoch."""
        return epoch_copies(self._entries, seed=self._seed, epoch=epoch)

    def rows(self, indices: Sequence[int], *, epoch: int, number: int) -> Rows:
        """Both sides of the pairs of a batch."""
        stored, drawing = self._stored_rows(indices), self._drawing
        if drawing is None:
            return stored
        limit = min(drawing.max_length, drawing.batch_tokens // len(indices))
        drawn = self._draw(drawing, indices, stored, (self._seed, epoch, number))
        return _limited(drawn[0], stored[0], limit), _limited(drawn[1], stored[1], limit)

    def _stored_rows(self, indices: Sequence[int]) -> Rows:
        return (
            [self._stored.source(index) for index in indices],
            [self._stored.target(index) for index in indices],
        )

    def _draw(
        self, drawing: Drawing, indices: Sequence[int], stored: Rows, seed: tuple[int, ...]
    ) -> Rows:
        """Both sides, drawn where they are to be drawn, however long they become."""
        sources, targets = stored
        texts = [self._stored.text(index) for index in indices]
        if drawing.source is not None:
            found = drawing.source.draw([text[0] for text in texts], seed=(*seed, 0))
            tags = [row[: drawing.num_tags].tolist() for row in sources]
            sources = [
                np.asarray([*tag, *ids, drawing.eos_id], dtype=np.int32)
                for tag, ids in zip(tags, found, strict=True)
            ]
        if drawing.target is not None:
            found = drawing.target.draw([text[1] for text in texts], seed=(*seed, 1))
            targets = [np.asarray([*ids, drawing.eos_id], dtype=np.int32) for ids in found]
        return sources, targets

    def _plan_for_longer_rows(self, drawing: Drawing) -> None:
        """Let batches be planned by the widths they have, on average, when rows are drawn.

        The widest row decides, so growth is measured on neighbours in length, as batches are.
        """
        known = (self._stored.source_lengths, self._stored.target_lengths)
        order = np.lexsort(known)
        size = min(len(self), _GROUP_SIZE)
        begins = np.linspace(0, len(self) - size, _NUM_GROUPS).astype(np.int64)
        groups = [order[begin : begin + size].tolist() for begin in begins]
        seed = (self._seed, 0, _MEASURED)
        drawn = [self._draw(drawing, group, self._stored_rows(group), seed) for group in groups]
        longer = []
        for side, lengths in enumerate(known):
            before = sum(int(lengths[group].max()) for group in groups)
            after = sum(max(map(len, rows[side])) for rows in drawn)
            planned = np.ceil(lengths * (after / before)).astype(np.int64)
            longer.append(np.minimum(planned, drawing.max_length))
        self.source_lengths, self.target_lengths = longer


_NUM_GROUPS = 16
_GROUP_SIZE = 64
_MEASURED = 2**31  # the number of no batch


def _limited(
    drawn: list[NDArray[np.int32]], stored: list[NDArray[np.int32]], limit: int
) -> list[NDArray[np.int32]]:
    return [row if len(row) <= limit else best for row, best in zip(drawn, stored, strict=True)]


def _entry_copies(entry: MixtureEntry, *, seed: tuple[int, ...], epoch: int) -> NDArray[np.int64]:
    begin, end = (math.floor(number * entry.size) for number in (epoch, epoch + 1))
    rounds, rest = divmod(end - begin, entry.num_pairs)
    copies = np.full(entry.num_pairs, rounds, dtype=np.int64)
    if rest:
        order = np.random.default_rng(seed).permutation(entry.num_pairs)
        copies[order[np.arange(begin, begin + rest) % entry.num_pairs]] += 1
    return copies
