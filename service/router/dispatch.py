"""Dispatcher of requests to groups: takes one, finds whom to ask, asks, and answers.

Owns the ways in which groups are asked: one by its languages, all for a list, each of their servers
for what these keep, any for what is the same everywhere. Whom languages mean is
`service.router.choice`; who is asked next is `service.router.asking`.
"""

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from service.access.addresses import client_of
from service.api.checks import check_number
from service.api.deepl.dictionaries import read_dictionaries, read_dictionary
from service.api.deepl.languages import LanguageLists
from service.api.deepl.values import unsupported
from service.api.languages import languages_by_likelihood, several_sources
from service.api.libretranslate.reply import detected_language
from service.errors import RequestError
from service.http.arrivals import Arrivals
from service.http.body import (
    BodyReader,
    body_type,
    check_encoding,
    check_json,
    decode_object,
    is_json_or_form,
)
from service.http.forms import decode_form
from service.http.replies import JsonReply
from service.http.uploads import check_announced
from service.models.requests.detection import LanguageDetection
from service.router.asking import Asking, copied
from service.router.choice import (
    away_candidates,
    choose,
    group_of_dictionaries,
    groups_of_document,
    groups_unavailable,
)
from service.router.connection import Asked, Body, BytesBody
from service.router.directory import Directory, GroupState
from service.router.joining import joined, summed
from service.router.members import Member
from service.router.passing_on import PassedAnswer, asked_of
from service.router.room import UploadRoom
from service.router.uploads import new_file, received
from service.router.wording import OF_DOCUMENTS, OF_TEXTS, Values, Wording
from service.settings import Settings

