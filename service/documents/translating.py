"""Driver of a document's texts: through the translator of requests, as bulk, a few at a time.

Owns the language and the route of a document, what its caller may have translated in a minute, and
patience: what is full, restarting or loading now is asked again later, as is an engine that was
given up, of which a reload may make another. A document waits for requests; no request waits for
more of it than one small batch. Jobs are `service.documents.queue`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from model.errors import DragomanError
from model.text.constraints.glossary import Glossary
from model.text.marks.inline_codes import without_codes
from service.access.access import LIMITED, Access, Caller
from service.documents.batches import groups
from service.documents.jobs import JobOptions, Owner
from service.engine.errors import EngineUnavailableError, QueueFullError, SegmentFailedError
from service.errors import RequestError
from service.front import Front
from service.models.deployments.holding import Held
from service.models.requests.translation import TranslatedText, TranslationRequest
from service.models.routes.routing import Route, RoutingTable
from service.phase import Phase

Routes = tuple[Route, Mapping[str, Route] | None]
"""A route, or of "auto" the routes from each language and the one of a text that says nothing."""

FindRoutes = Callable[[RoutingTable, JobOptions], Routes]

Rest = Callable[[], AbstractAsyncContextManager[None]]
"""What a document does without its place among those that are worked on."""

LEAVING = Phase.DRAINING.value
"""Code of the refusals of a server that leaves: the job goes on when there is one again."""
_MAX_TRIES = 10
"""Of a batch that fails, is not finished in time, or was with an engine that was lost."""
_MAX_WAIT_SECONDS = 30.0
_SAMPLE_CHARACTERS = 2_000
_WAITS_FOR = frozenset({429, 503, 504})
_NO_ENGINE = frozenset(
    phase.value for phase in (Phase.BOOTING, Phase.RESTARTING, Phase.FAILED, Phase.LOST)
)
"""Codes of a server without an engine, whose fault no batch is; it starts one, or is reloaded."""

T = TypeVar("T")


class UnfinishedError(DragomanError):
    """An engine failed with a document's texts as often as it may."""

    def __init__(self) -> None:
        super().__init__("the document could not be finished: its texts failed")


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentRoute:
    """Route of a document, and what else its translation depends on.

    Attributes:
        route: From its language to the target.
        detected: Tag of its language, where it was not named.
        glossary: What its terms have to be translated as.
    """

    route: Route
    detected: str | None = None
    glossary: Glossary | None = None


