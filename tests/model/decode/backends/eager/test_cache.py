"""Columns wrap, rows are copied, and nothing else moves or becomes memory."""

import re
from pathlib import Path

import pytest
import torch
from torch import Tensor

from model.cells import StateShape
from model.config import ModelConfig
from model.decode.backends.eager.cache import CrossCache, History, RowCache

STATES = (
    StateShape(num_heads=2, width=3, grows=True),
    StateShape(num_heads=2, width=5, grows=True),
    StateShape(num_heads=1, width=8, grows=False),
)
CONFIG = ModelConfig(vocab_size=9, d_model=8, num_heads=2, num_decoder_layers=2, d_k=3, d_v=5)


def row_cache(*, max_rows: int, max_length: int) -> RowCache:
    return RowCache(
        STATES,
        num_layers=2,
        max_rows=max_rows,
        max_length=max_length,
        device=torch.device("cpu"),
        dtype=torch.float32,
    )


SMAPS = Path("/proc/self/smaps")


def resident_bytes(tables: tuple[Tensor, ...]) -> int:
    """Memory of the stretches of address space in which tables lie."""
    num_bytes = 0
    stretches = re.split(r"^(?=[0-9a-f]+-[0-9a-f]+ )", SMAPS.read_text(), flags=re.MULTILINE)
    for stretch in stretches[1:]:
        start, end = (int(place, 16) for place in stretch.split(" ", 1)[0].split("-"))
        if any(t.data_ptr() < end and start < t.data_ptr() + t.nbytes for t in tables):
            (kilobytes,) = re.findall(r"^Rss: +(\d+) kB", stretch, flags=re.MULTILINE)
            num_bytes += 1024 * int(kilobytes)
    return num_bytes


@pytest.mark.skipif(not SMAPS.exists(), reason="memory is told by Linux")
def test_short_sentences_make_memory_of_the_columns_that_they_need_alone() -> None:
    states = (StateShape(num_heads=4, width=64, grows=True),) * 2
    shape = {"num_layers": 2, "max_rows": 16, "max_length": 520}
    cache = RowCache(states, **shape, device=torch.device("cpu"), dtype=torch.float32)
    num_bytes = sum(table.nbytes for table in cache.growing)
    assert num_bytes > 2**26
    assert resident_bytes(cache.growing) < num_bytes / 100
    for step in range(2 * 520 + 100):
        cache.advance(16, min(step, 3))
        for table in cache.growing:
            table[:, :, :, cache.column] = float(step)
        if step in (0, 520, 2 * 520 + 99):
            assert resident_bytes(cache.growing) < num_bytes / 8
    assert cache.growing[0][1, 15, 3, cache.window(4), 63].tolist() == [1136, 1137, 1138, 1139]
    assert cache.column < 128


def test_where_nothing_has_a_past_the_next_column_is_the_first() -> None:
    cache = row_cache(max_rows=3, max_length=40)
    for step in range(20):
        cache.advance(3, step)
    assert cache.column == 19
    cache.advance(3, 0)
    assert cache.column == 0


def test_a_table_without_numbers_takes_nothing() -> None:
    none = RowCache(
        STATES,
        num_layers=0,
        max_rows=3,
        max_length=4,
        device=torch.device("cpu"),
        dtype=torch.float32,
    )
    none.advance(3, 0)
    assert [table.numel() for table in none.growing] == [0, 0]


def test_the_last_columns_survive_every_wrap() -> None:
    cache = row_cache(max_rows=3, max_length=4)
    for step in range(50):
        cache.advance(3, min(step, 3))
        for table in cache.growing:
            table[:, :, :, cache.column] = float(step)
        window = cache.window(min(step + 1, 4))
        expected = list(range(max(0, step - 3), step + 1))
        assert cache.growing[0][1, 2, 1, window, 0].tolist() == expected
        assert cache.growing[1][0, 2, 1, window, 4].tolist() == expected


