"""A front's end of the socket to the owner: its requests, and their answers.

Owns numbers of questions and their futures, and what the owner says by itself. Stands for the
parts of a server that only the owner has: places for requests, limits a minute, engines,
glossaries. What a front serves is `service.fronts.following`. Runs on the event loop.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from itertools import count

from model.errors import InputError
from model.text.constraints.glossary import Entry, Glossary
from service.engine.client.submission import OnWritten, SegmentBatch, SegmentJob
from service.engine.errors import EngineUnavailableError
from service.engine.messages import EngineCounters, Finished, Ready
from service.fronts.messages import (
    Answered,
    AskTerms,
    Claim,
    Count,
    Drop,
    OwnerMessage,
    Refused,
    Release,
    Replied,
    Spend,
    SubmitJobs,
    WrittenTo,
)
from service.fronts.stream import Stream
from service.fronts.troubles import error_of
from service.glossaries.keeping import Glossaries
from service.glossaries.store import GlossaryStore
from service.models.deployments.deployment import Deployment
from service.priority import Priority

_GONE = "the owner of the engines is gone"


class Link:
    """Client of the owner, for one front.

    Args:
        stream: To the owner.
    """

    def __init__(self, stream: Stream[OwnerMessage]) -> None:
        self._stream = stream
        self._numbers = count(1)
        self._questions: dict[int, asyncio.Future[Replied]] = {}
        self._submissions: dict[int, list[asyncio.Future[Finished]]] = {}
        self._watched: dict[int, OnWritten] = {}  # of these

    def __repr__(self) -> str:
        return f"<Link questions={len(self._questions)} submissions={len(self._submissions)}>"

    def handle(self, message: Replied | WrittenTo | Answered | Refused) -> None:
        """Route an answer to its waiter; one without a waiter is ignored."""
        match message:
            case Replied(number=number):
                if not (future := self._questions.pop(number)).done():
                    future.set_result(message)
            case Answered(number=number, place=place):
                if (answers := self._submissions.get(number)) is not None:
                    _settle(answers[place], message)
            case WrittenTo(number=number, place=place, start=start, token_ids=token_ids):
                answers, watcher = self._submissions.get(number), self._watched.get(number)
                if answers is not None and watcher is not None and not answers[place].done():
                    # In the order of answers, whose waiters are called by the loop too.
                    asyncio.get_running_loop().call_soon(watcher, place, start, token_ids)
            case Refused(number=number, trouble=trouble):
                for answer in self._submissions.get(number, ()):
                    if not answer.done():
                        answer.set_exception(error_of(trouble))

    def lost(self) -> None:
        """End all waits with an error: the owner's process has ended."""
        for question in self._questions.values():
            if not question.done():
                question.set_exception(EngineUnavailableError(_GONE))
        for answers in self._submissions.values():
            for answer in answers:
                if not answer.done():
                    answer.set_exception(EngineUnavailableError(_GONE))

    @asynccontextmanager
    async def place(
        self, deployments: Mapping[str, Deployment], priority: Priority
    ) -> AsyncIterator[None]:
        """A place for a request among those of all fronts, until it is left.

        Raises:
            RequestError: A 503 or 429, as the owner says it.
            QueueFullError: Too many segments wait already.
        """
        number = next(self._numbers)
        claim = Claim(
            number=number,
            checkpoints=tuple(deployments),
            generations=tuple(engines_of(one).generation for one in deployments.values()),
            priority=priority,
        )
        try:
            await self._reply_to(number, claim)
            yield
        finally:
            self._stream.send(Release(number=number))

    async def spend(self, kind: str, identity: str, *, limit: int, cost: int = 1) -> float | None:
        """As of `service.access.rates.RateLimiter`."""
        number = next(self._numbers)
        request = Spend(number=number, kind=kind, identity=identity, limit=limit, cost=cost)
        return (await self._reply_to(number, request)).seconds

    async def give_back(self, kind: str, identity: str, *, limit: int) -> None:
        """Likewise."""
        await self.spend(kind, identity, limit=limit, cost=-1)

    def count(self, identity: str, num_characters: int) -> None:
        """Count characters that a caller has translated."""
        self._stream.send(Count(identity=identity, num_characters=num_characters))

    async def terms(
        self, owner: str, glossary_ids: Sequence[str], languages: tuple[str, str]
    ) -> Glossary:
        """What some glossaries of a caller have for two languages.

        Raises:
            RequestError: As the owner says it.
        """
        number, (source, target) = next(self._numbers), languages
        request = AskTerms(
            number=number,
            owner=owner,
            glossary_ids=tuple(glossary_ids),
            source=source,
            target=target,
        )
        found = (await self._reply_to(number, request)).entries
        return Glossary(
            [
                Entry(source=one, target=other, is_case_sensitive=is_case_sensitive)
                for one, other, is_case_sensitive in found
            ]
        )

    def submit(
        self,
        generation: int,
        jobs: Sequence[SegmentJob],
        *,
        client: int,
        on_written: OnWritten | None = None,
    ) -> SegmentBatch:
        """Submit segments; a refusal comes as their answer."""
        loop = asyncio.get_running_loop()
        number = next(self._numbers)
        answers = [loop.create_future() for _ in jobs]
        if jobs:
            self._submissions[number] = answers
            if on_written is not None:
                self._watched[number] = on_written
            self._stream.send(
                SubmitJobs(
                    number=number,
                    generation=generation,
                    client=client,
                    jobs=tuple(jobs),
                    are_watched=on_written is not None,
                )
            )
        num_open = len(answers)

        def settled(_: asyncio.Future[Finished]) -> None:
            nonlocal num_open
            num_open -= 1
            if not num_open:
                del self._submissions[number]
                self._watched.pop(number, None)

        for answer in answers:
            answer.add_done_callback(settled)
        return SegmentBatch(dict(enumerate(answers)), cancel=partial(self._drop, number))

    def _drop(self, number: int, _places: Sequence[int]) -> None:
        self._stream.send(Drop(number=number))

    async def _reply_to(self, number: int, question: Claim | Spend | AskTerms) -> Replied:
        answer: asyncio.Future[Replied] = asyncio.get_running_loop().create_future()
        self._questions[number] = answer
        self._stream.send(question)
        replied = await answer
        if replied.trouble is not None:
            raise error_of(replied.trouble)
        return replied


