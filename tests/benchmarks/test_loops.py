"""What helps sentences that loop: which are taken, and the table of it."""

from pathlib import Path

from benchmarks.loops import Figures, looping, measure, table
from model.loading import load_for_decoding
from model.offline.translator import Translator

ROOT = Path(__file__).parents[2]


def test_sentences_with_marks_or_several_of_them_are_left_out() -> None:
    translator = Translator(load_for_decoding(ROOT / "checkpoints" / "en-de-small"))
    pair = translator.manifest.pairs[0]
    lines = [("A cat.", "x"), ("See {name}.", "x"), ("One. Two.", "x"), ("12", "12")]
    num, looped = looping(translator, lines, pair)
    assert num == 1
    assert all(one.segment.text == "A cat." for one in looped)


def test_every_way_has_figures_of_every_direction(tmp_path: Path) -> None:
    folder = tmp_path / "en-de" / "dev"
    folder.mkdir(parents=True)
    for language in ("en", "de"):
        (folder / f"small.{language}").write_text("The cat sees the river.\n", encoding="utf-8")
    figures = list(measure(ROOT / "checkpoints" / "en-de-small", tmp_path, 2))
    ways = ["as it is", *(f"no {size} twice" for size in (2, 3, 4, 6)), "cut", "all"]
    assert [one.way for one in figures] == ways * 2
    assert {(one.num_sentences, one.num_looped) for one in figures} == {(1, 0)}


def test_the_table_has_a_row_a_direction_and_a_column_a_way() -> None:
    figures = [
        Figures(pair="en-de", way=way, num_sentences=90, num_looped=3, num_left=left, chrf=chrf)
        for way, left, chrf in (("cut", 1, 36.25), ("all", 0, 37.0))
    ]
    assert table(figures).splitlines() == [
        "| direction, loops | cut | all |",
        "|---|---:|---:|",
        "| en-de, 3 of 90 | 1, 36.2 | 0, 37.0 |",
    ]
