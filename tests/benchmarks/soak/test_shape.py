"""Traffic of people: what the trace has, and what becomes of it."""

from itertools import pairwise
from statistics import mean, variance

import pytest

from benchmarks.soak.shape import (
    Recorded,
    played,
    recorded_requests,
    text_lengths,
    texts_of_lengths,
)

RECORDED = recorded_requests()
LINES = [f"Line {number} is here." for number in range(50)]


def test_the_trace_is_the_hour_that_was_published() -> None:
    assert len(RECORDED) == 19_366
    assert RECORDED[-1].seconds == pytest.approx(3501.72)
    assert all(one.seconds <= other.seconds for one, other in pairwise(RECORDED))
    assert sorted(one.num_tokens for one in RECORDED)[len(RECORDED) // 2] == 129
    assert max(one.num_tokens for one in RECORDED) == 1000


def test_texts_are_as_long_as_the_answers_of_the_trace() -> None:
    lengths = text_lengths(RECORDED, 500, seed=1)
    assert len(lengths) == 500
    assert mean(lengths) == pytest.approx(mean(one.num_tokens for one in RECORDED), rel=0.01)
    assert sorted(lengths)[250] == pytest.approx(129, abs=1)
    assert mean(lengths[:100]) == pytest.approx(mean(lengths), rel=0.25), (
        "the first ones are as all"
    )


def test_a_text_is_sentences_that_follow_each_other_until_it_is_long_enough() -> None:
    one, some, many = texts_of_lengths(LINES, [1, 12, 1000], seed=1)
    assert one in LINES
    assert len(some) in range(48, 48 + 20)
    assert 4000 <= len(many) < 4020, "the lines begin anew after the last"
    for text in (one, some, many):
        numbers = [int(word) for word in text.split() if word.isdigit()]
        assert numbers == [(numbers[0] + place) % 50 for place in range(len(numbers))]


def test_a_seed_says_where_texts_begin_and_which_requests_are_kept() -> None:
    assert texts_of_lengths(LINES, [9] * 20, seed=1) == texts_of_lengths(LINES, [9] * 20, seed=1)
    assert texts_of_lengths(LINES, [9] * 20, seed=1) != texts_of_lengths(LINES, [9] * 20, seed=2)
    first, again, other = (
        played(RECORDED, [9], rate=2, seconds=60, seed=seed) for seed in (1, 1, 2)
    )
    assert first == again != other


def test_requests_come_at_the_rate_within_the_seconds_and_are_as_uneven_as_they_were() -> None:
    asked = played(RECORDED, [9], rate=20, seconds=240, seed=1)
    times = [at for at, _ in asked]
    assert times == sorted(times)
    assert len(times) == 20 * 240
    assert 239 < times[-1] <= 240
    for part in range(4):
        real = sum(875.43 * part <= one.seconds < 875.43 * (part + 1) for one in RECORDED)
        kept = sum(60 * part <= one < 60 * (part + 1) for one in times)
        assert kept / len(times) == pytest.approx(real / len(RECORDED), abs=0.02)
    counts = [sum(4 * part <= one < 4 * (part + 1) for one in times) for part in range(60)]
    assert variance(counts) > 3 * mean(counts), "chance alone has the mean"


def test_time_runs_faster_when_more_requests_are_wanted_than_there_are() -> None:
    asked = played(RECORDED, [9], rate=1000, seconds=240, seed=1)
    assert len(asked) == len(RECORDED)
    assert asked[-1][0] == pytest.approx(len(RECORDED) / 1000)


def test_a_request_has_the_text_whose_length_is_next_to_its_own() -> None:
    recorded = [Recorded(seconds=place, num_tokens=place) for place in range(8)]
    asked = played(recorded, [5, 1, 3], rate=1, seconds=8, seed=1)
    assert [text for _, text in asked] == [1, 1, 2, 2, 0, 0, 0, 0]
