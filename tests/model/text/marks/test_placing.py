from collections.abc import Sequence

import pytest

from model.text.marks.inline_codes import CodeClass, code
from model.text.marks.placing import placed_marks

CLASSES: dict[str, CodeClass] = {"<": "opening", ">": "closing", "|": "lone"}


def placed(source: str, alignment: Sequence[int]) -> str:
    """The marks of a source among target tokens, each written as the source token it attends to.

    A source is letters, which are its tokens, and marks: `<`, `>`, and `|` for one that stays.
    """
    marks = [code(CLASSES[one], n) for n, one in enumerate(c for c in source if c in CLASSES)]
    kinds = [one for one in source if one in CLASSES]
    sources = [
        sum(other not in CLASSES for other in source[:place])
        for place, one in enumerate(source)
        if one in CLASSES
    ]
    tokens = [one for one in source if one not in CLASSES]
    written, done = "", 0
    for one in placed_marks(marks, sources, alignment):
        written += "".join(tokens[token] for token in alignment[done : one.num_tokens])
        written += kinds[one.index]
        done = one.num_tokens
    return written + "".join(tokens[token] for token in alignment[done:])


@pytest.mark.parametrize(
    ("source", "alignment", "expected"),
    [
        ("a<b>c", [0, 1, 2], "a<b>c"),
        ("a<b>c", [2, 1, 0], "c<b>a"),
        ("<a>bc", [1, 0, 2], "b<a>c"),
        ("ab<c>", [2, 0, 1], "<c>ab"),
        ("ab<c>", [0, 2, 1], "a<c>b"),
        ("a<b>c<d>e", [0, 1, 2, 3, 4], "a<b>c<d>e"),
        ("a<b>c<d>e", [0, 3, 2, 1, 4], "a<d>c<b>e"),
        ("<a><b>", [1, 0], "<b><a>"),
        ("<a<b>c<d>e>f", [5, 4, 3, 2, 1, 0], "f<e<d>c<b>a>"),
        ("<a>b<c>|d", [2, 1, 0, 3], "<c>b<a>|d"),
        ("a>b<c", [0, 1, 2], "a>b<c"),
        ("a>b<c", [2, 1, 0], "c>b<a"),
    ],
)
def test_marks_stand_where_their_words_went_and_elements_change_places(
    source: str, alignment: list[int], expected: str
) -> None:
    assert placed(source, alignment) == expected


def test_elements_keep_their_order_unless_words_gain_by_it() -> None:
    assert placed("a<b>c<d>e", [0, 2, 4]) == "a<>c<>e"
    assert placed("a<b>c<d>e", []) == "<><>"


def test_no_element_goes_past_a_mark_that_stays() -> None:
    found = placed("<a>|<b>", [1, 0])
    assert found.replace("a", "").replace("b", "") == "<>|<>"


def test_without_marks_nothing_is_placed() -> None:
    assert placed_marks([], [], [0, 1, 2]) == []
