"""A checkpoint is replaced as a whole: a fault at every call that touches the disk."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from model.checkpoint import weights
from model.checkpoint.files.replacement import publish, publish_new
from model.checkpoint.weights import load_checkpoint
from model.errors import CheckpointError
from support.saved_networks import FILES, logits, save
from support.tiny_checkpoint import tiny_transformer, write_tiny_checkpoint


class Interrupted(BaseException):
    """Stands for a process that is stopped: no handler of the library may expect it."""


def failing_once(calls: int, function: Callable[..., object], error: BaseException) -> object:
    """The function, but for the call after the first `calls`, which raises."""
    outcomes = iter([None] * calls + [error])

    def wrapper(*arguments: object, **keywords: object) -> object:
        outcome = next(outcomes, None)
        if outcome is not None:
            raise outcome
        return function(*arguments, **keywords)

    return wrapper


POINTS = [
    (owner, name, calls)
    for owner, name, counts in [
        (Path, "mkdir", (0,)),
        (Path, "write_bytes", (0, 3, 4)),
        (weights, "write_weight_file", (0,)),
        (os, "fsync", (0, 3, 6, 7)),
        (Path, "rename", (0, 1)),
    ]
    for calls in counts
]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), Interrupted()])
@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("has_old", [True, False])
def test_a_fault_leaves_the_old_checkpoint_or_none(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    point: tuple[object, str, int],
    error: BaseException,
    has_old: bool,
) -> None:
    owner, name, calls = point
    target = tmp_path / "saved"
    old, new = tiny_transformer(seed=1), tiny_transformer(seed=2)
    if has_old:
        save(target, old)
    with monkeypatch.context() as patch:
        # A class attribute has to stay a function, or it would not be bound to its path.
        patch.setattr(owner, name, failing_once(calls, getattr(owner, name), error))
        kind = CheckpointError if isinstance(error, OSError) else Interrupted
        # A new directory is moved once: there the second move is never made.
        if (name, calls, has_old) == ("rename", 1, False):
            save(target, new)
        else:
            with pytest.raises(kind):
                save(target, new)
    # The last flush comes after the move: then the new one stands.
    is_in_place = (name, calls) == ("fsync", 7) or (name, calls, has_old) == ("rename", 1, False)
    expected = new if is_in_place else old if has_old else None
    if expected is None:
        assert not target.exists()
    else:
        assert torch.equal(logits(load_checkpoint(target).transformer), logits(expected))
    assert [path.name for path in tmp_path.iterdir()] == ([] if expected is None else ["saved"])


@pytest.mark.parametrize("retired", [None, "aside"])
def test_a_stop_after_the_first_move_puts_the_old_folder_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, retired: str | None
) -> None:
    for name in ("new", "saved"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name, encoding="utf-8")
    rename, moved = Path.rename, []

    def stopping(path: Path, target: Path) -> Path:
        found = rename(path, target)
        moved.append(target.name)
        if len(moved) == 1:
            raise Interrupted
        return found

    monkeypatch.setattr(Path, "rename", stopping)
    aside = None if retired is None else tmp_path / retired
    with pytest.raises(Interrupted):
        publish(tmp_path / "new", tmp_path / "saved", retired=aside)
    assert retired is None or moved == [retired, "saved"]
    assert (tmp_path / "saved" / "file").read_text(encoding="utf-8") == "saved"
    assert {path.name for path in tmp_path.iterdir()} == {"new", "saved"}


def test_a_new_folder_takes_no_place_that_is_taken(tmp_path: Path) -> None:
    for name in ("new", "saved"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name, encoding="utf-8")
    with pytest.raises(OSError, match="not empty"):
        publish_new(tmp_path / "new", tmp_path / "saved")
    assert (tmp_path / "saved" / "file").read_text(encoding="utf-8") == "saved"
    publish_new(tmp_path / "new", tmp_path / "other")
    assert {path.name for path in tmp_path.iterdir()} == {"other", "saved"}


def test_a_checkpoint_is_replaced_as_a_whole(tmp_path: Path) -> None:
    old, new = tiny_transformer(seed=1), tiny_transformer(seed=2)
    save(tmp_path / "saved", old)
    (tmp_path / "saved" / "notes.txt").write_text("mine", encoding="utf-8")
    save(tmp_path / "saved", new)
    assert torch.equal(logits(load_checkpoint(tmp_path / "saved").transformer), logits(new))
    assert [path.name for path in tmp_path.iterdir()] == ["saved"]
    assert sorted(path.name for path in (tmp_path / "saved").iterdir()) == sorted(FILES)


def test_what_is_not_a_checkpoint_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "letter.txt").write_text("dear", encoding="utf-8")
    (tmp_path / "file").write_text("text", encoding="utf-8")
    (tmp_path / "link").symlink_to(write_tiny_checkpoint(tmp_path / "tiny"))
    for name in ("home", "file", "link"):
        with pytest.raises(CheckpointError, match="exists and is not a checkpoint"):
            save(tmp_path / name, tiny_transformer())
    assert (tmp_path / "home" / "letter.txt").read_text(encoding="utf-8") == "dear"
    assert (tmp_path / "link").is_symlink()


def test_a_parent_that_is_not_there_is_an_error_of_the_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="cannot be written"):
        save(tmp_path / "none" / "saved", tiny_transformer())


def test_a_link_that_leads_nowhere_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "gone")
    with pytest.raises(CheckpointError, match="exists and is not a checkpoint"):
        save(tmp_path / "link", tiny_transformer())
    assert {path.name for path in tmp_path.iterdir()} == {"link"}


def test_what_was_replaced_is_removed_from_a_place_that_nothing_comes_back_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("new", "saved"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name, encoding="utf-8")
    removed: list[str] = []

    def note(path: Path, **_: object) -> None:
        removed.append(path.name)
        assert (tmp_path / "saved" / "file").read_text(encoding="utf-8") == "new"
        assert not (tmp_path / "aside").exists()

    monkeypatch.setattr(shutil, "rmtree", note)
    publish(tmp_path / "new", tmp_path / "saved", retired=tmp_path / "aside")
    assert removed == ["new"]
