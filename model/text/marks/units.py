"""Units and currencies beside numbers: a closed list of their signs, and what else they are called.

Owns which signs those are, where a number with one stands, and whether two texts have the same. A
sign that is a word or an abbreviation of something else as well (`in`, `min`, `s`, `K`) is none
here; a letter alone is one only behind a number and a space. The words that stand for a unit in
Latin and Chinese script are beginnings of words, because languages share them.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from model.text.marks.finding import Mark, find_numbers

_BEHIND: Mapping[str, str] = MappingProxyType(
    {
        "%": r"pro[cz]ent|per ?cent|pour cent|por c[ie]|per cento|procent|百分|％|成",
        "‰": "promille|per mil|千分",
        "°C": r"\dC\b|celsius|摄氏|攝氏|degree|grad|gr[aá]|度|℃",
        "°F": r"\d ?F\b|fahrenheit|华氏|華氏|degree|grad|gr[aá]|度|℉",
        "°": r"degree|grad|gr[aá]|度",
        "km": r"[kq]ilom|quil[oó]m|kil[oó]m|chilom|公里|千米|キロ",
        "m": r"met[er]|mètr|metr|米|公尺|メートル",
        "cm": r"[cz]entim|centím|厘米|公分|センチ",
        "mm": r"mil+im|milím|毫米|ミリ",
        "µm μm um": r"mi[ck]rom|微米",
        "nm": r"nanom|nanóm|纳米|奈米",
        "kg": r"[kc]h?ilo|quilo|公斤|千克|キロ",
        "g": r"gram|克|公克|グラム",
        "mg": r"mil+igr|毫克|ミリ",
        "µg μg mcg": r"mi[ck]rogr|微克",
        "l L": r"lit[er]|litr|升|リットル",
        "ml mL": r"mil+ilit|mililit|毫升|ミリ",
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
        "kB KB": "kilobyte|千字节",
        "MB": "megabyte|兆|百万字节",
        "GB": "gigabyte|千兆|吉|十亿字节",
        "TB": "terabyte|太字节",
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
        "$ US$ USD": r"dollar|d[oó]lar|美元|美金|元|buck|ドル",
        "€ EUR": "euro|欧元|歐元|ユーロ",
        "£ GBP": "pound|pfund|livre|libra|sterl|英镑|镑|ポンド",
        "¥ ￥ CNY RMB JPY": "yuan|yen|renminbi|元|円|块|人民币",
        "₹ INR": "rup[ei]|卢比",
        "₽ RUB": "r[ou]b|卢布",
        "₩ KRW": "won|韩元",
        "CHF": r"fran[ck]|法郎|fr\.",
    }
)
"""Signs that stand before a number, too."""


_END = "(?![A-Za-z0-9_\u00c0-\u024f])"


def _signs(table: Mapping[str, str]) -> dict[str, str]:
    return {sign: keys for keys in table for sign in keys.split()}


def _one_of(signs: Mapping[str, str]) -> str:
    """One of them, the longest first; no letter or digit goes on behind it."""
    ordered = sorted(signs, key=len, reverse=True)
    return rf"(?:{'|'.join(map(re.escape, ordered))}){_END}"


_MONEY = _signs(_BESIDE)
_SIGNS = {**_signs(_BEHIND), **_MONEY}
_WORDS = {keys: re.compile(words, re.IGNORECASE) for keys, words in {**_BEHIND, **_BESIDE}.items()}
_SPACE = "[ \u00a0\u202f-]"
_MONEY_SIGN = "|".join(sorted(map(re.escape, _MONEY), key=len, reverse=True))
_SINGLE = "|".join(sign for sign in _SIGNS if len(sign) == 1 and sign.isalpha())
_AFTER = re.compile(
    rf"(?<=\d)(?:{_SPACE}?(?!(?:{_SINGLE}){_END}){_one_of(_SIGNS)}"
    rf"|{_SPACE}(?:{_SINGLE}){_END}(?!\.\w))"
)
# 2.5 Mrd. $, 700 million €
_MILLIONS = re.compile(
    rf"(?i:\d[ \u00a0]?(?:mi[lo]\w{{0,10}}|mrd|bil\w{{0,8}}|tsd|bn|mn|[mk])\.?)[ \u00a0]?"
    rf"({_MONEY_SIGN}){_END}"
)
_BEFORE = re.compile(rf"(?a:(?<![\w$]))(?:{_MONEY_SIGN}){_SPACE}?(?=\d)")
_HINT = re.compile(r"\d")


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
    for found in _BEFORE.finditer(text):
        at = bisect_left(starts, found.end())
        if at < len(starts) and starts[at] == found.end():
            numbers[at] = replace(numbers[at], start=found.start())
    return [
        number
        for index, number in enumerate(numbers)
        if not index or numbers[index - 1].end <= number.start
    ]


def differs_in_units(source: str, target: str) -> bool:
    """Whether a unit beside a number is missing in the target, or is there and in no source.

    A unit may be written as a word in one of them. Of scripts in which units have other names
    nothing is said.
    """
    if _HINT.search(source) is None and _HINT.search(target) is None:
        return False
    own, other = _units(source), _units(target)
    if own == other:
        return False
    return any(
        other[unit] + len(_WORDS[unit].findall(target)) < number for unit, number in own.items()
    ) or any(unit not in own and _WORDS[unit].search(source) is None for unit in other)


def _units(text: str) -> Counter[str]:
    """How often each unit stands beside a number."""
    found = [match[0] for pattern in (_AFTER, _BEFORE) for match in pattern.finditer(text)]
    found += [match[1] for match in _MILLIONS.finditer(text)]
    return Counter(_SIGNS[one.strip(" \u00a0\u202f-")] for one in found)
