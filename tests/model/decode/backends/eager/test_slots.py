"""Slots and rows stay dense and agree, whoever joins and leaves."""

from hypothesis import given
from hypothesis import strategies as st

from model.config import SearchConfig
from model.decode.backends.eager.slots import Slot, SlotTable
from model.request import DecodeRequest


def request_of(beam_size: int) -> DecodeRequest:
    search = SearchConfig(beam_size=beam_size, max_length=8)
    return DecodeRequest(source_ids=(4, 1), prefix_ids=(0, 7), search=search)


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


def slot_of(search: SearchConfig, *, prefix_ids: tuple[int, ...] = (0,), started: int = 0) -> Slot:
    request = DecodeRequest(source_ids=(4, 1), prefix_ids=prefix_ids, search=search)
    return Slot(slot_id=0, index=0, rows=[0], request=request, started=started)


def test_tokens_of_the_prefix_are_fed_and_not_generated() -> None:
    slot = slot_of(SearchConfig(), prefix_ids=(0, 7, 8), started=10)
    assert [slot.num_fed(step) for step in (10, 11, 13)] == [0, 1, 3]
    assert [slot.num_generated(step) for step in (10, 12, 13)] == [-2, 0, 1]


def test_newcomers_get_the_lowest_places_and_moves_say_how_much_to_carry() -> None:
    table = SlotTable(max_rows=8, max_slots=4)
    first, second, third = (table.add(number, request_of(2), step=number) for number in range(3))
    table.remove(first)
    table.remove(second)
    again = table.add(3, request_of(1), step=5)
    assert (again.index, again.rows) == (0, [0])
    assert table.get(3) is again
    moves = table.compact(step=9)
    assert moves.rows == [(4, 1, 9 - 2), (5, 2, 9 - 2)]
    assert moves.slots == [(2, 1, 2)]
    assert (third.index, third.rows) == (1, [1, 2])
    assert table.compact(step=9).rows == table.compact(step=9).slots == []
