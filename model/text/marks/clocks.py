"""Times of day that say which half of it they are in: 3:30 pm, 下午3点半.

Owns where they stand in English and in Chinese, which time of the 24 hours each of them is, how a
language writes it, and whether a translation still says it. Languages differ in that: German and
French write 15:30, English mostly 3:30 pm, Chinese either. Networks that saw few of them drop the
half, so what was in the afternoon is in the night. Of languages whose words for it are not known
here nothing is said.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from model.text.languages.tags import LanguagePair, primary_language
from model.text.marks.finding import Mark

_NOON = 12
_SOURCES = frozenset({"en", "zh"})
_HINT = re.compile(r"[ap]\.? ?m\b|[点點时時]|[午早晨晚夜上间間里裡]的? ?\d", re.IGNORECASE)
_TWELVE = r"(?P<hour>0?[1-9]|1[0-2])(?:[:.](?P<minute>[0-5]\d))?"
# Behind the sign of a currency it is a price a month.
_ENGLISH = re.compile(
    rf"(?a:(?<![\w.,:/£$€¥])){_TWELVE}[ \u00a0\u202f]?"
    r"(?P<half>[ap])(?:m\b|\. ?m\b(?:\.(?!\s*$))?)",
    re.IGNORECASE,
)
# 3-5 pm and from 3 to 5 pm, of which the first is in a half, too.
_FROM = re.compile(rf"(?a:(?<![\w.,:/-])){_TWELVE}(?= ?[-\u2013\u2014] ?$)")
_FROM_SAID = re.compile(
    rf"(?:(?<=\bfrom )|(?<=\bbetween )){_TWELVE}(?= (?:to|and|until|till) $)", re.IGNORECASE
)
_MAX_FROM = 24  # characters that it may take, with what is around it
# 15:00, 15.00 Uhr, 15h00 and 15点00分; behind a dash only where minutes are before it (9:00-17:00).
_FULL_HOUR = re.compile(
    r"(?<![\d.,:/])(?:(?<!\d-)|(?<=[:.]\d\d-))([01]?\d|2[0-4])"
    r"(?:[:：]00(?![\d:：])|\.00(?= ?Uhr|-\d\d?\.\d\d ?Uhr)| ?h ?00(?!\d)|[点點时時]00分|(?= ?Uhr))"
)
_NUMERALS: Mapping[str, int] = MappingProxyType(
    {
        numeral: number
        for number, numerals in enumerate(
            "零 一 二两兩 三 四 五 六 七 八 九 十 十一 十二".split()  # noqa: SIM905  # by value
        )
        for numeral in ([numerals] if number > 10 else numerals)
    }
)
_QUARTERS: Mapping[str, int] = MappingProxyType({"半": 30, "一刻": 15, "三刻": 45})
_MORNING = "凌晨|清晨|早晨|早上|上午"
_NOONTIME = "中午|正午"
_AFTERNOON = "下午|午后|午後|傍晚"
_NIGHT = "晚上|晚间|晚間|夜里|夜裡|夜间|夜間|夜晚|半夜|深夜|午夜"
# Those say the day as well, and stay where they are: 今晚8点 is "tonight at 8 pm".
_DAY_NIGHT = "今晚|明晚|昨晚|当晚|當晚"
_DAY_MORNING = "今早|明早"
# Behind a number that counts, or what 半 belongs to: 下午2点15名学生, 下午3点半决赛.
_COUNTED = "个個名位人万萬亿億千百多余餘条條张張辆輛只隻件家所年月日号號岁歲度元%％"
_HALVED = "[个個年月天价價决決数數]|小[时時]"
_CHINESE = re.compile(
    rf"(?:(?<=(?P<day_night>{_DAY_NIGHT})) ?|(?<=(?P<day_morning>{_DAY_MORNING})) ?"
    rf"|(?:(?P<morning>{_MORNING})|(?P<noon>{_NOONTIME})|(?P<afternoon>{_AFTERNOON})"
    rf"|(?P<night>{_NIGHT}))的? ?)?"
    r"(?<![\d:：.,])(?P<hour>[01]?\d|2[0-4]|[一二两兩三四五六七八九]|十[一二]?)"
    r"(?:[:：](?P<minute>[0-5]\d)(?![\d:：])"
    rf"| ?[点點时時](?: ?(?P<rest>[0-5]?\d) ?分|(?P<bare>[0-5]\d)(?![\d.]| ?[{_COUNTED}])"
    rf"|(?P<quarter>半|一刻|三刻)(?!{_HALVED})|[整钟鐘])?)"
)
_TO = re.compile(r" ?[到至~～\u2013\u2014-] ?")
_HOURS: Mapping[str, tuple[range, str]] = MappingProxyType(
    {
        "morning": (range(1, _NOON), "am"),
        "day_morning": (range(1, _NOON), "am"),
        "noon": (range(1, 4), "pm"),
        "afternoon": (range(1, _NOON), "pm"),
        "night": (range(5, _NOON), "pm"),
        "day_night": (range(5, _NOON), "pm"),
    }
)
"""The hours that a word puts into a half; others are as they are (晚上1点, 下午15点)."""
_MIDNIGHT = frozenset({"night", "day_night"})  # at 12
_DAYS = frozenset({"day_night", "day_morning"})
_PARTS: Mapping[int, str] = MappingProxyType(
    {
        15: "15|quart|viert|cuarto|一刻|十五",
        30: "30|half|halb|demi|medi|mezz|thirty|半|三十",
        45: "45|quart|viert|cuarto|三刻|四十五",
    }
)
"""How translations say the parts of an hour that Chinese has words for."""
_TELLS_HOUR = re.compile(
    r"\d ?(?:Uhr|h(?![a-z])|heures?\b|horas?\b|[点點时時])|\d[:.]\d\d(?!\d)"
    r"|\b(?:a las|alle|ore) \d",
    re.IGNORECASE,
)
_WORDS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "de": (r"morgen|früh|vormittag|nacht", r"(?<!vor)mittag|abend|nacht"),
        "en": (
            r"\ba\. ?m\b|(?<!\bI )\bam\b(?! I\b)|morning|night|dawn",
            r"\bp\.? ?m\b|noon|evening|night",
        ),
        "es": (r"\ba\.? ?m\b|mañana|madrugada|noche", r"\bp\.? ?m\b|tarde|noche|mediod"),
        "fr": (r"matin|nuit", r"après-midi|apr[eè]s|soir|nuit|midi"),
        "it": (r"mattin|notte", r"pomeriggio|sera|notte|mezzogiorno"),
        "zh": (r"[早晨夜]|上午|午前", r"[晚夜]|下午|中午|午[后後]"),
    }
)
"""Words of a translation that say that a time is before noon, or behind it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """A time of day.

    Attributes:
        start: Where it begins, in characters.
        end: Where it ends, with what says its half.
        hour: From 0 to 23.
        minute: From 0 to 59; None if only the hour is said.
        has_half: The text says which half of the day it is in.
    """

    start: int
    end: int
    hour: int
    minute: int | None
    has_half: bool

    @property
    def digits(self) -> str:
        """It, as 24 hours are written; of an hour alone that."""
        return str(self.hour) if self.minute is None else f"{self.hour}:{self.minute:02}"


