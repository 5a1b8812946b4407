import gzip
from pathlib import Path

import pytest

from model.errors import DataError
from model.train.data.parallel import ParallelText, find_text, read_lines, read_parallel, tokenise


def write(path: Path, text: str) -> Path:
    raw = text.encode()
    path.write_bytes(gzip.compress(raw) if path.suffix == ".gz" else raw)
    return path


def read(folder: Path) -> ParallelText:
    return read_parallel(folder, "talk", source_language="en", target_language="zh")


def test_plain_and_packed_sides_are_read_alike(tmp_path: Path) -> None:
    write(tmp_path / "talk.en", "one\ntwo\n")
    write(tmp_path / "talk.zh.gz", "一\n二\n")
    text = read(tmp_path)
    assert (text.source, text.target) == (("one", "two"), ("一", "二"))


def test_only_a_line_feed_ends_a_line(tmp_path: Path) -> None:
    path = write(tmp_path / "odd.en", "a\u2028b\x0cc\u0085d\ne")
    assert read_lines(path) == ["a\u2028b\x0cc\u0085d", "e"]


@pytest.mark.parametrize("name", ["odd.en", "odd.en.gz"])
def test_carriage_returns_at_line_ends_and_a_byte_order_mark_are_no_text(
    tmp_path: Path, name: str
) -> None:
    path = write(tmp_path / name, "\ufeff\ufeffa\r\n\r\n\ufeffb\rc\r\r\nd\r")
    assert read_lines(path) == ["\ufeffa", "", "\ufeffb\rc", "d"]
    path = write(tmp_path / name, "\ufeff\r\n")
    assert read_lines(path) == [""]


def test_a_missing_side_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"talk\.en: no such file, nor with \.gz"):
        find_text(tmp_path, "talk", "en")


def test_a_name_that_no_file_can_have_is_named_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"/a{300}\.en: File name too long$"):
        find_text(tmp_path, "a" * 300, "en")


def test_misaligned_sides_are_named_with_their_numbers_of_lines(tmp_path: Path) -> None:
    write(tmp_path / "talk.en", "one\ntwo\n")
    write(tmp_path / "talk.zh", "一\n")
    with pytest.raises(DataError, match=r"talk\.en has 2 lines but .*talk\.zh has 1"):
        read(tmp_path)


def test_a_blank_line_is_named_with_its_number(tmp_path: Path) -> None:
    write(tmp_path / "talk.en", "one\ntwo\n")
    write(tmp_path / "talk.zh", "一\n \n")
    with pytest.raises(DataError, match=r"talk\.zh:2: the line is blank$"):
        read(tmp_path)


def test_a_side_whose_lines_end_in_carriage_returns_alone_is_told_so(tmp_path: Path) -> None:
    write(tmp_path / "talk.en", "one\ntwo\nthree\n")
    write(tmp_path / "talk.zh", "一\r二\r三\r")
    message = r"same number; .*talk\.zh is one line of 5 characters, with carriage returns inside"
    with pytest.raises(DataError, match=message):
        read(tmp_path)
    write(tmp_path / "talk.zh", "一\r\n")
    with pytest.raises(DataError, match=r"same number$"):
        read(tmp_path)


def test_an_empty_file_is_named(tmp_path: Path) -> None:
    write(tmp_path / "talk.en", "")
    write(tmp_path / "talk.zh", "")
    with pytest.raises(DataError, match=r"talk\.en: the file is empty"):
        read(tmp_path)


def test_damaged_files_are_named(tmp_path: Path) -> None:
    (tmp_path / "bad.en").write_bytes(b"\xff\xfe\n")
    (tmp_path / "cut.en.gz").write_bytes(gzip.compress(b"text" * 100)[:20])
    for name in ("bad.en", "cut.en.gz"):
        with pytest.raises(DataError, match=name):
            read_lines(tmp_path / name)


def test_tokenising_adds_eos_and_leaves_long_and_empty_pairs_out() -> None:
    text = ParallelText(source=("ab", "abcdef", "", "c"), target=("xyz", "x", "y", "d"))

    def encode(lines: list[str]) -> list[list[int]]:
        return [[ord(character) for character in line] for line in lines]

    pairs = tokenise(text, encode_source=encode, encode_target=encode, eos_id=1, max_length=5)
    assert len(pairs) == 2
    assert pairs.source(0).tolist() == [97, 98, 1]
    assert pairs.target(0).tolist() == [120, 121, 122, 1]
    assert pairs.source(1).tolist() == [99, 1]
    assert pairs.epoch_copies(3).tolist() == [1, 1]
    assert pairs.target_lengths.tolist() == [4, 2]
