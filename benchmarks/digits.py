"""How an amount may be written: the judge of numbers in benchmarks, by a list of notations.

Owns the notations that count as the same number, and how often a text has one of them. Knows
nothing of the rules that flag a translation, so it can say what they miss: it writes a number down
in every way that it knows, and looks whether the text has one.
"""

import re
from collections.abc import Iterator

_THOUSANDS = ("", ",", ".", "'", "’", " ", "\u00a0", "\u202f", "，")
_DECIMALS = (".", ",")
_CLOCK = re.compile(r"(\d{1,2}):(\d\d)")
_WHOLE = re.compile(r"\d+")
_GROUPED = re.compile(r"(\d{1,3}(?:[,.'’ \u00a0\u202f]\d{3})+)(?:([.,])(\d+))?")
_EDGES = re.compile(r"^\D+|\D+$")
_BESIDE_AMOUNT = r"(?<!\d)(?<!\d[.,:])NUMBER(?!\d|[.,:]\d)"
_BESIDE_PART = r"(?<!\d)NUMBER(?!\d)"
"""What digits beside it, or behind a sign beside it, are of the same number."""
_DECIMAL = re.compile(r"(\d+)[.,](\d+)")


def has_number(item: str, source: str, target: str) -> bool:
    """Whether a number of the source is in the target as often, in any of its notations.

    Of a date, a version or a range its parts may stand anywhere: languages have their own orders.
    """
    amount = _EDGES.sub("", item)
    # 3 of 3:1 is a part in its own text, so it may be one in the other.
    beside = _BESIDE_AMOUNT if _count(_BESIDE_AMOUNT, amount, source) else _BESIDE_PART
    if _is_there(beside, amount, source, target):
        return True
    if any(form.fullmatch(amount) for form in (_GROUPED, _DECIMAL, _WHOLE)):
        return False
    return all(_is_there(_BESIDE_PART, part, source, target) for part in _WHOLE.findall(amount))


def _is_there(beside: str, number: str, source: str, target: str) -> bool:
    there, here = (_count(beside, number, text) for text in (source, target))
    return here >= max(there, 1)


def _count(beside: str, number: str, text: str) -> int:
    written = "|".join(re.escape(one) for one in sorted(set(notations(number)), reverse=True))
    pattern = beside.replace("NUMBER", f"(?:{written})")
    return sum(1 for _ in re.finditer(pattern, text))


def notations(number: str) -> Iterator[str]:
    """All ways to write it: its own, and those with the signs of another language."""
    yield number
    if _WHOLE.fullmatch(number):
        yield from _wholes(number)
    if clock := _CLOCK.fullmatch(number):
        hour, minute = clock.groups()
        for own in {hour, hour.lstrip("0") or "0", hour.zfill(2)}:
            yield from (f"{own}{sign}{minute}" for sign in ":.")
            yield from (f"{own}{sign}{minute.lstrip('0') or minute}" for sign in "点點時时")
    if grouped := _GROUPED.fullmatch(number):
        whole = re.sub(r"\D", "", grouped[1])
        yield from _with_decimals(whole, grouped[3])
    elif decimal := _DECIMAL.fullmatch(number):
        yield from _with_decimals(decimal[1], decimal[2])


def _with_decimals(whole: str, decimals: str | None) -> Iterator[str]:
    for sign in _THOUSANDS:
        grouped = f"{int(whole):,}".replace(",", sign)
        if decimals is None:
            yield grouped
        else:
            yield from (f"{grouped}{point}{decimals}" for point in _DECIMALS if point != sign)


def _wholes(digits: str) -> Iterator[str]:
    if digits.strip("0"):
        yield digits.lstrip("0")
        yield digits.lstrip("0").zfill(2)
        yield from _with_decimals(digits.lstrip("0"), None)
