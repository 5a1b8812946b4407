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
_ENGLISH = re.compile(
    r"(?a:(?<![\w.,:/]))(?P<hour>0?[1-9]|1[0-2])(?:[:.](?P<minute>[0-5]\d))?[ \u00a0\u202f]?"
    r"(?P<half>[ap])(?:m\b|\. ?m\b(?:\.(?!\s*$))?)",
    re.IGNORECASE,
)
# 3-5 pm, of which the first is in a half, too.
_FROM = re.compile(
    r"(?a:(?<![\w.,:/-]))(?P<hour>0?[1-9]|1[0-2])(?:[:.](?P<minute>[0-5]\d))?"
    r"(?= ?[-\u2013\u2014] ?$)"
)
_MAX_FROM = 12  # characters that it may take, with its dash
# 15:00 and 15.00 Uhr
_FULL_HOUR = re.compile(r"(?<![\d.,:/-])([01]?\d|2[0-4])(?::00(?![\d:])|\.00(?= ?Uhr))")
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
_NIGHT = "晚上|晚间|晚間|夜里|夜裡|夜间|夜間|夜晚|半夜|深夜"
# Those say the day as well, and stay where they are: 今晚8点 is "tonight at 8 pm".
_DAY_NIGHT = "今晚|明晚|昨晚|当晚|當晚"
_DAY_MORNING = "今早|明早"
_CHINESE = re.compile(
    rf"(?:(?<=(?P<day_night>{_DAY_NIGHT}))|(?<=(?P<day_morning>{_DAY_MORNING}))"
    rf"|(?:(?P<morning>{_MORNING})|(?P<noon>{_NOONTIME})|(?P<afternoon>{_AFTERNOON})"
    rf"|(?P<night>{_NIGHT}))的? ?)?"
    r"(?<![\d:：.,])(?P<hour>[01]?\d|2[0-4]|[一二两兩三四五六七八九]|十[一二]?)"
    r"(?:[:：](?P<minute>[0-5]\d)(?![\d:：])"
    r"|[点點时時](?:(?P<rest>[0-5]?\d)分|(?P<bare>[0-5]\d)(?![\d.]|[个個])|(?P<quarter>半|一刻|三刻)|[整钟鐘])?)"
)
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
_WORDS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "de": (r"morgen|früh|vormittag|nacht", r"mittag|abend|nacht"),
        "en": (r"\ba\.? ?m\b|morning|night|dawn", r"\bp\.? ?m\b|noon|evening|night"),
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
    """A text with its times as 24 hours have them, and none of its full hours with minutes."""
    parts: list[str] = []
    done = 0
    for clock in find_clocks(text):
        parts += [text[done : clock.start], clock.digits]
        done = clock.end
    return _FULL_HOUR.sub(r"\1", "".join([*parts, text[done:]]))


def differs_in_halves(source: str, target: str, pair: LanguagePair) -> bool:
    """Whether a translation lost the half of the day that a time of its source is in.

    It says it by the hour (15:30), or by a word for that part of the day, wherever it stands.

    Args:
        source: A text; times in other languages than English and Chinese are not known.
        target: Its translation.
        pair: Their languages.
    """
    words = _WORDS.get(primary_language(pair.target))
    if words is None or primary_language(pair.source) not in _SOURCES:
        return False
    return any(
        clock.has_half and not _says_half(clock, target, words) for clock in find_clocks(source)
    )


def _says_half(clock: Clock, target: str, words: tuple[str, str]) -> bool:
    is_late = clock.hour >= _NOON
    if clock.hour == _NOON or re.search(words[is_late], target, re.IGNORECASE):
        return True
    hours = "0|00|24" if clock.hour == 0 else f"0?{clock.hour}"
    # A number that is the hour of a morning may be any other; one beyond noon says its half.
    behind = r"(?!\d)" if is_late else r"(?:[:.]\d\d|(?= ?(?:Uhr|h\b|[点點时時]|[-\u2013] ?\d)))"
    return re.search(rf"(?<!\d)(?:{hours}){behind}", target) is not None


def _english(text: str) -> Iterator[Clock]:
    for found in _ENGLISH.finditer(text):
        is_late = found["half"].lower() == "p"
        before = max(0, found.start() - _MAX_FROM)
        first = _FROM.search(text[before : found.start()])
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
    for found in _CHINESE.finditer(text):
        word = next((name for name in _HOURS if found[name]), None)
        # Without a word 三点 may be three points, and 12:30 is read as it stands.
        if word is None and (found["quarter"] is None or not found["hour"].isdecimal()):
            continue
        hour = _NUMERALS.get(found["hour"]) or int(found["hour"])
        if word is not None:
            hours, half = _HOURS[word]
            if hour in hours and half == "pm":
                hour += _NOON
            elif hour == _NOON and (word in _MIDNIGHT or found["morning"] == "凌晨"):
                hour = 0
        minutes = found["minute"] or found["rest"] or found["bare"]
        minute = _QUARTERS.get(found["quarter"]) if minutes is None else int(minutes)
        yield Clock(
            start=found.start(),
            end=found.end(),
            hour=hour % 24,
            minute=minute,
            has_half=word is not None,
        )


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
