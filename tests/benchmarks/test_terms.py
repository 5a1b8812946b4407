from pathlib import Path

from benchmarks.corpora import dev_pairs
from benchmarks.terms import Figures, measure, table, termed_sentences, translations, words_of

ROOT = Path(__file__).parents[2]
PAIRS = [(f"a printer is n{n}", f"ein Drucker ist n{n}") for n in range(5)]
OTHERS = [(f"other things {n}", f"andere Dinge {n}") for n in range(300)]


def test_words_may_be_terms_if_they_are_long_enough() -> None:
    assert words_of("the printer is 12345 wide", "en") == {"printer"}
    assert words_of("猫看见a河", "zh") == {"猫看", "看见", "猫看见"}


def test_words_translate_each_other_if_they_are_in_the_same_sentences() -> None:
    known = translations([*PAIRS, *OTHERS], "en", "de")
    assert known == {"printer": ("Drucker", 1.0)}  # "other" and "things" are in too many


def test_sentences_have_their_terms_once_on_both_sides() -> None:
    twice = ("printer beside printer", "Drucker neben Drucker")
    found = termed_sentences([twice, *PAIRS, *OTHERS], "en", "de", limit=3)
    assert [(one.source, one.reference) for one in found] == PAIRS[:3]
    assert [(term.source, term.target) for term in found[0].glossary.entries] == [
        ("printer", "Drucker")
    ]


def test_the_bundled_network_is_asked_in_every_way(tmp_path: Path) -> None:
    folder = tmp_path / "en-de" / "dev"
    folder.mkdir(parents=True)
    for language, side in (("en", 0), ("de", 1)):
        lines = "".join(f"{pair[side]}\n" for pair in [*PAIRS, *OTHERS])
        (folder / f"small.{language}").write_text(lines, encoding="utf-8")
    assert len(list(dev_pairs(folder, "en", "de"))) == len(PAIRS) + len(OTHERS)
    figures = list(measure(ROOT / "checkpoints" / "en-de-small", tmp_path, 2))
    ways = ["left alone", "constrained", "constrained, beam 8", "carried", "copied", "all"]
    assert [one.way for one in figures] == ways
    assert {one.num_terms for one in figures} == {2}
    by_way = {one.way: one.hits for one in figures}
    assert by_way["copied"] == by_way["constrained"] == by_way["all"] == 1.0


def test_a_table_has_a_column_a_way() -> None:
    figures = [
        Figures(pair="en-de", way=way, num_terms=4, hits=hits, chrf=50.0, bleu=20.5)
        for way, hits in (("left alone", 0.25), ("all", 1.0))
    ]
    heads, _, row = table(figures).splitlines()
    assert heads == "| direction | left alone | all |"
    assert row == "| en-de | 25.0% 50.0 20.5 | 100.0% 50.0 20.5 |"
