"""Slots and rows stay dense and agree, whoever joins and leaves."""

from hypothesis import given
from hypothesis import strategies as st

from model.config import SearchConfig
from model.decode.request import DecodeRequest
from model.decode.slots import Slot, SlotTable


def request_of(beam_size: int) -> DecodeRequest:
    search = SearchConfig(beam_size=beam_size, max_length=8)
    return DecodeRequest(source_ids=(4, 1), prefix_ids=(0,), search=search)


@given(st.lists(st.tuples(st.integers(1, 6), st.integers(0, 9)), max_size=40))
def test_places_are_dense_after_compaction_and_moves_are_disjoint(
    events: list[tuple[int, int]],
) -> None:
    table = SlotTable(max_rows=64, max_slots=16)
    running: list[Slot] = []
    for step, (beam_size, leaver) in enumerate(events):
        if table.num_rows + beam_size <= 64 and table.num_slots < 16:
            running.append(table.add(step, request_of(beam_size), step=step))
        if leaver < len(running):
            table.remove(running.pop(leaver))
        before = {id(slot): list(slot.rows) for slot in running}
        moves = table.compact(step=step)
        table.check_integrity()
        assert sorted(row for slot in running for row in slot.rows) == list(range(table.num_rows))
        assert sorted(slot.index for slot in running) == list(range(len(running)))
        assert table.in_order() == sorted(running, key=lambda slot: slot.index)
        carried = {source: destination for source, destination, _ in moves.rows}
        assert not set(carried) & set(carried.values())
        for slot in running:
            assert slot.rows == [carried.get(row, row) for row in before[id(slot)]]
