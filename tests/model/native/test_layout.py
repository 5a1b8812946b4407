import numpy as np
import pytest

from model.native.layout import PAIR, pad_heads, padded, pair


@pytest.mark.parametrize(("width", "expected"), [(1, 16), (16, 16), (17, 32), (64, 64)])
def test_a_width_is_padded_to_whole_vectors(width: int, expected: int) -> None:
    assert padded(width) == expected


def test_zeros_follow_every_head_and_nothing_else_moves() -> None:
    rows = np.arange(1, 2 * 20 * 3 + 1, dtype=np.float32).reshape(2 * 20, 3)
    heads = pad_heads(rows, 20).reshape(2, 32, 3)
    assert np.array_equal(heads[:, :20].reshape(-1, 3), rows)
    assert not heads[:, 20:].any()
    assert np.array_equal(pad_heads(rows[:32], 16), rows[:32])


@pytest.mark.parametrize("num_rows", [1, 31, 32, 33, 96, 100])
def test_every_panel_has_the_same_outputs_of_both_matrices(num_rows: int) -> None:
    first = np.arange(1, 2 * num_rows + 1, dtype=np.int16).astype(np.int8).reshape(num_rows, 2)
    second = -first
    panels = pair(first, second).reshape(-1, 2, PAIR, 2)
    for matrix, half in ((first, panels[:, 0]), (second, panels[:, 1])):
        outputs = half.reshape(-1, 2)
        assert np.array_equal(outputs[:num_rows], matrix)
        assert not outputs[num_rows:].any()


def test_scales_and_biases_are_paired_as_their_rows_are() -> None:
    scale = np.arange(1, 41, dtype=np.float32)
    paired = pair(scale, -scale)
    assert paired.shape == (128,)
    assert paired[32:64].tolist() == (-scale[:32]).tolist()
    assert paired[64:72].tolist() == scale[32:].tolist()
