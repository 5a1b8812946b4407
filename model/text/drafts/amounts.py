"""Amounts: what the numbers of a text say, however a language writes them.

Owns when two texts have the same numbers. A language has its own signs between thousands and before
decimals (1,000.50 and 1.000,50), its own order in dates and its own times (10:30, 10.30,
10点30分), so values are compared, and not how they are written, with a magnitude (1.5万) what they
are with it. Zeros are digits: behind a decimal sign, in groups of three or more, and where a group
has nothing else, each of them counts. Where numbers and codes are is `model.text.marks.finding`,
which magnitudes there are `model.text.drafts.magnitudes`.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from model.text.drafts.magnitudes import Magnitude, knows_all_magnitudes, magnitude_at
from model.text.marks.clocks import in_whole_day
from model.text.marks.finding import find_codes, find_numbers

_DIGITS = re.compile(r"\d+")
# 12 500, 12，500: these divide thousands, but not what ends or begins another number.
_SPACED = re.compile(r"(?a:(?<![\w.,:/'-]))\d{1,3}(?:[ ，]\d{3}){1,8}+(?![\d:/-])")
_BARE_DECIMAL = re.compile(r"(?a:(?<![\w.,]))\.(?=\d)")
_AMOUNT = re.compile(r"\d+(?:\.\d+)?")
_MIN_NAMED = 3  # digits of what may be a number of a thing, in which leading zeros count
_TIME = re.compile(r"\d{1,2}:\d\d(?::\d\d)?")
_SPACES = "\u00a0\u202f"
# A sign of a number, and what may be one: a range (5 -7), or between characters without spaces.
_SIGN = re.compile(r"(?<![\w.,:/'’)%-])(?<!\d )[-\u2212\u2013\uff0d](?=\d)")
_MAYBE_SIGN = re.compile(r"[-\u2212\u2013\uff0d](?=\d)")
# What may stand for it.
_MINUS = re.compile(
    "minus|menos|moins|meno|min\\b|below|sub|under|unter|null|zero|零下|地下|[负負]"
    "|минус|ниже|マイナス|氷点下|영하|마이너스",
    re.IGNORECASE,
)
_GROUPS = re.compile(r"[.,'’\u00a0\u202f]")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Number:
    """A number.

    Attributes:
        value: The same for all ways to write it.
        parts: What it is in a language that writes its parts with words between them.
        divided: The two numbers that a decimal may be as well: a day and a month, an hour and its
            minutes, or items of a list.
        bare: It without its magnitude, where languages whose words are not known have one.
    """

    value: str
    parts: tuple[str, ...]
    divided: tuple[str, ...] = ()
    bare: str | None = None


def differs_in_numbers(source: str, target: str) -> bool:
    """Whether the numbers of two texts differ in what they say, or a code is missing.

    One sign before three digits is read as one between thousands on both sides, because it is that
    in one language and a decimal sign in another. Codes (A-99812-XZ) are alike in all, and so are
    times of a day however it is divided (3:30 pm and 15:30, 15:00 and 15 Uhr).
    """
    if _DIGITS.search(source) is None and _DIGITS.search(target) is None:
        return False
    if _misses_code(source, target) or _misses_sign(source, target):
        return True
    if not _differs(source, target):
        return False
    whole, other = in_whole_day(source), in_whole_day(target)
    return (whole, other) == (source, target) or _differs(whole, other)


def _differs(source: str, target: str) -> bool:
    """The same of numbers alone, with times of a clock as they stand."""
    own, other = list(_numbers(source)), list(_numbers(target))
    values = Counter(one.value for one in own)
    common = values & Counter(one.value for one in other)
    own, other = _beside(own, common), _beside(other, common)
    own, other = _without_magnitudes(own, other, target), _without_magnitudes(other, own, source)
    # 14.3 is no decimal beside 3/14; beside 14.03 it is another one.
    are_divided = not all(any(one.divided for one in some) for some in (own, other))
    return _parts(own, are_divided=are_divided) != _parts(other, are_divided=are_divided)


def _misses_code(source: str, target: str) -> bool:
    """Whether a code of the source is not as often in the target."""
    codes = _codes(source)
    fewer = codes - _codes(target) if codes else codes
    # One that goes on there (A380-Flugzeug) is found in the text only; the first lost one ends it.
    return any(target.count(code) < source.count(code) for code in fewer)


def _codes(text: str) -> Counter[str]:
    return Counter(text[code.start : code.end] for code in find_codes(text))


def _misses_sign(source: str, target: str) -> bool:
    """Whether one text has more numbers below zero, as far as signs and words tell."""
    return any(
        len(_SIGN.findall(one)) > len(_MAYBE_SIGN.findall(other)) and _MINUS.search(other) is None
        for one, other in ((source, target), (target, source))
    )


def _beside(numbers: Iterable[_Number], common: Counter[str]) -> list[_Number]:
    """All numbers but those that both texts have."""
    left, beside = common.copy(), []
    for number in numbers:
        if left[number.value]:
            left[number.value] -= 1
        else:
            beside.append(number)
    return beside


def _without_magnitudes(
    own: Iterable[_Number], other: Iterable[_Number], other_text: str
) -> list[_Number]:
    """Numbers, bare where the other text has them so, with words that are not known maybe."""
    if knows_all_magnitudes(other_text):
        return list(own)
    left = Counter(one.value for one in other if one.bare is None)
    numbers = []
    for number in own:
        bare = number.bare
        if bare is not None and left[bare]:
            left[bare] -= 1
            numbers.append(_whole(bare))
        else:
            numbers.append(number)
    return numbers


def _parts(numbers: Iterable[_Number], *, are_divided: bool) -> Counter[str]:
    return Counter(part for one in numbers for part in (are_divided and one.divided) or one.parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Placed:
    """A number in a text.

    Attributes:
        start: Where it begins, in characters.
        end: Where it ends, with its magnitude.
        exponent: Of its magnitude; 0 without one.
        number: It.
    """

    start: int
    end: int
    exponent: int
    number: _Number


def _numbers(text: str) -> Iterator[_Number]:
    """The numbers of a text; those that follow one another as one (1亿2000万) are one."""
    last: _Placed | None = None
    for one in _placed(text):
        whole = None if last is None else _joined(last, one)
        if last is not None and whole is None:
            yield last.number
        last = whole or one
    if last is not None:
        yield last.number


def _joined(upper: _Placed, lower: _Placed) -> _Placed | None:
    """Two numbers as one, if the second fills the zeros of the first one's magnitude."""
    value, rest = upper.number.value, lower.number.value
    if lower.start != upper.end or len(rest) > upper.exponent or not rest.isdigit():
        return None
    if value[-len(rest) :].strip("0"):
        return None
    value = value[: -len(rest)] + rest
    number = _Number(value=value, parts=(value,))
    return _Placed(start=upper.start, end=lower.end, exponent=lower.exponent, number=number)


