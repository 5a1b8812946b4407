"""Scripts: which one a text is written in, and which one a language is written in.

Owns the two tables that detection needs before any statistics: most languages that are loaded
together are told apart by their letters alone; which characters are of one word, and which
languages are written without spaces. Where sentences end is `model.text.sentences.segmenter`.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType

# Languages that are written without spaces between sentences.
UNSPACED_LANGUAGES = frozenset(
    {"zh", "ja", "yue", "wuu", "lzh", "th", "lo", "km", "my", "bo", "dz"}
)

LATIN = "LATIN"
HAN = "CJK"
KANA = "KANA"
HANGUL = "HANGUL"

UNSPACED_SCRIPTS = frozenset({HAN, KANA, "THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN"})
"""Scripts that have no spaces between words."""

_WEIGHTS: Mapping[str, int] = MappingProxyType({HAN: 4, HANGUL: 3, KANA: 2})
"""Letters of an alphabet that one sign of these scripts stands for, roughly."""

_JOINERS = frozenset("\u200c\u200d")
UNSPACED_LETTERS = r"\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff"
"""Of a pattern's class: Thai, Lao, Tibetan, Burmese and Khmer, narrow letters without spaces."""
_UNSPACED = re.compile(f"[{UNSPACED_LETTERS}]")

_KANA_NAMES = frozenset({"HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA"})
_WIDTHS = frozenset({"FULLWIDTH", "HALFWIDTH"})

_BY_LANGUAGE: Mapping[str, str] = MappingProxyType(
    {
        language: script
        for script, languages in {
            "CYRILLIC": "ab ba be bg ce cv kk kv ky mhr mk mn myv os ru sah sr tg tt tyv udm uk",
            "ARABIC": "acm acq aeb ajp apc ar arb ars ary arz azb ckb fa ks pes prs ps sd ug ur",
            "HEBREW": "he iw yi",
            "GREEK": "el grc",
            "ARMENIAN": "hy",
            "GEORGIAN": "ka",
            "DEVANAGARI": "awa bho brx doi hi hne kok mag mai mr ne npi sa",
            "BENGALI": "as bn mni",
            "GURMUKHI": "pa",
            "GUJARATI": "gu",
            "ORIYA": "or ory",
            "TAMIL": "ta",
            "TELUGU": "te",
            "KANNADA": "kn",
            "MALAYALAM": "ml",
            "SINHALA": "si",
            "THAI": "th",
            "LAO": "lo",
            "KHMER": "km",
            "MYANMAR": "my shn",
            "TIBETAN": "bo dz",
            "ETHIOPIC": "am ti",
            "TIFINAGH": "ber tzm zgh",
            "THAANA": "dv",
            HANGUL: "ko",
            KANA: "ja",
            HAN: "lzh wuu yue zh",
        }.items()
        for language in languages.split()
    }
)
"""Languages that are not written in Latin letters (CLDR, likely subtags)."""

_BY_SUBTAG: Mapping[str, str] = MappingProxyType(
    {
        "Arab": "ARABIC",
        "Beng": "BENGALI",
        "Cyrl": "CYRILLIC",
        "Deva": "DEVANAGARI",
        "Hang": HANGUL,
        "Hans": HAN,
        "Hant": HAN,
        "Hebr": "HEBREW",
        "Jpan": KANA,
        "Kore": HANGUL,
        "Latn": LATIN,
        "Tfng": "TIFINAGH",
        "Tibt": "TIBETAN",
    }
)
"""Scripts as a language tag names them (ISO 15924)."""


def is_one_word(before: str, after: str, *, joining: str = "") -> bool:
    """Whether two characters, one behind the other, are of one word; nothing is of none.

    Letters of scripts without spaces are each by itself, as nobody here knows where words end;
    what stands at a letter is of its word in every script.

    Args:
        before: A character, or nothing.
        after: Likewise.
        joining: Characters that are of a word beside letters and digits.
    """
    if not before or not after or not _is_of_word(before, joining):
        return False
    if _is_sign_of_letter(after):
        return True
    return _is_of_word(after, joining) and _has_spaces(before) and _has_spaces(after)


def _is_of_word(character: str, joining: str) -> bool:
    return character.isalnum() or character in joining or _is_sign_of_letter(character)


def _has_spaces(character: str) -> bool:
    """Whether words of its script have spaces between them."""
    is_wide = unicodedata.east_asian_width(character) in {"W", "F"}
    return not is_wide and _UNSPACED.match(character) is None


def _is_sign_of_letter(character: str) -> bool:
    """Whether it stands at a letter: an accent, a vowel sign, what joins letters or parts them."""
    category = unicodedata.category(character)
    is_variation = "\ufe00" <= character <= "\ufe0f"
    return (category in ("Mn", "Mc") and not is_variation) or character in _JOINERS


def script_of_language(tag: str) -> str:
    """The script that texts of a language are written in: `de` → LATIN, `sr-Latn` → LATIN.

    Japanese is KANA: its texts have Chinese characters too, but few are without any kana.

    Args:
        tag: Canonical.
    """
    language, *subtags = tag.split("-")
    for subtag in subtags:
        if subtag in _BY_SUBTAG:
            return _BY_SUBTAG[subtag]
    return _BY_LANGUAGE.get(language, LATIN)


def is_of_language(letter: str, tag: str) -> bool:
    """Whether a letter is of the script of a language; a Chinese character is of Japanese, too."""
    own = script_of_language(tag)
    return _script_of(letter) in ((own, HAN) if own == KANA else (own,))


def scripts_of_text(text: str) -> Counter[str]:
    """How much of a text is in each script, by its letters; empty without any.

    A Chinese character counts as four letters, a Korean syllable as three, kana as two: they say
    as much.
    """
    found: Counter[str] = Counter()
    for letter, number in Counter(filter(str.isalpha, text)).items():
        script = _script_of(letter)
        found[script] += number * _WEIGHTS.get(script, 1)
    return found


def _script_of(letter: str) -> str:
    """The script of a letter, as the name of its character begins."""
    words = unicodedata.name(letter, "UNKNOWN").split()
    first = words[1] if words[0] in _WIDTHS and len(words) > 1 else words[0]
    return KANA if first in _KANA_NAMES else first
