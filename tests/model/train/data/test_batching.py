from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from model.errors import DataError
from model.train.data.batching import IGNORED, BatchPosition, BatchStream, make_batch, plan_epoch
from model.train.data.parallel import TokenisedPairs


def some_pairs(num_pairs: int = 200) -> TokenisedPairs:
    generator = np.random.default_rng(7)
    sides = [
        [[*generator.integers(3, 50, size=generator.integers(1, 30)), 1] for _ in range(num_pairs)]
        for _ in range(2)
    ]
    return TokenisedPairs(sides[0], sides[1])


def plan(
    pairs: TokenisedPairs, *, copies: int = 1, epoch: int = 0, seed: int = 1
) -> list[NDArray[np.int64]]:
    return plan_epoch(
        pairs.source_lengths,
        pairs.target_lengths,
        copies=copies * pairs.epoch_copies(epoch),
        max_tokens=120,
        seed=seed,
        epoch=epoch,
    )


def stream(pairs: TokenisedPairs, position: BatchPosition | None = None) -> BatchStream:
    return BatchStream(pairs, max_tokens=120, seed=1, pad_id=0, start_id=0, position=position)


def test_every_pair_is_in_an_epoch_as_often_as_it_has_copies() -> None:
    pairs = some_pairs()
    counts = Counter(int(index) for batch in plan(pairs, copies=3) for index in batch)
    assert counts == dict.fromkeys(range(len(pairs)), 3)


def test_no_side_of_a_batch_is_larger_than_allowed() -> None:
    pairs = some_pairs()
    for indices in plan(pairs):
        batch = make_batch(pairs, indices, pad_id=0, start_id=0)
        assert batch.source_ids.numel() <= 120
        assert batch.labels.numel() <= 120


def test_a_pair_longer_than_a_batch_is_a_batch_of_its_own() -> None:
    pairs = TokenisedPairs([[5] * 300, [5, 1]], [[5] * 20, [6, 1]])
    assert sorted(len(indices) for indices in plan(pairs)) == [1, 1]


def plan_of(
    *lengths: tuple[int, int], max_tokens: int, copies: list[int] | None = None, epoch: int = 0
) -> list[list[int]]:
    """Batches of pairs that have these (source, target) lengths."""
    sources, targets = np.array(lengths, dtype=np.int64).reshape(-1, 2).T
    planned = plan_epoch(
        sources,
        targets,
        copies=np.array(copies or [1] * len(lengths), dtype=np.int64),
        max_tokens=max_tokens,
        seed=1,
        epoch=epoch,
    )
    return [indices.tolist() for indices in planned]


def sizes(batches: list[list[int]]) -> list[int]:
    return sorted(map(len, batches))


@pytest.mark.parametrize("lengths", [(10, 4), (4, 10), (10, 10)])
def test_a_batch_may_be_as_large_as_its_limit_on_either_side_and_no_larger(
    lengths: tuple[int, int],
) -> None:
    pairs = [lengths] * 12
    assert sizes(plan_of(*pairs, max_tokens=30)) == [3] * 4
    assert sizes(plan_of(*pairs, max_tokens=29)) == [2] * 6
    assert sizes(plan_of(*pairs, max_tokens=10)) == sizes(plan_of(*pairs, max_tokens=9)) == [1] * 12


def test_a_batch_is_as_wide_as_its_own_widest_pair() -> None:
    # A wide source beside the shortest target comes first, and does not narrow what follows it.
    after_a_wide_one = [(9, 1), (3, 2), (3, 2), (3, 2)]
    assert sizes(plan_of(*after_a_wide_one, max_tokens=9)) == [1, 3]
    # The pair that closes a batch counts in the next one.
    before_wide_ones = [(2, 2), (2, 2), (6, 6), (3, 7)]
    assert sizes(plan_of(*before_wide_ones, max_tokens=13)) == [1, 1, 2]
    assert sizes(plan_of(*before_wide_ones, max_tokens=14)) == [2, 2]


def test_an_epoch_may_have_one_pair_or_none() -> None:
    assert plan_of((3, 4), max_tokens=9) == [[0]]
    assert plan_of(max_tokens=9) == []
    assert plan_of((3, 4), (5, 6), max_tokens=9, copies=[0, 0]) == []
    assert plan_of((3, 4), (5, 6), max_tokens=99, copies=[0, 1]) == [[1]]


def test_pairs_that_occur_unlike_often_are_there_as_often() -> None:
    batches = plan_of((3, 4), (5, 6), (2, 2), max_tokens=20, copies=[0, 5, 2])
    assert Counter(index for batch in batches for index in batch) == {1: 5, 2: 2}


def test_neighbours_in_a_batch_are_neighbours_by_target_then_source_length() -> None:
    pairs = some_pairs(400)
    keys = list(zip(pairs.target_lengths.tolist(), pairs.source_lengths.tolist(), strict=True))
    batches = [[keys[index] for index in batch] for batch in plan(pairs)]
    batches.sort(key=lambda batch: (batch[0], batch[-1]))
    assert [key for batch in batches for key in batch] == sorted(keys)
    assert sum(len({target for target, _ in batch}) > 1 for batch in batches) > 1


