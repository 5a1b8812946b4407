"""Slots and rows of sentences, kept dense so that a step works on slices.

Owns the bookkeeping only; no tensor. A sentence that leaves makes holes. New sentences fill
them; what is still a hole when the next step begins is filled from the end (`compact`), and the
caller moves the tensors accordingly.
"""

from dataclasses import dataclass, field

from model.config import SearchConfig
from model.decode.finished import FinishedHypotheses
from model.request import DecodeRequest


@dataclass(slots=True, kw_only=True)
class Slot:
    """One running sentence.

    Attributes:
        slot_id: The session's name for it.
        index: Where its encoder output lies.
        rows: Where its beams lie, by beam.
        request: What was asked.
        started: The session's step number when it joined.
        finished: Kept hypotheses.
    """

    slot_id: int
    index: int
    rows: list[int]
    request: DecodeRequest
    started: int
    finished: FinishedHypotheses = field(init=False)

    def __post_init__(self) -> None:
        """Keep nothing yet."""
        self.finished = FinishedHypotheses(self.request.search)

    @property
    def search(self) -> SearchConfig:
        """How this sentence is searched."""
        return self.request.search

    def num_fed(self, step: int) -> int:
        """Tokens the decoder had seen before step number `step`."""
        return step - self.started

    def num_generated(self, step: int) -> int:
        """Tokens chosen before step number `step`; negative or 0 while the prefix is fed."""
        return step - self.started - (len(self.request.prefix_ids) - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moves:
    """Changes of places, as (from, to, tokens of past or source to carry)."""

    rows: list[tuple[int, int, int]]
    slots: list[tuple[int, int, int]]


class SlotTable:
    """Sentences by slot and by row."""

    def __init__(self, *, max_rows: int, max_slots: int) -> None:
        """An empty table."""
        self._max_rows = max_rows
        self._max_slots = max_slots
        self._slots: list[Slot | None] = []
        self._rows: list[Slot | None] = []
        self._by_id: dict[int, Slot] = {}
        self._num_rows = 0

    def __repr__(self) -> str:
        return (
            f"SlotTable(slots={len(self._by_id)}/{self._max_slots},"
            f" rows={self._num_rows}/{self._max_rows})"
        )

    @property
    def num_slots(self) -> int:
        """Sentences running."""
        return len(self._by_id)

    @property
    def num_rows(self) -> int:
        """Rows in use."""
        return self._num_rows

    def add(self, slot_id: int, request: DecodeRequest, *, step: int) -> Slot:
        """Give a sentence the lowest free places. The caller has checked that it fits."""
        slot = Slot(
            slot_id=slot_id,
            index=self._claim(self._slots),
            rows=[],
            request=request,
            started=step,
        )
        self._slots[slot.index] = slot
        for _ in range(request.search.beam_size):
            row = self._claim(self._rows)
            self._rows[row] = slot
            slot.rows.append(row)
        self._num_rows += len(slot.rows)
        self._by_id[slot.slot_id] = slot
        return slot

    @staticmethod
    def _claim(places: list[Slot | None]) -> int:
        try:
            return places.index(None)
        except ValueError:
            places.append(None)
            return len(places) - 1

    def get(self, slot_id: int) -> Slot:
        """The running sentence of this id."""
        return self._by_id[slot_id]

    def remove(self, slot: Slot) -> None:
        """Forget a sentence, leaving holes."""
        del self._by_id[slot.slot_id]
        self._slots[slot.index] = None
        for row in slot.rows:
            self._rows[row] = None
        self._num_rows -= len(slot.rows)

    def compact(self, *, step: int) -> Moves:
        """Fill every hole from the end.

        Args:
            step: Number of the coming step, which tells how much past each row has.
        """
        moves = Moves(rows=[], slots=[])
        for source, destination, slot in self._fill(self._rows, self._num_rows):
            slot.rows[slot.rows.index(source)] = destination
            moves.rows.append((source, destination, slot.num_fed(step)))
        for source, destination, slot in self._fill(self._slots, len(self._by_id)):
            slot.index = destination
            moves.slots.append((source, destination, len(slot.request.source_ids)))
        return moves

    @staticmethod
    def _fill(places: list[Slot | None], num_used: int) -> list[tuple[int, int, Slot]]:
        holes = [place for place in range(min(num_used, len(places))) if places[place] is None]
        moved = []
        for hole, source in zip(
            holes, (p for p in range(num_used, len(places)) if places[p] is not None), strict=True
        ):
            slot = places[source]
            assert slot is not None
            places[hole] = slot
            moved.append((source, hole, slot))
        del places[num_used:]
        return moved

    def in_order(self) -> list[Slot]:
        """Running sentences by slot index; the table must be compact."""
        return [slot for slot in self._slots if slot is not None]

    def check_integrity(self) -> None:
        """Assert that slots, rows and counts agree."""
        for slot in self._by_id.values():
            assert self._slots[slot.index] is slot
            assert len(set(slot.rows)) == slot.search.beam_size
            assert all(self._rows[row] is slot for row in slot.rows)
        used = [slot for slot in self._rows if slot is not None]
        assert len(used) == self._num_rows <= self._max_rows
        assert len(self._by_id) <= self._max_slots
        assert sum(slot is not None for slot in self._slots) == len(self._by_id)
