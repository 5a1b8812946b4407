import errno
import fcntl
import hashlib
import json
import logging
import os
import shutil
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from model.errors import DataError
from model.train.data.filtering import CorpusReport
from model.train.data.store import (
    HEADER_FILE,
    StoredPairs,
    StoreWriter,
    check_cache,
    hash_file,
    ingredients_key,
    open_or_build,
    open_store,
)
from model.train.stopping import StoppedError
from support.forked import Forked, Send
from support.logged import events_of
from support.tiny_runs import StopAfter

INGREDIENTS = {"text": "one", "vocabulary": "two"}
ROWS = [([5, 6, 1], [7, 1], ("ab", "猫")), ([8, 1], [9, 9, 1], ("c", "")), ([1], [1], ("d", "e"))]
REPORT = CorpusReport(
    direction="en-zh", name="talk", num_pairs=4, num_kept=3, dropped={"duplicate": 1}
)


class Filler:
    """Counts how often a store is made."""

    def __init__(self) -> None:
        self.num_calls = 0

    def __call__(self, writer: StoreWriter) -> None:
        self.num_calls += 1
        for row in ROWS:
            writer.add(*row)
        writer.reports.append(REPORT)


def build(folder: Path, fill: Filler, *, has_text: bool = True) -> StoredPairs:
    return open_or_build(folder, INGREDIENTS, fill, has_text=has_text)


def check(pairs: StoredPairs) -> None:
    assert len(pairs) == 3
    assert pairs.reports == (REPORT,)
    assert pairs.source_lengths.tolist() == [3, 2, 1]
    assert pairs.target_lengths.tolist() == [2, 3, 1]
    for index, (source, target, _) in enumerate(ROWS):
        assert pairs.source(index).tolist() == source
        assert pairs.target(index).tolist() == target


def test_a_store_is_made_once_and_then_mapped(tmp_path: Path) -> None:
    fill = Filler()
    for _ in range(2):
        pairs = build(tmp_path, fill)
        check(pairs)
        assert [pairs.text(index) for index in range(3)] == [row[2] for row in ROWS]
        base = pairs.source(0)
        while base.base is not None and not isinstance(base, np.memmap):
            base = base.base
        assert isinstance(base, np.memmap)
        assert not pairs.source(0).flags.writeable
    assert fill.num_calls == 1
    assert [path.name for path in tmp_path.iterdir()] == [ingredients_key(INGREDIENTS)]


def test_other_ingredients_are_another_store(tmp_path: Path) -> None:
    fill = Filler()
    build(tmp_path, fill)
    open_or_build(tmp_path, {**INGREDIENTS, "vocabulary": "3"}, fill, has_text=False)
    assert fill.num_calls == 2
    assert len(list(tmp_path.iterdir())) == 2


def test_text_is_stored_only_where_it_is_needed(tmp_path: Path) -> None:
    check(build(tmp_path, Filler(), has_text=False))
    (folder,) = tmp_path.iterdir()
    assert not list(folder.glob("*text*"))


