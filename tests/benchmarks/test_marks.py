import json
from dataclasses import asdict

import pytest

from benchmarks.marks import (
    KINDS,
    Figures,
    Marked,
    Outcome,
    figures_of,
    is_kept,
    marked_sentences,
    shared_words,
    table,
)

PAIRS = [
    (f"Yesterday Anna saw {n} cats.", f"Gestern sah Anna {n} Katzen.", "cats") for n in range(10)
]


def test_a_mark_stands_in_both_sides_and_every_kind_has_its_turn() -> None:
    marked = marked_sentences(PAIRS, english=0, limit=9)
    assert not any(one.is_beside for one in marked)
    assert [one.kind for one in marked] == [*KINDS, *list(KINDS)[:2]]
    assert all(is_kept(one, one.reference) for one in marked)
    assert not any(is_kept(one, "Gestern sah sie Katzen.") for one in marked)


@pytest.mark.parametrize(
    ("kind", "mark", "target", "kept"),
    [
        ("number", "3,500 kg", "Es sind 3.500 kg", True),
        ("number", "3,500 kg", "它有3500公斤", True),
        ("number", "3,500 kg", "Es sind 3.500 Mäuse", False),
        ("number", "1,000", "Es sind 1.0000", False),
        ("number", "$2,000.00", "Es sind 2.000,0 Dollar", False),
        ("number", "10:00", "Es ist 10:000", False),
        ("number", "17:45", "它是17点45分", True),
        ("placeholder", "%s", "Es ist %s", True),
        ("placeholder", "{0}", "Es ist {0} {0}", False),
        ("tags around", "<b>{}</b>", "<b>Es</b> ist", True),
        ("tags around", "**{}**", "**Es* ist", False),
        ("emoji behind", "{} ❤️", "Es ist ❤️", True),
    ],
)
def test_the_mark_that_was_put_in_is_looked_for(
    kind: str, mark: str, target: str, kept: bool
) -> None:
    source = f"It is {mark.replace('{}', 'it')}"
    marked = Marked(corpus="c", kind=kind, mark=mark, source=source, reference="", is_beside=False)
    assert is_kept(marked, target) is kept


def test_what_has_marks_already_is_left_out() -> None:
    pairs = [("Anna has a.txt", "Anna hat a.txt", "x"), PAIRS[0]]
    assert len(marked_sentences(pairs, english=0, limit=9)) == 1


def test_sentences_without_a_common_word_have_their_marks_beside_them_and_come_last() -> None:
    pairs = [(f"She sleeps {word}", f"Sie schläft {word[0]}", "x") for word in "abcdefg"]
    marked = marked_sentences([*pairs, PAIRS[0]], english=0, limit=8)
    assert [one.is_beside for one in marked] == [False, *[True] * 7]
    assert all(is_kept(one, one.reference) for one in marked)
    assert all("sleeps" in one.source and "schläft" in one.reference for one in marked[1:])


def test_words_of_latin_letters_in_chinese_are_shared_and_those_of_german_are_not() -> None:
    assert shared_words("Run kubectl with 16 pods", "用16个Pod运行kubectl") == ["16", "kubectl"]
    assert shared_words("The man was in Rome", "Der man was Rome") == ["Rome"]
    assert shared_words("a row", "row_number 行") == []


def test_figures_can_be_written_down() -> None:
    marked = marked_sentences(PAIRS, english=0, limit=9)
    figures = list(
        figures_of("en-de", "all", marked, lambda texts: [Outcome(one) for one in texts])
    )
    written = json.loads(json.dumps([asdict(one) for one in figures]))
    assert [(one["kind"], one["corpus"], one["num_sentences"]) for one in written] == [
        *((kind, "any", 2 if kind in list(KINDS)[:2] else 1) for kind in KINDS),
        ("any", "cats", 9),
    ]
    assert all(one["kept"] == 1.0 for one in written)


def test_the_table_has_a_row_a_kind_and_a_column_a_way() -> None:
    figures = [
        Figures(
            pair="en-de",
            kind="tags",
            corpus="any",
            way=way,
            num_sentences=4,
            num_beside=0,
            kept=kept,
            kept_or_flagged=1.0,
            chrf=40.0,
        )
        for way, kept in (("split", 1.0), ("all", 0.75))
    ]
    assert table(figures).splitlines() == [
        "| direction, marks or text, sentences | split | all |",
        "|---|---:|---:|",
        "| en-de, tags, 4 | 100.0% 100.0% 40.0 | 75.0% 100.0% 40.0 |",
    ]
