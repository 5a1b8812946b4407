"""Inline codes inside of words: the network reads the word, and they come back in it or around."""

import pytest

from model.text.marks.carried import Carried
from model.text.marks.carrying import carry, restore
from model.text.marks.finding import find_marks, find_numbers
from model.text.marks.inline_codes import CODES_APART, code
from model.text.marks.inside import places_beside_words

NOTATION = {
    "[": code("opening", 0),
    "]": code("closing", 0),
    "{": code("opening", 1),
    "}": code("closing", 1),
    "|": code("lone", 0),
    "#": code("lone", CODES_APART),
}
TO_CODES = str.maketrans(NOTATION)
TO_NOTATION = str.maketrans({made: sign for sign, made in NOTATION.items()})


def carried_of(text: str) -> Carried:
    text = text.translate(TO_CODES)
    carried = carry(text, find_marks(text), ("X1", "X2"), ("47", "58"))
    assert carried is not None
    return carried


def placed(text: str, words: str, alignment: list[int]) -> tuple[str, bool]:
    """A translation whose words are tokens that attended to such words, and whether it is lost."""
    carried = carried_of(text)
    ends = [len(" ".join(words.split()[: n + 1])) for n in range(len(words.split()))]
    sources = [len(carried.shown[:place].split()) for place in places_beside_words(carried)]
    restored = restore(carried, words, ends=ends, sources=sources, alignment=alignment)
    return restored.text.translate(TO_NOTATION), restored.is_lost


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("the [house]s are red", "the houses are red"),
        ("the 2[nd] of May", "the 2nd of May"),
        ("the CO[2] rose", "the CO2 rose"),
        ("H[2]SO{4} is H|2|O", "H2SO4 is H2O"),
        ("in|ter|national", "international"),
        ("hel[]lo", "hello"),
        ("the ri\xad|ver", "the river"),
        ("un[{believ}]able", "unbelievable"),
        ("a picture#here", "a picture here"),
        ("a picture|#[here]", "a picture here"),
        ("[one]{two}", "one two"),
        ("[one]|{two}", "one two"),
        ("[New]Feature", "New Feature"),
        ("Java|Script", "JavaScript"),
        ("wow|😀|wow", "wow wow"),
        ("[see] this", "see this"),
    ],
)
def test_a_word_with_codes_in_it_is_one_but_where_something_is_seen_in_it(
    text: str, shown: str
) -> None:
    assert carried_of(text).shown == shown


def test_stand_ins_are_no_part_of_a_word() -> None:
    text = "H[2]O and 2[nd]".translate(TO_CODES)
    marks = sorted([*find_marks(text), *find_numbers(text)], key=lambda mark: mark.start)
    carried = carry(text, marks, ("X1", "X2"), ("47", "58"))
    assert carried is not None
    assert carried.shown == "H 47 O and 58 nd"


@pytest.mark.parametrize(
    ("text", "words", "alignment", "written"),
    [
        ("the [house]s are red", "die Häuser sind rot", [0, 1, 2, 3], "die [Häuser] sind rot"),
        ("the [house]s are red", "rot sind Häuser", [3, 2, 1], "rot sind [Häuser]"),
        ("the tree[s] are red", "die Bäume sind rot", [0, 1, 2, 3], "die [Bäume] sind rot"),
        ("an inter|national one", "ein internationaler", [0, 1], "ein internationaler|"),
        ("the CO[2] rose", "CO2 stieg", [1, 2], "CO[2] stieg"),
        ("the CO[2] rose", "gestiegen ist CO2", [2, 2, 1], "gestiegen ist CO[2]"),
        ("the H[2]SO{4} rose", "H2SO4 stieg", [1, 2], "H[2]SO{4} stieg"),
        ("CO[2] is no CO2", "CO2 ist kein CO2", [0, 1, 2, 3], "CO[2] ist kein CO2"),
        ("no CO2 is CO[2]", "kein CO2 ist CO2", [0, 1, 2, 3], "kein CO2 ist CO[2]"),
        ("the CO[2] rose", "das CO20 stieg", [0, 1, 2], "das [CO20] stieg"),
    ],
)
def test_codes_in_a_word_stand_in_it_where_it_was_copied_and_else_around_it(
    text: str, words: str, alignment: list[int], written: str
) -> None:
    assert placed(text, words, alignment) == (written, False)


def test_places_beside_words_are_in_order() -> None:
    carried = carried_of("t|re[e]s and [one {t}wo]")
    places = places_beside_words(carried)
    assert places == sorted(places)
