import os
import shutil
import subprocess
from pathlib import Path

import pytest

from model.checkpoint.files.checksums import (
    CHECKSUMS_FILE,
    fingerprint,
    format_checksums,
    read_limited,
    read_listing,
    verify_files,
)
from model.errors import CheckpointError


def verify(directory: Path, **sizes: tuple[int, int]) -> dict[str, str]:
    listed = read_listing(directory)
    verify_files(directory, listed, sizes, max_other_bytes=10_000)
    return listed


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "b.bin").write_bytes(b"\x00\xff" * 1000)
    (tmp_path / "a.txt").write_text("text", encoding="utf-8")
    listing = format_checksums([tmp_path / "b.bin", tmp_path / "a.txt"])
    (tmp_path / CHECKSUMS_FILE).write_bytes(listing)
    return tmp_path


def test_untouched_files_are_returned_by_name(directory: Path) -> None:
    assert set(verify(directory)) == {"a.txt", "b.bin"}


@pytest.mark.skipif(shutil.which("sha256sum") is None, reason="needs coreutils")
def test_sha256sum_reads_the_listing(directory: Path) -> None:
    done = subprocess.run(
        ["sha256sum", "--strict", "-c", CHECKSUMS_FILE],
        cwd=directory,
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout == "a.txt: OK\nb.bin: OK\n"


def test_one_flipped_bit_is_found(directory: Path) -> None:
    data = bytearray((directory / "b.bin").read_bytes())
    data[1234] ^= 1
    (directory / "b.bin").write_bytes(data)
    with pytest.raises(CheckpointError, match="damaged or was changed") as caught:
        verify(directory)
    assert caught.value.path == directory / "b.bin"


def test_a_missing_file_is_named(directory: Path) -> None:
    (directory / "a.txt").unlink()
    with pytest.raises(CheckpointError, match="is missing") as caught:
        verify(directory)
    assert caught.value.path == directory / "a.txt"


def test_a_file_that_is_not_listed_is_left_alone(directory: Path) -> None:
    (directory / "notes.txt").write_text("mine", encoding="utf-8")
    assert "notes.txt" not in verify(directory)


@pytest.mark.parametrize(
    ("listing", "problem"),
    [
        (b"", "is empty"),
        (b"not a line\n", "line 1 is not"),
        (b"0" * 64 + b"  ../a.txt\n", "line 1 is not"),
        (b"0" * 64 + b"  /etc/passwd\n", "line 1 is not"),
        ((b"0" * 64 + b"  a.txt\n") * 2, "line 2 is not"),
        (b"\xff\xfe\n", "line 1 is not"),
        (b"x" * 100_000, "has more than the 65536 bytes"),
    ],
)
def test_an_unreadable_listing_is_refused(directory: Path, listing: bytes, problem: str) -> None:
    (directory / CHECKSUMS_FILE).write_bytes(listing)
    with pytest.raises(CheckpointError, match=problem) as caught:
        verify(directory)
    assert caught.value.path in {directory / CHECKSUMS_FILE, directory / "a.txt"}


def test_a_missing_listing_is_named(directory: Path) -> None:
    (directory / CHECKSUMS_FILE).unlink()
    with pytest.raises(CheckpointError, match="is missing") as caught:
        verify(directory)
    assert caught.value.path == directory / CHECKSUMS_FILE


def test_a_folder_where_a_file_should_be_is_an_error_with_its_name(directory: Path) -> None:
    (directory / "a.txt").unlink()
    (directory / "a.txt").mkdir()
    with pytest.raises(CheckpointError, match="cannot be read") as caught:
        verify(directory)
    assert caught.value.path == directory / "a.txt"


def test_no_more_than_the_limit_is_read(directory: Path) -> None:
    assert read_limited(directory / "b.bin", 2000) == b"\x00\xff" * 1000
    with pytest.raises(CheckpointError, match="more than the 1999 bytes"):
        read_limited(directory / "b.bin", 1999)


def test_what_is_no_file_is_neither_waited_for_nor_read_without_end(directory: Path) -> None:
    for path in (directory / "a.txt", directory / CHECKSUMS_FILE):
        path.unlink()
        os.mkfifo(path)
        with pytest.raises(CheckpointError, match="is not a file") as caught:
            read_limited(path, 100)
        path.unlink()
        path.symlink_to("/dev/zero")
        with pytest.raises(CheckpointError, match="is not a file") as caught:
            verify(directory) if path.name != "a.txt" else read_limited(path, 100)
        assert caught.value.path == path


def test_a_file_of_another_size_than_it_can_have_is_not_read(directory: Path) -> None:
    """It would take hours: a sparse file of a tebibyte."""
    os.truncate(directory / "b.bin", 2**40)
    with pytest.raises(CheckpointError, match="it has 1099511627776 bytes; it can have 0 to"):
        verify(directory)
    sizes = {"b.bin": (5, 7), "a.txt": (0, 10)}
    with pytest.raises(CheckpointError, match=r"it can have 5 to 7$"):
        verify_files(directory, read_listing(directory), sizes, max_other_bytes=0)


def test_what_has_no_size_of_its_own_is_bounded_together(directory: Path) -> None:
    listed = read_listing(directory)
    verify_files(directory, listed, {}, max_other_bytes=2_004)
    with pytest.raises(CheckpointError, match="can have 0 to 1999"):
        verify_files(directory, listed, {}, max_other_bytes=2_003)
    verify_files(directory, listed, {"a.txt": (4, 4)}, max_other_bytes=2_000)


def test_a_listing_that_is_too_long_has_no_fingerprint(directory: Path) -> None:
    os.truncate(directory / CHECKSUMS_FILE, 2**40)
    with pytest.raises(CheckpointError, match="has more than the 65536 bytes"):
        fingerprint(directory)
