"""The text for back-translation: what is taken, what is left out, and how it is marked."""

import gzip
import sys
from collections.abc import Sequence
from pathlib import Path

import everyday
import pytest

from model.errors import DataError
from model.train.data.parallel import read_lines

TEXTS = {
    "en-de/train/tatoeba": ["I am tired.", "Where is he?", "Held out, one", "Is it far?"],
    "en-de/train/tatoeba-more": ["WHERE IS HE", "…", "Held out, two!"],
    "en-fr/train/tatoeba": ["Is it far?", "Come in!"],
    "en-es/train/tatoeba": ["Bought. And sold."],
    "en-zh/train/tatoeba": ["i am tired"],
    "en-zh/train/manual": ["Come in!"],
    "en-zh/dev/everyday": ["held out: one."],
    "zh-en/test/newstest2019": ["Held out, two."],
}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    for name, lines in TEXTS.items():
        path = tmp_path / "data" / f"{name}.en"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return tmp_path / "data"


def test_what_the_pair_has_or_holds_out_is_not_taken(data: Path) -> None:
    found = everyday.new_sentences(data)
    assert found == ["Where is he?", "Is it far?", "Come in!", "Bought. And sold."]


def test_a_machines_sentences_are_the_source_and_begin_with_a_tag(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands: list[Sequence[str]] = []

    def run_all(given: Sequence[Sequence[str]]) -> None:
        commands.extend(given)
        (words,) = given
        lines = read_lines(Path(words[1]))
        text = "".join(f"{number}\n" for number in range(len(lines)))
        Path(words[words.index("--output") + 1]).write_bytes(gzip.compress(text.encode()))

    monkeypatch.chdir(data.parent)
    monkeypatch.setattr(everyday, "run_all", run_all)
    monkeypatch.setattr(sys, "argv", ["everyday.py", str(data)])
    everyday.main()
    assert [words[0] for words in commands] == ["translate"]
    chinese, english = (read_lines(everyday.FOLDER / f"zh.{side}.gz") for side in ("zh", "en"))
    assert chinese == ["* 0", "* 1", "* 2", "* 3"]
    assert english == everyday.new_sentences(data)


def test_a_folder_without_the_text_is_refused_before_anything_is_written(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    made = everyday.FOLDER / "zh.en.gz"
    made.parent.mkdir(parents=True)
    made.write_bytes(b"hours of work")
    for path in (data / "en-fr" / "train").iterdir():
        path.unlink()
    for folder in (data, tmp_path / "none"):
        monkeypatch.setattr(sys, "argv", ["everyday.py", str(folder)])
        with pytest.raises(DataError, match=r"train/tatoeba\.en"):
            everyday.main()
    assert made.read_bytes() == b"hours of work"
