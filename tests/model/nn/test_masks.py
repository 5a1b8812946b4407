"""One convention: bool, True = may attend."""

import torch

from model.nn.masks import (
    causal_mask,
    key_mask,
    lengths_mask,
    padding_mask,
    target_padding_mask,
)

PAD = 0


def test_real_tokens_may_be_attended_to_and_padding_may_not() -> None:
    ids = torch.tensor([[5, 6, PAD], [7, PAD, PAD]])
    assert padding_mask(ids, PAD).tolist() == [[True, True, False], [True, False, False]]


def test_a_start_token_that_is_the_padding_token_stays_visible() -> None:
    ids = torch.tensor([[PAD, 5, PAD], [PAD, PAD, PAD]])
    expected = [[True, True, False], [True, False, False]]
    assert target_padding_mask(ids, PAD).tolist() == expected
    assert ids.tolist() == [[PAD, 5, PAD], [PAD, PAD, PAD]]


def test_lengths_become_leading_positions() -> None:
    mask = lengths_mask(torch.tensor([2, 0, 3]), 3)
    assert mask.tolist() == [[True, True, False], [False] * 3, [True] * 3]


def test_the_causal_mask_hides_exactly_the_future() -> None:
    mask = causal_mask(3)
    assert mask.tolist() == [[True, False, False], [True, True, False], [True, True, True]]


def test_padding_is_put_on_keys_and_never_on_query_rows() -> None:
    mask = key_mask(torch.tensor([[True, True, False]])).expand(1, 1, 3, 3)
    assert mask[0, 0].tolist() == [[True, True, False]] * 3


def test_every_mask_is_bool_and_lives_where_its_tensor_lives() -> None:
    ids = torch.zeros(2, 3, dtype=torch.int64, device="meta")
    real = padding_mask(ids, PAD)
    masks = (
        real,
        target_padding_mask(ids, PAD),
        lengths_mask(ids[:, 0], 4),
        key_mask(real),
        causal_mask(3, ids.device),
    )
    assert all(mask.dtype is torch.bool and mask.device.type == "meta" for mask in masks)
