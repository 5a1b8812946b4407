import json
import statistics

import pytest

from benchmarks.peers.work import (
    EOS_ID,
    LEAST_MEAN_GROUP,
    TARGET_LENGTHS,
    Work,
    count_tokens,
    equal_work,
    file_work,
    nearest_target_length,
    num_nearest_lengths,
    read_work,
    rounded_cap,
)

VOCABULARY = 500


def test_equal_work_has_one_length_and_only_ordinary_tokens() -> None:
    work = equal_work(8, vocab_size=VOCABULARY, beam_size=4)
    assert [len(source) for source in work.sources] == [25] * 8
    assert set(work.max_lengths) == {32}
    assert all(source[-1] == EOS_ID for source in work.sources)
    assert all(3 <= token < VOCABULARY for source in work.sources for token in source[:-1])


def test_a_file_is_the_same_for_the_same_seed_and_as_long_as_text_is() -> None:
    work = file_work(2_000, vocab_size=VOCABULARY, beam_size=1)
    assert work == file_work(2_000, vocab_size=VOCABULARY, beam_size=1)
    assert work != file_work(2_000, vocab_size=VOCABULARY, beam_size=1, seed=2)
    lengths = [len(source) for source in work.sources]
    assert 16 <= statistics.median(lengths) <= 20
    assert 18 <= statistics.mean(lengths) <= 23
    assert set(work.max_lengths) <= set(TARGET_LENGTHS)
    assert abs(sum(work.max_lengths) / sum(lengths) - 1) < 0.05


def test_a_forced_length_is_the_nearest_there_is() -> None:
    assert [nearest_target_length(length) for length in (1, 9, 20, 21, 300)] == [6, 9, 18, 22, 60]


def test_groups_have_one_cap_each_and_hold_every_sentence_once() -> None:
    work = file_work(100, vocab_size=VOCABULARY, beam_size=1)
    groups = work.groups()
    assert sorted(index for group in groups for index in group) == list(range(100))
    caps = [{work.max_lengths[index] for index in group} for group in groups]
    assert all(len(found) == 1 for found in caps)
    assert [max(found) for found in caps] == sorted(set(work.max_lengths), reverse=True)


def test_a_sample_is_spread_over_the_work() -> None:
    work = Work(
        sources=tuple((index, EOS_ID) for index in range(10)),
        max_lengths=tuple(range(10)),
        beam_size=1,
        is_forced=True,
    )
    assert work.sample(5).max_lengths == (0, 2, 4, 6, 8)
    assert work.sample(50) == work
    assert work.shortened(3).max_lengths == (0, 1, 2, 3, 3, 3, 3, 3, 3, 3)


def test_work_survives_the_pipe() -> None:
    work = file_work(5, vocab_size=VOCABULARY, beam_size=4)
    assert read_work(json.loads(json.dumps(work.message()))) == work


def test_tokens_are_counted_with_one_eos_a_sentence() -> None:
    assert count_tokens([[5, 6], [], [7]]) == 6


def test_caps_are_rounded_up_within_the_limit() -> None:
    assert [rounded_cap(cap, 100) for cap in (1, 16, 17, 98)] == [16, 16, 32, 100]


def test_settings_are_chosen_with_one_length_where_there_are_enough_and_else_with_everything() -> (
    None
):
    work = file_work(400, vocab_size=100, beam_size=1)
    group = work.tuning_group(50)
    assert len(group.sources) == 50
    assert len(set(group.max_lengths)) == 1
    largest = max(map(len, work.groups()))
    assert len(work.tuning_group(largest).sources) == largest
    assert work.tuning_group(largest + 1) == work


@pytest.mark.parametrize("number", [1, 24, 40, 100, 159, 400])
def test_sentences_of_a_small_file_have_so_few_lengths_that_they_can_share_calls(
    number: int,
) -> None:
    work = file_work(number, vocab_size=VOCABULARY, beam_size=4)
    groups = work.groups()
    assert number / len(groups) >= min(number, LEAST_MEAN_GROUP)
    assert set(work.max_lengths) <= set(TARGET_LENGTHS)
    lengths = [len(source) for source in work.sources]
    assert abs(sum(work.max_lengths) / sum(lengths) - 1) < 0.2
    pairs = sorted(zip(lengths, work.max_lengths, strict=True))
    targets = [target for _, target in pairs]
    assert targets == sorted(targets) or number >= 160


def test_a_large_file_keeps_the_nearest_lengths() -> None:
    work = file_work(2_000, vocab_size=VOCABULARY, beam_size=1)
    nearest = [nearest_target_length(len(source)) for source in work.sources]
    assert list(work.max_lengths) == nearest
    assert [num_nearest_lengths(number) for number in (40, 100, 2_000)] == [8, 9, 10]
