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
        ("from 3 to 5 pm", ["15", "17"]),
        ("Between 11:30 and 1 pm", ["11:30", "13"]),
        ("from 3 people to 5 pm", ["17"]),
        ("£10 pm, $5pm and 10 pm", ["22"]),
        ("下午2点半到4点", ["14:30", "16"]),
        ("今晚8点至10点，12点", ["20", "22"]),
        ("上午11点到1点", ["11"]),
        ("晚上9点到12点", ["21", "0"]),
        ("下午 3 点半，下午 3 点 05 分，今晚 8 点", ["15:30", "15:05", "20"]),
        ("下午2点15名学生，下午3点20 个人，下午3点10月", ["14", "15", "15"]),
        ("下午3点半决赛，下午3点半小时，下午3点半", ["15", "15", "15:30"]),
        ("午夜12点半", ["0:30"]),
    ],
)
def test_times_are_found_with_their_half_of_the_day(text: str, times: list[str]) -> None:
    assert [clock.digits for clock in find_clocks(text)] == times


def test_the_stop_that_ends_a_sentence_is_none_of_a_time() -> None:
    text = "Open until 6 p.m. on Monday and 8 p.m."
    assert [text[clock.start : clock.end] for clock in find_clocks(text)] == ["6 p.m.", "8 p.m"]


def test_the_word_for_a_day_and_its_space_stay_where_they_are() -> None:
    text = "今晚 8 点开会"
    (clock,) = find_clocks(text)
    assert text[clock.start : clock.end] == "8 点"


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
        ("open from 3 to 5 pm", EN_DE, ["15:00", "17:00"]),
        ("下午2点半到4点", ZH_EN, ["2:30 pm", "4 pm"]),
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
        ("Open 9:00-17:00, 10.00-12.00 Uhr", "Open 9-17, 10-12 Uhr"),
        ("00 Uhr, 24:00, 15h00, 15 h 00, 15：00", "0 Uhr, 0, 15, 15, 15"),
        ("2015-15:00", "2015-15:00"),
        ("下午3点20个人，5/3下午3点", "15;20个人，5/3;15"),
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
        # minutes are no hour
        ("at 3:15 pm", "um 3:15 Uhr", EN_DE, True),
        ("at 12:00 am", "um 12:00 Uhr", EN_DE, True),
        ("下午3点15分", "at 3:15", ZH_EN, True),
        # the hour of a morning, where hours are told
        ("from 9 am to 5 pm", "von 9 bis 17 Uhr", EN_DE, False),
        ("at 10 am and 2 pm", "um 10 und 14 Uhr", EN_DE, False),
        ("at 9 am", "à 9 heures", LanguagePair(source="en", target="fr"), False),
        ("at 9:30 am", "à 9h30", LanguagePair(source="en", target="fr"), False),
        ("at 9 am", "a las 9", LanguagePair(source="en", target="es"), False),
        ("at 9 am", "alle ore 9", LanguagePair(source="en", target="it"), False),
        # the other half
        ("at 9 am", "晚上9点", EN_ZH, True),
        ("上午9:00", "at 9:00 pm", ZH_EN, True),
        ("at 12 pm", "凌晨12点", EN_ZH, True),
        ("at 12:00 am", "火车12:00 am", EN_ZH, True),
        ("中午12点", "at 12 am", ZH_EN, True),
        ("上午9点到下午5点", "from 9 am to 5 pm", ZH_EN, False),
        ("上午9点到下午5点", "from 9 pm to 5 am", ZH_EN, True),
        ("at 3:30 pm", "um 3:30 Uhr vormittags", EN_DE, True),
        ("早上7点我出发", "I am leaving at 7", ZH_EN, True),
        ("早上7点我出发", "I am leaving at 7 am", ZH_EN, False),
        # half an hour
        ("下午3点半见", "See you at 3 pm", ZH_EN, True),
        ("下午3点半见", "See you at half past three in the afternoon", ZH_EN, False),
        ("at 3:30 pm", "um halb vier nachmittags", EN_DE, False),
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