def _placed(text: str) -> Iterator[_Placed]:
    text = _SPACED.sub(lambda spaced: re.sub("[ ，]", _SPACES[0], spaced[0]), text)
    text = _BARE_DECIMAL.sub("0.", text)
    for found in find_numbers(text):
        digits = _western(text[found.start : found.end])
        magnitude = None
        if not digits[0].isdigit() or any(map(str.isalpha, digits)):
            numbers = [_whole(group) for group in _DIGITS.findall(digits)]  # of a code
        else:
            pieces = re.split("[/-]", digits)
            numbers = [_clock(piece) if ":" in piece else _amount(piece) for piece in pieces]
            magnitude = None if ":" in digits else magnitude_at(text, found.end)
        exponent = 0 if magnitude is None or len(numbers) > 1 else magnitude.exponent
        for number in numbers:
            yield _Placed(
                start=found.start,
                end=found.end if magnitude is None else magnitude.end,
                exponent=exponent,
                number=number if magnitude is None else _scaled(number, magnitude),
            )


def _scaled(number: _Number, magnitude: Magnitude) -> _Number:
    """A number with its magnitude; one that is no amount stays as it is."""
    if not _AMOUNT.fullmatch(number.value):
        return number
    whole, _, decimals = number.value.partition(".")
    decimals = decimals.ljust(magnitude.exponent, "0")
    whole = (whole + decimals[: magnitude.exponent]).lstrip("0") or "0"
    decimals = decimals[magnitude.exponent :].rstrip("0")
    value = f"{whole}.{decimals}" if decimals else whole
    bare = number.value if magnitude.is_of_thousands else None
    return _Number(value=value, parts=(value,), bare=bare)


def _clock(text: str) -> _Number:
    """A time or a score, of which a time may have a stop instead of its colon."""
    first, *others = text.split(":")
    if _TIME.fullmatch(text):
        hour = str(int(first))
        return _Number(value=".".join([hour, *others]), parts=(hour, *map(_plain, others)))
    parts = [part for piece in (first, *others) for part in _amount(piece).parts]
    return _Number(value=":".join(parts), parts=tuple(parts))


def _amount(text: str) -> _Number:
    """Digits with signs of grouping and a decimal sign; anything else is its groups."""
    signs, groups = _GROUPS.findall(text), _GROUPS.split(text)
    if not signs:
        return _whole(text)
    if _are_thousands(groups) and len(set(signs)) == 1:
        is_spaced = signs[0] in _SPACES
        whole = _plain("".join(groups))
        return _Number(value=whole, parts=tuple(map(_plain, groups)) if is_spaced else (whole,))
    *before, last = signs
    *whole_groups, decimals = groups
    is_decimal = last in ".," and last not in before and len(set(before)) < 2
    if is_decimal and (not before or _are_thousands(whole_groups)):
        value = f"{_plain(''.join(whole_groups))}.{decimals}"
        is_short = not before and all(len(group) <= 2 for group in groups)
        divided = tuple(map(_plain, groups)) if is_short else ()
        return _Number(value=value, parts=(value,), divided=divided)
    return _Number(value=text, parts=tuple(map(_plain, groups)))


def _are_thousands(groups: list[str]) -> bool:
    """Whether digits are grouped as thousands, or as in India (1,00,000)."""
    first, *middle, last = groups
    is_begun = len(first) <= 3 and not first.startswith("0")
    return is_begun and len(last) == 3 and all(len(group) in (2, 3) for group in middle)


def _whole(digits: str) -> _Number:
    return _Number(value=_plain(digits), parts=(_plain(digits),))


def _plain(digits: str) -> str:
    """A group without its leading zero where it is a day, an hour or the like."""
    return digits.lstrip("0") or digits if len(digits) < _MIN_NAMED else digits


def _western(text: str) -> str:
    if text.isascii():
        return text
    return "".join(str(unicodedata.decimal(c)) if c.isdecimal() else c for c in text)