@pytest.mark.parametrize("name", ["source-ids.values", "target-ids.ends", HEADER_FILE])
@pytest.mark.parametrize("damage", ["flip", "cut", "remove"])
def test_a_damaged_store_is_made_again_with_a_message(
    tmp_path: Path, name: str, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    fill = Filler()
    build(tmp_path, fill)
    path = tmp_path / ingredients_key(INGREDIENTS) / name
    raw = bytearray(path.read_bytes())
    if damage == "remove":
        path.unlink()
    else:
        raw[0] ^= 1
        path.write_bytes(raw if damage == "flip" else raw[:-1])
    if name == HEADER_FILE and damage == "cut":  # without its last brace
        assert raw[-1:] == b"}"
    with caplog.at_level(logging.WARNING, logger="dragoman.train"):
        check(build(tmp_path, fill))
    assert fill.num_calls == 2
    [(event, fields)] = events_of(caplog)
    assert event == "store_made_again"
    assert f"{path}" in str(fields["reason"])
    check(build(tmp_path, fill))
    assert fill.num_calls == 2


def test_a_store_that_cannot_be_read_is_no_damaged_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill = Filler()
    build(tmp_path, fill)
    kept = sorted(tmp_path.rglob("*"))

    def refuse(path: Path, *_: object) -> str:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr("model.train.data.store.hash_file", refuse)
    with pytest.raises(DataError, match=r"/source-ids\.values: stored text cannot be read: Permis"):
        build(tmp_path, fill)
    assert sorted(tmp_path.rglob("*")) == kept
    assert fill.num_calls == 1


def test_a_folder_that_cannot_be_opened_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(tmp_path, Filler())
    folder = tmp_path / ingredients_key(INGREDIENTS)

    def refuse(path: Path, *_: object) -> int:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr("model.train.data.store.os.open", refuse)
    with pytest.raises(DataError, match=f"^{folder}: stored text cannot be read: Permission"):
        build(tmp_path, Filler())


@pytest.mark.parametrize("has_made_it_again", [True, False])
def test_of_two_runs_that_find_the_same_damage_one_removes_it(
    tmp_path: Path, has_made_it_again: bool
) -> None:
    fill = Filler()
    build(tmp_path, fill)
    folder = tmp_path / ingredients_key(INGREDIENTS)
    path = folder / "source-ids.values"
    path.write_bytes(b"x" * path.stat().st_size)
    others: list[Path] = []

    def meanwhile() -> bool:  # asked when the file is open
        if not others:
            if has_made_it_again:
                build(tmp_path, fill)
            else:
                shutil.rmtree(folder)
            others.append(folder)
        return False

    check(open_or_build(tmp_path, INGREDIENTS, fill, has_text=True, should_stop=meanwhile))
    assert fill.num_calls == 2
    assert [path.name for path in tmp_path.iterdir()] == [folder.name]
    check(build(tmp_path, fill))
    assert fill.num_calls == 2


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o755), (0o077, 0o700), (0o002, 0o775)])
def test_a_store_is_open_to_those_who_may_read_its_files(
    tmp_path: Path, mask: int, mode: int
) -> None:
    before = os.umask(mask)
    try:
        build(tmp_path, Filler())
    finally:
        os.umask(before)
    (folder,) = tmp_path.iterdir()
    assert stat.S_IMODE(folder.stat().st_mode) == mode
    assert {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()} == {0o666 & ~mask}


def test_a_store_that_could_not_be_finished_leaves_nothing(tmp_path: Path) -> None:
    def fail(writer: StoreWriter) -> None:
        writer.add(*ROWS[0])
        raise DataError("talk.en:7: the line is blank")

    with pytest.raises(DataError, match="line is blank"):
        open_or_build(tmp_path, INGREDIENTS, fail, has_text=True)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(DataError, match="file: the text cannot be stored"):
        build(tmp_path / "file", Filler())


def test_a_run_that_was_faster_is_no_error(tmp_path: Path) -> None:
    inner = Filler()

    def slow(writer: StoreWriter) -> None:
        build(tmp_path, inner)  # meanwhile another run publishes the same store
        inner(writer)

    check(open_or_build(tmp_path, INGREDIENTS, slow, has_text=True))
    assert [path.name for path in tmp_path.iterdir()] == [ingredients_key(INGREDIENTS)]


def test_a_header_of_another_format_is_not_read(tmp_path: Path) -> None:
    build(tmp_path, Filler())
    key = ingredients_key(INGREDIENTS)
    path = tmp_path / key / HEADER_FILE
    header = json.loads(path.read_bytes())
    path.write_text(json.dumps({**header, "format": 99}))
    with pytest.raises(DataError, match="another format or key"):
        open_store(tmp_path / key, key)


def fill_and_wait(send: Send, folder: Path, go_on: Path) -> None:
    """Begin a store, say where, and finish it when there is something to read in `go_on`."""

    def fill(writer: StoreWriter) -> None:
        (partial,) = folder.glob("*.partial-*")
        send(partial)
        go_on.read_bytes()
        Filler()(writer)

    build_others(folder, fill)
    send("finished")


def build_others(folder: Path, fill: Callable[[StoreWriter], None]) -> StoredPairs:
    return open_or_build(folder, {"text": "another"}, fill, has_text=True)


@pytest.fixture
def go_on(tmp_path: Path) -> Path:
    path = tmp_path / "go-on"
    os.mkfifo(path)
    return path


