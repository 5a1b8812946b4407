import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from model.text.drafts.checks import (
    ALL_CHECKS,
    Compared,
    Quality,
    differs_in_marks,
    differs_in_numbers,
    failed_checks,
    has_loop,
    is_absurdly_long_or_short,
    is_copy,
)
from model.text.drafts.segments import RETRY_NGRAM
from model.text.languages.tags import LanguagePair
from model.text.marks.finding import find_marks

EN_DE = LanguagePair(source="en", target="de")


@pytest.mark.parametrize(
    ("source", "target", "differs"),
    [
        ("1,000.50 euros", "1.000,50 Euro", False),
        ("at 10:30", "上午10点30分", False),
        ("on 05 May", "am 5. Mai", False),
        ("１２ files", "12 Dateien", False),
        ("12 of 34", "34 von 12", False),
        ("3 cats", "drei Katzen", True),
        ("three cats", "5 Katzen", True),
        ("1,234,567", "1.234.765", True),
        ("5 and 5", "5", True),
        ("no number", "keine Zahl", False),
        ("order A-99812-XZ", "Bestellung A-99812-XZ", False),
        ("order A-99812-XZ", "Bestellung A-99812-XY", True),
        ("from XK7Q2M to XK7Q2M", "von XK7Q2M bis XK7Q2", True),
        ("commit 9f1c2ab", "Commit 9F1C2AB", True),
        ("DIN A4 paper", "DIN-A4-Papier", False),
    ],
)
def test_digits_are_compared_and_not_how_they_are_grouped(
    source: str, target: str, differs: bool
) -> None:
    assert differs_in_numbers(source, target) is differs


def test_marks_are_compared_as_often_as_they_are_there() -> None:
    assert not differs_in_marks("a %s", "b %s", ["%s"])
    assert differs_in_marks("a %s", "b", ["%s"])
    assert differs_in_marks("a %s", "b %s %s", ["%s"])
    assert differs_in_marks("a", "b {x}", [])
    assert differs_in_marks("a", "- b", [])
    assert not differs_in_marks("First, a", "一、b", [])


def slow_difference(source: str, target: str, marks: Sequence[str], beginning: str) -> bool:
    """The same, with every mark counted in all of the text."""
    found = [target[mark.start : mark.end] for mark in find_marks(target)]
    return any(target.count(mark) < source.count(mark) for mark in marks) or any(
        max(source.count(mark), beginning.count(mark)) < found.count(mark) for mark in found
    )


TEXTS = st.lists(
    st.sampled_from([*"a *_%`猫", "%s", "{x}", "<b>", "</b>", "`c`", "**", ":)", "😀", "- "]),
    max_size=12,
).map("".join)


@given(TEXTS, TEXTS, st.lists(st.sampled_from(["%s", "{x}", "*", "<b>", "%s%s"])), TEXTS)
@settings(max_examples=500, deadline=None)
def test_marks_are_compared_as_if_each_was_counted(
    source: str, target: str, marks: list[str], beginning: str
) -> None:
    for other in (target, source, f"{source}{target}"):
        slow = slow_difference(source, other, marks, beginning)
        assert differs_in_marks(source, other, marks, beginning) is slow


def test_marks_that_came_through_are_not_searched_for_one_by_one() -> None:
    class Watched(str):
        num_counts = 0

        def count(self, *arguments: Any) -> int:
            self.num_counts += 1
            return super().count(*arguments)

    text = "".join(f"{{name{number}}}" for number in range(1000))
    source, target = Watched(f"Give {text}"), Watched(f"Gib {text}")
    assert not differs_in_marks(source, target, [text, text])
    assert source.num_counts + target.num_counts == 2


@pytest.mark.parametrize(
    ("ids", "is_loop"),
    [
        ([1] * 7, True),
        ([1] * 6, False),
        ([1, 2] * 4, True),
        ([1, 2] * 3, False),
        ([9, *([1, 2, 3] * 4), 9], True),
        (list(range(40)), False),
        ([], False),
    ],
)
def test_a_loop_is_the_same_four_times_and_more(ids: list[int], is_loop: bool) -> None:
    assert has_loop(ids) is is_loop


def test_tokens_of_which_no_few_in_a_row_come_twice_are_no_loop() -> None:
    chance = random.Random(7)
    for _ in range(300):
        ids: list[int] = []
        there: set[tuple[int, ...]] = set()
        while len(ids) < 60:
            last = tuple(ids[len(ids) - RETRY_NGRAM + 1 :])
            free = [token for token in range(3) if (*last, token) not in there]
            if not free:
                break
            ids.append(chance.choice(free))
            there.add(tuple(ids[-RETRY_NGRAM:]))
        assert not has_loop(ids)


def test_only_what_is_absurd_is_too_long_or_too_short() -> None:
    sentence = "The old man sits on a bench in the park and reads a newspaper."
    assert not is_absurdly_long_or_short(sentence, "老人坐在公园的长椅上看报纸。")
    assert not is_absurdly_long_or_short("OK", "In Ordnung, das machen wir")
    assert is_absurdly_long_or_short(sentence, "Alt.")
    assert is_absurdly_long_or_short("Yes", "ja " * 30)


def test_a_copy_is_more_than_a_name() -> None:
    assert is_copy("Do not touch", "do not touch")
    assert is_copy("请不要触摸", "请不要触摸")
    assert not is_copy("New York", "New York")
    assert not is_copy("Do not touch", "Nicht berühren")


def test_what_failed_is_told_in_order() -> None:
    failed = failed_checks(
        Compared(
            source="He has 5 cats",
            target="\ufffd" + "a" * 100,
            source_ids=(1, 2, 3),
            target_ids=(4,) * 9,
            marks=(),
            is_lost=False,
            is_truncated=True,
            pair=EN_DE,
        )
    )
    assert failed == ("numbers", "characters", "length", "loop", "end")


def test_a_time_that_lost_its_half_of_the_day_fails_as_a_number_does() -> None:
    compared = Compared(
        source="We meet at 3:30 pm.",
        target="Wir treffen uns um 15:30 Uhr.",
        source_ids=(1, 2, 3),
        target_ids=(4, 5, 6),
        marks=(),
        is_lost=False,
        is_truncated=False,
        pair=EN_DE,
    )
    assert failed_checks(compared) == ()
    lost = replace(compared, target="Wir treffen uns um 3:30 Uhr.")
    assert failed_checks(lost) == ("numbers",)


def test_qualities_are_combined() -> None:
    first = Quality(checked=ALL_CHECKS, failed=("loop",), num_tries=1)
    second = Quality(checked=ALL_CHECKS, failed=("marks", "loop"), num_tries=2)
    assert first.combined([second]) == Quality(
        checked=ALL_CHECKS, failed=("marks", "loop"), num_tries=3
    )
