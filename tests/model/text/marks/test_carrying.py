from collections.abc import Iterator, Sequence

import pytest

from model.text.marks.carried import Carried
from model.text.marks.carrying import carry, restore
from model.text.marks.finding import Mark, find_marks
from model.text.marks.inline_codes import code

NAMES = ("X1", "X2", "X3")
NUMBERS = ("47", "58")


class Watched(list[Mark]):
    """Marks that count how many of them are read."""

    num_read = 0

    def __iter__(self) -> Iterator[Mark]:
        for mark in super().__iter__():
            self.num_read += 1
            yield mark


def carried_of(text: str) -> Carried:
    carried = carry(text, find_marks(text), NAMES, NUMBERS)
    assert carried is not None
    return carried


def placed(text: str, words: Sequence[str], alignment: Sequence[int]) -> str:
    """A translation of words, each a token with the space before it, that attended to such words.

    The source's words are its tokens too.
    """
    carried = carried_of(text)
    ends = [len(" ".join(words[: n + 1])) for n in range(len(words))]
    sources = [len(carried.shown[: loose.place].split()) for loose in carried.loose]
    restored = restore(carried, " ".join(words), ends=ends, sources=sources, alignment=alignment)
    assert not restored.is_lost
    return restored.text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Open {file}, {name}!", "Open X1, X2!"),
        ("{a}{b} and {c}/{d}", "X1 and X2"),
        ("You have %d of {count} files", "You have 47 of 58 files"),
        ("The %d files are done (100%%)", "The 47 files are done (58)"),
        ("X1 sees {name}", "X1 sees X2"),
        ("I <b>love</b> it 😀 now", "I love it now"),
        ("Wow😀wow", "Wow wow"),
        ("The first line<br>and the second", "The first line and the second"),
        ("猫<br>看", "猫看"),
        ("The ri\xadver {n} <b>s\xadees</b>", "The river 47 sees"),
    ],
)
def test_words_get_stand_ins_and_loose_marks_are_left_out(text: str, shown: str) -> None:
    assert carried_of(text).shown == shown


def test_a_letter_that_is_longer_in_small_moves_no_mark() -> None:
    text = "GO TO İSTANBUL {name} NOW"
    carried = carry(text, find_marks(text), NAMES, casing="upper", language="en")
    assert carried is not None
    assert carried.shown == "Go to istanbul X1 now"


def test_without_enough_stand_ins_nothing_is_carried() -> None:
    text = "{a} or {b} or {c} or {d}"
    assert carry(text, find_marks(text), NAMES) is None


def test_too_many_marks_are_given_up_without_reading_them_all() -> None:
    text = "a 😀 {b} " * 5000
    marks = Watched(find_marks(text))
    assert carry(text, marks, NAMES, NUMBERS) is None
    assert marks.num_read < 100


def test_every_mark_is_read_once_however_many_touch_each_other() -> None:
    text = " and ".join(["{a}%s" * 100] * 3)
    marks = Watched(find_marks(text))
    carried = carry(text, marks, NAMES, NUMBERS)
    assert carried is not None
    assert marks.num_read == len(marks) == 600
    assert carried.marks == ("{a}%s" * 100,) * 3


def test_what_stands_for_marks_is_carried_instead_of_them() -> None:
    text = "the cat/{x}, a dog and <b>{y}</b>"
    cat, dog = (text.index(word) for word in ("cat", "dog"))
    terms = [
        Mark(start=cat, end=cat + 3, kind="term", replacement="Katze"),
        Mark(start=dog, end=dog + 3, kind="term", replacement="Hund"),
    ]
    marks = sorted([*terms, *find_marks(text)], key=lambda mark: mark.start)
    carried = carry(text, marks, NAMES)
    assert carried is not None
    assert [one.mark for one in carried.stand_ins] == ["Katze/{x}", "Hund", "{y}"]
    assert carried.marks == ("Katze/{x}", "<b>", "{y}", "</b>")


def terms_of(text: str, **targets: str) -> list[Mark]:
    places = [(text.index(source), source) for source in targets]
    return [
        Mark(start=at, end=at + len(source), kind="term", replacement=targets[source])
        for at, source in sorted(places)
    ]


def test_terms_side_by_side_are_carried_as_words_of_their_own() -> None:
    carried = carry(
        "打开用户登录页。", terms_of("打开用户登录页。", 用户="Kunde", 登录="Log-in"), NAMES
    )
    assert carried is not None
    assert [one.mark for one in carried.stand_ins] == ["Kunde Log-in"]


def test_a_term_in_chinese_takes_the_spaces_of_its_stand_in_with_it() -> None:
    text = "open the cat and the dog"
    carried = carry(text, terms_of(text, cat="仪表板", dog="API"), NAMES)
    assert carried is not None
    restored = restore(carried, "打开 X1 和 X2 。", language="zh")
    assert restored.text == "打开仪表板和 API。"


