"""Text that cannot be used is refused, before anything is made of it and by its line."""

import errno
from dataclasses import replace
from pathlib import Path

import pytest

from model.errors import DataError, UnwritableError
from model.train.config.data import CorpusConfig
from model.train.config.experiment import Experiment
from model.train.config.vocabulary import VocabularyConfig
from model.train.config.yaml_lines import KeyPlaces
from support.parallel_folder import (
    BOTH,
    DATA,
    EXPERIMENT,
    PAIRS,
    TALK,
    read,
    write,
    written_folder,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return written_folder(tmp_path)


def test_text_that_cannot_be_used_is_named_before_anything_is_made(folder: Path) -> None:
    gone = CorpusConfig(name="talk", licence="CC0-1.0", target_file="nowhere.zh")
    endless = replace(gone, target_file="a" * 300)
    path = folder / "en-zh" / "train" / "talk.zh"
    cases: list[tuple[Experiment, str | None, str]] = [
        (
            replace(EXPERIMENT, data=replace(DATA, train=(TALK, gone))),
            None,
            r"^data\.train\[1\]: nowhere.zh: no such file",
        ),
        (
            replace(EXPERIMENT, data=replace(DATA, train=(TALK, endless))),
            None,
            r"^data\.train\[1\]: a{300}: File name too long$",
        ),
        (
            replace(EXPERIMENT, data=replace(DATA, dev=("none",))),
            None,
            r"^data\.dev\[0\]: .*dev/none\.en: no such file, nor with \.gz",
        ),
        (
            EXPERIMENT,
            "一\n二\n",
            r"^data\.train\[0\]: .*talk\.zh:3: no such line; .*talk\.en has 70 lines but .* has 2",
        ),
        (
            EXPERIMENT,
            "一\n\n" * 35,
            r"^data\.train\[0\]: .*talk\.zh:2: the line is blank; data\.filters\.drop_blank leaves",
        ),
        (EXPERIMENT, "", r"^data\.train\[0\]: .*talk\.zh:1: no such line"),
        (BOTH, "一\n", r"^data\.pairs\[0\]\.train\[0\]: .*talk\.zh:2: no such line"),
        (
            replace(EXPERIMENT, vocabulary=VocabularyConfig(size=8000)),
            None,
            r"joint\.spm: .* vocabulary.size is 8000, more than the text supports; .* at most",
        ),
        (
            replace(EXPERIMENT, vocabulary=VocabularyConfig(size=270)),
            None,
            r"joint\.spm: .* vocabulary.size is 270, but the characters alone are",
        ),
    ]
    good = path.read_text(encoding="utf-8")
    for experiment, content, message in cases:
        path.write_text(good if content is None else content, encoding="utf-8")
        with pytest.raises(DataError, match=message):
            read(folder, experiment)
        assert not list((folder / "run").iterdir())


def test_text_that_cannot_be_used_is_named_with_the_line_that_asks_for_it(folder: Path) -> None:
    places = KeyPlaces(
        path=Path("tiny.yaml"),
        lines={"data.train": 3, "data.train[1]": 5, "data.report": 7, "vocabulary.size": 9},
    )
    none = CorpusConfig(name="none", licence="CC0-1.0")
    for experiment, message in (
        (
            replace(EXPERIMENT, data=replace(DATA, train=(TALK, none))),
            r"^tiny\.yaml:5: data\.train\[1\]: .*train/none\.en: no such file",
        ),
        (
            replace(EXPERIMENT, data=replace(DATA, report=("test/none",))),
            r"^tiny\.yaml:7: data\.report\[0\]: .*test/none\.en: no such file",
        ),
        (
            replace(EXPERIMENT, vocabulary=VocabularyConfig(size=8000)),
            r"^tiny\.yaml:9: .*joint\.spm: .*vocabulary\.size is 8000",
        ),
    ):
        with pytest.raises(DataError, match=message):
            read(folder, experiment, places=places)


def test_a_fault_inside_training_text_is_named_with_the_line_that_asks_for_it(
    folder: Path,
) -> None:
    """Whether the vocabulary is made of the text, or is there and only tokens are stored."""
    places = KeyPlaces(path=Path("tiny.yaml"), lines={"data.train": 3, "data.train[1]": 5})
    write(folder, "more", PAIRS[:9])
    path = folder / "en-zh" / "train" / "more.zh"
    path.write_text("一\n二\n", encoding="utf-8")
    more = CorpusConfig(name="more", licence="CC0-1.0")
    experiment = replace(EXPERIMENT, data=replace(DATA, train=(TALK, more)))
    message = r"^tiny\.yaml:5: data\.train\[1\]: .*more\.zh:3: no such line"
    with pytest.raises(DataError, match=message):
        read(folder, experiment, places=places)
    read(folder)
    with pytest.raises(DataError, match=message):
        read(folder, experiment, is_vocabulary_there=True, places=places)


def test_dev_text_that_is_all_too_long_is_refused_before_text_is_stored(folder: Path) -> None:
    long = [(" ".join(pair[0] for pair in PAIRS[:20]), PAIRS[0][1])] * 3
    write(folder, "long", long, "dev")
    experiment = replace(EXPERIMENT, data=replace(DATA, dev=("long",), max_length=40))
    message = r"^data\.dev\[0\]: dev/long: nothing is left .* 3 pairs .* data\.max_length \(40\)"
    with pytest.raises(DataError, match=message):
        read(folder, experiment)
    assert not (folder / "run" / "text").exists()
    write(folder, "long", [*long, *PAIRS[70:72]], "dev")
    dev = read(folder, experiment).dev["long"]
    assert (dev.num_left_out, len(dev.pairs), len(dev.text)) == (3, 2, 5)


def test_a_vocabulary_that_cannot_be_written_is_named_and_leaves_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(path: Path, data: bytes) -> int:
        with path.open("wb") as output:
            output.write(data[:10])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", fail)
    with pytest.raises(UnwritableError, match=r"^\S+joint\.spm: cannot be written: No space left"):
        read(folder)
    assert not list((folder / "run").iterdir())


def test_two_empty_files_are_named(folder: Path) -> None:
    write(folder, "talk", [])
    with pytest.raises(DataError, match=r"^data\.train\[0\]: .*talk\.en: the file is empty"):
        read(folder)