_MAX_INLINE_BYTES = 16 * 1024
"""Decoding more would hold the event loop for more than a millisecond."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dispatcher:
    """The parts of one router.

    Attributes:
        asking: Asks the groups.
        settings: Limits of bodies and of texts, and trusted proxies.
        reader: Of bodies that are no documents.
        arrivals: Bodies that are being read.
        detection: Tells languages among those of all groups.
        lists: Which languages glossaries can be for.
        room: Bytes of documents that are here.
    """

    asking: Asking
    settings: Settings
    reader: BodyReader
    arrivals: Arrivals
    detection: LanguageDetection
    lists: LanguageLists
    room: UploadRoom

    @property
    def directory(self) -> Directory:
        """What is known of the groups now."""
        return self.asking.watch.directory

    async def translate(self, request: Request) -> Response:
        """Pass a translation to the group of its languages."""
        wording = OF_TEXTS[request.scope["path"]]
        data = await self.reader.read_bytes(request)
        values = await self._values(request, data, takes_forms=wording.takes_forms)
        find, read_texts = partial(wording.find, values), partial(self._texts, wording, values)
        groups = await choose(self.directory, find, read_texts, self._detect)
        return await self._passed(request, self._asked(request, data), groups, wording, values)

    async def upload(self, request: Request) -> Response:
        """Pass a document to the group of its languages; it is kept meanwhile, if there is room."""
        if not self.settings.documents:
            raise HTTPException(404)
        if not self.directory.answering:
            raise groups_unavailable(self.directory.groups)
        wording = OF_DOCUMENTS[request.scope["path"]]
        max_bytes = self.settings.documents_max_bytes
        check_encoding(request)
        check_announced(request, max_bytes=max_bytes)
        with self.room.held(self._address(request)) as hold, new_file() as file:
            body, values = await received(
                request, file, wording, self.arrivals, hold=hold, max_bytes=max_bytes
            )
            groups = groups_of_document(self.directory, partial(wording.find, values))
            return await self._passed(request, self._asked(request, body), groups, wording, values)

    async def detect(self, request: Request) -> Response:
        """Tell a text's language among those of all groups, if a group would tell it its own."""
        data = await self.reader.read_bytes(request)
        asked = self._asked(request, data)
        members = self.asking.in_turn(self.directory.answering)
        name, answer = await self.asking.first(request, asked, members)
        body = await self.asking.read(answer, name)
        if answer.status != 200 or not self.detection.is_on:
            return copied(answer, body)
        texts = OF_TEXTS["/translate"].texts(await self._values(request, data, takes_forms=True))
        tags = languages_by_likelihood(self.directory.table)
        ranked = await self.detection.ranked([" ".join(texts)], tags, "interactive")
        return JsonReply([detected_language(one) for one in ranked[0]])

    async def new_glossary(self, request: Request) -> Response:
        """Pass a new glossary to the group of its languages."""
        data = await self.reader.read_bytes(request)
        values = await self._values(request, data, takes_forms=True)
        lists = self.lists.of(self.directory.table)
        if request.scope["path"].startswith("/v2/"):
            dictionaries = [read_dictionary(values, lists)]
        else:
            dictionaries = read_dictionaries(values, lists, is_needed=True)
        group = group_of_dictionaries(self.directory, [one.languages for one in dictionaries])
        if group is None:
            raise unsupported("dictionaries", reason="no group translates all of these languages")
        members = self.asking.in_turn([group])
        name, answer = await self.asking.first(request, self._asked(request, data), members)
        return PassedAnswer(answer, name)

    async def joined_list(self, request: Request) -> Response:
        """Join a list of all groups that answer, of which one server has what all have."""
        choices = [self.asking.in_turn([group]) for group in self.directory.answering]
        return await self._joined(request, choices, joined, is_whole=False)

    async def complete_list(self, request: Request) -> Response:
        """Join a list of all servers of all groups, of which none may be missing."""
        servers = [one for each in self.asking.watch.members.values() for one in each.named]
        away = {group.name for group in self.directory.away}
        away |= {one.group for one in servers if not one.state.is_answering}
        if away:
            raise self.asking.some_away(away)
        return await self._joined(request, [[one] for one in servers], summed, is_whole=True)

    async def by_id(self, request: Request) -> Response:
        """Ask one server after another, of all groups, until one knows what is asked for."""
        asked = self._asked(request, await self.reader.read_bytes(request))
        groups = (*self.directory.answering, *self.directory.away)
        return await self.asking.who_knows(request, asked, groups)

    async def from_any(self, request: Request) -> Response:
        """Pass on what every group answers alike."""
        asked = self._asked(request, await self.reader.read_bytes(request))
        members = self.asking.in_turn(self.directory.answering)
        name, answer = await self.asking.first(request, asked, members)
        return PassedAnswer(answer, name)

    async def _passed(
        self,
        request: Request,
        asked: Asked,
        groups: Sequence[GroupState],
        wording: Wording,
        values: Values,
    ) -> Response:
        """The answer of the first group; of a server that knows the glossary that is named."""
        if any(values.get(name) for name in wording.glossaries):
            away = away_candidates(self.directory, partial(wording.find, values))
            return await self.asking.who_knows(request, asked, (*groups, *away))
        name, answer = await self.asking.first(request, asked, self.asking.in_turn(groups))
        return PassedAnswer(answer, name)

    def _asked(self, request: Request, body: bytes | Body) -> Asked:
        """What groups are asked for a request with this body."""
        data = BytesBody(data=body) if isinstance(body, bytes) else body
        return asked_of(request, data, self.settings.trusted_proxies)

    def _address(self, request: Request) -> str:
        """The client that a request counts for, as a server would count it without a key."""
        peer = request.client.host if request.client else None
        forwarded = request.headers.getlist("x-forwarded-for")
        return client_of(peer, forwarded, self.settings.trusted_proxies)

    async def _joined(
        self,
        request: Request,
        choices: Sequence[Iterable[Member]],
        join: Callable[[Sequence[Any]], object],
        *,
        is_whole: bool,
    ) -> Response:
        """The lists of one server of each choice as one, whole or without those that fail."""
        asked = self._asked(request, await self.reader.read_bytes(request))
        if not choices:
            raise groups_unavailable(self.directory.groups)
        contents = []
        failure: RequestError | None = None
        refusal: Response | None = None
        for members in choices:
            try:
                name, answer = await self.asking.first(request, asked, members)
                data = await self.asking.read(answer, name)
            except RequestError as error:
                if is_whole:
                    raise
                failure = failure or error
                continue
            if answer.is_refusal and not is_whole:
                refusal = refusal or copied(answer, data)
                continue
            if answer.status != 200:
                return copied(answer, data)
            with suppress(ValueError):
                contents.append(await asyncio.to_thread(json.loads, data))
        if not contents and refusal is not None:
            return refusal
        if not contents and failure is not None:
            raise failure
        return JsonReply(join(contents) if contents else [])

    async def _values(self, request: Request, data: bytes, *, takes_forms: bool) -> Values:
        """The values of a request, as the groups read them.

        Raises:
            RequestError: A 400.
        """
        work = partial(_decoded, request, data, takes_forms=takes_forms)
        if len(data) <= _MAX_INLINE_BYTES:
            return work()
        return await asyncio.get_running_loop().run_in_executor(self.reader.executor, work)

    def _texts(self, wording: Wording, values: Values) -> Sequence[str]:
        """The texts of a request that has no key yet: no more than a request may have.

        Raises:
            RequestError: A 413.
        """
        check_number(wording.listed(values), self.settings)
        return wording.texts(values)

    async def _detect(self, texts: Sequence[str], tags: Sequence[str]) -> list[str]:
        """The language of each text, among those of all groups that could translate it."""
        if not self.detection.is_on:
            raise several_sources(tags)
        found = await self.detection.detect(texts, tags, "interactive")
        return [one.tag for one in found]


def _decoded(request: Request, data: bytes, *, takes_forms: bool) -> Mapping[str, object]:
    """The values of a body, and of the query string where forms are taken.

    Raises:
        RequestError: A 400, in the words of a server.
    """
    media_type = body_type(request)
    if not takes_forms:
        check_json(media_type)
        return decode_object(data)
    values = decode_form(request.scope["query_string"], "", "the query string")
    if not data:
        return values
    if is_json_or_form(media_type):
        return values | decode_object(data)
    return values | decode_form(data, request.headers["content-type"], "the form")
