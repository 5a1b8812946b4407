import pytest

from benchmarks.markup import (
    Figures,
    Tagged,
    elements_of,
    figures_of,
    is_right,
    lexicon,
    table,
    tagged_sentences,
    words_of,
)

PAIRS = [(f"the dog {n} runs", f"der Hund {n} rennt") for n in range(5)]
OTHERS = [(f"some {n} other", f"anderes {n} noch") for n in range(300)]


def test_words_translate_each_other_if_they_stand_in_the_same_sentences() -> None:
    known = lexicon([*PAIRS, *OTHERS], "en", "de")
    assert known["dog"] in {"Hund", "der", "rennt"}
    assert "some" not in known
    assert words_of("猫看见a河", "zh") == ["猫看", "看见"]


def test_words_that_are_known_are_put_into_elements() -> None:
    pairs = [("big dog & cat", "großer Hund"), ("none", "keins"), ("dog", "Hund")]
    known = {"dog": "Hund", "cat": "Katze"}
    first, second = tagged_sentences(pairs, known, "en", limit=5)
    assert "&amp;" in first.source
    assert elements_of(first.source) is not None
    assert len(elements_of(first.source) or ()) == len(first.words)
    assert (second.words, second.reference) == (("Hund",), "Hund")


@pytest.mark.parametrize(
    ("text", "elements"),
    [
        ("a <b>c &amp; <i>d</i></b>", [("<i>", "d"), ("<b>", "c & d")]),
        ("<b>a</i>", None),
        ("<b>a", None),
        ("a</b>", None),
        ("<>a", None),
    ],
)
def test_elements_are_those_that_nest(text: str, elements: list[tuple[str, str]] | None) -> None:
    assert elements_of(text) == elements


def test_a_tag_is_right_around_its_word_and_little_else() -> None:
    assert is_right("Hund", "Hunde")
    assert not is_right("Hund", "Katze")
    assert not is_right("Hund", "der Hund und die Katze und das Haus")


def test_figures_count_tags_whose_word_was_written() -> None:
    tagged = [
        Tagged(source="<b>dog</b> <i>cat</i>", reference="Hund Katze", words=("Hund", "Katze")),
        Tagged(source="<b>dog</b>", reference="Hund", words=("Hund",)),
    ]
    found = figures_of(tagged, ["<b>Hund</b> <i>Maus</i>", "<b>Hund"], "en-de", "split")
    assert (found.num_tags, found.right, found.whole) == (2, 0.5, 0.5)
    figures = Figures(pair="en-de", way="split", num_tags=2, right=0.5, whole=1.0, chrf=40.0)
    assert table([figures]).splitlines()[2] == "| en-de, split | 2 | 50.0% | 100.0% | 40.0 |"