def test_copied_rows_carry_only_the_past_that_was_named() -> None:
    cache = row_cache(max_rows=4, max_length=8)
    keys = cache.growing[0]
    for step in range(6):
        cache.advance(4, step)
        keys[:, :, :, step] = torch.arange(4.0).view(1, 4, 1, 1) * 10 + step
    cache.replaced[0][:] = torch.arange(4.0).view(1, 4, 1, 1)
    cache.copy_rows(torch.tensor([3, 1]), torch.tensor([0, 2]), 4)
    assert keys[1, 0, 1, :6, 2].tolist() == [0.0, 1.0, 32.0, 33.0, 34.0, 35.0]
    assert keys[1, 2, 1, :6, 2].tolist() == [20.0, 21.0, 12.0, 13.0, 14.0, 15.0]
    assert keys[1, [1, 3], 1, 0, 2].tolist() == [10.0, 30.0]
    assert cache.replaced[0][1, :, 0, 7].tolist() == [3.0, 1.0, 1.0, 3.0]


def test_cleared_rows_are_zero_in_the_columns_written_and_nothing_else_is_touched() -> None:
    cache = row_cache(max_rows=3, max_length=4)
    for num_past in range(3):
        cache.advance(3, num_past)
    for table in (*cache.growing, *cache.replaced):
        table.fill_(torch.nan)
    cache.clear_rows([0, 2], 2)
    for table in cache.growing:
        assert not table[:, [0, 2], :, 1:3].any()
        assert table[:, [0, 2], :, 3:].isnan().all()
        assert table[:, [0, 2], :, 0].isnan().all()
        assert table[:, 1].isnan().all()
    (table,) = cache.replaced
    assert not table[:, [0, 2]].any()
    assert table[:, 1].isnan().all()


def test_what_is_no_number_does_not_stay_behind_when_columns_move_to_the_front() -> None:
    cache = row_cache(max_rows=3, max_length=4)
    for step in range(8):
        cache.advance(2, min(step, 3))
        for table in cache.growing:
            table[:, :2, :, cache.column] = torch.tensor([1.0, torch.nan]).view(1, 2, 1, 1)
    for row in (0, 1):
        cache.clear_rows([row], 8)
    for table in cache.growing:
        table[1, 1, :, 7] = torch.nan
        table[0, 1, :, 7] = 2.0
    cache.advance(2, 3)
    assert not cache.are_finite([0, 1], 4)
    for table in cache.growing:
        assert table[1, 1, 0, 2].isnan().all()
        assert not table[1, :, :, 5:].any()
        assert (table[0, 1, :, 7] == 2.0).all(), "what is finite is left as it is"


def test_a_history_takes_every_rows_token_at_its_own_position() -> None:
    history = History(max_rows=4, max_length=5, device=torch.device("cpu"), dtype=torch.float32)
    history.write(torch.tensor([0, 2, 1]), torch.tensor([7, 8, 9]), torch.tensor([0.5, 1.5, 2.5]))
    assert history.tokens.tolist() == [[7, 0, 0, 0, 0], [0, 0, 8, 0, 0], [0, 9, 0, 0, 0], [0] * 5]
    history.sources[1, 2] = 3
    history.copy_rows(torch.tensor([1]), torch.tensor([3]), 3)
    assert history.tokens[3].tolist() == [0, 0, 8, 0, 0]
    assert history.log_probs[3, 2] == 1.5
    assert history.sources[3, 2] == 3


def test_encoder_output_is_written_by_slot_and_moves_whole() -> None:
    cross = CrossCache(
        CONFIG, max_slots=3, max_source_length=6, device=torch.device("cpu"), dtype=torch.float32
    )
    keys, values = torch.randn(2, 2, 4, 3), torch.randn(2, 2, 4, 5)
    cross.write(1, torch.tensor([2, 0]), keys, values)
    assert torch.equal(cross.keys[1, 2, :, :4], keys[0])
    cross.move(2, 1, 4)
    assert torch.equal(cross.values[1, 1, :, :4], values[0])
    cross.values[:, 1].fill_(torch.nan)
    cross.clear(1)
    assert not cross.keys[:, 1, :, :4].any()
    assert not cross.values[:, 1, :, :4].any()
    assert cross.values[:, 1, :, 4:].isnan().all(), "no batch has been so long"
