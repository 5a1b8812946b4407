import pytest

from model.text.marks.finding import LOOSE_KINDS, find_marks
from model.text.marks.inline_codes import (
    ANY_CODE,
    CODES_PER_CLASS,
    CodeClass,
    class_of,
    code,
    is_loose,
    outer_edges,
    partners,
    without_codes,
)


@pytest.mark.parametrize("code_class", ["opening", "closing", "lone", "word"])
def test_the_first_and_the_last_code_of_a_class_are_of_it(code_class: CodeClass) -> None:
    for made in (code(code_class, 0), code(code_class, CODES_PER_CLASS - 1)):
        assert class_of(made) == code_class
        assert ANY_CODE.fullmatch(made)
        assert is_loose(made) == (code_class != "word")
        (mark,) = find_marks(f"a {made} b")
        assert (mark.start, mark.end) == (2, 3)
        assert (mark.kind in LOOSE_KINDS) == is_loose(made)


@pytest.mark.parametrize("index", [-1, CODES_PER_CLASS])
def test_there_are_no_other_codes(index: int) -> None:
    with pytest.raises(ValueError, match=f"none is {index}"):
        code("word", index)


def test_a_text_without_its_codes() -> None:
    assert without_codes(f"a{code('opening', 1)} b{code('word', 2)}") == "a b"


def test_a_mark_that_a_tag_divides_is_none() -> None:
    opening, closing = code("opening", 0), code("closing", 0)
    text = f"see {{{{na{opening}me}}}} and `co{closing}de` x"
    assert [text[mark.start : mark.end] for mark in find_marks(text)] == [opening, closing]


def test_a_word_may_be_part_of_a_mark() -> None:
    word = code("word", 0)
    text = f"see `a {word} b`"
    assert [text[mark.start : mark.end] for mark in find_marks(text)] == [f"`a {word} b`"]


CLASSES: dict[str, CodeClass] = {"<": "opening", ">": "closing", "|": "lone"}


def codes_of(drawn: str) -> list[str]:
    """`<`, `>` and `|` as codes; anything else as it is."""
    return [code(CLASSES[one], n) if one in CLASSES else one for n, one in enumerate(drawn)]


@pytest.mark.parametrize(
    ("drawn", "pairs"),
    [
        ("<a>", {0: 2, 2: 0}),
        ("<<>|>", {0: 4, 1: 2, 2: 1, 4: 0}),
        (">a<", {}),
        ("<<>", {1: 2, 2: 1}),
        ("", {}),
    ],
)
def test_a_closing_code_ends_the_last_open_one(drawn: str, pairs: dict[int, int]) -> None:
    assert partners(codes_of(drawn)) == pairs


@pytest.mark.parametrize(
    ("drawn", "outer"),
    [
        ("<a>", "a"),
        ("<<a>>", "a"),
        ("<a>b", "<a>b"),
        ("a<b>", "a<b>"),
        ("<<a>b>", "<a>b"),
        ("<a<b>>", "a<b>"),
        ("|<a>b", "<a>b"),
        ("a<b>|", "a<b>"),
        (">a<", "a"),
        ("<>a", "a"),
        ("<<a>b>c", "<<a>b>c"),
        ("<a><b>", "<a><b>"),
    ],
)
def test_elements_that_are_partly_inside_stay_whole(drawn: str, outer: str) -> None:
    num_before = len(drawn) - len(drawn.lstrip("<>|"))
    num_after = len(drawn) - len(drawn.rstrip("<>|"))
    pairs = partners(codes_of(drawn))
    first, num_last = outer_edges(pairs, num_before, num_after, len(drawn))
    assert drawn[first : len(drawn) - num_last] == outer
