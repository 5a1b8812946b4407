import asyncio
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from model.text.languages.detection import Detection
from service.models.requests import detection as module
from service.models.requests.detection import LanguageDetection

TAGS = ("en", "zh-Hans", "ru")


def _detection(mode: str = "auto", threads: ThreadPoolExecutor | None = None) -> LanguageDetection:
    return LanguageDetection(mode, thread=threads or ThreadPoolExecutor(1))  # type: ignore[arg-type]


def test_each_text_has_its_own_language_in_order() -> None:
    found = asyncio.run(_detection().detect(["Hello", "你好", "", "Привет"], TAGS, "interactive"))
    assert [(one.tag, one.confidence) for one in found] == [
        ("en", 100),
        ("zh-Hans", 100),
        ("en", 0),
        ("ru", 100),
    ]
    ranked = asyncio.run(_detection().ranked(["你好"], TAGS, "bulk"))
    assert ranked == [(Detection(tag="zh-Hans", confidence=100),)]


def test_texts_are_looked_at_on_the_thread_that_was_given() -> None:
    pool = ThreadPoolExecutor(1, thread_name_prefix="texts")
    detection = _detection(threads=pool)
    is_free = threading.Event()

    async def scenario() -> None:
        pool.submit(is_free.wait)
        waiting = asyncio.create_task(detection.detect(["Hello"], TAGS, "interactive"))
        await asyncio.sleep(0)
        assert not waiting.done()
        is_free.set()
        assert len(await waiting) == 1

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("mode", "limit", "is_compact"),
    [("auto", 3, False), ("auto", 2, True), ("accurate", 2, False), ("compact", 3, True)],
)
def test_many_languages_have_fewer_statistics_each(
    mode: str, limit: int, is_compact: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[tuple[Sequence[str], bool]] = []

    class Recorded:
        def __init__(self, tags: Sequence[str], *, is_compact: bool) -> None:
            made.append((tags, is_compact))

        def read_statistics(self) -> None:
            made.append(((), False))

    monkeypatch.setattr(module, "TextDetector", Recorded)
    monkeypatch.setattr(module, "MAX_ACCURATE_LANGUAGES", limit)
    tags = ["en", "de", "fr", "zh-Hans"]
    _detection(mode).read_statistics(tags)
    assert made == [(tags, is_compact), ((), False)]


def test_statistics_of_languages_that_are_gone_are_freed(monkeypatch: pytest.MonkeyPatch) -> None:
    freed: list[frozenset[str]] = []
    monkeypatch.setattr(module, "forget_statistics", freed.append)
    detection = _detection("compact")
    detection.read_statistics(["en", "de", "zh-Hans"])
    detection.read_statistics(["en", "zh-Hans"])
    assert freed == [frozenset(), {"EN", "DE"}]


def test_detectors_are_kept_up_to_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MAX_DETECTORS", 2)
    detection = _detection()

    async def scenario() -> None:
        for tags in (["en"], ["ru"], ["en"], ["zh-Hans"]):
            await detection.detect(["Hello"], tags, "interactive")

    asyncio.run(scenario())
    assert list(detection._detectors) == [("en",), ("zh-Hans",)]


def test_off_reads_nothing() -> None:
    detection = _detection("off")
    detection.read_statistics(["en", "de"])
    assert not detection.is_on
    assert repr(detection) == "<LanguageDetection off: 0 languages>"
