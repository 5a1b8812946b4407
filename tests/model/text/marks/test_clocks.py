import pytest

from model.text.languages.tags import LanguagePair
from model.text.marks.clocks import differs_in_halves, find_clocks, find_halves, in_whole_day
from support.work import num_lines

EN_DE = LanguagePair(source="en", target="de")
EN_ZH = LanguagePair(source="en", target="zh-Hans")
ZH_EN = LanguagePair(source="zh-Hans", target="en")
DE_EN = LanguagePair(source="de", target="en")


@pytest.mark.parametrize(
    ("text", "times"),
    [
        ("at 3:30 pm", ["15:30"]),
        ("at 3.30pm", ["15:30"]),
        ("at 03:05 P.M. today", ["15:05"]),
        ("at 9 a. m. on Monday", ["9"]),
        ("12 am and 12 pm", ["0", "12"]),
        ("12:30 AM", ["0:30"]),
        ("from 3-5 pm", ["15", "17"]),
        ("from 11:30 – 1 pm", ["11:30", "13"]),
        ("10am-5pm", ["10", "17"]),
        ("下午3点半", ["15:30"]),
        ("下午三点", ["15"]),
        ("晚上十一点一刻", ["23:15"]),
        ("上午 9:05", ["9:05"]),
        ("下午15点", ["15"]),
        ("中午12点，中午1点", ["12", "13"]),
        ("晚上12点，凌晨12点，晚上1点", ["0", "0", "1"]),
        ("早上的8点05分", ["8:05"]),
        ("今晚8点，明早7点", ["20", "7"]),
        ("3点半", ["3:30"]),
        ("下午3点20，下午3点5分，下午3点5个人", ["15:20", "15:05", "15"]),
        ("三点建议，第3点，3小时", []),
        ("13 pm, 0 am, 3:61 pm, 1:3 pm, 3:30:15 pm, 2024.3 pm", []),
        ("3 pmol, 5 amber, I am 5", []),
        ("at 15:30 and um 9 Uhr", []),
    ],
)
def test_times_are_found_with_their_half_of_the_day(text: str, times: list[str]) -> None:
    assert [clock.digits for clock in find_clocks(text)] == times


def test_the_stop_that_ends_a_sentence_is_none_of_a_time() -> None:
    text = "Open until 6 p.m. on Monday and 8 p.m."
    assert [text[clock.start : clock.end] for clock in find_clocks(text)] == ["6 p.m.", "8 p.m"]


@pytest.mark.parametrize("hour", range(24))
@pytest.mark.parametrize("minute", [None, 0, 5, 30])
def test_every_time_of_the_day_is_the_same_in_english_and_in_chinese(
    hour: int, minute: int | None
) -> None:
    half, twelve = ("pm" if hour >= 12 else "am"), (hour - 1) % 12 + 1
    english = f"{twelve} {half}" if minute is None else f"{twelve}:{minute:02} {half}"
    (found,) = find_clocks(english)
    assert (found.hour, found.minute, found.has_half) == (hour, minute, True)
    (mark,) = find_halves(english, EN_ZH)
    assert mark.replacement is not None
    (chinese,) = find_clocks(mark.replacement)
    assert (chinese.hour, chinese.minute) == (hour, minute or 0)
    (again,) = find_halves(mark.replacement, ZH_EN)
    assert again.replacement == f"{twelve}:{minute or 0:02} {half}"


@pytest.mark.parametrize(
    ("text", "pair", "written"),
    [
        ("at 3:30 p.m. today", EN_DE, ["15:30"]),
        ("at 9 am", EN_DE, ["9:00"]),
        ("at 3 pm", EN_ZH, ["下午3:00"]),
        ("at 12:15 am", EN_ZH, ["凌晨12:15"]),
        ("下午3点半", ZH_EN, ["3:30 pm"]),
        ("今晚8点", ZH_EN, ["8 pm"]),
        ("3点半", ZH_EN, []),
        ("at 15:30", EN_DE, []),
        ("Platz 3 am Fenster", DE_EN, []),
    ],
)
def test_a_time_is_written_as_its_language_does(
    text: str, pair: LanguagePair, written: list[str]
) -> None:
    assert [mark.replacement for mark in find_halves(text, pair)] == written


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("from 3-5 pm", "from 15-17"),
        ("um 15:00 Uhr", "um 15 Uhr"),
        ("um 15.00 Uhr", "um 15 Uhr"),
        ("for 15.00", "for 15.00"),
        ("it took 1:00:00", "it took 1:00:00"),
        ("10:000 and 10:0", "10:000 and 10:0"),
    ],
)
def test_times_are_written_in_24_hours(text: str, whole: str) -> None:
    assert in_whole_day(text) == whole


@pytest.mark.parametrize(
    ("source", "target", "pair", "differs"),
    [
        ("at 3:30 pm", "um 15:30 Uhr", EN_DE, False),
        ("at 3 pm", "um 15 Uhr", EN_DE, False),
        ("at 3 pm", "um drei Uhr nachmittags", EN_DE, False),
        ("at 3:30 pm", "um 3:30 Uhr", EN_DE, True),
        ("at 3 pm", "um 3 PM", EN_DE, True),
        ("at 9 a.m.", "um 9 Uhr", EN_DE, False),
        ("at 9 a.m.", "um 9.m.", EN_DE, True),
        ("at 12 am", "um 0 Uhr", EN_DE, False),
        ("at 12 am", "um 12 Uhr", EN_DE, True),
        ("at 12 pm", "um 12 Uhr", EN_DE, False),
        ("from 11 - 1 pm", "11–13 Uhr", EN_DE, False),
        ("at 3:30 pm", "下午3:30", EN_ZH, False),
        ("at 3:30 pm", "15点30分", EN_ZH, False),
        ("at 3:30 pm", "3点30分", EN_ZH, True),
        ("晚上10:15", "at 10:15 at night", ZH_EN, False),
        ("晚上10:15", "at 10:15 later", ZH_EN, True),
        ("下午3点", "at 3 p.m.", ZH_EN, False),
        ("Platz 3 am Fenster", "seat 3 at the window", DE_EN, False),
        ("at 3 pm", "saat 3'te", LanguagePair(source="en", target="tr"), False),
    ],
)
def test_what_loses_the_half_of_a_day_differs(
    source: str, target: str, pair: LanguagePair, differs: bool
) -> None:
    assert differs_in_halves(source, target, pair) is differs


@pytest.mark.parametrize("part", ["3 pm ", "3 - ", "下午", "3点半", "12:30 a. ", "下午 ", "1"])
def test_twice_the_text_is_about_twice_the_work(part: str) -> None:
    assert num_lines(lambda: find_clocks(part * 2000)) < 3 * num_lines(
        lambda: find_clocks(part * 1000)
    )
