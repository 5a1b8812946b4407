"""Marian's binary shortlists: every number of them is checked before it is used."""

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest

from model.errors import ForeignModelError
from model.exchange.imports.marian.shortlist import checksum, is_shortlist, read_shortlist
from model.shortlist import Shortlist
from support.shortlists import lex_bytes, lex_checksum

LISTS = [[], [4, 7], [5], [0, 6, 7]]


def written(folder: Path, data: bytes) -> Path:
    path = folder / "lex.s2t.bin"
    path.write_bytes(data)
    return path


def read(path: Path, *, num_sources: int = 4, num_targets: int = 8) -> Shortlist:
    return read_shortlist(
        path, num_sources=num_sources, num_targets=num_targets, num_rows=6, with_source=True
    )


@pytest.mark.parametrize("packed", [False, True])
def test_every_list_is_read_and_tokens_behind_marians_have_none(
    tmp_path: Path, *, packed: bool
) -> None:
    data = lex_bytes(LISTS, first=3)
    path = written(tmp_path, gzip.compress(data) if packed else data)
    assert is_shortlist(path)
    shortlist = read(path)
    found = np.split(shortlist.ids, shortlist.offsets[1:-1])
    assert [tokens.tolist() for tokens in found] == [*LISTS, [], []]
    assert shortlist.always.tolist() == [0, 1, 2]
    assert shortlist.with_source


def test_of_a_vocabulary_with_fewer_tokens_all_are_always_listed(tmp_path: Path) -> None:
    path = written(tmp_path, lex_bytes(LISTS, first=2**63))
    assert read(path).always.tolist() == list(range(8))


def test_other_files_are_no_shortlists(tmp_path: Path) -> None:
    assert not is_shortlist(tmp_path / "gone")
    assert not is_shortlist(written(tmp_path, b"Haus house 0.7\n"))
    assert not is_shortlist(written(tmp_path, b""))


def with_word(data: bytes, place: int, value: int) -> bytes:
    """One of the u64 replaced, and a checksum that is right again."""
    words = data[: 8 * place] + struct.pack("<Q", value) + data[8 * place + 8 :]
    return words[:8] + struct.pack("<Q", lex_checksum(words[16:])) + words[16:]


SOUND = lex_bytes(LISTS)
REFUSED = {
    "is a shortlist of Quicksand's": struct.pack("<i", 1_234_567_890) + SOUND,
    "begins with 0x0000000000000001": with_word(SOUND, 0, 1),
    "has 40 bytes; a shortlist's header has 48": SOUND[:40],
    "lists for 9 source tokens; the vocabulary has 4": with_word(SOUND, 4, 10),
    "lists for -1 source tokens": with_word(SOUND, 4, 0),
    "has 112 bytes; its header needs 116": with_word(SOUND, 5, 7),
    f"has 112 bytes; its header needs {48 + 40 + 4 * 2**62}": with_word(SOUND, 5, 2**62),
    "has 111 bytes; its header needs 112": SOUND[:-1],
    "has 113 bytes; its header needs 112": SOUND + b"\0",
    "is damaged: its checksum is": SOUND[:-9] + b"\7" + SOUND[-8:],
    "offsets that do not rise from 0 to 6": with_word(SOUND, 8, 2**63),
    "has a list of 3 target tokens; its header says 2": lex_bytes(LISTS, best=2),
    "has target id 9; the vocabulary has 8 tokens": lex_bytes([[], [9], [], []]),
}


@pytest.mark.parametrize(("problem", "data"), REFUSED.items(), ids=REFUSED.keys())
def test_a_number_that_cannot_be_is_named_with_its_limit(
    tmp_path: Path, problem: str, data: bytes
) -> None:
    with pytest.raises(ForeignModelError, match=r"lex\.s2t\.bin") as refusal:
        read(written(tmp_path, data))
    [told] = refusal.value.problems
    assert problem in told


def test_the_checksum_is_marians() -> None:
    """Of the words 1 and 2, worked out by hand."""
    first = 1 + 0x9E3779B9
    second = first ^ (2 + 0x9E3779B9 + (first << 6) + (first >> 2))
    assert checksum(np.array([1, 2], dtype=np.uint64)) == second % 2**64
