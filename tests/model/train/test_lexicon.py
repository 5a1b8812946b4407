"""IBM model 1: known translations are found, and memory is bounded by the links that are kept."""

import random

import numpy as np
import pytest

from model.errors import DataError
from model.shortlist import Shortlist
from model.train.lexicon import learn_shortlist

_WORDS = 20
_EOS = 0


def lists_of(shortlist: Shortlist) -> list[list[int]]:
    return [part.tolist() for part in np.split(shortlist.ids, shortlist.offsets[1:-1])]


def translated(num_segments: int) -> list[tuple[list[int], list[int]]]:
    """Word w is 2w or 2w + 1, and now and then a word stands there that nothing means."""
    rng = random.Random(3)
    segments = []
    for _ in range(num_segments):
        words = rng.sample(range(1, _WORDS), rng.randint(2, 6))
        target = [2 * word + rng.randint(0, 1) for word in words]
        target += [41] if rng.random() < 0.5 else []
        rng.shuffle(target)
        segments.append(([*words, _EOS], [*target, _EOS]))
    return segments


def test_the_translations_of_a_word_are_its_likeliest() -> None:
    learnt = learn_shortlist(
        translated(400), num_sources=_WORDS, num_targets=42, num_frequent=2, num_best=2
    )
    lists = lists_of(learnt.shortlist)
    assert lists[1:] == [[2 * word, 2 * word + 1] for word in range(1, _WORDS)]
    assert _EOS in lists[_EOS]
    assert learnt.shortlist.always.tolist() == [_EOS, 41]
    assert learnt.num_segments == 400


def test_two_segments_suffice_to_tell_two_words_apart() -> None:
    """The classic example: the house, the book, a book."""
    the, house, book, a = range(4)
    segments = [([the, house], [10, 11]), ([the, book], [10, 12]), ([a, book], [13, 12])]
    learnt = learn_shortlist(segments, num_sources=4, num_targets=14, num_frequent=0, num_best=1)
    assert lists_of(learnt.shortlist) == [[10], [11], [12], [13]]


def test_words_that_were_never_seen_have_empty_lists_and_are_never_always_there() -> None:
    learnt = learn_shortlist([([2], [3])], num_sources=5, num_targets=6, num_frequent=4, num_best=3)
    assert lists_of(learnt.shortlist) == [[], [], [3], [], []]
    assert learnt.shortlist.always.tolist() == [3]


def test_segments_are_read_while_there_is_room() -> None:
    segments = iter([([1], [1])] * 10)  # two links each: the word and nothing
    learnt = learn_shortlist(
        segments, num_sources=2, num_targets=2, num_frequent=1, num_best=1, max_links=7
    )
    assert learnt.num_segments == 3
    assert len(list(segments)) == 6


def test_no_text_teaches_nothing() -> None:
    with pytest.raises(DataError, match="no segment to learn from"):
        learn_shortlist([], num_sources=2, num_targets=2, num_frequent=1, num_best=1)
    with pytest.raises(DataError, match="no segment to learn from"):
        learn_shortlist([([], [])], num_sources=2, num_targets=2, num_frequent=1, num_best=1)


def test_segments_of_one_side_alone_are_left_out() -> None:
    learnt = learn_shortlist(
        [([0], [1]), ([], [1]), ([1], [])], num_sources=2, num_targets=2, num_frequent=1, num_best=1
    )
    assert learnt.num_segments == 1
