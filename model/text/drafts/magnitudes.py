"""Magnitudes: words and signs directly behind a number that multiply it (12万, 3 million, 5 Mrd.).

Owns a closed list of English, German and Chinese ones, most of which other languages share. What
else a language calls them is not known here. That is told apart by script: of a text with Chinese
characters the list is whole, and a language in another script counts in thousands.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

_EXPONENTS: Mapping[str, int] = MappingProxyType(
    {
        # No plural of English: in 2015 millions of people came.
        r"(?:thousand|tausend|tsd)\b": 3,
        r"(?:million|millionen|mio)\b": 6,
        # A German Billion is a thousand times an English billion; Billionen can be told.
        r"(?:(?-i:b)illion|bn|milliarden?|mrd)\b": 9,
        r"(?:billionen|(?-i:t)rillion)\b": 12,
        # 5千克 and 2百万像素 are kilograms and megapixels, 2023万圣节 is a feast.
        r"千(?![克米瓦卡字赫帕伏焦兆吨升禧])": 3,
        r"十[万萬]": 5,
        r"百[万萬](?![字像])": 6,
        r"千[万萬]": 7,
        r"[万萬][亿億]": 12,
        r"[万萬](?![圣聖能维維豪科事])": 4,
        r"十[亿億]": 9,
        r"百[亿億]": 10,
        r"千[亿億]": 11,
        r"[亿億]": 8,
    }
)
_LAST = tuple(_EXPONENTS.values())
_MAGNITUDE = re.compile(
    rf"(?i:[ \u00a0\u202f-]?[多余餘]?(?:{'|'.join(f'({words})' for words in _EXPONENTS)}))"
)
_CHINESE = re.compile("[\u4e00-\u9fff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Magnitude:
    """A magnitude behind a number.

    Attributes:
        end: Where it ends, in characters.
        exponent: Of ten.
    """

    end: int
    exponent: int

    @property
    def is_of_thousands(self) -> bool:
        """Whether every language has a word for it."""
        return self.exponent % 3 == 0


def magnitude_at(text: str, place: int) -> Magnitude | None:
    """The magnitude that stands at a place, which is the end of a number."""
    found = _MAGNITUDE.match(text, place)
    if found is None:
        return None
    return Magnitude(end=found.end(), exponent=_LAST[(found.lastindex or 1) - 1])


def knows_all_magnitudes(text: str) -> bool:
    """Whether a number of a text that has no magnitude here has none at all."""
    return _CHINESE.search(text) is not None
