"""The question, and everything before the first update that asks it."""

from pathlib import Path
from typing import Any

import pytest

from model.train import stopping
from model.train.data import corpora
from model.train.data.reading import read_text
from model.train.data.store import StoreWriter
from model.train.stopping import (
    LINES_AT_ONCE,
    ShouldStop,
    StoppedError,
    never,
    raise_if_stopped,
    until_stopped,
)
from support.tiny_runs import EXPERIMENT, StopAfter, write_text

NUM_LINES = 100  # of the training text


def test_whoever_is_asked_to_stop_leaves() -> None:
    raise_if_stopped(never)
    with pytest.raises(StoppedError):
        raise_if_stopped(lambda: True)


def test_lines_pass_unchanged_until_somebody_asks_to_stop() -> None:
    lines = range(2 * LINES_AT_ONCE + 1)
    assert list(until_stopped(lines, never)) == list(lines)
    for num_noes in range(3):
        stopped = until_stopped(lines, StopAfter(num_noes))
        passed = [next(stopped) for _ in range(num_noes * LINES_AT_ONCE)]
        assert passed == list(lines[: num_noes * LINES_AT_ONCE])
        with pytest.raises(StoppedError):
            next(stopped)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Of a run beside its text, of which ten lines are many."""
    monkeypatch.setattr(stopping, "LINES_AT_ONCE", 10)
    monkeypatch.setattr(corpora, "LINES_AT_ONCE", 10)
    write_text(tmp_path)
    (tmp_path / "run").mkdir()
    return tmp_path


def read(folder: Path, should_stop: ShouldStop = never, *, is_resumed: bool = False) -> None:
    read_text(
        EXPERIMENT,
        folder,
        folder / "run",
        is_vocabulary_there=is_resumed,
        is_resumed=is_resumed,
        should_stop=should_stop,
    )


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "run").rglob("*"))


def test_text_can_be_stopped_while_it_is_judged(folder: Path) -> None:
    path = folder / "en-zh" / "train" / "talk.en"
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join([*lines[:50], "", *lines[51:]]), encoding="utf-8")
    with pytest.raises(StoppedError):
        read(folder, StopAfter(4))  # before the line whose blank is an error
    assert names(folder) == []


def test_text_can_be_stopped_before_and_after_its_vocabulary_is_trained(folder: Path) -> None:
    with pytest.raises(StoppedError):
        read(folder, StopAfter(NUM_LINES // 10))  # all are judged, and SentencePiece asks for some
    assert names(folder) == []
    with pytest.raises(StoppedError):
        read(folder, lambda: "joint.spm" in names(folder))
    assert names(folder) == ["joint.spm"]


def test_text_can_be_stopped_between_the_lines_that_are_stored(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    added: list[object] = []
    add = StoreWriter.add

    def count(writer: StoreWriter, *row: Any) -> None:
        added.append(row)
        add(writer, *row)

    monkeypatch.setattr(StoreWriter, "add", count)
    with pytest.raises(StoppedError):
        read(folder, lambda: len(added) >= 20)
    assert len(added) == 20
    assert names(folder) == ["joint.spm", "text"]
    read(folder)
    assert len(added) == 20 + NUM_LINES


def test_a_run_that_is_resumed_can_be_stopped_while_it_compares_its_text(folder: Path) -> None:
    read(folder)
    path = folder / "en-zh" / "train" / "talk.en"
    path.write_text("another\n", encoding="utf-8")
    with pytest.raises(StoppedError):
        read(folder, StopAfter(1), is_resumed=True)  # between the two sides
