"""Detection of texts' languages for requests: off the event loop, among what can be translated.

Owns the detectors of the process, how many statistics they may keep in memory, and when these are
read. How a language is told is `model.text.languages.detection`; from what a text may be translated
`service.api.languages`.
"""

import asyncio
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Executor
from typing import TypeVar

from model.text.languages.detection import Detection, TextDetector, forget_statistics, statistics_of
from service.models.requests.text_work import TextWork
from service.priority import Priority
from service.settings import DetectionMode

MAX_ACCURATE_LANGUAGES = 8
"""Languages that "auto" reads all statistics of (30 MB each); of more it reads few (2 MB each)."""

_MAX_DETECTORS = 64

T = TypeVar("T")


class LanguageDetection:
    """Detector of languages for many requests.

    Args:
        mode: How many statistics there are.
        thread: Where texts are looked at.
    """

    def __init__(self, mode: DetectionMode, *, thread: Executor) -> None:
        self._mode = mode
        self._work = TextWork(thread, asyncio.Semaphore(1))
        self._detectors: dict[tuple[str, ...], TextDetector] = {}  # the last one used, last
        self._known: frozenset[str] = frozenset()
        self._is_compact = mode == "compact"

    def __repr__(self) -> str:
        return f"<LanguageDetection {self._mode}: {len(self._known)} languages>"

    @property
    def is_on(self) -> bool:
        """Whether languages are detected at all; if not, nothing else here may be called."""
        return self._mode != "off"

    async def detect(
        self, texts: Sequence[str], tags: Sequence[str], priority: Priority
    ) -> list[Detection]:
        """The likeliest language of each text.

        Args:
            texts: Any.
            tags: Candidates; the first wins where a text says nothing.
            priority: The class of the request.
        """
        detector = self._detector(tags)
        return await self._each(detector.detect, texts, priority)

    async def ranked(
        self, texts: Sequence[str], tags: Sequence[str], priority: Priority
    ) -> list[tuple[Detection, ...]]:
        """The languages that each text may be in, the likeliest first.

        Args:
            texts: As of `detect`.
            tags: As of `detect`.
            priority: As of `detect`.
        """
        detector = self._detector(tags)
        return await self._each(detector.ranked, texts, priority)

    def read_statistics(self, tags: Collection[str]) -> None:
        """Read the statistics of languages now, and free those of all others; it takes a while.

        Args:
            tags: All languages that may be candidates from now on.
        """
        if not self.is_on:
            return
        needed = statistics_of(tags)
        is_many = len(needed) > MAX_ACCURATE_LANGUAGES
        self._is_compact = self._mode == "compact" or (self._mode == "auto" and is_many)
        self._detectors = {}
        forget_statistics(self._known - needed)
        self._known = needed
        if tags:
            TextDetector(tags, is_compact=self._is_compact).read_statistics()

    async def _each(
        self, function: Callable[[str], T], texts: Sequence[str], priority: Priority
    ) -> list[T]:
        sizes = [len(text) for text in texts]
        return [found async for found in self._work.map(function, texts, sizes, priority)]

    def _detector(self, tags: Sequence[str]) -> TextDetector:
        key = tuple(tags)
        detector = self._detectors.pop(key, None)
        if detector is None:
            detector = TextDetector(key, is_compact=self._is_compact)
        self._detectors[key] = detector
        while len(self._detectors) > _MAX_DETECTORS:
            del self._detectors[next(iter(self._detectors))]
        return detector
