"""What a sentence may choose, and which tables fit no vocabulary."""

import numpy as np
import pytest

from model.config import SearchConfig, SpecialTokens
from model.request import DecodeRequest
from model.shortlist import Shortlist, shortlist_problems, tokens_of_request
from support.shortlists import shortlist_of

LISTS = [[], [20, 21], [22], [9, 20], [30]]
TOKENS = SpecialTokens(pad_id=0, eos_id=1, unk_id=2, start_id=0)


def listed(shortlist: Shortlist, *source: int, also: tuple[int, ...] = ()) -> list[int]:
    found: list[int] = shortlist.tokens(source, also, vocab_size=40).tolist()
    return found


def test_a_list_is_that_of_every_source_token_and_what_is_always_there() -> None:
    shortlist = shortlist_of(LISTS, always=[0, 1, 2, 3])
    assert listed(shortlist, 1, 3, 1, also=(39,)) == [0, 1, 2, 3, 9, 20, 21, 39]


def test_it_grows_to_a_multiple_of_eight_by_the_smallest_that_are_not_in_it() -> None:
    shortlist = shortlist_of(LISTS, always=[0, 2, 3])
    assert listed(shortlist, 2) == [0, 1, 2, 3, 4, 5, 6, 22]
    assert listed(shortlist_of(LISTS), 0) == []
    assert len(shortlist_of(LISTS, always=range(39)).tokens([4], (), vocab_size=39)) == 39


def test_source_tokens_are_in_it_where_both_sides_have_one_vocabulary() -> None:
    assert listed(shortlist_of(LISTS, with_source=True), 4, 2) == [0, 1, 2, 3, 4, 5, 22, 30]


def test_eos_and_what_is_forced_are_in_it_and_the_start_token_is_not() -> None:
    tokens = SpecialTokens(pad_id=7, eos_id=8, unk_id=2, start_id=39, forced_first_id=11)
    request = DecodeRequest(source_ids=(2,), prefix_ids=(39, 12), search=SearchConfig())
    shortlist = shortlist_of(LISTS, always=[0, 1, 2, 3])
    found = tokens_of_request(shortlist, request, tokens, vocab_size=40)
    assert found.tolist() == [0, 1, 2, 3, 8, 11, 12, 22]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"offsets": [0, 1]}, "offsets has 2 numbers; 4 are needed"),
        ({"offsets": [0, 1, 1, 9]}, "does not go from 0 to 3"),
        ({"offsets": [1, 1, 1, 3]}, "does not go from 0 to 3"),
        ({"offsets": []}, "does not go from 0 to 3"),
        ({"offsets": [0, 2, 1, 3]}, "falls somewhere"),
        ({"ids": [4, 40, 6]}, "ids has 40; it must be from 0 to 39"),
        ({"always": [-1]}, "always has -1; it must be from 0 to 39"),
        ({"with_source": True}, "with_source is true for 3 source and 40 target tokens"),
    ],
)
def test_a_table_that_does_not_fit_is_told_what_is_wrong(
    change: dict[str, list[int]], problem: str
) -> None:
    parts = {"always": [1], "offsets": [0, 1, 1, 3], "ids": [4, 5, 6], "with_source": False}
    arrays = {
        name: value if isinstance(value, bool) else np.array(value, dtype=np.int32)
        for name, value in (parts | change).items()
    }
    [found] = [
        text
        for text in shortlist_problems(Shortlist(**arrays), num_sources=3, num_targets=40)
        if problem in text
    ]
    assert found
    sound = Shortlist(**(arrays | {key: np.array(parts[key], dtype=np.int32) for key in change}))
    if "with_source" not in change:
        assert shortlist_problems(sound, num_sources=3, num_targets=40) == []
