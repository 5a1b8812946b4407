"""Held-out text of another folder than the training text's: where it is read, what it is called."""

from dataclasses import replace
from pathlib import Path

import pytest

from model.errors import DataError
from model.train.config.data import DataConfig
from model.train.config.experiment import Experiment
from model.train.config.yaml_lines import KeyPlaces
from model.train.data.reading import RunText, choosing_names, read_text
from support.tiny_runs import EXPERIMENT, write_text

BACK = replace(
    EXPERIMENT.data.directions[0],
    source_language="zh",
    target_language="en",
    source_tag="zh-Hans",
    target_tag=None,
    dev=("zh-en/dev/held-out", "held-out"),
    report=("zh-en/test/held-out", "en-zh/test/held-out"),
)
FIELDS = ("folder", "source_language", "target_language", "source_tag", "target_tag", "train")
ALONE = DataConfig(
    dev=BACK.dev, report=BACK.report, **{name: getattr(BACK, name) for name in FIELDS}
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_text(tmp_path)
    for split, source, target in (("dev", "猫。", "A cat."), ("test", "狗。", "A dog.")):
        (tmp_path / "zh-en" / split).mkdir(parents=True)
        for language, line in (("zh", source), ("en", target)):
            path = tmp_path / "zh-en" / split / f"held-out.{language}"
            path.write_text(f"{line}\n", encoding="utf-8")
    (tmp_path / "run").mkdir()
    return tmp_path


def read(folder: Path, data: DataConfig, places: KeyPlaces | None = None) -> RunText:
    return read_text(
        wanting(data), folder, folder / "run", is_vocabulary_there=False, places=places
    )


def wanting(data: DataConfig) -> Experiment:
    return replace(EXPERIMENT, data=data)


def test_an_entry_of_three_parts_is_read_where_it_says(folder: Path) -> None:
    text = read(folder, ALONE)
    assert list(text.dev) == ["zh-en/dev/held-out", "held-out"]
    assert [dev.is_choosing for dev in text.dev.values()] == [True, False]
    assert text.dev["zh-en/dev/held-out"].text.target == ("A cat.",)
    assert len(text.dev["held-out"].text) == 5  # of the training text's folder
    assert list(text.report) == ["zh-en/dev/held-out", "zh-en/test/held-out", "test/held-out"]
    assert text.report["zh-en/test/held-out"].text.source == ("狗。",)
    assert len(text.report["test/held-out"].text) == 10
    assert choosing_names(wanting(ALONE)) == ("zh-en/dev/held-out",)


def test_directions_that_are_listed_go_before_the_folder(folder: Path) -> None:
    data = DataConfig(pairs=(EXPERIMENT.data.directions[0], BACK))
    text = read(folder, data)
    assert list(text.dev) == ["en-zh/held-out", "zh-en/zh-en/dev/held-out", "zh-en/held-out"]
    assert list(text.report) == [
        "en-zh/dev/held-out",
        "en-zh/test/held-out",
        "zh-en/zh-en/dev/held-out",
        "zh-en/zh-en/test/held-out",
        "zh-en/test/held-out",
    ]
    assert text.report["zh-en/zh-en/test/held-out"].text.source == ("狗。",)
    assert len(text.report["zh-en/test/held-out"].text) == 10
    assert choosing_names(wanting(data)) == ("en-zh/dev/held-out", "zh-en/zh-en/dev/held-out")


def test_a_file_that_is_not_in_the_folder_is_named_with_its_line(folder: Path) -> None:
    places = KeyPlaces(path=Path("tiny.yaml"), lines={"data.report[1]": 7, "data.dev[0]": 9})
    gone = replace(ALONE, report=("test/held-out", "zh-en/test/none"))
    message = r"^tiny\.yaml:7: data\.report\[1\]: .*/zh-en/test/none\.zh: no such file"
    with pytest.raises(DataError, match=message):
        read(folder, gone, places)
    long = replace(ALONE, dev=(f"zh-en/dev/{'a' * 300}",))
    message = r"^tiny\.yaml:9: data\.dev\[0\]: .*/zh-en/dev/a{300}\.zh: File name too long$"
    with pytest.raises(DataError, match=message):
        read(folder, long, places)