class DocumentTranslator:
    """Translator of texts of documents.

    Args:
        front: Of the server.
        access: Counts characters for callers.
        find_routes: What a job's languages mean among those that are served.
        sleep: Waits so many seconds.
    """

    def __init__(
        self,
        front: Front,
        access: Access,
        find_routes: FindRoutes,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._front = front
        self._access = access
        self._find_routes = find_routes
        self._sleep = sleep

    async def choose_route(self, asked: JobOptions, texts: Sequence[str]) -> DocumentRoute:
        """The route of a document; its language is detected in the beginning of all its texts.

        Raises:
            RequestError: A 400: its languages are not served; a 503 of code `LEAVING`.
        """
        await self._wait_ready()
        route, by_source = self._find_routes(self._front.table, asked)
        if by_source is None:
            return DocumentRoute(route=route)
        if not texts:
            return DocumentRoute(route=route)
        sample = _sample(texts)
        (found,) = await self._front.detection.detect((sample,), tuple(by_source), "bulk")
        return DocumentRoute(route=by_source[found.tag], detected=found.tag)

    async def translate(
        self, parts: Sequence[str], chosen: DocumentRoute, owner: Owner, rest: Rest
    ) -> tuple[list[str], int]:
        """Translations of parts of texts, and how many of their segments are flagged.

        Args:
            parts: Of texts of one document.
            chosen: Its route.
            owner: Whose it is.
            rest: Entered while nothing can be done but wait for its owner's limit.

        Raises:
            RequestError: A 413 for a part that may never be translated; a 503 of code `LEAVING`.
            UnfinishedError: The translation failed again and again.
        """
        if not chosen.route.hops:
            return list(parts), 0
        translations: list[str] = []
        num_flagged = 0
        for group in groups(parts, owner.characters_per_minute):
            await self._spend_or_rest(group, chosen.route, owner, rest)
            work = partial(self._translated, group, chosen, owner)
            for result in await self._with_retries(work):
                translations.append(result.best.text)
                num_flagged += sum(bool(one.quality.failed) for one in result.best.segments)
        return translations, num_flagged

    async def _with_retries(self, work: Callable[[], Awaitable[T]]) -> T:
        """The result of a call, which is retried until it has failed too often."""
        num_failed, seconds = 0, 1.0
        while True:
            try:
                return await work()
            except (RequestError, QueueFullError) as error:
                if not _may_wait(error):
                    raise
                num_failed += _is_failure(error)
                seconds = max(seconds, _retry_after(error))
            except (EngineUnavailableError, SegmentFailedError):
                num_failed += 1
            if num_failed >= _MAX_TRIES:
                raise UnfinishedError
            await self._sleep(min(seconds, _MAX_WAIT_SECONDS))
            seconds = min(2 * seconds, _MAX_WAIT_SECONDS)

    async def _spend_or_rest(
        self, texts: Sequence[str], route: Route, owner: Owner, rest: Rest
    ) -> None:
        """Count a batch, at rest while its owner's limit is what it waits for."""
        spend = partial(self._spend, texts, route, owner)
        try:
            await spend()
        except RequestError as error:
            if not _may_wait(error):
                raise
            async with rest() if error.problem.code == LIMITED else nullcontext():
                await self._sleep(min(_retry_after(error), _MAX_WAIT_SECONDS))
                await self._with_retries(spend)

    async def _spend(self, texts: Sequence[str], route: Route, owner: Owner) -> None:
        """Count the characters of a batch, once."""
        self._front.check_ready()
        num_characters = sum(len(without_codes(text)) for text in texts)
        await self._access.spend_characters(_caller(owner), num_characters)
        self._front.metrics.characters_accepted(num_characters, self._front.served(route))

    async def _translated(
        self, texts: Sequence[str], chosen: DocumentRoute, owner: Owner
    ) -> list[TranslatedText]:
        front, route = self._front, chosen.route
        front.check_ready()  # or the batch would seem to have failed
        with Held() as held:
            if front.in_flight.needs_loading(route):
                await front.in_flight.load(held, route)
            with front.in_flight.translator(route, "bulk", held) as translator:
                return await translator.translate(_request(texts, chosen, owner, front))

    async def _wait_ready(self) -> None:
        """Return once there is a table of routes."""
        while True:
            try:
                self._front.table  # noqa: B018  # or it raises
            except RequestError as error:
                if not _may_wait(error):
                    raise
                await self._sleep(1.0)
            else:
                return


def _request(
    texts: Sequence[str], chosen: DocumentRoute, owner: Owner, front: Front
) -> TranslationRequest:
    settings = front.settings
    return TranslationRequest(
        texts=tuple(texts),
        route=chosen.route,
        beam_size=settings.beam_size,
        length_penalty=settings.length_penalty,
        num_alternatives=0,
        max_length=None,
        with_alignment=False,
        timeout_seconds=settings.max_timeout_seconds,
        priority="bulk",
        stopping=settings.stopping,
        client=_caller(owner).number,
        cache_scope=owner.identity if owner.key_name else "",
        glossary=chosen.glossary,
    )


def _caller(owner: Owner) -> Caller:
    return Caller(
        identity=owner.identity,
        has_key=bool(owner.key_name),
        requests_per_minute=None,
        characters_per_minute=owner.characters_per_minute,
    )


def _sample(texts: Sequence[str]) -> str:
    """The beginning of a document, a text a line."""
    lines: list[str] = []
    num_characters = 0
    for text in texts:
        lines.append(without_codes(text)[:_SAMPLE_CHARACTERS])
        num_characters += len(lines[-1])
        if num_characters >= _SAMPLE_CHARACTERS:
            break
    return "\n".join(lines)


def _may_wait(error: RequestError | QueueFullError) -> bool:
    if isinstance(error, QueueFullError):
        return True
    return error.problem.code != LEAVING and error.problem.status in _WAITS_FOR


def _is_failure(error: RequestError | QueueFullError) -> bool:
    """Whether the same might happen for ever: the time was over, or a model is not loaded."""
    if isinstance(error, QueueFullError) or error.problem.code in _NO_ENGINE:
        return False
    return error.problem.status in (503, 504)


def _retry_after(error: RequestError | QueueFullError) -> float:
    if isinstance(error, QueueFullError):
        return error.retry_after_seconds
    return error.problem.retry_after_seconds or 0.0
