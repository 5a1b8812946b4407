import os
from dataclasses import replace
from pathlib import Path

import pytest

from model.errors import TrainingError
from model.train.config.data import CorpusConfig, Variant
from model.train.config.filters import FilterConfig
from model.train.data.corpora import (
    TEXT_FILE,
    CorpusFiles,
    check_same_text,
    text_ingredients,
    write_text_facts,
)
from model.train.data.vocabulary import Vocabularies
from support.tiny_runs import EXPERIMENT

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


def ingredients_of(path: Path, variant: Variant | None) -> dict[str, str]:
    """Of a corpus whose files are all the same one."""
    corpus = CorpusConfig(name="talk", licence="CC0-1.0", variant=variant)
    data = replace(EXPERIMENT.data, train=(corpus,))
    (direction,) = data.directions
    files = CorpusFiles(key="", direction=direction, corpus=corpus, source=path, target=path)
    return text_ingredients([files], data, Vocabularies(source_path=path, target_path=path))


def test_a_text_whose_forms_are_made_otherwise_now_is_not_what_a_run_began_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "text"
    path.write_text("one\n", encoding="utf-8")
    before, plain = ingredients_of(path, "upper"), ingredients_of(path, None)
    write_text_facts(tmp_path, before, [])
    monkeypatch.setattr("model.train.data.corpora.FORMS", 0)
    with pytest.raises(TrainingError, match=r"changed: corpus 1$"):
        check_same_text(tmp_path, ingredients_of(path, "upper"))
    assert ingredients_of(path, None) == plain


def test_a_text_whose_filter_of_scripts_is_another_now_is_not_what_a_run_began_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "text"
    path.write_text("one\n", encoding="utf-8")
    vocabularies = Vocabularies(source_path=path, target_path=path)
    filtered = replace(EXPERIMENT.data, filters=FilterConfig(min_script_share=0.1))
    before, plain = (
        text_ingredients([], data, vocabularies) for data in (filtered, EXPERIMENT.data)
    )
    monkeypatch.setattr("model.train.data.corpora.FILTERS", 0)
    assert text_ingredients([], EXPERIMENT.data, vocabularies) == plain
    write_text_facts(tmp_path, before, [])
    with pytest.raises(TrainingError, match=r"changed: data\.filters$"):
        check_same_text(tmp_path, text_ingredients([], filtered, vocabularies))


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
