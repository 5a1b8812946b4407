"""Language of a text, among the languages that can be translated.

Owns the choice among candidates, and how sure it is: by script first, then, among languages of one
script, by lingua's statistics (Apache-2.0, its data in the package). A language that has neither a
script of its own nor statistics is never chosen. Chinese is told apart by its characters here:
lingua knows one Chinese.
"""

import re
import threading
import time
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from lingua import IsoCode639_1, LanguageDetector, LanguageDetectorBuilder

from model.text.languages.common_words import is_known, likelihood
from model.text.languages.scripts import HAN, KANA, script_of_language, scripts_of_text
from model.text.languages.tags import primary_language

MAX_CHARACTERS = 400
"""Of a text that are looked at, what is no words left out: what is longer says nothing new, and
lingua keeps the interpreter to itself meanwhile."""

_MAX_READ = 4000
"""Characters in which those are looked for, from a little before the first letter on."""
_MAX_BEFORE = 64
"""Characters before it: it may be in a tag, or in an address that begins with digits."""

_MACRO_LANGUAGES = {"no": "nb", "iw": "he", "in": "id", "fil": "tl"}
"""Codes that lingua has under another name (ISO 639-1, its revisions, and its macrolanguages)."""

_TRADITIONAL = frozenset(
    "這個們來對時說國會過後還裡開長問見學點現經實動與電話語東車馬魚鳥門間關頭臺灣萬無樣種讓請認識誰"
    "麼嗎買賣書報紙筆畫員員問題應該聽覺愛歡樂謝氣錢網線機場飛當從應處變邊遠進運連選錯鐘響飯館體麗黃齊"
)
_SIMPLIFIED = frozenset(
    "这个们来对时说国会过后还里开长问见学点现经实动与电话语东车马鱼鸟门间关头台湾万无样种让请认识谁"
    "么吗买卖书报纸笔画员员问题应该听觉爱欢乐谢气钱网线机场飞当从应处变边远进运连选错钟响饭馆体丽黄齐"
)
"""Frequent characters that are written in two ways, in the same order."""

_HAN_FOR_KANA = 20
"""Weight of Chinese characters beside kana of one in a text that is Japanese."""

_PAUSE_SECONDS = 0.01
"""Between two languages whose statistics are read: long enough for other threads."""

_NO_WORDS = re.compile(
    r"(?:https?://|www\.)[^\s\u2e80-\uffff]++"
    r"|(?:(?<![!-?A-~])[!-?A-~]++|[!-?A-~]{1,64}+)@[!-?A-~]++"
    r"|\{[^{}]*+\}|<[^<>]*+>"
)
"""Addresses, placeholders and tags, which are of no language."""

