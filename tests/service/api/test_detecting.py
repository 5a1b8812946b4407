import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

from model.text.languages.detection import Detection
from model.text.languages.tags import LanguagePair
from service.api.detecting import detected_sources, document_source, ranked_languages
from service.api.languages import ChosenRoute
from service.errors import RequestError
from service.models.requests.detection import LanguageDetection
from service.models.routes.routing import Hop, Route

ON = LanguageDetection("auto", thread=ThreadPoolExecutor(1))
OFF = LanguageDetection("off", thread=ThreadPoolExecutor(1))
LANGUAGES = ("en", "zh-Hans", "ru")


def _route(source: str) -> Route:
    return Route(hops=(Hop(checkpoint="a", pair=LanguagePair(source=source, target="ru")),))


STAYS = {"ru": Route(hops=(), stays_in="ru")}
ONE = {"en": _route("en"), **STAYS}
TWO = {"en": _route("en"), "zh-Hans": _route("zh-Hans"), **STAYS}


def _sources(detection: LanguageDetection, by_source: dict[str, Route]) -> list[Detection]:
    texts = ["Привет", "你好"]
    return asyncio.run(detected_sources(detection, texts, by_source, "interactive"))


def _ranked(*texts: str, detection: LanguageDetection = ON) -> list[tuple[str, int]]:
    found = asyncio.run(ranked_languages(detection, texts, LANGUAGES, "interactive"))
    return [(one.tag, one.confidence) for one in found]


def test_a_text_is_in_a_language_that_can_be_translated_or_in_the_targets() -> None:
    assert [one.tag for one in _sources(ON, TWO)] == ["ru", "zh-Hans"]
    assert [one.tag for one in _sources(ON, ONE)] == ["ru", "en"]


def test_off_takes_the_only_language_there_is_and_refuses_to_choose() -> None:
    assert _sources(OFF, ONE) == [Detection(tag="en", confidence=0)] * 2
    with pytest.raises(RequestError, match=r"source is auto, but 2 .* detection is off") as caught:
        _sources(OFF, TWO)
    problem = caught.value.problem
    assert (problem.status, problem.value, problem.limit) == (400, "auto", "en, zh-Hans")


def test_a_document_is_auto_only_where_its_language_will_be_detected() -> None:
    named = ChosenRoute(route=_route("en"))
    one, two = (ChosenRoute(route=_route("en"), by_source=each) for each in (ONE, TWO))
    assert [document_source(ON, each) for each in (named, one, two)] == ["en", "auto", "auto"]
    assert [document_source(OFF, each) for each in (named, one)] == ["en", "en"]
    with pytest.raises(RequestError, match=r"source is auto, but 2 .* detection is off"):
        document_source(OFF, two)


def test_the_languages_of_several_texts_are_weighed_by_their_characters() -> None:
    assert _ranked("你好") == [("zh-Hans", 100)]
    assert _ranked("Hello", "你好吗我很好") == [("zh-Hans", 55), ("en", 45)]
    assert _ranked("Hello", "World") == [("en", 100)]


def test_texts_that_say_nothing_are_of_the_first_language_and_not_sure() -> None:
    assert _ranked(" ") == [("en", 0)]
    assert _ranked("", "") == [("en", 0)]


def test_off_is_a_403_as_of_what_libretranslate_has_switched_off() -> None:
    with pytest.raises(RequestError) as caught:
        _ranked("Hello", detection=OFF)
    assert (caught.value.problem.status, caught.value.problem.code) == (403, "detection_off")
