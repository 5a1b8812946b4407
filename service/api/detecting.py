"""Detection within a request: the languages of its texts, where it does not name one.

Owns which languages are candidates, what a text is taken for where detection is off, and how the
languages of several texts become one list. How a language is told is
`service.models.requests.detection`.
"""

from collections.abc import Mapping, Sequence

from model.text.languages.detection import Detection
from service.api.languages import AUTO, ChosenRoute, several_sources
from service.errors import Problem, RequestError
from service.models.requests.detection import LanguageDetection
from service.models.routes.routing import Route
from service.priority import Priority


async def detected_sources(
    detection: LanguageDetection,
    texts: Sequence[str],
    by_source: Mapping[str, Route],
    priority: Priority,
) -> list[Detection]:
    """The language of each text, among those that there is a route from.

    Args:
        detection: Of the server.
        texts: Of the request.
        by_source: The routes of its "auto"; the first language wins where a text says nothing.
        priority: The class of the request.

    Raises:
        RequestError: A 400: detection is off, and there are several languages.
    """
    if detection.is_on:
        return await detection.detect(texts, tuple(by_source), priority)
    return [Detection(tag=undetected_source(by_source), confidence=0)] * len(texts)


def undetected_source(by_source: Mapping[str, Route]) -> str:
    """The language of a text where detection is off: the only one that is translated.

    Args:
        by_source: The routes of an "auto".

    Raises:
        RequestError: A 400: there are several.
    """
    translated = [tag for tag, route in by_source.items() if route.hops]
    if len(translated) > 1:
        raise several_sources(translated)
    return translated[0]


def document_source(detection: LanguageDetection, chosen: ChosenRoute) -> str:
    """The source of a document: a language, or "auto" where it will be detected.

    Raises:
        RequestError: A 400: detection is off, and there are several languages.
    """
    if chosen.by_source is None:
        return chosen.route.source
    return AUTO if detection.is_on else undetected_source(chosen.by_source)


async def ranked_languages(
    detection: LanguageDetection,
    texts: Sequence[str],
    languages: Sequence[str],
    priority: Priority,
) -> list[Detection]:
    """The languages that texts are in, taken together, the likeliest first; at least one.

    The confidence of a language is its mean over the texts, by their characters.

    Args:
        detection: Of the server.
        texts: At least one.
        languages: Candidates; the first wins where a text says nothing.
        priority: The class of the request.

    Raises:
        RequestError: A 403: detection is off.
    """
    if not detection.is_on:
        raise RequestError(
            Problem(
                status=403,
                code="detection_off",
                message="Language detection is off on this server.",
            )
        )
    ranked = await detection.ranked(texts, tuple(languages), priority)
    if len(ranked) == 1:
        return list(ranked[0])
    return _together(texts, ranked)


def _together(texts: Sequence[str], ranked: Sequence[Sequence[Detection]]) -> list[Detection]:
    sums: dict[str, int] = {}
    for text, found in zip(texts, ranked, strict=True):
        for one in found:
            sums[one.tag] = sums.get(one.tag, 0) + one.confidence * len(text)
    total = sum(map(len, texts))
    means = [
        Detection(tag=tag, confidence=round(value / total) if total else 0)
        for tag, value in sums.items()
    ]
    return sorted(means, key=lambda one: -one.confidence)