_LETTER = re.compile(r"[^\W\d_]")
_BETWEEN = re.compile(r"[\W\d_]{16,}+")
"""Tables of numbers, lines of dashes, empty lines, which leave little room for words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Detection:
    """A language, and how sure that is.

    Attributes:
        tag: One of the candidates.
        confidence: From 0 (there was nothing to go by) to 100.
    """

    tag: str
    confidence: int


class TextDetector:
    """Detector of a text's language among candidates.

    Its statistics are read when they are first needed, and only of languages that share their
    script with another candidate; all detectors of a process share them. Threads may share it.

    Args:
        tags: Candidates, canonical; the first wins where nothing tells them apart.
        is_compact: Use few statistics: 2 MB a language and not 30, and worse on a few words.

    Raises:
        ValueError: There is no candidate.
    """

    def __init__(self, tags: Iterable[str], *, is_compact: bool = False) -> None:
        self._tags = tuple(dict.fromkeys(tags))
        if not self._tags:
            raise ValueError("tags is empty; there must be at least one candidate")
        by_script: dict[str, list[str]] = {}
        for tag in self._tags:
            by_script.setdefault(script_of_language(tag), []).append(tag)
        self._by_script = {
            script: _SameScript(tags, is_compact=is_compact) for script, tags in by_script.items()
        }

    def __repr__(self) -> str:
        return f"<TextDetector of {', '.join(self._tags)}>"

    def detect(self, text: str) -> Detection:
        """The likeliest candidate.

        Args:
            text: Any text; the first `MAX_CHARACTERS` of its words are looked at.
        """
        return self.ranked(text)[0]

    def ranked(self, text: str) -> tuple[Detection, ...]:
        """The candidates that a text may be in, the likeliest first; one where nothing says which.

        Args:
            text: As of `detect`.
        """
        text = _looked_at(text)
        weights = self._weights(text)
        script = max(self._by_script, key=lambda script: weights[script])
        if not weights[script]:
            return (Detection(tag=self._tags[0], confidence=0),)
        share = weights[script] / weights.total() if len(self._tags) > 1 else 0.0
        if script == HAN and KANA in self._by_script:
            share *= _chance_of_no_kana(weights[HAN])
        return tuple(
            Detection(tag=tag, confidence=round(100 * share * value))
            for tag, value in self._by_script[script].values(text)
        )

    def read_statistics(self) -> None:
        """Read now whatever a text may need, so that no text waits for it."""
        for same in self._by_script.values():
            same.read_statistics()

    def _weights(self, text: str) -> Counter[str]:
        """How much of a text is in each script; Chinese characters count for who may have them."""
        weights = scripts_of_text(text)
        if HAN not in self._by_script:
            weights[KANA] += weights.pop(HAN, 0)
        elif KANA in self._by_script:
            is_japanese = weights[KANA] > 0 and weights[HAN] <= _HAN_FOR_KANA * weights[KANA]
            kept, other = (KANA, HAN) if is_japanese else (HAN, KANA)
            weights[kept] += weights.pop(other, 0)
        return weights


class _SameScript:
    """Candidates that are written in one script, and what tells them apart."""

    def __init__(self, tags: Sequence[str], *, is_compact: bool) -> None:
        self._tags = tuple(tags)
        self._is_compact = is_compact
        self._by_code: dict[str, list[str]] = {}
        for tag in tags:
            code = _code(tag)
            if code is not None:
                self._by_code.setdefault(code, []).append(tag)
        self._detector: LanguageDetector | None = None
        self._lock = threading.Lock()

    def values(self, text: str) -> list[tuple[str, float]]:
        """The likeliest tags with their probabilities, best first; at least one."""
        if len(self._tags) == 1:
            return [(self._tags[0], 1.0)]
        if len(self._by_code) < 2:
            tags = next(iter(self._by_code.values()), list(self._tags))
            tag, sure = _of_one_language(tags, text)
            return [(tag, sure if self._by_code and len(tags) == len(self._tags) else 0.0)]
        likely = []
        for code, value in self._by_letters_and_words(text):
            tag, sure = _of_one_language(self._by_code[code], text)
            if round(100 * sure * value) > 0:
                likely.append((tag, sure * value))
        return likely or [(self._tags[0], 0.0)]

    def _by_letters_and_words(self, text: str) -> list[tuple[str, float]]:
        """Codes with their probabilities, best first; words count where the best has any."""
        found = [
            (one.language.iso_code_639_1.name, one.value)
            for one in self._opened().compute_language_confidence_values(text)
        ]
        if not is_known(_language(found[0][0])):
            return found
        weighed = [(code, value * likelihood(text, _language(code))) for code, value in found]
        total = sum(value for _, value in weighed) or 1.0
        return sorted(((code, value / total) for code, value in weighed), key=lambda one: -one[1])

    def read_statistics(self) -> None:
        """Read the statistics of all candidates, if they need any.

        One language after the other: no other thread of the interpreter runs while lingua reads.
        """
        codes = list(self._by_code)
        for number in range(2, len(codes) + 1):
            builder = _builder(codes[:number], is_compact=self._is_compact)
            builder.with_preloaded_language_models().build()
            time.sleep(_PAUSE_SECONDS)

    def _opened(self) -> LanguageDetector:
        with self._lock:
            if self._detector is None:
                self._detector = _builder(self._by_code, is_compact=self._is_compact).build()
            return self._detector


def statistics_of(tags: Iterable[str]) -> frozenset[str]:
    """Codes of the languages whose statistics a detector of these candidates reads."""
    by_script: dict[str, set[str]] = {}
    for tag in tags:
        code = _code(tag)
        if code is not None:
            by_script.setdefault(script_of_language(tag), set()).add(code)
    return frozenset(code for codes in by_script.values() if len(codes) > 1 for code in codes)


def forget_statistics(codes: Collection[str]) -> None:
    """Free the statistics of languages, given by the codes of `statistics_of`."""
    if codes:
        detector = _builder(codes, is_compact=False).build()
        detector.unload_language_models()  # type: ignore[no-untyped-call]  # its stub says nothing


def _looked_at(text: str) -> str:
    """What there is to go by: the first words, without what is none."""
    letter = _LETTER.search(text)
    if letter is None:
        return ""
    begin = max(0, letter.start() - _MAX_BEFORE)
    words = _NO_WORDS.sub(" ", text[begin : begin + _MAX_READ])
    return _BETWEEN.sub(" ", words)[:MAX_CHARACTERS]


def _builder(codes: Iterable[str], *, is_compact: bool) -> LanguageDetectorBuilder:
    languages = [getattr(IsoCode639_1, code) for code in codes]
    builder = LanguageDetectorBuilder.from_iso_codes_639_1(*languages)
    return builder.with_low_accuracy_mode() if is_compact else builder


def _code(tag: str) -> str | None:
    """What lingua calls a language; None where it does not know it."""
    language = primary_language(tag)
    code = _MACRO_LANGUAGES.get(language, language).upper()
    return code if hasattr(IsoCode639_1, code) else None


def _language(code: str) -> str:
    """The language that lingua calls so; of Norwegian, what both written ones have in common."""
    return "no" if code == "NB" else code.lower()


def _chance_of_no_kana(han_weight: int) -> float:
    """How likely a text of Chinese characters alone is not Japanese, which long ones never are."""
    chance: float = 1.0 - 0.5 ** (han_weight / 16)
    return max(0.5, chance)


def _of_one_language(tags: Sequence[str], text: str) -> tuple[str, float]:
    """The tag of a language that has several, and how sure: by its characters for Chinese."""
    letters = {"zh-Hans": _SIMPLIFIED, "zh-Hant": _TRADITIONAL}
    counts = {tag: sum(map(letters[tag].__contains__, text)) for tag in tags if tag in letters}
    if len(counts) < 2:
        return tags[0], 1.0
    best = max(counts, key=lambda tag: counts[tag])
    total = sum(counts.values())
    return best, counts[best] / total if total else 1 / len(counts)
