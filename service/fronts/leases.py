"""Leases of one front: places, segments, limits a minute, terms.

Owns what a front holds, so that all of it is given back when the front is lost. Requests, engines
and limits themselves are those of the owner's own server; which deployments there are and how a
front learns of them is `service.fronts.keeper`. Runs on the event loop and never blocks it.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec

from model.errors import DragomanError
from service.access.key_store import KeyStore
from service.app import Shared
from service.engine.client.submission import SegmentBatch
from service.engine.messages import Finished
from service.front import Front
from service.fronts.messages import (
    Answered,
    AskTerms,
    Claim,
    Count,
    Drop,
    Refused,
    Release,
    Replied,
    Spend,
    SubmitJobs,
    WrittenTo,
)
from service.fronts.troubles import trouble_of
from service.models.deployments.deployment import Deployment
from service.models.deployments.requests_in_flight import replaced

_LOGGER = logging.getLogger("dragoman.fronts")

FrontRequest = Claim | Release | SubmitJobs | Drop | Spend | Count | AskTerms


@dataclass(frozen=True, slots=True, kw_only=True)
class Common:
    """State of the owner that all fronts share.

    Attributes:
        front: The owner's own: its requests, which those of fronts count with.
        shared: What is counted and kept.
        keys: Those that hold in the owner.
        generations: Deployments by the numbers that fronts know them by.
    """

    front: Front
    shared: Shared
    keys: KeyStore
    generations: Mapping[int, Deployment]


class FrontLeases:
    """Leases of one front: the places and submissions that the owner holds for it.

    Args:
        common: What fronts have in common.
        send: Sends it a message.
    """

    def __init__(self, common: Common, send: Callable[[msgspec.Struct], None]) -> None:
        self._common = common
        self._send = send
        self._places: dict[int, ExitStack] = {}
        self._batches: dict[int, SegmentBatch] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def __repr__(self) -> str:
        return f"<FrontLeases places={len(self._places)} submissions={len(self._batches)}>"

    def handle(self, message: FrontRequest) -> None:
        """Act on a front's message."""
        match message:
            case Claim():
                self._claim(message)
            case Release(number=number):
                if (place := self._places.pop(number, None)) is not None:
                    place.close()
            case SubmitJobs():
                self._submit(message)
            case Drop(number=number):
                if (batch := self._batches.get(number)) is not None:
                    batch.cancel()
            case Count(identity=identity, num_characters=num_characters):
                self._common.shared.counts.add(identity, num_characters)
            case Spend(number=number):
                self._start(number, self._spend(message))
            case AskTerms(number=number):
                self._start(number, self._find_terms(message))

    def close(self) -> None:
        """Release all that the front held, after its process has ended."""
        for place in self._places.values():
            place.close()
        self._places.clear()
        for batch in tuple(self._batches.values()):
            batch.cancel()
        for task in self._tasks:
            task.cancel()

    def _claim(self, claim: Claim) -> None:
        in_flight = self._common.front.in_flight
        stack = ExitStack()
        try:
            in_flight.check_room(claim.priority, claim.checkpoints)
            pairs = zip(claim.checkpoints, claim.generations, strict=True)
            deployments = {name: self._deployment(number) for name, number in pairs}
            stack.enter_context(in_flight.holding(deployments, claim.priority))
        except DragomanError as error:
            self._send(Replied(number=claim.number, trouble=trouble_of(error)))
        else:
            self._places[claim.number] = stack
            self._send(Replied(number=claim.number))

    def _submit(self, message: SubmitJobs) -> None:
        try:
            engines = self._deployment(message.generation).pool
            on_written = partial(self._written, message.number) if message.are_watched else None
            batch = engines.submit(message.jobs, client=message.client, on_written=on_written)
        except DragomanError as error:
            self._send(Refused(number=message.number, trouble=trouble_of(error)))
            return
        self._batches[message.number] = batch
        batch.on_answered(partial(self._answered, message.number))

    def _written(self, number: int, place: int, start: int, token_ids: tuple[int, ...]) -> None:
        self._send(WrittenTo(number=number, place=place, start=start, token_ids=token_ids))

    def _answered(self, number: int, place: int, answer: asyncio.Future[Finished]) -> None:
        finished = trouble = None
        if not answer.cancelled():
            error = answer.exception()
            finished = answer.result() if error is None else None
            trouble = None if error is None else trouble_of(error)
        self._send(Answered(number=number, place=place, finished=finished, trouble=trouble))
        batch = self._batches.get(number)
        if batch is not None and not batch.num_pending:
            del self._batches[number]

    def _deployment(self, generation: int) -> Deployment:
        deployment = self._common.generations.get(generation)
        if deployment is None:
            raise replaced()
        return deployment

    def _start(self, number: int, answering: Coroutine[Any, Any, Replied]) -> None:
        task = asyncio.create_task(self._reply(number, answering), name="front's question")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _reply(self, number: int, answering: Coroutine[Any, Any, Replied]) -> None:
        try:
            self._send(await answering)
        except Exception as error:
            if not isinstance(error, DragomanError):
                _LOGGER.exception("front_not_answered")
            self._send(Replied(number=number, trouble=trouble_of(error)))

    async def _spend(self, message: Spend) -> Replied:
        seconds = await self._common.shared.limiter.spend(
            message.kind, message.identity, limit=message.limit, cost=message.cost
        )
        return Replied(number=message.number, seconds=seconds)

    async def _find_terms(self, message: AskTerms) -> Replied:
        found = await self._common.shared.glossaries.terms(
            message.owner, message.glossary_ids, (message.source, message.target)
        )
        entries = tuple((one.source, one.target, one.is_case_sensitive) for one in found.entries)
        return Replied(number=message.number, entries=entries)
