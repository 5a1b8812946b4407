"""Texts of one request that take different routes, over drivers that say what they were given."""

import asyncio
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from model.text.languages.tags import LanguagePair
from service.errors import RequestError, invalid
from service.models.requests.translation import (
    DoneSegment,
    OnSegment,
    TranslatedText,
    TranslationRequest,
)
from service.models.routes.routing import Hop, Route
from service.models.translating.counting import MAX_COPIED_SEGMENTS
from service.models.translating.several_routes import (
    SeveralRoutes,
    checkpoints_of,
    translator_of,
    unchanged,
)


def _hop(source: str, target: str) -> Hop:
    pair = LanguagePair(source=source, target=target)
    return Hop(checkpoint=f"{source}-{target}", pair=pair)


EN_DE = Route(hops=(_hop("en", "de"),))
ZH_DE = Route(hops=(_hop("zh", "en"), _hop("en", "de")))
STAYS = Route(hops=(), stays_in="de")


class Driver:
    """Driver of a route: answers with what it was given, or fails, or waits for ever."""

    def __init__(
        self, route: Route, *, error: Exception | None = None, waits: bool = False
    ) -> None:
        self.requests: list[TranslationRequest] = []
        self.was_cancelled = False
        self._route, self._error, self._waits = route, error, waits

    async def translate(
        self, request: TranslationRequest, on_segment: OnSegment | None = None
    ) -> list[TranslatedText]:
        self.requests.append(request)
        try:
            await (asyncio.Event().wait() if self._waits else asyncio.sleep(0))
        except asyncio.CancelledError:
            self.was_cancelled = True
            raise
        if self._error is not None:
            raise self._error
        for place, text in enumerate(request.texts):
            if on_segment is not None:
                on_segment(
                    DoneSegment(
                        text_index=place, index=0, start=0, source=text, text=text, segments=()
                    )
                )
        return [unchanged(f"{self._route.source}: {text}") for text in request.texts]


def _request(*texts: str, seconds: float = 60.0) -> TranslationRequest:
    return TranslationRequest(
        texts=texts,
        route=EN_DE,
        by_source={"en": EN_DE, "zh": ZH_DE, "de": STAYS},
        beam_size=2,
        length_penalty=1.0,
        num_alternatives=0,
        max_length=None,
        with_alignment=False,
        timeout_seconds=seconds,
        spent_seconds=0.25,
        priority="bulk",
        client=7,
    )


def test_each_text_takes_its_route_and_the_answers_are_in_order() -> None:
    english, chinese = Driver(EN_DE), Driver(ZH_DE)
    several = SeveralRoutes([EN_DE, STAYS, ZH_DE, EN_DE, STAYS], {EN_DE: english, ZH_DE: chinese})
    request = _request("one", "zwei ", "san", "four", " ")
    results = asyncio.run(several.translate(request))
    assert [result.best.text for result in results] == [
        "en: one",
        "zwei ",
        "zh: san",
        "en: four",
        " ",
    ]
    [asked] = english.requests
    assert asked.tally is not None
    assert asked == replace(request, texts=("one", "four"), by_source=None, tally=asked.tally)
    assert chinese.requests == [replace(asked, texts=("san",), route=ZH_DE)]


def test_what_stays_is_one_copied_segment_and_nothing_is_none() -> None:
    whole, empty = unchanged(" Guten Tag.\nJa. "), unchanged("\n")
    assert [segment.source for segment in whole.best.segments] == [" Guten Tag.\nJa. "]
    assert (whole.best.segments[0].is_verbatim, whole.hypotheses) == (True, (None,))
    assert (empty.best.text, empty.best.segments, empty.hypotheses) == ("\n", (), ())


def test_what_stays_counts_as_copied() -> None:
    several = SeveralRoutes([STAYS] * (MAX_COPIED_SEGMENTS + 1), {})
    request = _request(*["7"] * (MAX_COPIED_SEGMENTS + 1))
    with pytest.raises(RequestError) as caught:
        asyncio.run(several.translate(request))
    problem = caught.value.problem
    assert (problem.status, problem.limit) == (413, MAX_COPIED_SEGMENTS)


def test_the_failure_of_one_route_ends_the_others_and_is_the_answer() -> None:
    failing, waiting = Driver(EN_DE, error=invalid("no")), Driver(ZH_DE, waits=True)
    several = SeveralRoutes([EN_DE, ZH_DE], {EN_DE: failing, ZH_DE: waiting})
    with pytest.raises(RequestError, match=r"^no$"):
        asyncio.run(several.translate(_request("one", "san")))
    assert waiting.was_cancelled


def test_a_cancelled_request_cancels_all_its_routes() -> None:
    drivers = [Driver(route, waits=True) for route in (EN_DE, ZH_DE)]
    several = SeveralRoutes([EN_DE, ZH_DE], dict(zip((EN_DE, ZH_DE), drivers, strict=True)))

    async def scenario() -> None:
        task = asyncio.create_task(several.translate(_request("one", "san")))
        while not all(driver.requests for driver in drivers):  # noqa: ASYNC110  # no event
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scenario())
    assert [driver.was_cancelled for driver in drivers] == [True, True]


def test_there_is_one_deadline_from_when_the_request_began() -> None:
    waiting = Driver(EN_DE, waits=True)
    several = SeveralRoutes([EN_DE, STAYS], {EN_DE: waiting})
    with pytest.raises(RequestError) as caught:
        asyncio.run(several.translate(_request("one", "zwei", seconds=0.25)))
    assert (caught.value.problem.status, caught.value.problem.limit) == (504, 0.25)
    assert waiting.was_cancelled


@pytest.mark.parametrize(
    ("routes", "kind"),
    [
        ([EN_DE], "str"),
        ([EN_DE, EN_DE], "str"),
        ([ZH_DE, ZH_DE], "TwoHops"),
        ([EN_DE, ZH_DE], "SeveralRoutes"),
        ([EN_DE, STAYS], "SeveralRoutes"),
        ([STAYS], "SeveralRoutes"),
        ([], "SeveralRoutes"),
    ],
)
def test_texts_of_one_route_need_no_more_than_its_driver(routes: list[Route], kind: str) -> None:
    find: Callable[[str], object] = str
    assert type(translator_of(routes, find)).__name__ == kind  # type: ignore[arg-type]


def test_checkpoints_of_several_routes_are_named_once() -> None:
    assert checkpoints_of([EN_DE, STAYS, ZH_DE]) == ["en-de", "zh-en"]


def test_sentences_are_told_by_their_place_in_the_request() -> None:
    drivers = {EN_DE: Driver(EN_DE), ZH_DE: Driver(ZH_DE)}
    several = SeveralRoutes([EN_DE, STAYS, ZH_DE, EN_DE, STAYS], drivers)
    request = _request("one", "zwei ", "san", "four", " ")
    told: list[DoneSegment] = []
    asyncio.run(several.translate(request, told.append))
    assert {one.text_index: one.source for one in told} == {
        0: "one",
        1: "zwei ",
        2: "san",
        3: "four",
    }
    assert len(told) == 4