def test_what_a_killed_run_left_is_removed_by_the_next_one(tmp_path: Path, go_on: Path) -> None:
    cache = tmp_path / "cache"
    running = Forked(fill_and_wait, cache, go_on)
    partial = running.next()
    running.process.kill()
    assert running.rest() == []
    assert [path.name for path in cache.iterdir()] == [partial.name]
    check(build(cache, Filler()))  # another store, and its own is not even looked for
    assert [path.name for path in cache.iterdir()] == [ingredients_key(INGREDIENTS)]


def test_what_a_killed_run_left_is_removed_where_the_store_is_there(tmp_path: Path) -> None:
    build(tmp_path, Filler())
    left = tmp_path / f"{ingredients_key(INGREDIENTS)}.partial-x7"
    other = tmp_path / "notes.partial-x7"
    for folder in (left, other):
        folder.mkdir()
        (folder / "source-ids.values").write_bytes(b"1234")
    check(build(tmp_path, Filler()))
    assert not left.exists()
    assert other.exists()  # not a store's name


def test_what_another_run_is_filling_is_left_alone(tmp_path: Path, go_on: Path) -> None:
    cache = tmp_path / "cache"
    running = Forked(fill_and_wait, cache, go_on)
    partial = running.next()
    check(build(cache, Filler()))
    assert partial.exists()
    go_on.write_bytes(b"now")
    assert running.rest() == ["finished"]
    never_called = Filler()
    check(build_others(cache, never_called))
    assert never_called.num_calls == 0
    assert not list(cache.glob("*.partial-*"))


def test_a_folder_that_another_run_took_for_one_left_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may come between the making and the locking: at three moments, one after another."""
    made: list[Path] = []
    taken: list[int] = []
    make, lock = tempfile.mkdtemp, fcntl.flock

    def make_and_lose(**where: str) -> str:
        made.append(Path(make(**where)))
        if len(made) == 1:
            made[0].rmdir()
        elif len(made) == 2:
            taken.append(os.open(made[1], os.O_RDONLY))
            lock(taken[0], fcntl.LOCK_EX)
        return str(made[-1])

    def lose_and_lock(handle: int, how: int) -> None:
        if len(made) == 3:
            made[2].rmdir()
        lock(handle, how)

    monkeypatch.setattr(tempfile, "mkdtemp", make_and_lose)
    monkeypatch.setattr(fcntl, "flock", lose_and_lock)
    check(build(tmp_path, Filler()))
    assert len(made) == 4
    os.close(taken[0])
    check(build(tmp_path, Filler()))
    assert [path.name for path in tmp_path.iterdir()] == [ingredients_key(INGREDIENTS)]


def test_where_there_are_no_locks_stores_are_made_and_nothing_is_taken_for_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", fail)
    left = tmp_path / f"{ingredients_key(INGREDIENTS)}.partial-x7"
    left.mkdir()
    check(build(tmp_path, Filler()))
    assert left.exists()


def test_a_store_can_be_stopped_while_it_is_made_and_while_it_is_read(tmp_path: Path) -> None:
    for num_noes in range(8):  # files to hash
        with pytest.raises(StoppedError):
            open_or_build(
                tmp_path, INGREDIENTS, Filler(), has_text=True, should_stop=StopAfter(num_noes)
            )
        assert not list(tmp_path.iterdir())
    check(build(tmp_path, Filler()))
    fill = Filler()
    for num_noes in range(8):
        with pytest.raises(StoppedError):
            open_or_build(
                tmp_path, INGREDIENTS, fill, has_text=True, should_stop=StopAfter(num_noes)
            )
    check(build(tmp_path, fill))
    assert fill.num_calls == 0


def test_a_long_file_can_be_stopped_in_the_middle(tmp_path: Path) -> None:
    path = tmp_path / "long"
    path.write_bytes(bytes(3_000_000))
    with pytest.raises(StoppedError):
        hash_file(path, StopAfter(2))
    assert hash_file(path) == hashlib.sha256(bytes(3_000_000)).hexdigest()


def test_what_cannot_be_a_folder_of_stores_is_refused(tmp_path: Path) -> None:
    check_cache(tmp_path)
    check_cache(tmp_path / "none" / "yet")
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match=r"/file: is not a directory, so text cannot be stored"):
        check_cache(tmp_path / "file")
    for refuse in (check_cache, lambda cache: build(cache, Filler())):
        with pytest.raises(DataError, match="File name too long"):
            refuse(tmp_path / ("a" * 300))