def find_clocks(text: str) -> list[Clock]:
    """The times of a text as English and Chinese say them, in order."""
    if _HINT.search(text) is None:
        return []
    return sorted([*_english(text), *_chinese(text)], key=lambda clock: clock.start)


def find_halves(text: str, pair: LanguagePair) -> list[Mark]:
    """The times that say their half of the day, with what stands for them in a translation.

    Args:
        text: A sentence; in another language than English and Chinese (Platz 3 am Fenster) it has
            none.
        pair: Its language, and that of its translation.
    """
    if primary_language(pair.source) not in _SOURCES:
        return []
    target = pair.target
    return [
        Mark(start=clock.start, end=clock.end, kind="clock", replacement=_written(clock, target))
        for clock in find_clocks(text)
        if clock.has_half
    ]


def in_whole_day(text: str) -> str:
    """A text with its times as 24 hours have them, and none of its full hours with minutes.

    What they would run into is kept apart by a semicolon: 下午3点20个人 is 15;20个人.
    """
    parts: list[str] = []
    done = 0
    for clock in find_clocks(text):
        parts += [text[done : clock.start], ";" * text[clock.start - 1 : clock.start].isdigit()]
        parts += [clock.digits, ";" * text[clock.end : clock.end + 1].isdigit()]
        done = clock.end
    whole = "".join([*parts, text[done:]])
    return _FULL_HOUR.sub(lambda found: str(int(found[1]) % 24), whole)


def differs_in_halves(source: str, target: str, pair: LanguagePair) -> bool:
    """Whether a translation lost the half of the day that a time of its source is in, or 半 in it.

    It says the half by the hour (15:30), or by a word for that part of the day, wherever it stands.

    Args:
        source: A text; times in other languages than English and Chinese are not known.
        target: Its translation.
        pair: Their languages.
    """
    words = _WORDS.get(primary_language(pair.target))
    if words is None or primary_language(pair.source) not in _SOURCES:
        return False
    clocks = [clock for clock in find_clocks(source) if clock.has_half]
    if not clocks:
        return False
    told = [clock for clock in _told(target, primary_language(pair.target)) if clock.has_half]
    return any(
        _loses_part(clock, target) or not _says_half(clock, target, told, words) for clock in clocks
    )


