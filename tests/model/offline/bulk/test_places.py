"""Places: the same by path and by URL, and one error that names the place."""

import errno
import os
import re
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path
from types import SimpleNamespace
from typing import BinaryIO, cast

import fsspec
import pytest

from model.errors import ConfigError, DataError
from model.offline.bulk.places import Place, output_place, place_of
from support.object_store import ObjectStore, register


@pytest.fixture(params=["path", "file", "memory", "objects"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    names = {
        "path": str(tmp_path / "folder"),
        "file": f"file://{tmp_path}/folder",
        "memory": f"memory://places-{os.getpid()}/folder",
        "objects": "objects://places/folder",
    }
    register()
    place = place_of(names[request.param])
    place.make_folder()
    yield place
    ObjectStore.objects.clear()
    if request.param == "memory":
        fsspec.filesystem("memory").store.clear()
        fsspec.filesystem("memory").pseudo_dirs[:] = [""]


def _write(place: Place, data: bytes) -> None:
    def content(stream: BinaryIO) -> None:
        stream.write(data)

    place.write(place_of(f"{place.name}.partial"), content)


def _kind_of_empty(folder: Place) -> str | None:
    return None if folder.name.startswith("objects://") else "folder"  # objects have no folders


def test_a_file_is_written_found_read_and_removed(folder: Place) -> None:
    place = folder.joined("a.txt")
    assert (folder.kind(), place.kind()) == (_kind_of_empty(folder), None)
    _write(place, b"one")
    _write(place, b"two!")
    assert (place.kind(), folder.names()) == ("file", ["a.txt"])
    assert place.facts().size == 4
    with place.opened() as stream:
        stream.seek(1)
        assert stream.readline(2) == b"wo"
        assert stream.read() == b"!"
    place.remove()
    place.remove()
    assert folder.names() == []


def test_files_of_a_folder_and_of_a_pattern_are_found_by_name(folder: Place) -> None:
    for name in ("b.csv", "a.csv", "c.txt"):
        _write(folder.joined(name), name.encode())
    folder.joined("d.csv").make_folder()
    found = folder.files()
    assert [one.name.rpartition("/")[2] for one in found] == ["a.csv", "b.csv", "c.txt"]
    assert [place_of(one.name).facts() for one in found] == found
    some = place_of(f"{folder.name}/*.csv").files()
    assert [one.name.rpartition("/")[2] for one in some] == ["a.csv", "b.csv"]
    assert place_of(f"{folder.name}/*.pq").files() == []


def test_what_is_not_there_is_named(folder: Place) -> None:
    place = folder.joined("missing", "a.txt")
    assert place.kind() is None
    assert place.names() == []
    for act in (place.facts, place.opened):
        with pytest.raises(DataError, match=r"missing/a\.txt: "):
            act()


def test_a_write_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    place = place_of(str(tmp_path / "a.txt"))
    _write(place, b"whole")

    def fails(stream: BinaryIO) -> None:
        stream.write(b"half")
        raise OSError(28, "No space left on device")

    with pytest.raises(DataError, match=r"a\.txt: No space left on device"):
        place.write(place_of(str(tmp_path / "partial")), fails)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"a.txt": b"whole"}


def test_a_folder_is_locked_against_other_commands(tmp_path: Path) -> None:
    first, second = place_of(str(tmp_path)), place_of(str(tmp_path))
    with (
        first.locked(),
        pytest.raises(DataError, match="another command is writing there"),
        second.locked(),
    ):
        pass
    with second.locked():
        pass


def test_an_error_while_a_file_is_read_names_it(
    folder: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = folder.joined("a.txt")
    _write(place, b"line\n" * 100_000)

    def fail(*_: object) -> bytes:
        raise OSError(errno.EIO, "Input/output error")

    with cast(BufferedReader, place.opened()) as stream:
        assert stream.readline(3) == b"lin"
        assert stream.seek(-5, os.SEEK_END) == 499_995
        assert stream.read() == b"line\n"
        stream.seek(0)
        opened = vars(stream.raw)["_stream"]
        monkeypatch.setattr(stream.raw, "_stream", SimpleNamespace(read=fail, close=opened.close))
        with pytest.raises(DataError, match=r"a\.txt: Input/output error"):
            stream.read()


def test_a_url_that_nothing_opens_is_one_error() -> None:
    with pytest.raises(ConfigError, match=r"^nosuch://x/y: cannot be opened: [^\n]*$"):
        place_of("nosuch://x/y")


@pytest.mark.parametrize("name", ["out[1]", "out*", "a?/out"])
def test_a_url_that_is_a_pattern_is_no_output(name: str, tmp_path: Path) -> None:
    """fsspec would expand it where a part is moved to its name."""
    register()
    problem = rf"^objects://bucket/{re.escape(name)}: has one of \* \? \[, which make a pattern"
    with pytest.raises(ConfigError, match=problem):
        output_place(f"objects://bucket/{name}")
    for known in (f"{tmp_path}/{name}", f"file://{tmp_path}/{name}", "objects://bucket/out]"):
        assert output_place(known).name == known.removeprefix("file://")
