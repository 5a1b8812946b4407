"""Byte pair encoding against the tokenizers library, and merges files that are none."""

import random
from itertools import pairwise

import pytest
from tokenizers.models import BPE

from model.errors import ConfigError
from model.text.subwords import bpe
from model.text.subwords.bpe import Merges, WordPieces, merged
from support.learned_merges import WORD_END, learned_merges, merges_file, real_lines


@pytest.fixture(scope="module")
def words() -> list[str]:
    return [word for line in real_lines() for word in line.split()]


@pytest.fixture(scope="module")
def merges(words: list[str]) -> list[tuple[str, str]]:
    return learned_merges(words[:4000], 400)


def _library(words: list[str], merges: list[tuple[str, str]]) -> BPE:
    """The library's BPE over the same merges; unknown characters would be left out."""
    characters = {character for word in words for character in word}
    pieces = [*characters, *(item + WORD_END for item in characters), *map("".join, merges)]
    vocabulary = {piece: index for index, piece in enumerate(dict.fromkeys(pieces))}
    return BPE(vocabulary, merges, end_of_word_suffix=WORD_END)


def test_pieces_are_those_of_the_tokenizers_library(
    words: list[str], merges: list[tuple[str, str]]
) -> None:
    library = _library(words, merges)
    ours = WordPieces(Merges(merges_file(merges), "word-end"), "word-end")
    different = set(words)
    assert len(different) > 3000
    for word in different:
        assert ours.split([word]) == [token.value for token in library.tokenize(word)]


def test_merges_in_any_order_are_applied_round_by_round(merges: list[tuple[str, str]]) -> None:
    chance = random.Random(3)
    for _ in range(300):
        alphabet = "ab"
        ranks: dict[tuple[str, str], int] = {}
        for rank in chance.sample(range(100), 12):
            pair = ("".join(chance.choices(alphabet, k=chance.randint(1, 3))), chance.choice("ab"))
            ranks[pair] = rank
        word = chance.choices(alphabet, k=chance.randint(1, 14))
        assert merged(word, ranks) == _round_by_round(word, ranks)


def _round_by_round(symbols: list[str], ranks: dict[tuple[str, str], int]) -> list[str]:
    """The algorithm as the paper has it: all pairs are looked at before every merge."""
    while True:
        pairs = [pair for pair in pairwise(symbols) if pair in ranks]
        if not pairs:
            return symbols
        best, new = min(pairs, key=ranks.__getitem__), []
        place = 0
        while place < len(symbols):
            is_pair = tuple(symbols[place : place + 2]) == best
            new.append("".join(best) if is_pair else symbols[place])
            place += 2 if is_pair else 1
        symbols = new


def test_marks_say_where_words_end_and_words_come_back(
    words: list[str], merges: list[tuple[str, str]]
) -> None:
    at_ends = WordPieces(Merges(merges_file(merges), "word-end"), "word-end")
    inside = WordPieces(
        Merges(merges_file(merges, header="#version: 0.2\n"), "continuation"), "continuation"
    )
    for start in range(0, 3000, 30):
        line = [word for word in words[start : start + 30] if "@@" not in word]
        assert at_ends.join(at_ends.split(line)) == line
        assert inside.join(inside.split(line)) == line
        stripped = [piece.removesuffix(WORD_END) for piece in at_ends.split(line)]
        assert [piece.removesuffix("@@") for piece in inside.split(line)] == stripped
        assert sum(piece.endswith(WORD_END) for piece in at_ends.split(line)) == len(line)
        assert sum(not piece.endswith("@@") for piece in inside.split(line)) == len(line)


def test_before_version_0_2_the_end_of_a_word_is_a_symbol_of_its_own() -> None:
    codes = b"l o\nlo w\nlow </w>\ne r\ner </w>\n"
    old = WordPieces(Merges(codes, "continuation"), "continuation")
    assert old.split(["low", "lower", "e"]) == ["low", "low@@", "er", "e"]
    new = WordPieces(Merges(b"#version: 0.2\nl o\nlo w</w>\n", "continuation"), "continuation")
    assert new.split(["low", "lows"]) == ["low", "lo@@", "w@@", "s"]


def test_of_a_pair_that_stands_twice_each_program_takes_its_own() -> None:
    codes = b"a b\nb c</w>\na b\n"
    assert Merges(codes, "continuation").ranks["a", "b"] == 0
    assert Merges(codes, "word-end").ranks["a", "b"] == 2


def test_numbers_behind_a_merge_are_left_out() -> None:
    assert Merges(b"a b 17\n", "word-end").ranks == {("a", "b"): 0}


def test_a_word_without_end_takes_no_time_without_end() -> None:
    pieces = WordPieces(Merges(merges_file([("a", "a"), ("aa", "aa")]), "word-end"), "word-end")
    found = pieces.split(["a" * 100_000])
    assert len(found) == 25_002
    assert pieces.join(found) == ["a" * 100_000]


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "has no merges"),
        (b"\xff\xfe", "is not UTF-8 at byte 0"),
        (b"#version: 7\na b\n", "is of version '7'"),
        (b"a b\na\n", "has 'a' on line 2; a merge is two symbols"),
        (b"a b\n\nc d\n", "has '' on line 2"),
        (b"#version: 0.2\na  b\n", "has 'a  b' on line 2"),
        (b"a b c d\n", "on line 1"),
    ],
)
def test_a_file_that_is_no_merges_is_refused(data: bytes, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        Merges(data, "word-end")


def test_a_file_with_more_than_any_has_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bpe, "MAX_MERGES", 2)
    with pytest.raises(ConfigError, match="has 3 lines; at most 2 merges are read"):
        Merges(b"a b\nc d\ne f\n", "word-end")
    monkeypatch.setattr(bpe, "MAX_MERGES_BYTES", 11)
    with pytest.raises(ConfigError, match="has 12 bytes; merges have at most 11"):
        Merges(b"a b\nc d\ne f\n", "word-end")


def test_merges_are_written_again_by_rank_and_once() -> None:
    merges = Merges(b"#version: 0.2\nb c\na b\nd e 9\nb c\n", "word-end")
    assert merges.data == b"a b\nd e\nb c\n"
    again = Merges(merges.data, "word-end")
    assert sorted(again.ranks, key=again.ranks.__getitem__) == [("a", "b"), ("d", "e"), ("b", "c")]