class RemoteEngines:
    """Engines of one deployment of the owner, with the interface of a pool.

    Args:
        link: To the owner.
        generation: Which deployment it is.
        ready: What the engine has said of itself.
        max_request_segments: Segments of one request that may be pending.

    Attributes:
        generation: Which deployment it is.
        ready: What the engine has said of itself.
        max_request_segments: Segments of one request that may be pending.
        is_ready: The owner serves with them.
    """

    def __init__(
        self, link: Link, generation: int, ready: Ready, *, max_request_segments: int
    ) -> None:
        self._link = link
        self.generation = generation
        self.ready = ready
        self.max_request_segments = max_request_segments
        self.replicas = ()
        self.counters = EngineCounters()
        self.num_pending = 0
        self.num_ready = 1
        self.is_ready = True
        self.is_exhausted = False

    def __repr__(self) -> str:
        return f"<RemoteEngines generation={self.generation}>"

    def check_open(
        self, priority: Priority | None = None, *, checkpoint: int | None = None
    ) -> None:
        """Return: the owner checks whether there is room."""

    def submit(
        self, jobs: Sequence[SegmentJob], *, client: int = 0, on_written: OnWritten | None = None
    ) -> SegmentBatch:
        """Have segments of one request translated; never waits.

        Raises:
            InputError: There are more than may ever be pending.
        """
        if len(jobs) > self.max_request_segments:
            raise InputError(
                f"there are {len(jobs)} segments; the limit is {self.max_request_segments}",
                value=len(jobs),
                limit=self.max_request_segments,
            )
        return self._link.submit(self.generation, jobs, client=client, on_written=on_written)

    def retire(self) -> None:
        """Return: the owner retires engines."""

    async def close(self) -> None:
        """Return: the owner ends engines."""


class RemoteGlossaries(Glossaries):
    """Glossaries that the owner keeps; a front needs their terms alone.

    Args:
        link: To the owner.
    """

    def __init__(self, link: Link) -> None:
        super().__init__(partial(GlossaryStore, None))
        self._link = link

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Open nothing."""
        yield

    async def terms(
        self, owner: str, glossary_ids: Sequence[str], languages: tuple[str, str]
    ) -> Glossary:
        """As of `Glossaries`."""
        return await self._link.terms(owner, glossary_ids, languages)


class RemoteCounts:
    """Characters that callers have translated, counted by the owner.

    Args:
        add: Counts characters for a caller.
    """

    def __init__(self, add: Callable[[str, int], None]) -> None:
        self._add = add

    def add(self, identity: str, num_characters: int) -> None:
        """Count characters for a caller."""
        self._add(identity, num_characters)

    def of(self, identity: str) -> int:  # noqa: ARG002
        """Zero: requests for the count are passed on to the owner."""
        return 0


def engines_of(deployment: Deployment) -> RemoteEngines:
    """Engines of a deployment, as a front has them."""
    assert isinstance(deployment.pool, RemoteEngines)
    return deployment.pool


def _settle(answer: asyncio.Future[Finished], message: Answered) -> None:
    if answer.done():
        return
    if message.finished is not None:
        answer.set_result(message.finished)
    elif message.trouble is not None:
        answer.set_exception(error_of(message.trouble))
    else:
        answer.cancel()
