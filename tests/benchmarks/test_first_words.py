"""First phrases and copied marks: what counts as right, and what is written down."""

import json
import sys
from pathlib import Path

import pytest

from benchmarks import first_words
from model.errors import DataError
from support.tiny_checkpoint import write_tiny_checkpoint


def test_case_and_punctuation_do_not_count() -> None:
    assert first_words.bare("  Auf  Wiedersehen! ") == first_words.bare("auf wiedersehen")
    assert first_words.bare("再见！") == "再见"
    assert first_words.bare("Guten Tag") != first_words.bare("Guten Abend")


@pytest.mark.parametrize("kind", first_words.MARKS)
@pytest.mark.parametrize("language", first_words.CARRIERS)
def test_every_sentence_carries_its_mark_once_and_is_the_same_each_time(
    language: str, kind: str
) -> None:
    found = first_words.marked_sentences(language, kind, num=300)
    assert found == first_words.marked_sentences(language, kind, num=300)
    assert all(first_words.is_kept(mark, text) for text, mark in found)
    assert len(set(found)) > 60


def test_a_mark_that_is_doubled_changed_or_gone_is_not_kept() -> None:
    assert first_words.is_kept("%s", "%s kann nicht geöffnet werden.")
    for text in ("%S kann nicht geöffnet werden.", "% s", "", "%s %s"):
        assert not first_words.is_kept("%s", text)


def test_directions_with_phrases_are_scored_and_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_tiny_checkpoint(tmp_path / "one")
    phrases = tmp_path / "phrases.tsv"
    phrases.write_text("en\tde\tzh\nHi\tHallo|Hi\t你好|嗨\nThanks\tDanke\t谢谢\n", encoding="utf-8")
    flags = ["--checkpoints", tmp_path / "one", "--results", tmp_path / "results"]
    flags += ["--num-marked", "3", "--page", tmp_path / "page.md"]
    monkeypatch.setattr(sys, "argv", ["first_words", str(phrases), *map(str, flags)])
    first_words.main()
    (file,) = (tmp_path / "results").iterdir()
    rows = json.loads(file.read_text(encoding="utf-8"))["rows"]
    kinds = [first_words.PHRASES, *first_words.MARKS]
    directions = ("en-zh", "zh-en")
    assert [(row["direction"], row["kind"]) for row in rows] == [
        (direction, kind) for direction in directions for kind in kinds
    ]
    assert [row["num"] for row in rows] == [2, 3, 3, 3, 3] * 2
    assert [answer["source"] for answer in rows[5]["answers"]] == ["你好", "谢谢"]
    assert "| en-zh |" in capsys.readouterr().out
    page = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert f"({'../benchmarks/results/' + file.name})" in page
    assert page.count("| Hi | ") == page.count("| Thanks | ") == 1


def test_a_table_with_a_hole_is_refused(tmp_path: Path) -> None:
    (tmp_path / "phrases.tsv").write_text("en\tde\nHi\n", encoding="utf-8")
    with pytest.raises(DataError, match="a column a language"):
        first_words.read_phrases(tmp_path / "phrases.tsv")
    with pytest.raises(DataError, match=r"none\.tsv"):
        first_words.read_phrases(tmp_path / "none.tsv")
