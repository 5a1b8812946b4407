import io
import os
import sys
from pathlib import Path

import pytest

from model.errors import DataError
from service.cli.streams.read_files import ReadFiles


def test_the_error_names_both_files_where_they_have_two_names(tmp_path: Path) -> None:
    book, link = tmp_path / "book", tmp_path / "link"
    book.write_text("kept")
    link.hardlink_to(book)
    with pytest.raises(DataError, match=f"^{book}: is a file that this command reads; write"):
        ReadFiles([book]).refuse(book, book)
    with pytest.raises(DataError, match=f"^{link}: is the same file as {book}, which this command"):
        ReadFiles([str(book)]).refuse(link, link)


def test_an_open_file_is_the_file_of_its_name(tmp_path: Path) -> None:
    book = tmp_path / "book"
    book.write_text("kept")
    with book.open() as stream:
        number = stream.fileno()
        for name, file in ((f"/dev/fd/{number}", book), (str(book), number)):
            with pytest.raises(DataError, match="this command reads"):
                ReadFiles([name]).refuse(book, file)


def test_standard_input_is_the_file_that_it_comes_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = tmp_path / "book"
    book.write_text("kept")
    with book.open() as stream:
        monkeypatch.setattr(sys, "stdin", stream)
        with pytest.raises(DataError, match="book: is the same file as standard input, which"):
            ReadFiles(["-"]).refuse(book, book)


def test_every_file_of_a_folder_counts(tmp_path: Path) -> None:
    weights = tmp_path / "tiny" / "weights"
    weights.parent.mkdir()
    weights.write_text("kept")
    with pytest.raises(DataError, match="weights: is a file that"):
        ReadFiles([], folders=[weights.parent, tmp_path / "none"]).refuse(weights, weights)


def test_other_files_devices_and_what_is_missing_may_be_written(tmp_path: Path) -> None:
    book, copy = tmp_path / "book", tmp_path / "copy"
    for path in (book, copy):
        path.write_text("the same words")
    os.mkfifo(tmp_path / "pipe")
    names = [book, tmp_path / "none", tmp_path / "pipe", "/dev/null", "a" * 300, "a\0b"]
    read = ReadFiles(names)
    for path in (copy, *map(Path, names[1:])):
        read.refuse(path, path)


@pytest.mark.parametrize("name", ["stdout", "stderr"])
def test_a_stream_into_a_file_that_is_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    book, other = tmp_path / "book", tmp_path / "other"
    book.write_text("kept")
    for path, is_refused in ((book, True), (other, False)):
        with path.open("a") as stream:
            monkeypatch.setattr(sys, name, stream)
            if is_refused:
                with pytest.raises(DataError, match=r"book: standard .* goes to this file, which"):
                    ReadFiles([book]).refuse_streams()
            else:
                ReadFiles([book]).refuse_streams()


def test_streams_that_are_no_files_are_let_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, io.StringIO())
    ReadFiles(["/dev/null"]).refuse_streams()
