"""Drawn segmentations, with SentencePiece's own as the oracle where nothing is left to chance."""

import math
import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Literal

import pytest

from model.errors import ConfigError
from model.train.config.regularisation import RegularisationConfig
from model.train.config.vocabulary import VocabularyConfig
from model.train.data.segmentation import PieceTable, best_paths, merge_pieces, sample_path
from model.train.data.subwords import NUM_VARIANTS, SegmentDrawer
from model.train.data.vocabulary import load_pieces, train_vocabularies
from support.tiny_checkpoint import generated_pairs

PAIRS = list(generated_pairs(120))
LINES = [line for pair in PAIRS for line in pair]
ODD = [
    "",
    "  ",
    "🦜🦜 a",
    "ＡＢＣ １２<ph>３",
    "<ph><ph>cat",
    "a\u2581b",
    "zzz\tqqq",
    "猫x猫",
    "x" * 90,
]
Kind = Literal["bpe", "unigram"]


@pytest.fixture(scope="module", params=["bpe", "unigram", "bpe without bytes"])
def vocabulary(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Kind, Path]:
    kind: Kind = "unigram" if request.param == "unigram" else "bpe"
    has_bytes = request.param != "bpe without bytes"
    config = VocabularyConfig(
        kind=kind,
        size=400 if has_bytes else 200,
        byte_fallback=has_bytes,
        user_symbols=("<ph>",),
    )
    found = train_vocabularies(
        config,
        tmp_path_factory.mktemp("vocabulary"),
        source=[pair[0] for pair in PAIRS],
        target=[pair[1] for pair in PAIRS],
    )
    return kind, found.source_path


def drawer(vocabulary: tuple[Kind, Path], *, seed: int = 1, **values: float) -> SegmentDrawer:
    return SegmentDrawer(
        load_pieces(vocabulary[1]),
        kind=vocabulary[0],
        config=RegularisationConfig(**values),  # type: ignore[arg-type]
        user_symbols=("<ph>",),
        seed=seed,
    )


class Chanceless(SegmentDrawer):
    """Leaves no merge out, and takes no path but the best."""

    def _drawn(self, word: str, chance: random.Random) -> list[str]:
        if self._kind == "bpe":
            return merge_pieces(word, self._table.scores, lambda: False)
        ((_, parts),) = best_paths(word, self._table, 1)
        return parts


def test_without_chance_lines_are_segmented_as_sentencepiece_does(
    vocabulary: tuple[Kind, Path],
) -> None:
    pieces = load_pieces(vocabulary[1])
    drawn = Chanceless(
        pieces,
        kind=vocabulary[0],
        config=RegularisationConfig(),
        user_symbols=("<ph>",),
        seed=1,
    )
    for line in (*LINES, *ODD):
        assert drawn.draw([line], seed=(1,)) == [pieces.encode(line)], line


def test_drawn_pieces_say_what_the_line_says(vocabulary: tuple[Kind, Path]) -> None:
    drawn, pieces = drawer(vocabulary, alpha=0.3), load_pieces(vocabulary[1])
    lines = (*LINES, *ODD)
    found = drawn.draw(lines, seed=(1, 2))
    best = pieces.encode(list(lines))
    for ids, expected in zip(found, best, strict=True):
        assert pieces.decode(ids) == pieces.decode(expected)
    assert sum(map(len, found)) > sum(map(len, best))
    symbol = pieces.piece_to_id("<ph>")
    assert [ids.count(symbol) for ids in found] == [ids.count(symbol) for ids in best]


def test_lines_and_seed_alone_decide(vocabulary: tuple[Kind, Path]) -> None:
    drawn = drawer(vocabulary, alpha=0.3)
    first = drawn.draw(LINES, seed=(1, 2))
    assert drawn.draw(LINES, seed=(1, 3)) != first
    assert drawn.draw(LINES, seed=(1, 2)) == first
    fresh = drawer(vocabulary, alpha=0.3)
    fresh.draw(LINES[::-1], seed=(9,))  # what was read before makes no difference
    assert fresh.draw(LINES, seed=(1, 2)) == first
    assert drawer(vocabulary, seed=2, alpha=0.3).draw(LINES, seed=(1, 2)) != first


