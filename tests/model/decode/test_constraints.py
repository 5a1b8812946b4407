"""Masks of suppressed tokens, and what is refused as one."""

import pytest
import torch
from msgspec import structs

from model.config import Sampling, SearchConfig
from model.decode.constraints import suppress, suppressed_mask
from model.decode.token_checks import check_tokens
from model.errors import InputError
from model.phrases import Alternatives
from model.request import DecodeRequest
from support.search_cases import TOKENS

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
    check_tokens([asking(), asking(0, 6)], vocab_size=7, tokens=TOKENS)
    for token in (-1, 7):
        with pytest.raises(InputError, match=f"is {token}; the vocabulary has 7") as refusal:
            check_tokens([asking(0), asking(1, token)], vocab_size=7, tokens=TOKENS)
        assert (refusal.value.value, refusal.value.limit) == (token, 7)


@pytest.mark.parametrize(
    ("phrases", "message"),
    [
        ((((3,),),) * 17, "has 17 phrases; it may have 16"),
        ((((3,) * 65,),), "has 65 tokens of phrases; it may have 64"),
        (((),), "a phrase has no tokens"),
        ((((3,), ()),), "a phrase has no tokens"),
        ((((3, 23),),), "token 23, which the search cannot choose of 23 tokens"),
        ((((TOKENS.eos_id,),),), "token 1, which the search cannot choose"),
        ((((TOKENS.pad_id, 3),),), "token 0, which the search cannot choose"),
        ((((5, 4),),), "token 5, which the search cannot choose"),
    ],
)
def test_phrases_that_no_search_can_be_held_to_are_refused_by_name(
    phrases: tuple[Alternatives, ...], message: str
) -> None:
    request = structs.replace(asking(5), phrases=phrases)
    with pytest.raises(InputError, match=message):
        check_tokens([asking(), request], vocab_size=23, tokens=TOKENS)


def test_what_is_drawn_is_held_to_no_phrase() -> None:
    drawn = SearchConfig(beam_size=2, sampling=Sampling())
    request = structs.replace(asking(), search=drawn, phrases=(((3,),),))
    with pytest.raises(InputError, match="is drawn has 1 phrases; it may have 0"):
        check_tokens([request], vocab_size=23, tokens=TOKENS)
