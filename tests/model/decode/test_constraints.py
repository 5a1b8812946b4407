"""Masks of suppressed tokens, and what is refused as one."""

import pytest
import torch

from model.config import SearchConfig
from model.decode.constraints import check_tokens, suppress, suppressed_mask
from model.errors import InputError
from model.request import DecodeRequest

CPU = torch.device("cpu")


def asking(*tokens: int) -> DecodeRequest:
    return DecodeRequest(
        source_ids=(1,), prefix_ids=(0,), search=SearchConfig(), suppressed_ids=tokens
    )


def test_a_mask_has_the_tokens_of_every_row_and_no_others() -> None:
    mask = suppressed_mask([(1, 3, 1), (), (0,)], vocab_size=4, device=CPU)
    assert mask.tolist() == [
        [False, True, False, True],
        [False, False, False, False],
        [True, False, False, False],
    ]


def test_what_is_suppressed_is_impossible_and_the_others_keep_their_probability() -> None:
    log_probs = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    suppress(log_probs, suppressed_mask([(0, 2), ()], vocab_size=3, device=CPU))
    assert log_probs.tolist() == [[-torch.inf, 2.0, -torch.inf], [4.0, 5.0, 6.0]]


def test_every_token_of_the_vocabulary_may_be_suppressed_and_none_beyond_it() -> None:
    check_tokens([asking(), asking(0, 6)], vocab_size=7)
    for token in (-1, 7):
        with pytest.raises(InputError, match=f"is {token}; the vocabulary has 7") as refusal:
            check_tokens([asking(0), asking(1, token)], vocab_size=7)
        assert (refusal.value.value, refusal.value.limit) == (token, 7)