def test_pairs_of_one_length_meet_in_every_combination() -> None:
    met: set[tuple[int, ...]] = set()
    for epoch in range(60):
        met.update(map(tuple, plan_of(*[(5, 5)] * 6, max_tokens=10, epoch=epoch)))
    assert met == {(first, second) for first in range(6) for second in range(6) if first != second}


def test_every_batch_stands_at_every_place_in_some_epoch() -> None:
    lengths = [(length, length) for length in range(10, 16)]
    orders = [plan_of(*lengths, max_tokens=1, epoch=epoch) for epoch in range(60)]
    places = {(place, index) for order in orders for place, (index,) in enumerate(order)}
    assert places == {(place, index) for place in range(6) for index in range(6)}


def test_batches_are_mostly_text() -> None:
    pairs = some_pairs(2000)
    batches = [make_batch(pairs, indices, pad_id=0, start_id=0) for indices in plan(pairs)]
    num_labels = sum(batch.labels.numel() for batch in batches)
    assert pairs.target_lengths.sum() / num_labels > 0.9


def test_a_seed_and_an_epoch_name_one_order() -> None:
    pairs = some_pairs()
    first, again = plan(pairs), plan(pairs)
    assert all((a == b).all() for a, b in zip(first, again, strict=True))
    others = [plan(pairs, epoch=1), plan(pairs, seed=2), plan(pairs, seed=0, epoch=2)]
    orders = [[list(indices) for indices in found] for found in (first, *others)]
    assert all(order not in orders[:number] for number, order in enumerate(orders))


def test_a_stream_goes_on_exactly_where_another_one_stood() -> None:
    pairs = some_pairs(30)
    whole = stream(pairs)
    num_batches = len(plan(pairs))
    for _ in range(num_batches + 2):
        next(whole)
    assert whole.position == BatchPosition(epoch=1, index=2)
    resumed = stream(pairs, whole.position)
    for _ in range(2 * num_batches):
        mine, other = next(whole), next(resumed)
        assert torch.equal(mine.source_ids, other.source_ids)
        assert torch.equal(mine.labels, other.labels)
    assert whole.position == resumed.position


def test_an_epoch_is_over_with_its_last_batch() -> None:
    pairs = some_pairs(30)
    whole = stream(pairs)
    for _ in plan(pairs):
        assert whole.position.epoch == 0
        next(whole)
    assert whole.position == BatchPosition(epoch=1)
    assert whole.epoch == 0
    old = stream(pairs, BatchPosition(epoch=0, index=len(plan(pairs))))
    assert old.position == whole.position
    assert torch.equal(next(whole).source_ids, next(old).source_ids)
    assert whole.epoch == 1


def test_the_decoder_reads_the_start_token_and_says_the_target_with_eos() -> None:
    pairs = TokenisedPairs([[7, 8, 1], [9, 1]], [[4, 1], [5, 6, 3, 1]])
    batch = make_batch(pairs, [0, 1], pad_id=0, start_id=2)
    assert batch.source_ids.tolist() == [[7, 8, 1], [9, 1, 0]]
    assert batch.target_ids.tolist() == [[2, 4, 0, 0], [2, 5, 6, 3]]
    assert batch.labels.tolist() == [[4, 1, IGNORED, IGNORED], [5, 6, 3, 1]]
    assert (batch.num_source_tokens, batch.num_target_tokens) == (5, 6)


class Told(TokenisedPairs):
    """Pairs that note which batch they are asked for, and change from epoch to epoch."""

    def __init__(self, copies: list[int]) -> None:
        super().__init__([[5, 1]], [[6, 1]])
        self.asked: list[tuple[int, int]] = []
        self._copies = copies

    def epoch_copies(self, epoch: int) -> NDArray[np.int64]:
        return np.array([self._copies[epoch]])

    def rows(
        self, indices: Sequence[int], *, epoch: int, number: int
    ) -> tuple[list[NDArray[np.int32]], list[NDArray[np.int32]]]:
        self.asked.append((epoch, number))
        return super().rows(indices, epoch=epoch, number=number)


def test_rows_are_asked_for_by_epoch_and_number_and_empty_epochs_are_passed_over() -> None:
    pairs = Told([2, 0, 0, 3, 1])
    batches = BatchStream(pairs, max_tokens=2, seed=1, pad_id=0, start_id=0)
    for _ in range(6):
        next(batches)
    assert pairs.asked == [(0, 0), (0, 1), (3, 0), (3, 1), (3, 2), (4, 0)]


def test_a_stream_of_nothing_is_refused() -> None:
    with pytest.raises(DataError, match="no sentence pair"):
        stream(TokenisedPairs([], []))
