"""Admission: the one path of a translation request from its arrival to its answer.

Owns the steps and their order, which is the order of refusals: admit the caller, look for room,
read the body, let the contract parse it, check the texts, translate, count. A contract
(`service.api.libretranslate`, `service.api.v1`) owns its wire alone: how its values become a
`TranslationRequest`, and results a reply. Errors are answered by the application.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from starlette.requests import Request
from starlette.responses import Response

from service.access.access import Access, Caller
from service.api.checks import check_texts
from service.front import Front
from service.http.body import BodyReaders
from service.http.disconnect import unless_gone
from service.models.translator import TranslatedText, TranslationRequest
from service.priority import estimated_work, priority_of
from service.telemetry.request_context import context_of

AskedT = TypeVar("AskedT")


class Contract(Protocol[AskedT]):
    """Wire of one API: how a request of it is read, and how it is answered.

    `AskedT` is what `parse` keeps of a request for the reply.
    """

    @property
    def takes_forms(self) -> bool:
        """Values may come as a form or in the query string; otherwise as a JSON object alone."""

    @property
    def key_name(self) -> str | None:
        """The value that may carry an API key; None where only the header does."""

    def parse(self, values: Mapping[str, object]) -> tuple[TranslationRequest, AskedT]:
        """What is to be translated, and what the reply needs to know of the request.

        Raises:
            RequestError: A 400 or 413 in the contract's words.
        """

    def reply(self, results: Sequence[TranslatedText], asked: AskedT) -> Response:
        """The answer, of one result per text, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """The path, over the parts of one server.

    Attributes:
        front: What says whether there is room, and what translates.
        access: What knows callers and their limits.
        readers: What reads bodies, by caller.
    """

    front: Front
    access: Access
    readers: BodyReaders

    async def answer(self, request: Request, contract: Contract[AskedT]) -> Response:
        """The contract's reply to a request.

        Raises:
            RequestError: A 400, 401, 403, 408, 413, 429, 503 or 504.
            ClientGoneError: The client left first; its work was dropped.
        """
        caller, values = await self._read(request, contract)
        job, asked = contract.parse(values)
        return contract.reply(await self._translate(request, caller, job), asked)

    async def _read(
        self, request: Request, contract: Contract[AskedT]
    ) -> tuple[Caller, dict[str, object]]:
        """The caller and the request's values.

        Whether there is room is told as soon as the caller is known: to one whose key may still
        come it is not.
        """
        caller = await self.access.admit(request)
        if caller is None and contract.key_name is None:
            caller = await self.access.admit_with(request, None)
        if caller is not None:
            self.front.check_room()
        if not contract.takes_forms:
            values = await self.readers.of(caller).read_json(request)
        else:
            query = await self.readers.of(caller).read_query(request)
            if caller is None and _key(contract, query):
                caller = await self.access.admit_with(request, _key(contract, query))
                self.front.check_room()
            values = await self.readers.of(caller).read_values(request, query)
        if caller is None:
            caller = await self.access.admit_with(request, _key(contract, values))
        return caller, values

    async def _translate(
        self, request: Request, caller: Caller, job: TranslationRequest
    ) -> list[TranslatedText]:
        """One result per text, in order; counted for the caller, the metrics and the log."""
        context = context_of(request)
        context.num_texts = len(job.texts)
        context.served = self.front.served(job.route)
        context.num_characters = check_texts(job.texts, self.front.settings)
        num_hops = len(job.route.hops)
        work = estimated_work(job.texts, beam_size=job.beam_size) * num_hops
        priority = priority_of(work, job.priority)
        context.priority = priority
        job = dataclasses.replace(job, priority=priority, client=hash(caller.identity))
        if self.front.is_asleep(job.route):
            await unless_gone(request, self.front.wake(job.route))
        with self.front.translator(job.route, priority) as translator:
            await self.access.spend_characters(caller, context.num_characters)
            self.front.metrics.characters_accepted(context.num_characters, context.served)
            results = await unless_gone(request, translator.translate(job))
        context.num_segments = sum(len(result.hypotheses) for result in results)
        return results


def _key(contract: Contract[AskedT], values: Mapping[str, object]) -> object:
    return None if contract.key_name is None else values.get(contract.key_name)
