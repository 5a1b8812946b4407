import os
from pathlib import Path

import pytest

from model.errors import CheckpointError, DataError
from model.system.paths import exists, flush, is_file, is_folder, utf8_name


def test_what_is_there_is_told_and_what_is_not_is_no_error(tmp_path: Path) -> None:
    file, link = tmp_path / "file", tmp_path / "link"
    file.touch()
    link.symlink_to(tmp_path)
    for path, answers in (
        (file, (True, True, False)),
        (link, (True, False, True)),
        (tmp_path / "none", (False, False, False)),
        (file / "below a file", (False, False, False)),
    ):
        assert (exists(path), is_file(path), is_folder(path)) == answers


def test_what_the_system_does_not_tell_is_an_error_with_path_and_reason(tmp_path: Path) -> None:
    circle = tmp_path / "circle"
    circle.symlink_to(circle)
    for path, message in (
        (tmp_path / ("a" * 300), r"/a{300}: File name too long$"),
        (circle, r"/circle: Too many levels of symbolic links$"),
        (tmp_path / "a\0b", r"/a(\0|\\x00)b: embedded null byte$"),
    ):
        for ask in (exists, is_file, is_folder):
            with pytest.raises(DataError, match=message):
                ask(path)
            with pytest.raises(CheckpointError, match=message):
                ask(path, CheckpointError)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may enter every folder")
def test_a_folder_that_may_not_be_entered_is_an_error(tmp_path: Path) -> None:
    shut = tmp_path / "shut"
    shut.mkdir(mode=0)
    try:
        with pytest.raises(DataError, match=r"shut/file: Permission denied$"):
            is_file(shut / "file")
    finally:
        shut.chmod(0o700)


@pytest.mark.parametrize("name", [b"text", b"od\xe9"])
def test_a_file_has_a_name_in_utf8_while_the_block_lasts(tmp_path: Path, name: bytes) -> None:
    path = tmp_path / os.fsdecode(name)
    path.write_bytes(b"1")
    with utf8_name(path) as found:
        assert Path(found).read_bytes() == b"1"
        found.encode()
    assert (Path(found) == path) == (name == b"text")
    descriptors = len(list(Path("/dev/fd").iterdir()))
    with pytest.raises(KeyError), utf8_name(path):
        raise KeyError
    assert len(list(Path("/dev/fd").iterdir())) == descriptors


def test_files_and_folders_are_flushed_and_what_cannot_be_opened_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: flushed.append(os.fstat(descriptor).st_ino))
    file = tmp_path / "file"
    file.touch()
    flush(file)
    flush(tmp_path)
    assert flushed == [file.stat().st_ino, tmp_path.stat().st_ino]
    with pytest.raises(FileNotFoundError):
        flush(tmp_path / "none")
