"""Growth of a grid's tables: their sizes, and whether larger ones fit into free memory.

Owns the arithmetic and when memory is asked for. The tables themselves, and which sizes sentences
need, are `model.decode.backends.cuda.tables` and `model.decode.backends.cuda.grid`. No tensor.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

FreeBytes = Callable[[], int]
"""Bytes that a device could still allocate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Slots, positions of the past and source positions that tables have."""

    num_slots: int
    num_columns: int
    source_length: int

    def __str__(self) -> str:
        return (
            f"{self.num_slots} slots, {self.num_columns} positions"
            f" and {self.source_length} source positions"
        )

    def covers(self, other: "Sizes") -> bool:
        """Whether nothing of `other` is more."""
        return (
            other.num_slots <= self.num_slots
            and other.num_columns <= self.num_columns
            and other.source_length <= self.source_length
        )

    def within(self, most: "Sizes") -> "Sizes":
        """The smaller one of each."""
        return Sizes(
            num_slots=min(self.num_slots, most.num_slots),
            num_columns=min(self.num_columns, most.num_columns),
            source_length=min(self.source_length, most.source_length),
        )

    def aligned(self, multiple: int) -> "Sizes":
        """With positions rounded up to a multiple."""
        return Sizes(
            num_slots=self.num_slots,
            num_columns=-(-self.num_columns // multiple) * multiple,
            source_length=-(-self.source_length // multiple) * multiple,
        )

    def joined(self, other: "Sizes") -> "Sizes":
        """The larger one of each."""
        return Sizes(
            num_slots=max(self.num_slots, other.num_slots),
            num_columns=max(self.num_columns, other.num_columns),
            source_length=max(self.source_length, other.source_length),
        )


def doubled(needed: Sizes, present: Sizes, *, most: Sizes) -> Sizes:
    """Those present, each doubled until it is enough, and at most `most`."""
    return Sizes(
        num_slots=_doubled(needed.num_slots, present.num_slots, most.num_slots),
        num_columns=_doubled(needed.num_columns, present.num_columns, most.num_columns),
        source_length=_doubled(needed.source_length, present.source_length, most.source_length),
    )


def _doubled(needed: int, places: int, most: int) -> int:
    while places < needed:
        places *= 2
    return min(places, most)


def growth_bytes(tables: Sequence[tuple[int, int]]) -> int:
    """Bytes that must be free for tables to grow one after the other.

    Args:
        tables: Bytes of each now and afterwards, in the order in which they are copied: both are
            there while one is.
    """
    more = peak = 0
    for before, after in tables:
        if after != before:
            peak = max(peak, more + after)
            more += after - before
    return peak


class Room:
    """Free memory of a device, asked only when something is to grow.

    A reading stands until something is allocated or dropped, or `look_again` is called. A size that
    did not fit is not asked for again, nor is a larger one, until something is dropped or less is
    promised, or refusals are forgotten because others may have given memory back.

    Args:
        free_bytes: None lets everything fit.
        reserved: Bytes left free beside all tables.
    """

    def __init__(self, free_bytes: FreeBytes | None, *, reserved: int = 0) -> None:
        self._free_bytes = free_bytes
        self._reserved = reserved
        self._reading: int | None = None
        self._refused: dict[int, list[Sizes]] = {}  # by width, as is what follows
        self._promised: dict[int, int] = {}

    @property
    def has_refused(self) -> bool:
        """Something did not fit, and is not asked for again."""
        return any(self._refused.values())

    def look_again(self) -> None:
        """What was free may be free no more, or more may be."""
        self._reading = None

    def has(self, width: int, num_bytes: Callable[[], int]) -> bool:
        """Whether a grid can have so many bytes, beside what the others may come to need."""
        if self._free_bytes is None:
            return True
        if self._reading is None:
            self._reading = self._free_bytes()
        others = sum(promised for owner, promised in self._promised.items() if owner != width)
        return num_bytes() + others + self._reserved <= self._reading

    def promise(self, width: int, num_bytes: int) -> None:
        """Leave so much to a grid, for what runs in it may come to need."""
        if num_bytes < self._promised.get(width, 0):
            self._refused.clear()
        self._promised[width] = num_bytes

    def has_for(self, width: int, sizes: Sizes, num_bytes: Callable[[], int]) -> bool:
        """Whether there is memory for tables of some sizes, which takes so many free bytes."""
        refused = self._refused.setdefault(width, [])
        if any(sizes.covers(one) for one in refused):
            return False
        if self.has(width, num_bytes):
            return True
        refused.append(sizes)
        return False

    def forget(self, width: int) -> None:
        """Nothing stands of a grid any more: what did not fit may fit now, for all of them."""
        self._promised.pop(width, None)
        self.forget_refusals()

    def forget_refusals(self) -> None:
        """Ask again for what did not fit: somebody else may have given memory back."""
        self._refused.clear()
        self.look_again()
