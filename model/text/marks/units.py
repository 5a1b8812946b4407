"""Units and currencies beside numbers: a closed list of their signs, and what else they are called.

Owns which signs those are, where a number with one stands, and whether two texts have the same. A
sign that is a word or an abbreviation of something else as well (`in`, `min`, `s`, `K`) is none
here; a letter alone is one behind a number and a space, and without the space (5g) where the other
text has that unit. The words that stand for a unit in Latin and Chinese script are beginnings of
words, because languages share them. Of texts in other scripts, whose units have names of their own
(5 кг), nothing is said.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType

from model.text.marks.finding import Mark, find_numbers

_BEHIND: Mapping[str, str] = MappingProxyType(
    {
        "%": r"pro[czs]ent|per ?cent|pour cent|por c[ie]|per cento|procent|百分|％|成",
        "‰": "promille|per mil|千分",
        "°C": r"\dC\b|celsius|摄氏|攝氏|degree|grad|gr[aá]|度|℃",
        "°F": r"\d ?F\b|fahrenheit|华氏|華氏|degree|grad|gr[aá]|度|℉",
        "°": r"degree|grad|gr[aá]|度",
        "km": r"[kq]ilom|quil[oó]m|kil[oó]m|chilom|公里|千米",
        "m": r"met[er]|mètr|metr|米|公尺",
        "cm": r"[cz]entim|centím|厘米|公分",
        "mm": r"mil+im|milím|毫米",
        "µm μm um": r"mi[ck]rom|微米",
        "nm": r"nanom|nanóm|纳米|奈米",
        "kg": r"[kc]h?ilo|quilo|公斤|千克",
        "g": r"gram|克|公克",
        "mg": r"mil+igr|毫克",
        "µg μg mcg": r"mi[ck]rogr|微克",
        "l L": r"lit[er]|litr|升",
        "ml mL": r"mil+ilit|mililit|毫升",
        "cl": r"[cz]entilit|厘升",
        "dl": r"de[czk]ilit|分升",
        "m² m2 qm": r"square|quadrat|carré|cuadrad|quadrad|平方|平米|sq",
        "km² km2": r"square|quadrat|carré|cuadrad|quadrad|平方|sq",
        "m³ m3": r"cubi|kubik|cube|cúbic|立方",
        "km/h kph": r"per hour|an hour|stunde|per heure|hora|小时|小時|时速|時速|时|kmh",
        "mph": r"per hour|an hour|stunde|meile|小时|小時|时速|英里",
        "m/s": r"per second|sekunde|秒",
        "Hz": "hertz|赫",
        "kHz": "kilohertz|千赫|kHz",
        "MHz": "megahertz|兆赫",
        "GHz": "gigahertz|吉赫|千兆赫",
        "V": "volt|伏",
        "kV": "kilovolt|千伏",
        "mV": "millivolt|毫伏",
        "A": r"amp[eè]r|amp\b|安",
        "mA": r"mil+iamp|毫安",
        "Ah": r"amp[eè]r|安时|安時|安培",
        "mAh": r"mil+iamp|毫安",
        "W": "watt|瓦",
        "kW": r"kw\b|kilowatt|千瓦",
        "MW": "megawatt|兆瓦",
        "kWh": "kilowatt|千瓦|度",
        "Wh": "watt|瓦",
        "kB KB": r"kilobyte|千字节|(?<=\d)[ \u00a0\u202f]?ko\b",
        "MB": r"megabyte|兆|百万字节|(?<=\d)[ \u00a0\u202f]?mo\b",
        "GB": r"gigabyte|千兆|吉|十亿字节|(?<=\d)[ \u00a0\u202f]?go\b",
        "TB": r"terabyte|太字节|(?<=\d)[ \u00a0\u202f]?to\b",
        "KiB": "kibi",
        "MiB": "mebi",
        "GiB": "gibi",
        "Mbps Mbit/s": "megabit|兆",
        "Gbps Gbit/s": "gigabit|千兆",
        "dB": "de[cz]ibel|分贝",
        "kPa": "kilopascal|千帕",
        "hPa": "he[ck]topascal|百帕",
        "kJ": "kilojoule|千焦",
        "kcal": "[kc]ilo|kalori|calori|千卡|大卡",
        "Nm": "newton|牛",
        "Ω": "ohm|欧",
        "ms": r"mil+ise|毫秒",
        "px": "pixel|像素",
        "dpi": "dots|punkt|点",
        "ppm": "parts|teile|百万分",
    }
)
_BESIDE: Mapping[str, str] = MappingProxyType(
    {
        "$ US$ USD": r"dollar|d[oó]lar|美元|美金|元|buck",
        "€ EUR": "euro|欧元|歐元",
        "£ GBP": "pound|pfund|pond|livre|libra|sterl|英镑|镑",
        "¥ ￥ CNY RMB JPY": "yuan|yen|renminbi|元|円|块|人民币",
        "₹ INR": "rup[ei]|卢比",
        "₽ RUB": "r[ou]b|卢布",
        "₩ KRW": "won|韩元",
        "CHF": r"fran[ck]|法郎|fr\.",
    }
)
"""Signs that stand before a number, too."""


_PART_OF: Mapping[str, str] = MappingProxyType({"km/h kph": "km", "m/s": "m"})
"""Units that another one is written with."""

_END = "(?![A-Za-z0-9_\u00c0-\u024f])"


def _signs(table: Mapping[str, str]) -> dict[str, str]:
    return {sign: keys for keys in table for sign in keys.split()}


def _one_of(signs: Iterable[str]) -> str:
    """One of them, the longest first; no letter or digit goes on behind it."""
    ordered = sorted(signs, key=len, reverse=True)
    return rf"({'|'.join(map(re.escape, ordered))}){_END}"


_MONEY = _signs(_BESIDE)
_SIGNS = {
    **_signs(_BEHIND),
    **_MONEY,
    **{f"°{space}{letter}": f"°{letter}" for space in " \u00a0\u202f" for letter in "CF"},
}
_WORDS = {keys: re.compile(words, re.IGNORECASE) for keys, words in {**_BEHIND, **_BESIDE}.items()}
_SPACE = "[ \u00a0\u202f-]"
_SINGLE = frozenset(sign for sign in _SIGNS if len(sign) == 1 and sign.isalpha())
_AFTER = re.compile(
    rf"(?<=\d)(?:{_SPACE}?{_one_of(_SIGNS.keys() - _SINGLE)}"
    rf"|{_SPACE}{_one_of(_SINGLE)}(?!\.\w))"
)
# 2.5 Mrd. $, 700 million €
_MILLIONS = re.compile(
    rf"(?i:\d[ \u00a0]?(?:mi[lo]\w{{0,10}}|mrd|bil\w{{0,8}}|tsd|bn|mn|[mk])\.?)[ \u00a0]?"
    rf"{_one_of(_MONEY)}"
)
_BEFORE = re.compile(
    rf"(?a:(?<![\w$]))({'|'.join(sorted(map(re.escape, _MONEY), key=len, reverse=True))})"
    rf"{_SPACE}?(?=\d)"
)
# 5g, and %5 of Turkish
_CLOSE = re.compile(rf"(?<=\d){_one_of(_SINGLE)}|(?a:(?<![\w%]))(%)(?=\d)")
_HINT = re.compile(r"\d")
# Letters that are neither Latin nor Chinese. One of Greek alone is a sign (5 µm, 3 kΩ, α).
_OTHER_SCRIPT = re.compile(
    "(?=[^\\W\\d_])[\u0400-\u1cff\u3041-\u30fa\u3131-\u318e\uac00-\ud7a3\uff66-\uff9d]"
    "|[\u0370-\u03ff\u1f00-\u1fff]{2}"
)


def find_measures(text: str) -> list[Mark]:
    """The numbers of a text, each with the unit or the currency that it has."""
    numbers = find_numbers(text)
    if not numbers:
        return []
    starts = [number.start for number in numbers]
    for found in _AFTER.finditer(text):
        at = bisect_left(starts, found.start()) - 1
        if numbers[at].end == found.start():
            numbers[at] = replace(numbers[at], end=found.end())
    measures: list[Mark] = []
    for number in numbers:
        if not measures or measures[-1].end <= number.start:  # no digit of m2
            measures.append(number)
    starts = [measure.start for measure in measures]
    for found in _BEFORE.finditer(text):
        at = bisect_left(starts, found.end())
        # In 5 € 10 the sign is the first one's.
        is_free = not at or measures[at - 1].end <= found.start()
        if at < len(starts) and starts[at] == found.end() and is_free:
            measures[at] = replace(measures[at], start=found.start())
    return measures


def differs_in_units(source: str, target: str) -> bool:
    """Whether a unit beside a number is missing in the target, or is there and in no source.

    A unit may be written as a word in one of them. Of scripts in which units have other names
    nothing is said.
    """
    if _HINT.search(source) is None and _HINT.search(target) is None:
        return False
    own, other = _units(source), _units(target)
    if own == other or any(_OTHER_SCRIPT.search(text) for text in (source, target)):
        return False
    own_at_most, other_at_most = _at_most(own, source), _at_most(other, target)
    return any(
        other_at_most[unit] + len(_WORDS[unit].findall(target)) < number
        for unit, number in own.items()
    ) or any(not own_at_most[unit] and _WORDS[unit].search(source) is None for unit in other)


def _units(text: str) -> Counter[str]:
    """How often each unit stands beside a number."""
    return _counted(text, _AFTER, _BEFORE, _MILLIONS)


def _at_most(units: Counter[str], text: str) -> Counter[str]:
    """The same with what is a unit only if the other text has it, and with parts of units."""
    both = units + _counted(text, _CLOSE)
    for whole, part in _PART_OF.items():
        both[part] += both[whole]
    return both


def _counted(text: str, *patterns: re.Pattern[str]) -> Counter[str]:
    """How often each unit is found; a sign between two numbers is one."""
    found = {
        match.end(match.lastindex or 0): match[match.lastindex or 0]
        for pattern in patterns
        for match in pattern.finditer(text)
    }
    return Counter(_SIGNS[sign] for sign in found.values())
