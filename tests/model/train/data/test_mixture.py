import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import sentencepiece
from numpy.typing import NDArray

from model.errors import DataError
from model.train.config.regularisation import RegularisationConfig
from model.train.config.vocabulary import VocabularyConfig
from model.train.data.batching import BatchPosition, BatchStream
from model.train.data.mixture import (
    Drawing,
    MixtureEntry,
    TrainingPairs,
    apply_temperature,
    epoch_copies,
)
from model.train.data.store import StoredPairs, StoreWriter, open_or_build
from model.train.data.subwords import SegmentDrawer
from model.train.data.vocabulary import EOS_ID, load_pieces, train_vocabularies
from support.tiny_checkpoint import generated_pairs

PAIRS = list(generated_pairs(80))


def copies(*entries: MixtureEntry, epoch: int = 0, seed: int = 1) -> NDArray[np.int64]:
    return epoch_copies(entries, seed=seed, epoch=epoch)


def entry(num_pairs: int, times: float, direction: int = 0) -> MixtureEntry:
    return MixtureEntry(direction=direction, num_pairs=num_pairs, copies=times)


def test_whole_copies_are_the_same_in_every_epoch() -> None:
    for epoch in range(3):
        found = copies(entry(3, 2), entry(2, 1), epoch=epoch)
        assert found.tolist() == [2, 2, 2, 1, 1]


def test_a_fraction_takes_every_pair_in_turn() -> None:
    total = np.zeros(10, dtype=np.int64)
    sizes = []
    for epoch in range(10):
        found = copies(entry(10, 0.3), epoch=epoch)
        assert set(found.tolist()) <= {0, 1}
        sizes.append(int(found.sum()))
        total += found
    assert sizes == [3] * 10
    assert total.tolist() == [3] * 10
    again = copies(entry(10, 0.3), epoch=4)
    assert again.tolist() == copies(entry(10, 0.3), epoch=4).tolist()
    assert again.tolist() != copies(entry(10, 0.3), epoch=4, seed=2).tolist()


def test_more_than_one_copy_may_have_a_fraction_too() -> None:
    found = [copies(entry(4, 2.5), epoch=epoch) for epoch in range(2)]
    assert [int(part.sum()) for part in found] == [10, 10]
    assert (found[0] + found[1]).tolist() == [5] * 4


def test_temperature_moves_shares_towards_the_small_direction() -> None:
    entries = (entry(900, 1.0), entry(50, 2.0, direction=1))
    assert apply_temperature(entries, 1.0) == entries
    for temperature, share in ((2.0, 0.25), (1e6, 0.5)):
        hot = apply_temperature(entries, temperature)
        sizes = [item.num_pairs * item.copies for item in hot]
        assert sum(sizes) == pytest.approx(1000)
        assert sizes[1] / 1000 == pytest.approx(share, rel=1e-4)


def test_corpora_of_one_direction_keep_their_proportion() -> None:
    hot = apply_temperature((entry(100, 3.0), entry(100, 1.0), entry(10, 1.0, direction=1)), 5.0)
    assert hot[0].copies / hot[1].copies == pytest.approx(3.0)


@pytest.fixture(scope="module")
def pieces(tmp_path_factory: pytest.TempPathFactory) -> sentencepiece.SentencePieceProcessor:
    found = train_vocabularies(
        VocabularyConfig(size=450),
        tmp_path_factory.mktemp("vocabulary"),
        source=[pair[0] for pair in PAIRS],
        target=[pair[1] for pair in PAIRS],
    )
    return load_pieces(found.source_path)


@pytest.fixture
def drawing(pieces: sentencepiece.SentencePieceProcessor) -> Drawing:
    drawer = SegmentDrawer(pieces, kind="bpe", config=RegularisationConfig(alpha=0.2), seed=1)
    return Drawing(
        source=drawer, target=drawer, eos_id=EOS_ID, num_tags=1, max_length=60, batch_tokens=10**6
    )


def stored(pieces: sentencepiece.SentencePieceProcessor, folder: Path) -> StoredPairs:
    def fill(writer: StoreWriter) -> None:
        for pair in PAIRS:
            source, target = pieces.encode(pair[0]), pieces.encode(pair[1])
            writer.add([3, *source, EOS_ID], [*target, EOS_ID], pair)

    return open_or_build(folder, {"text": "generated"}, fill, has_text=True)