def _told(text: str, language: str) -> Iterator[Clock]:
    """The times of a translation that are written as its own language does."""
    match language:
        case "en":
            return _english(text)
        case "zh":
            return _chinese(text)
        case _:
            return iter(())


def _loses_part(clock: Clock, target: str) -> bool:
    part = None if clock.minute is None else _PARTS.get(clock.minute)
    return part is not None and re.search(part, target, re.IGNORECASE) is None


def _says_half(clock: Clock, target: str, told: list[Clock], words: tuple[str, str]) -> bool:
    same = {one.hour for one in told if _is_alike(one, clock)}
    if same:  # 9 am is not 晚上9点, whatever else is there
        return clock.hour in same
    is_late = clock.hour >= _NOON
    if clock.hour == _NOON or re.search(words[is_late], target, re.IGNORECASE):
        return True
    hours = "0|00|24" if clock.hour == 0 else f"0?{clock.hour}"
    # A number that is the hour of a morning may be any other where no hour is told; one beyond
    # noon says its half. Neither is the minutes of a time.
    behind = r"(?!\d)" if is_late or _TELLS_HOUR.search(target) else r"(?= ?[-\u2013] ?\d)"
    return re.search(rf"(?<!\d)(?<!\d[:.：])(?:{hours}){behind}", target) is not None


def _is_alike(one: Clock, other: Clock) -> bool:
    """Whether two times are the same but for the half of the day."""
    return one.hour % _NOON == other.hour % _NOON and (one.minute or 0) == (other.minute or 0)


def _english(text: str) -> Iterator[Clock]:
    for found in _ENGLISH.finditer(text):
        is_late = found["half"].lower() == "p"
        before = max(0, found.start() - _MAX_FROM)
        some = text[before : found.start()]
        first = _FROM.search(some) or _FROM_SAID.search(some)
        if first is not None:
            # From 11 to 1 pm it is noon in between.
            is_same = int(first["hour"]) % _NOON <= int(found["hour"]) % _NOON
            start, end = before + first.start(), before + first.end()
            yield _clock(start, end, first, is_late=is_late == is_same)
        yield _clock(found.start(), found.end(), found, is_late=is_late)


def _clock(start: int, end: int, found: re.Match[str], *, is_late: bool) -> Clock:
    hour = int(found["hour"]) % _NOON + _NOON * is_late
    minute = None if found["minute"] is None else int(found["minute"])
    return Clock(start=start, end=end, hour=hour, minute=minute, has_half=True)


def _chinese(text: str) -> Iterator[Clock]:
    last: tuple[str | None, int, int] = (None, 0, 0)
    for found in _CHINESE.finditer(text):
        word = next((name for name in _HOURS if found[name]), None)
        told = _NUMERALS.get(found["hour"]) or int(found["hour"])
        before, hour, end = last
        if word is None and before and told > hour and _TO.fullmatch(text, end, found.start()):
            word = before  # 下午3点到5点
        last = word, told, found.end()
        # Without a word 三点 may be three points, and 12:30 is read as it stands.
        if word is None and (found["quarter"] is None or not found["hour"].isdecimal()):
            continue
        minutes = found["minute"] or found["rest"] or found["bare"]
        yield Clock(
            start=found.start("hour") if word in _DAYS else found.start(),
            end=found.end(),
            hour=told % 24 if word is None else _hour_of(told, word, found["morning"]),
            minute=_QUARTERS.get(found["quarter"]) if minutes is None else int(minutes),
            has_half=word is not None,
        )


def _hour_of(told: int, word: str, morning: str | None) -> int:
    hours, half = _HOURS[word]
    if told in hours and half == "pm":
        return told + _NOON
    is_midnight = told == _NOON and (word in _MIDNIGHT or morning == "凌晨")
    return 0 if is_midnight else told % 24


def _written(clock: Clock, language: str) -> str:
    """A time as a language writes it: with its half in English and in Chinese."""
    minute = f"{clock.minute or 0:02}"
    hour = (clock.hour - 1) % _NOON + 1
    match primary_language(language):
        case "en":
            half = "pm" if clock.hour >= _NOON else "am"
            return f"{hour} {half}" if clock.minute is None else f"{hour}:{minute} {half}"
        case "zh":
            names = ((6, "凌晨"), (_NOON, "上午"), (13, "中午"), (18, "下午"), (24, "晚上"))
            name = next(name for end, name in names if clock.hour < end)
            return f"{name}{hour}:{minute}"
        case _:
            return f"{clock.hour}:{minute}"
