from collections import Counter

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from model.errors import DataError
from model.train.batching import BatchPosition, BatchStream, make_batch, plan_epoch
from model.train.data import TokenisedPairs
from model.train.loss import IGNORED


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


def test_batches_are_mostly_text() -> None:
    pairs = some_pairs(2000)
    batches = [make_batch(pairs, indices, pad_id=0, start_id=0) for indices in plan(pairs)]
    num_labels = sum(batch.labels.numel() for batch in batches)
    assert pairs.target_lengths.sum() / num_labels > 0.9


def test_a_seed_and_an_epoch_name_one_order() -> None:
    pairs = some_pairs()
    first, again = plan(pairs), plan(pairs)
    assert all((a == b).all() for a, b in zip(first, again, strict=True))
    for other in (plan(pairs, epoch=1), plan(pairs, seed=2)):
        assert [list(indices) for indices in other] != [list(indices) for indices in first]


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


def test_a_stream_of_nothing_is_refused() -> None:
    with pytest.raises(DataError, match="no sentence pair"):
        stream(TokenisedPairs([], []))