def test_a_term_that_ends_in_a_stop_takes_the_stop_behind_its_stand_in_with_it() -> None:
    text = "open {x} at Apple."
    marks = [*find_marks(text), *terms_of(text, Apple="Apple Inc.")]
    carried = carry(text, marks, NAMES)
    assert carried is not None
    assert restore(carried, "X1 bei X2.", language="de").text == "{x} bei Apple Inc."


@pytest.mark.parametrize(
    ("found", "text", "is_lost"),
    [
        ("Öffne X1", "Öffne {file}", False),
        ("x1 ist offen", "{file} ist offen", False),
        ("Öffne X1 X1", "Öffne X1 X1 {file}", True),
        ("Öffne X10", "Öffne X10 {file}", True),
        ("", "{file}", True),
    ],
)
def test_a_stand_in_comes_back_if_it_is_there_just_once(
    found: str, text: str, is_lost: bool
) -> None:
    restored = restore(carried_of("Open {file}"), found)
    assert (restored.text, restored.is_lost) == (text, is_lost)


@pytest.mark.parametrize(
    ("text", "words", "alignment", "expected"),
    [
        ("a <b>big</b> house", ["ein", "großes", "Haus"], [0, 1, 2], "ein <b>großes</b> Haus"),
        ("a <b>big</b> house", ["Haus", "groß"], [2, 1], "Haus <b>groß</b>"),
        ("go **home** now", ["jetzt", "heim"], [2, 1], "jetzt **heim**"),
        ("a <i><b>big</b></i> house", ["ein", "großes"], [0, 1], "ein <i><b>großes</b></i>"),
        ("good 😀 but dear", ["gut", "aber", "teuer"], [0, 1, 2], "gut 😀 aber teuer"),
        ("good 😀, but dear", ["gut,", "aber", "teuer"], [0, 1, 2], "gut, 😀 aber teuer"),
        ("very dear 😀!", ["so", "teuer!"], [0, 0], "so teuer 😀!"),
    ],
)
def test_loose_marks_go_where_the_alignment_divides_the_words(
    text: str, words: list[str], alignment: list[int], expected: str
) -> None:
    assert placed(text, words, alignment) == expected


@pytest.mark.parametrize(
    ("text", "words", "alignment", "expected"),
    [
        ("it is 20°C today", ["heute", "20", "C"], [4, 2, 3], "heute 20°C"),
        ("Foo™Bar is good", ["Foo", "Bar", "taugt"], [0, 1, 3], "Foo™Bar taugt"),
        ("Foo™Bar is good", ["gut", "ist", "Foo"], [3, 2, 0], "™ gut ist Foo"),
        ("it is 2*3 now", ["es", "ist", "2", "3"], [0, 1, 2, 3], "es ist 2*3"),
        ("2°2°2 is so", ["2", "2", "2", "so"], [0, 1, 2, 4], "2°2°2 so"),
        ("one<br>two", ["eins", "zwei"], [0, 1], "eins <br>zwei"),
        ("one<br>two", ["one", "two"], [0, 1], "one<br>two"),
        ("the **big**house", ["das", "große", "Haus"], [0, 1, 2], "das **große** Haus"),
    ],
)
def test_a_sign_that_joins_two_words_joins_those_that_it_comes_between(
    text: str, words: list[str], alignment: list[int], expected: str
) -> None:
    assert placed(text.replace("°", "😀"), words, alignment).replace("😀", "°") == expected


def test_no_loose_mark_is_put_into_a_word_or_a_stand_in() -> None:
    carried = carried_of("ab <b>{x}</b> cd")
    text = "Xaaa X1 bbb"
    for cut in range(len(text) + 1):
        restored = restore(carried, text, ends=[cut, len(text)], sources=[1, 2], alignment=[0, 1])
        assert "{x}" in restored.text
        words = restored.text.replace("<b>", " ").replace("</b>", " ").split()
        assert words == ["Xaaa", "{x}", "bbb"]


def test_the_order_of_marks_without_a_name_is_their_meaning() -> None:
    swapped = "X2 und X1"
    assert restore(carried_of("%s and %s"), swapped).is_lost
    assert not restore(carried_of("{a} and {b}"), swapped).is_lost


def test_casing_is_put_back_around_the_marks() -> None:
    text = "OPEN {file} NOW"
    carried = carry(text, find_marks(text), NAMES, casing="upper", language="en")
    assert carried is not None
    assert carried.shown == "Open X1 now"
    assert restore(carried, "x1 jetzt öffnen", language="de").text == "{file} JETZT ÖFFNEN"


def test_inline_codes_belong_to_the_words_that_their_tags_do() -> None:
    opening, closing, lone = (code(one, 0) for one in ("opening", "closing", "lone"))
    text = f"a {opening}b{closing} c{lone}, d"
    carried = carry(text, find_marks(text), ["X1"])
    assert carried is not None
    assert carried.shown == "a b c, d"
    assert [one.is_opening for one in carried.loose] == [True, False, False]