def test_a_resumed_stream_draws_what_it_would_have_drawn(
    pieces: sentencepiece.SentencePieceProcessor, drawing: Drawing, tmp_path: Path
) -> None:
    pairs = TrainingPairs(stored(pieces, tmp_path), [entry(80, 1.5)], seed=1, drawing=drawing)

    def stream(position: BatchPosition | None = None) -> BatchStream:
        return BatchStream(pairs, max_tokens=300, seed=1, pad_id=0, start_id=0, position=position)

    whole = stream()
    seen = []
    while whole.position.epoch < 2:
        position = whole.position
        seen.append((position, next(whole)))
    assert seen[-1][0].epoch == 1
    for position, batch in (seen[5], seen[1], seen[-1]):
        again = next(stream(position))
        assert again.source_ids.tolist() == batch.source_ids.tolist()
        assert again.labels.tolist() == batch.labels.tolist()


def test_drawn_rows_keep_tag_and_eos_and_say_the_same(
    pieces: sentencepiece.SentencePieceProcessor, drawing: Drawing, tmp_path: Path
) -> None:
    pairs = TrainingPairs(stored(pieces, tmp_path), [entry(80, 1)], seed=1, drawing=drawing)
    sources, targets = pairs.rows(list(range(80)), epoch=0, number=0)
    plain = TrainingPairs(stored(pieces, tmp_path), [entry(80, 1)], seed=1)
    before, _ = plain.rows(list(range(80)), epoch=0, number=0)
    for row, target, pair in zip(sources, targets, PAIRS, strict=True):
        assert (row[0], row[-1], target[-1]) == (3, EOS_ID, EOS_ID)
        assert pieces.decode(row[1:-1].tolist()) == pair[0]
    assert sum(map(len, sources)) > sum(map(len, before))
    # Batches are planned by the lengths rows have when they are drawn.
    assert pairs.source_lengths.sum() >= 0.95 * sum(map(len, sources))


def test_one_side_alone_can_be_drawn(
    pieces: sentencepiece.SentencePieceProcessor, drawing: Drawing, tmp_path: Path
) -> None:
    store = stored(pieces, tmp_path)
    source_only = replace(drawing, target=None)
    pairs = TrainingPairs(store, [entry(80, 1)], seed=1, drawing=source_only)
    sources, targets = pairs.rows(list(range(80)), epoch=0, number=0)
    assert [row.tolist() for row in targets] == [store.target(i).tolist() for i in range(80)]
    assert [row.tolist() for row in sources] != [store.source(i).tolist() for i in range(80)]


def test_a_batch_stays_as_small_as_it_has_to(
    pieces: sentencepiece.SentencePieceProcessor, drawing: Drawing, tmp_path: Path
) -> None:
    limited = replace(drawing, batch_tokens=200)
    store = stored(pieces, tmp_path)
    pairs = TrainingPairs(store, [entry(80, 1)], seed=1, drawing=limited)
    stream = BatchStream(pairs, max_tokens=200, seed=1, pad_id=0, start_id=0)
    num_drawn = 0
    while stream.position.epoch < 2:
        batch = next(stream)
        assert max(batch.source_ids.numel(), batch.labels.numel()) <= 200
        num_drawn += batch.num_source_tokens
    assert num_drawn > 2 * store.source_lengths.sum()


def test_a_row_that_would_be_too_long_stays_as_it_is_stored(
    pieces: sentencepiece.SentencePieceProcessor, drawing: Drawing, tmp_path: Path
) -> None:
    store = stored(pieces, tmp_path)
    short = replace(drawing, max_length=2)
    pairs = TrainingPairs(store, [entry(80, 1)], seed=1, drawing=short)
    sources, _ = pairs.rows(list(range(80)), epoch=0, number=0)
    assert [row.tolist() for row in sources] == [store.source(i).tolist() for i in range(80)]


class Doubled(SegmentDrawer):
    """Says every character of a line twice; notes the seeds."""

    def __init__(self) -> None:
        self.seeds: list[tuple[int, ...]] = []

    def draw(self, lines: Sequence[str], *, seed: Sequence[int]) -> list[list[int]]:
        self.seeds.append(tuple(seed))
        return [[10 + ord(letter) for letter in line for _ in range(2)] for line in lines]


def short_pairs(folder: Path) -> StoredPairs:
    """Of one to eight letters, a token each; sources with a tag."""

    def fill(writer: StoreWriter) -> None:
        for number in range(1, 9):
            text = "abcdefgh"[:number]
            ids = [10 + ord(letter) for letter in text]
            writer.add([3, *ids, EOS_ID], [*ids, EOS_ID], (text, text))

    return open_or_build(folder, {"text": "short"}, fill, has_text=True)


def drawn_with(
    folder: Path, *, max_length: int = 100, batch_tokens: int = 1000
) -> tuple[TrainingPairs, Doubled, Doubled]:
    source, target = Doubled(), Doubled()
    drawing = Drawing(
        source=source,
        target=target,
        eos_id=EOS_ID,
        num_tags=1,
        max_length=max_length,
        batch_tokens=batch_tokens,
    )
    pairs = TrainingPairs(short_pairs(folder), [entry(8, 1)], seed=7, drawing=drawing)
    return pairs, source, target


