import errno
from pathlib import Path

import pytest

from model.errors import TrainingError
from model.train.files import naming_files, reason_of, remove, whole_file, write_whole


def test_a_file_appears_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    with whole_file(path) as partial:
        partial.write_bytes(b"one")
        assert not path.exists()
    assert path.read_bytes() == b"one"
    write_whole(path, b"two")
    assert path.read_bytes() == b"two"
    assert list(tmp_path.iterdir()) == [path]


def test_the_file_before_it_can_be_kept(tmp_path: Path) -> None:
    path, previous = tmp_path / "a.txt", tmp_path / "b.txt"
    for data in (b"one", b"two", b"three"):
        with whole_file(path, previous=previous) as partial:
            partial.write_bytes(data)
    assert (path.read_bytes(), previous.read_bytes()) == (b"three", b"two")


@pytest.mark.parametrize("is_wrapped", [False, True])
def test_a_full_disk_leaves_the_file_before_it_and_nothing_else(
    tmp_path: Path, is_wrapped: bool
) -> None:
    def fill(partial: Path) -> None:
        partial.write_bytes(b"half")
        error = OSError(errno.ENOSPC, "No space left on device")
        if is_wrapped:
            raise RuntimeError("file write failed") from error
        raise error

    path, previous = tmp_path / "a.txt", tmp_path / "b.txt"
    write_whole(path, b"one")
    message = r"a\.txt: the state cannot be written: No space left on device; what was saved before"
    with (
        pytest.raises(TrainingError, match=message),
        whole_file(path, "the state", previous=previous) as partial,
    ):
        fill(partial)
    assert path.read_bytes() == b"one"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", ["a.txt", "a.partial"])
def test_a_folder_in_the_way_is_told_and_left(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    with pytest.raises(TrainingError, match=r"a\.txt: cannot be written: Is a directory"):
        write_whole(tmp_path / "a.txt", b"one")
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_files_folders_and_links_are_removed_and_what_is_gone_is_no_error(tmp_path: Path) -> None:
    folder, file, link = (tmp_path / name for name in ("folder", "file", "link"))
    folder.mkdir()
    kept = folder / "inside"
    kept.write_bytes(b"one")
    file.write_bytes(b"two")
    link.symlink_to(folder)
    for path in (file, link, tmp_path / "nowhere"):
        remove(path)
    assert kept.exists()
    remove(folder)
    assert not list(tmp_path.iterdir())


def test_an_error_names_its_own_file_or_the_one_that_was_meant(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"")
    with (
        pytest.raises(TrainingError, match=rf"^{file}/a: cannot be used: Not a directory"),
        naming_files(tmp_path),
    ):
        (file / "a").mkdir()
    with (
        pytest.raises(TrainingError, match=rf"^{tmp_path}: cannot be used: no reason"),
        naming_files(tmp_path),
    ):
        raise OSError("no reason")


def test_the_reason_is_what_the_system_said() -> None:
    error = RuntimeError("wrapped")
    error.__cause__ = OSError(errno.EIO, "Input/output error")
    assert reason_of(error) == "Input/output error"
    assert reason_of(RuntimeError("plain")) == "plain"