def test_every_process_draws_the_same(vocabulary: tuple[Kind, Path]) -> None:
    program = (
        "import sys; from test_subwords import *;"
        "print(drawer((sys.argv[1], Path(sys.argv[2])), alpha=0.3).draw(LINES, seed=(1, 2)))"
    )
    folders = [str(Path(__file__).parent), *sys.path]
    result = subprocess.run(
        [sys.executable, "-c", program, vocabulary[0], str(vocabulary[1])],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(folders), "PYTHONHASHSEED": "77"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout.strip() == str(drawer(vocabulary, alpha=0.3).draw(LINES, seed=(1, 2)))


def test_a_word_has_many_variants_and_no_more_than_it_may(vocabulary: tuple[Kind, Path]) -> None:
    drawn = drawer(vocabulary, alpha=0.3)
    found = drawn.draw(["bridge teacher"] * 2000, seed=(3,))
    variants = Counter(map(tuple, found))
    assert 4 < len(variants) <= NUM_VARIANTS**2


def test_merges_are_left_out_as_often_as_asked(vocabulary: tuple[Kind, Path]) -> None:
    best = sum(map(len, load_pieces(vocabulary[1]).encode(LINES)))
    sizes = [
        sum(map(len, drawer(vocabulary, alpha=alpha).draw(LINES, seed=(1,))))
        for alpha in (0.05, 0.5, 1.0)
    ]
    if vocabulary[0] == "bpe":  # 1.0 leaves every merge out
        assert best < sizes[0] < sizes[1] < sizes[2]
    else:  # 1.0 follows the model's own probabilities
        assert sizes[0] > sizes[1] > sizes[2] >= best


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> PieceTable:
    found = train_vocabularies(
        VocabularyConfig(kind="unigram", size=400),
        tmp_path_factory.mktemp("unigram"),
        source=[pair[0] for pair in PAIRS],
        target=[pair[1] for pair in PAIRS],
    )
    return PieceTable(load_pieces(found.source_path), ())


def all_paths(word: str, table: PieceTable) -> dict[tuple[str, ...], float]:
    """Every segmentation with its score, by trying every cut."""
    if not word:
        return {(): 0.0}
    found = {}
    for end in range(1, len(word) + 1):
        head = word[:end]
        if head in table.scores or end == 1:
            score = table.scores.get(head, table.unknown_score)
            for rest, total in all_paths(word[end:], table).items():
                found[(head, *rest)] = score + total
    return found


def test_best_paths_are_the_best_of_all_paths(table: PieceTable) -> None:
    for word in ("▁train", "猫看见那条河", "▁qzq"):
        every = sorted(all_paths(word, table).values(), reverse=True)
        found = best_paths(word, table, 5)
        assert [score for score, _ in found] == pytest.approx(every[:5])
        assert all("".join(parts) == word for _, parts in found)
        assert len(best_paths(word, table, 10**6)) == len(every)


def test_paths_are_sampled_in_proportion_to_their_probability(table: PieceTable) -> None:
    source = random.Random(4)
    word, alpha, count = "▁train", 0.5, 20_000
    weights = {path: math.exp(alpha * score) for path, score in all_paths(word, table).items()}
    found = Counter(tuple(sample_path(word, table, alpha, source)) for _ in range(count))
    total = sum(weights.values())
    assert len(weights) > 4
    for path, weight in weights.items():
        share = weight / total
        assert found[path] / count == pytest.approx(share, abs=5 * math.sqrt(share / count) + 1e-4)


def test_few_best_segmentations_are_no_others(table: PieceTable, tmp_path: Path) -> None:
    found = train_vocabularies(
        VocabularyConfig(kind="unigram", size=400),
        tmp_path,
        source=[pair[0] for pair in PAIRS],
        target=[pair[1] for pair in PAIRS],
    )
    drawn = drawer(("unigram", found.source_path), alpha=0.1, nbest_size=2)
    rows = {tuple(row) for row in drawn.draw(["train"] * 500, seed=(1,))}
    allowed = {tuple(table.numbers(parts)) for _, parts in best_paths("▁train", table, 2)}
    assert rows == allowed


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"alpha": 0.0}, "data.regularisation.alpha is 0.0; it must be above 0"),
        ({"nbest_size": 1}, "data.regularisation.nbest_size is 1; it must be -1, or from 2"),
    ],
)
def test_impossible_draws_are_refused(values: dict[str, float], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        RegularisationConfig(**values)  # type: ignore[arg-type]
