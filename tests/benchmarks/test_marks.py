import json
from dataclasses import asdict

from benchmarks.marks import (
    KINDS,
    Figures,
    Outcome,
    figures_of,
    is_kept,
    marked_sentences,
    table,
)

PAIRS = [
    (f"Yesterday Anna saw {n} cats.", f"Gestern sah Anna {n} Katzen.", "cats") for n in range(10)
]


def test_a_mark_stands_in_both_sides_and_every_kind_has_its_turn() -> None:
    marked = list(marked_sentences(PAIRS, english=0, limit=9))
    assert [one.kind for one in marked] == [*KINDS, *list(KINDS)[:2]]
    assert all(is_kept(one.source, one.reference) for one in marked)
    assert not any(is_kept(one.source, "Gestern sah sie Katzen.") for one in marked)


def test_what_has_marks_already_or_no_common_word_is_left_out() -> None:
    pairs = [
        ("Anna has a.txt", "Anna hat a.txt", "x"),
        ("Anna sleeps", "Sie schläft", "x"),
        PAIRS[0],
    ]
    assert len(list(marked_sentences(pairs, english=0, limit=9))) == 1


def test_figures_can_be_written_down() -> None:
    marked = list(marked_sentences(PAIRS, english=0, limit=9))
    figures = list(
        figures_of("en-de", "all", marked, lambda texts: [Outcome(one) for one in texts])
    )
    written = json.loads(json.dumps([asdict(one) for one in figures]))
    assert [one["corpora"] for one in written][:3] == [{"cats": 2}, {"cats": 2}, {"cats": 1}]
    assert all(one["kept"] == 1.0 for one in written)


def test_the_table_has_a_row_a_kind_and_a_column_a_way() -> None:
    figures = [
        Figures(
            pair="en-de",
            kind="tags",
            way=way,
            num_sentences=4,
            corpora={"everyday": 4},
            kept=kept,
            kept_or_flagged=1.0,
            chrf=40.0,
        )
        for way, kept in (("split", 1.0), ("all", 0.75))
    ]
    assert table(figures).splitlines() == [
        "| direction, marks | split | all |",
        "|---|---:|---:|",
        "| en-de, tags | 100.0% 100.0% 40.0 | 75.0% 100.0% 40.0 |",
    ]
