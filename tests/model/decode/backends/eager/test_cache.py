"""Columns wrap, rows are copied, and nothing else moves."""

import torch

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
