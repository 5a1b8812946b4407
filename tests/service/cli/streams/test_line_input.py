import gzip
import hashlib
import os
from pathlib import Path
from threading import Thread

import pytest

from model.errors import DataError
from service.cli.streams import line_input
from service.cli.streams.line_input import (
    THE_TEXT,
    Input,
    OpenedLines,
    digest,
    named_input,
    num_lines,
    sample,
)


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    return path


def _read(source: Input) -> list[str]:
    with OpenedLines(source) as lines:
        return list(lines)


@pytest.mark.parametrize(
    "argument",
    ["Hello", "Hello.", "Is it 7.30?", "Read and/or write.", "你好。", "a" * 5000, "7.30"],
)
def test_what_is_no_file_is_a_text(
    argument: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert named_input(argument) == Input(THE_TEXT, argument)


@pytest.mark.parametrize("argument", ["Hello", "a file", "letter.txt"])
def test_a_file_of_that_name_goes_before_the_text(
    argument: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(argument).write_text("A cat.\n")
    assert named_input(argument) == Input(argument)
    assert _read(named_input(argument)) == ["A cat."]


@pytest.mark.parametrize("argument", ["letter.txt", "texts/letter", "./letter", "big.tar.gz"])
def test_a_file_that_is_missing_is_not_translated_as_its_name(
    argument: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match=f"^{argument}: No such file .*give it as --text$"):
        named_input(argument)


def test_an_empty_text_is_an_empty_line() -> None:
    source = named_input("")
    assert source == Input(THE_TEXT, "")
    assert (_read(source), num_lines(source), sample(source)) == ([""], 1, "")


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"", []),
        (b"\n", [""]),
        (b"one\ntwo", ["one", "two"]),
        (b"one\r\n\ntwo\n", ["one\r", "", "two"]),
        ("\u2028 \x0b \x85\n猫".encode(), ["\u2028 \x0b \x85", "猫"]),
        (b"x" * 200_000 + b"\ny", ["x" * 200_000, "y"]),
    ],
)
@pytest.mark.parametrize("suffix", [".txt", ".gz"])
def test_a_line_feed_alone_ends_a_line(
    content: bytes, lines: list[str], suffix: str, tmp_path: Path
) -> None:
    path = tmp_path / f"text{suffix}"
    path.write_bytes(gzip.compress(content) if suffix == ".gz" else content)
    source = Input(str(path))
    assert _read(source) == lines
    assert num_lines(source) == len(lines)
    assert sample(source) == "\n".join(line for line in lines if any(map(str.isalpha, line)))


def test_a_text_has_lines_as_well() -> None:
    source = Input(THE_TEXT, "one\ntwo")
    assert _read(source) == ["one", "two"]
    assert num_lines(source) == 2
    assert digest(source, has_lines=True) == digest(Input(THE_TEXT, "one\ntwo"), has_lines=True)
    assert digest(source, has_lines=True) != digest(Input(THE_TEXT, "one"), has_lines=True)


def test_a_line_of_a_pipe_is_there_before_the_next_one_is_written(pipe: Path) -> None:
    writer: list[int] = []
    opening = Thread(target=lambda: writer.append(os.open(pipe, os.O_WRONLY)))
    opening.start()
    with OpenedLines(Input(str(pipe))) as opened:
        opening.join()
        lines = iter(opened)
        assert not opened.is_ready()
        os.write(writer[0], "one\ntwo\nhalf of a l猫".encode()[:-1])
        assert (next(lines), opened.is_ready(), next(lines)) == ("one", True, "two")
        assert not opened.is_ready()
        os.write(writer[0], "猫".encode()[-1:])
        os.close(writer[0])
        assert opened.is_ready()
        assert list(lines) == ["half of a l猫"]
        assert opened.is_ready()


def test_what_can_be_read_once_is_not_looked_at_beforehand(pipe: Path) -> None:
    source = Input(str(pipe))
    assert (num_lines(source), sample(source)) == (None, None)
    assert digest(source, has_lines=True) is None


def test_what_is_not_utf8_is_named_by_its_line(tmp_path: Path) -> None:
    path = tmp_path / "wrong.txt"
    path.write_bytes("猫\n".encode() * 3 + b"abc\xffd\n")
    with OpenedLines(Input(str(path))) as lines:
        found = iter(lines)
        assert [next(found) for _ in range(3)] == ["猫"] * 3
        with pytest.raises(DataError, match=r"wrong\.txt:4: not valid UTF-8 \(.* at byte 4 of"):
            next(found)
    argument = os.fsdecode(b"abc\xff")
    with pytest.raises(DataError, match=r"^the text:1: not valid UTF-8"):
        _read(Input(THE_TEXT, argument))


@pytest.mark.parametrize("name", ["lines.txt", "lines.gz", "-"])
@pytest.mark.parametrize("end", [b"\xff\n", b"\xe4\xb8", b"\xe4\nx"])
def test_lines_that_are_not_utf8_are_told_with_the_digest(
    name: str, end: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(line_input, "_DIGEST_BLOCK", 5)
    monkeypatch.chdir(tmp_path)
    path = Path("standard_input" if name == "-" else name)
    data = "ä 中\n".encode() * 3
    for content in (data, data + end):
        path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        with path.open() as stream:
            monkeypatch.setattr("sys.stdin", stream)
            if content == data:
                found = digest(Input(name), has_lines=True)
                assert found == hashlib.sha256(path.read_bytes()).hexdigest()
                continue
            with pytest.raises(DataError, match=rf"^{name}:4: not valid UTF-8 \(.* at byte 1 of"):
                digest(Input(name), has_lines=True)
            assert digest(Input(name), has_lines=False) is not None
            assert os.lseek(stream.fileno(), 0, os.SEEK_CUR) == 0


def test_rows_before_one_that_cannot_be_read_are_given(tmp_path: Path) -> None:
    path = tmp_path / "lines.txt"
    path.write_bytes(b"a\nb\nc\n\xff\nd\n")
    with OpenedLines(Input(str(path))) as lines:
        chunks = line_input.ready_rows(iter(lines), lines, 2)
        assert [next(chunks), next(chunks)] == [["a", "b"], ["c"]]
        with pytest.raises(DataError, match=r"lines\.txt:4: not valid UTF-8"):
            next(chunks)
