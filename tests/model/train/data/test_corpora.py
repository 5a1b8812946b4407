import os
from pathlib import Path

import pytest

from model.errors import TrainingError
from model.train.data.corpora import TEXT_FILE, check_same_text, write_text_facts

INGREDIENTS = {"data.max_length": "100", "en-zh talk, source": "0123"}


def test_text_is_compared_with_what_a_run_began_with(tmp_path: Path) -> None:
    write_text_facts(tmp_path, INGREDIENTS, [])
    check_same_text(tmp_path, INGREDIENTS)
    with pytest.raises(TrainingError, match=r"changed: data\.max_length$"):
        check_same_text(tmp_path, {**INGREDIENTS, "data.max_length": "20"})


def test_text_that_cannot_be_compared_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match=r"text\.json: missing, so nobody can tell"):
        check_same_text(tmp_path, INGREDIENTS)
    (tmp_path / TEXT_FILE).write_text("{}", encoding="utf-8")
    with pytest.raises(TrainingError, match=r"text\.json: cannot be read"):
        check_same_text(tmp_path, INGREDIENTS)


def test_facts_that_cannot_be_written_end_a_run_with_one_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fill(path: Path, data: bytes) -> int:
        with path.open("wb") as output:
            output.write(data[:10])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", fill)
    with pytest.raises(TrainingError, match=r"text\.json: cannot be written: No space left"):
        write_text_facts(tmp_path, INGREDIENTS, [])
    assert not list(tmp_path.iterdir())


def test_facts_are_on_the_disk_before_they_have_their_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[tuple[str, bool]] = []

    def note(handle: int) -> None:
        path = Path(f"/proc/self/fd/{handle}").readlink()
        flushed.append((path.name, (tmp_path / TEXT_FILE).exists()))

    monkeypatch.setattr(os, "fsync", note)
    write_text_facts(tmp_path, INGREDIENTS, [])
    assert flushed == [("text.partial", False), (tmp_path.name, True)]
    write_text_facts(tmp_path, INGREDIENTS, [])  # as another worker does: they are there
    assert len(flushed) == 2


def test_facts_that_cannot_be_read_are_one_error_that_names_them(tmp_path: Path) -> None:
    (tmp_path / TEXT_FILE).mkdir()
    with pytest.raises(TrainingError, match=r"text\.json: cannot be used: Is a directory"):
        write_text_facts(tmp_path, INGREDIENTS, [])
