"""Driver of a request whose texts take different routes: from several languages, or none at all.

Owns that they are one request: one deadline, one class, one cancellation, answers in the order of
the texts. Texts that are in the target's language already stay as they are. One route is
`service.models.translating.translator` or `service.models.translating.two_hops`.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from msgspec import structs

from model.text.drafts.segments import TranslatedSegment, Translation
from service.models.requests.translation import (
    DoneSegment,
    GrowingSentence,
    OnSegment,
    SegmentTally,
    TranslatedText,
    TranslationRequest,
)
from service.models.routes.routing import Route
from service.models.translating.counting import count_copied
from service.models.translating.translator import OnlineTranslator, within
from service.models.translating.two_hops import Translator, TwoHops


class SeveralRoutes:
    """Driver of texts that take a route each, made for one request.

    Args:
        routes: Of each text.
        translators: Of every route that has hops.
    """

    def __init__(self, routes: Sequence[Route], translators: Mapping[Route, Translator]) -> None:
        self._routes = tuple(routes)
        self._translators = translators

    def __repr__(self) -> str:
        return f"<SeveralRoutes of {len(self._routes)} texts>"

    async def translate(
        self, request: TranslationRequest, on_segment: OnSegment | None = None
    ) -> list[TranslatedText]:
        """One result per text, in order; cancelling it, or the failure of one, cancels all.

        Args:
            request: Of texts that take these routes.
            on_segment: Called with each sentence when it is done.

        Raises:
            RequestError: 413 for more segments than there may be, 504 after the deadline.
            QueueFullError: Too many segments wait already.
            EngineUnavailableError: The engine is gone or takes no more.
            SegmentFailedError: The engine gave a segment up.
        """
        request = structs.replace(request, tally=SegmentTally())
        places: dict[Route, list[int]] = {}
        for place, route in enumerate(self._routes):
            places.setdefault(route, []).append(place)
        async with within(request.timeout_seconds, spent_seconds=request.spent_seconds):
            try:
                async with asyncio.TaskGroup() as group:
                    tasks = {
                        route: group.create_task(self._translate(request, route, own, on_segment))
                        for route, own in places.items()
                    }
            except ExceptionGroup as failed:  # whatever failed first has ended the others
                raise failed.exceptions[0] from None
        results = {
            place: result
            for route, own in places.items()
            for place, result in zip(own, tasks[route].result(), strict=True)
        }
        return [results[place] for place in range(len(self._routes))]

    async def _translate(
        self,
        request: TranslationRequest,
        route: Route,
        places: Sequence[int],
        on_segment: OnSegment | None,
    ) -> list[TranslatedText]:
        texts = tuple(request.texts[place] for place in places)
        report = None if on_segment is None else _at(places, on_segment)
        if not route.hops:
            count_copied(len(texts), request.tally or SegmentTally())
            return _unchanged(texts, report)
        prefixes = request.target_prefixes
        part = structs.replace(
            request,
            texts=texts,
            route=route,
            by_source=None,
            target_prefixes=tuple(prefixes[place] for place in places) if prefixes else (),
        )
        return await self._translators[route].translate(part, report)


def checkpoints_of(routes: Iterable[Route]) -> list[str]:
    """Names of the checkpoints of some routes, each once."""
    return list(dict.fromkeys(name for route in routes for name in route.checkpoints))


def translator_of(routes: Sequence[Route], find: Callable[[str], OnlineTranslator]) -> Translator:
    """The driver of texts.

    Args:
        routes: Of all texts, or one of each.
        find: The driver of a checkpoint, by its name.
    """
    first = routes[0] if routes else None
    if first is not None and first.hops and all(route is first for route in routes):
        return _driver(first, find)
    drivers = {route: _driver(route, find) for route in dict.fromkeys(routes) if route.hops}
    if len(drivers) == len(set(routes)) == 1:
        return drivers[routes[0]]
    return SeveralRoutes(routes, drivers)


def _driver(route: Route, find: Callable[[str], OnlineTranslator]) -> Translator:
    drivers = [find(name) for name in route.checkpoints]
    return drivers[0] if route.pivot is None else TwoHops(*drivers)


def _at(places: Sequence[int], on_segment: OnSegment) -> OnSegment:
    """A callback that reports sentences of some texts by their place in the whole request."""

    def report(news: DoneSegment | GrowingSentence) -> None:
        on_segment(replace(news, text_index=places[news.text_index]))

    return report


def _unchanged(texts: Sequence[str], on_segment: OnSegment | None) -> list[TranslatedText]:
    results = [unchanged(text) for text in texts]
    for place, result in enumerate(results):
        if on_segment is not None and result.best.segments:
            done = DoneSegment(
                text_index=place,
                index=0,
                start=0,
                source=result.best.text,
                text=result.best.text,
                segments=result.best.segments,
            )
            on_segment(done)
    return results


def unchanged(text: str) -> TranslatedText:
    """A text as its own translation: one copied segment, or none if there is nothing in it."""
    segment = TranslatedSegment(
        source=text,
        text=text,
        score=None,
        is_verbatim=True,
        is_cut=False,
        is_truncated=False,
        num_source_tokens=0,
        num_target_tokens=0,
    )
    segments = (segment,) if text.strip() else ()
    return TranslatedText(
        best=Translation(text=text, segments=segments),
        alternatives=(),
        hypotheses=(None,) * len(segments),
    )
