"""A comparison in pieces: that it stops and goes on, and finds what the one in one go finds."""

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict
from itertools import repeat
from pathlib import Path

import pytest

pytest.importorskip("ctranslate2", reason="CTranslate2 is not installed")

from benchmarks.parity import pieces, subject
from benchmarks.parity.__main__ import measured
from benchmarks.parity.families import REDUCED
from benchmarks.parity.figures import Distance, Figures, merged, restored
from benchmarks.parity.pieces import MORE_TO_DO, Work, main, parse_arguments, spread
from benchmarks.parity.subject import MAX_TARGET, Sample
from benchmarks.parity.text import read_lines
from model.errors import ConfigError

NAME = "M2M100"
FAMILY = next(family for family in REDUCED if family.name == NAME)
LINES = read_lines(None, 5)


def work(folder: Path, has_time: Iterator[bool], *, export_tokens: int = 0) -> Work:
    return Work(
        folder,
        FAMILY,
        LINES,
        max_target=MAX_TARGET,
        has_time=lambda: next(has_time, False),
        export_tokens=export_tokens,
    )


@pytest.fixture
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two sentences each."""
    monkeypatch.setattr(subject, "BATCH", 2)


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.mark.usefixtures("_small_batches")
def test_what_was_stopped_anywhere_goes_on_and_is_what_one_go_finds(tmp_path: Path) -> None:
    folder, num_runs = tmp_path / "work", 1
    while not work(folder, iter([True] * 5)).go_on():
        num_runs += 1
        assert "asked.json" in names(folder)
    assert num_runs > 2
    assert names(folder) == {"asked.json", "source", "float32", "int8"} | {
        f"{number:04}.figures.json" for number in range(3)
    }
    found, whole = work(folder, repeat(True)).figures(), measured(FAMILY, LINES)
    assert found.is_parity
    counts = ("num_sentences", "num_equal", "num_ties", "num_differing", "greedy_equal")
    assert [getattr(found, name) for name in counts] == [getattr(whole, name) for name in counts]
    assert found.num_equal == 4 * len(LINES)
    assert found.logits.num > 0
    assert found.int8.mean == pytest.approx(whole.int8.mean, rel=0.5)


@pytest.mark.usefixtures("_small_batches")
def test_exports_and_their_int8_are_compared_on_a_part_when_all_is_done(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    assert work(folder, repeat(True)).go_on()
    assert work(folder, repeat(True)).figures().int8_verdict == "no reference"
    assert not work(folder, iter([True] * 2), export_tokens=1).go_on()
    exporting = work(folder, iter([True] * 3), export_tokens=1)
    assert exporting.go_on()
    assert "exports-1.figures.json" in names(folder)
    assert not any(name.startswith("exports-") and "figures" not in name for name in names(folder))
    found = exporting.figures()
    assert set(found.exported) == {"transformers", "CTranslate2"}
    assert found.is_parity
    assert found.int8_beside is not None
    assert found.reference_int8 is not None
    assert 0 < found.int8_beside.num == found.reference_int8.num < found.int8.num
    assert found.num_sentences == len(LINES)
    assert found.int8_verdict == "too few tokens"


def test_a_part_is_of_all_lengths_and_as_small_as_it_can_be() -> None:
    samples = [
        Sample(sources=[[1] * length], targets=[[5, 6, 2]], prefix=[0], pad_id=1)
        for length in range(1, 11)
    ]
    assert [len(sample.sources[0]) for sample in spread(samples, 7)] == [1, 4, 7]
    assert [len(sample.sources[0]) for sample in spread(samples, 3)] == [1]
    assert spread(samples, 1000) == samples


def test_figures_of_before_there_was_int8_of_both_are_read() -> None:
    told = asdict(Figures(family="a", reference="transformers", num_sentences=2))
    del told["int8_beside"]
    assert restored(told) == Figures(family="a", reference="transformers", num_sentences=2)


def test_a_folder_of_other_lines_is_refused(tmp_path: Path) -> None:
    assert not work(tmp_path / "work", iter([])).go_on()
    words = [NAME, str(tmp_path / "work"), "--sentences", "3", "--results", str(tmp_path)]
    with pytest.raises(ConfigError, match="was begun with another family, other lines"):
        main(words)


@pytest.mark.usefixtures("_small_batches")
@pytest.mark.parametrize(("num_looks", "num_sentences"), [(5, 4), (8, 5)])
def test_what_is_answered_so_far_can_be_judged(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    num_looks: int,
    num_sentences: int,
) -> None:
    monkeypatch.setattr(pieces, "read_lines", lambda _data, _count: LINES)
    folder = tmp_path / "work"
    words = [NAME, str(folder), "--so-far", "--results", str(tmp_path / "results")]
    words += ["--max-target", str(MAX_TARGET)]
    assert not work(folder, iter([True] * 2)).go_on()
    assert main(words) == MORE_TO_DO, "nothing is answered"
    assert not work(folder, iter([True] * num_looks)).go_on()
    assert main(words) == 0
    (path,) = (tmp_path / "results").iterdir()
    (row,) = json.loads(path.read_text(encoding="utf-8"))["rows"]
    assert row["num_sentences"] == num_sentences
    assert NAME in capsys.readouterr().out


@pytest.mark.usefixtures("_small_batches")
def test_a_reference_answers_all_before_ours_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: Callable[..., object] = pieces.opened
    answers: list[set[str]] = []

    def seen(*arguments: object) -> object:
        answers.append({name for name in names(tmp_path / "work") if name.endswith("answers")})
        return opened(*arguments)

    monkeypatch.setattr(pieces, "opened", seen)
    assert work(tmp_path / "work", repeat(True)).go_on()
    assert answers == [{f"{number:04}.answers" for number in range(3)}]


def test_figures_of_parts_are_those_of_the_whole() -> None:
    near, far = Distance(), Distance()
    near.add_lists([[1.0]], [[1.5]])
    far.add_lists([[2.0, 4.0]], [[2.0, 7.0]])
    parts = [
        Figures(family="a", reference="transformers", num_sentences=2, num_equal=8, logits=near),
        Figures(family="a", reference="transformers", num_sentences=1, num_ties=4, logits=far),
    ]
    told = [json.loads(json.dumps(asdict(part))) for part in parts]
    whole = merged([restored(said) for said in told])
    assert (whole.num_sentences, whole.num_equal, whole.num_ties) == (3, 8, 4)
    assert (whole.logits.largest, whole.logits.num, whole.logits.scale) == (3.0, 3, 7.0)
    assert whole.logits.mean == pytest.approx(3.5 / 3)
    assert whole.encoder is None


def test_the_last_piece_writes_the_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [NAME, str(tmp_path / "work"), "--sentences", "3", "--max-target", "6"]
    words += ["--results", str(tmp_path / "results")]
    assert main([*words, "--seconds", "0"]) == MORE_TO_DO
    assert not (tmp_path / "results").exists()
    assert main(words) == 0
    (path,) = (tmp_path / "results").iterdir()
    told = json.loads(path.read_text(encoding="utf-8"))
    (row,) = told["rows"]
    assert (row["family"], row["num_sentences"], row["is_parity"]) == (NAME, 3, True)
    assert told["max_target"] == 6
    assert str(tmp_path) not in told["command"]
    assert NAME in capsys.readouterr().out


@pytest.mark.parametrize("flags", [["--sentences", "0"], ["--max-target", "1"]])
def test_nothing_to_compare_is_refused(flags: list[str], tmp_path: Path) -> None:
    with pytest.raises(SystemExit):
        parse_arguments([NAME, str(tmp_path), *flags])