@pytest.mark.parametrize(
    ("max_length", "batch_tokens", "limit"),
    [(100, 1000, 100), (10, 1000, 10), (9, 1000, 9), (100, 80, 10), (100, 87, 10), (100, 79, 9)],
)
def test_a_drawn_row_may_be_as_long_as_the_limit_and_its_share_of_the_batch(
    tmp_path: Path, max_length: int, batch_tokens: int, limit: int
) -> None:
    pairs, _, _ = drawn_with(tmp_path, max_length=max_length, batch_tokens=batch_tokens)
    sources, targets = pairs.rows(list(range(8)), epoch=0, number=0)
    letters = range(1, 9)
    # Drawn: twice the letters, EOS, and a tag before a source; stored: once.
    drawn = [(2 * n + 2 <= limit, 2 * n + 1 <= limit) for n in letters]
    assert [len(row) for row in sources] == [
        (2 * n if is_source else n) + 2 for n, (is_source, _) in zip(letters, drawn, strict=True)
    ]
    assert [len(row) for row in targets] == [
        (2 * n if is_target else n) + 1 for n, (_, is_target) in zip(letters, drawn, strict=True)
    ]
    assert all((row[0], row[-1]) == (3, EOS_ID) for row in sources)


def test_what_is_drawn_depends_on_seed_epoch_number_and_side_alone(tmp_path: Path) -> None:
    pairs, source, target = drawn_with(tmp_path)
    for drawer in (source, target):
        drawer.seeds.clear()
    for epoch, number in ((0, 0), (0, 1), (3, 1)):
        pairs.rows([0, 1], epoch=epoch, number=number)
    assert source.seeds == [(7, 0, 0, 0), (7, 0, 1, 0), (7, 3, 1, 0)]
    assert target.seeds == [(7, 0, 0, 1), (7, 0, 1, 1), (7, 3, 1, 1)]


def test_batches_are_planned_by_lengths_grown_as_the_widest_rows_grow_and_rounded_up(
    tmp_path: Path,
) -> None:
    pairs, _, _ = drawn_with(tmp_path)
    # The widest source of eight letters is 10 tokens and 18 when drawn, the widest target 9 and 17.
    assert pairs.source_lengths.tolist() == [math.ceil((n + 2) * 18 / 10) for n in range(1, 9)]
    assert pairs.target_lengths.tolist() == [math.ceil((n + 1) * 17 / 9) for n in range(1, 9)]
    short, _, _ = drawn_with(tmp_path, max_length=11)
    assert short.source_lengths.max() == short.target_lengths.max() == 11


def test_entries_of_the_same_size_are_dealt_out_in_orders_of_their_own() -> None:
    found = copies(entry(40, 0.5), entry(40, 0.5))
    assert found[:40].sum() == found[40:].sum() == 20
    assert found[:40].tolist() != found[40:].tolist()
    assert copies().tolist() == []


def test_an_epoch_may_have_one_pair_and_no_less(
    pieces: sentencepiece.SentencePieceProcessor, tmp_path: Path
) -> None:
    store = stored(pieces, tmp_path)
    pairs = TrainingPairs(store, [entry(80, 1 / 80)], seed=1)
    assert [int(pairs.epoch_copies(epoch).sum()) for epoch in range(3)] == [1, 1, 1]
    with pytest.raises(DataError, match=r"copies leave 0\.9875 pairs an epoch; at least 1"):
        TrainingPairs(store, [entry(79, 1 / 80)], seed=1)


def test_epochs_of_weighted_corpora_hold_what_their_copies_say(
    pieces: sentencepiece.SentencePieceProcessor, tmp_path: Path
) -> None:
    pairs = TrainingPairs(stored(pieces, tmp_path), [entry(60, 0.5), entry(20, 2)], seed=1)
    counts = Counter(pairs.epoch_copies(0).tolist())
    assert counts == {0: 30, 1: 30, 2: 20}


def test_copies_that_leave_nothing_are_refused(
    pieces: sentencepiece.SentencePieceProcessor, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=r"data\.train\.copies leave 0.8 pairs an epoch"):
        TrainingPairs(stored(pieces, tmp_path), [entry(80, 0.01)], seed=1)
    few = 4e-7  # nothing of them would ever be drawn, however many pairs there are
    with pytest.raises(DataError, match=r"data\.temperature leaves 4e-07 copies of 80 pairs; at l"):
        TrainingPairs(stored(pieces, tmp_path), [entry(80, few), entry(80, 1)], seed=1)
