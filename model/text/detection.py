"""Language of a text, among the languages that can be translated.

Owns the choice among candidates, and how sure it is. The statistics are lingua's (Apache-2.0, its
data in the package); languages that it does not know are never chosen. Chinese is told apart by
script here: lingua knows one Chinese.
"""

import threading
from collections.abc import Iterable
from dataclasses import dataclass

from lingua import IsoCode639_1, LanguageDetector, LanguageDetectorBuilder

from model.text.language import primary_language

MAX_CHARACTERS = 1_000
"""Of a text that are looked at: what is longer says nothing new, and costs time."""

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

    Its statistics are read when they are first needed (some 30 MB a language); threads
    may share it.

    Args:
        tags: Candidates, canonical; the first wins where nothing tells them apart.

    Raises:
        ValueError: There is no candidate.
    """

    def __init__(self, tags: Iterable[str]) -> None:
        self._tags = tuple(dict.fromkeys(tags))
        if not self._tags:
            raise ValueError("tags is empty; there must be at least one candidate")
        self._by_code: dict[str, list[str]] = {}
        for tag in self._tags:
            language = primary_language(tag)
            code = _MACRO_LANGUAGES.get(language, language).upper()
            if hasattr(IsoCode639_1, code):
                self._by_code.setdefault(code, []).append(tag)
        self._detector: LanguageDetector | None = None
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"<TextDetector of {', '.join(self._tags)}>"

    def detect(self, text: str) -> Detection:
        """The likeliest candidate.

        Args:
            text: Any text; its first `MAX_CHARACTERS` are looked at.
        """
        text = text[:MAX_CHARACTERS]
        if len(self._by_code) < 2:
            tags = next(iter(self._by_code.values()), list(self._tags))
            return Detection(tag=_by_script(tags, text), confidence=0)
        best = self._opened().compute_language_confidence_values(text)[0]
        if best.value <= 0.0:
            return Detection(tag=self._tags[0], confidence=0)
        tags = self._by_code[best.language.iso_code_639_1.name]
        confidence = round(100 * best.value) if any(map(str.isalpha, text)) else 0
        return Detection(tag=_by_script(tags, text), confidence=confidence)

    def _opened(self) -> LanguageDetector:
        with self._lock:
            if self._detector is None:
                codes = [getattr(IsoCode639_1, code) for code in self._by_code]
                self._detector = LanguageDetectorBuilder.from_iso_codes_639_1(*codes).build()
            return self._detector


def _by_script(tags: list[str], text: str) -> str:
    """The tag of a language whose script the text has, where a language has several."""
    scripts = {"zh-Hans": _SIMPLIFIED, "zh-Hant": _TRADITIONAL}
    if len(tags) == 1 or not scripts.keys() <= set(tags):
        return tags[0]
    counts = {tag: sum(letter in letters for letter in text) for tag, letters in scripts.items()}
    return max((tag for tag in tags if tag in counts), key=lambda tag: counts[tag])
