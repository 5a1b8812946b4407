"""Dispatcher of requests to groups: takes one, finds whom to ask, asks, and answers.

Owns the ways in which groups are asked: one by its languages, all for a list, one after another for
what has an id, any for what is the same everywhere; and when the next one is asked: where nothing
of the request was begun, or asking twice changes nothing. Whom languages mean is
`service.router.choice`; connections are `service.router.pool`.
"""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
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
from service.http.body import BodyReader, body_type, check_encoding, decode_object
from service.http.disconnect import cancelled_on_disconnect
from service.http.forms import decode_form
from service.http.replies import JsonReply
from service.http.uploads import FORM_TYPE, check_announced
from service.models.requests.detection import LanguageDetection
from service.router.choice import (
    choose,
    group_of_dictionaries,
    groups_of_document,
    groups_unavailable,
)
from service.router.connection import Asked, Body, BytesBody
from service.router.directory import Directory, GroupState
from service.router.groups import (
    NOT_REACHED,
    ConnectError,
    LostError,
    group_lost,
    group_unavailable,
)
from service.router.joining import joined, summed
from service.router.metrics import RouterMetrics
from service.router.passing_on import PassedAnswer, asked_of
from service.router.pool import Answer
from service.router.room import UploadRoom
from service.router.uploads import new_file, received
from service.router.watch import Watch
from service.router.wording import OF_DOCUMENTS, OF_TEXTS, Values, Wording
from service.settings import Settings

_MAX_LIST_BYTES = 32 * 2**20
_MAX_INLINE_BYTES = 16 * 1024
"""Decoding more would hold the event loop for more than a millisecond."""
_UNKNOWN = 404
_BRIEF_SECONDS = 1.0
"""That a group which is away is asked for what it alone may have: it may be back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dispatcher:
    """The parts of one router.

    Attributes:
        watch: The groups, as they answered last.
        settings: Limits of bodies and of texts, and trusted proxies.
        reader: Of bodies that are no documents.
        arrivals: Bodies that are being read.
        detection: Tells languages among those of all groups.
        metrics: Where groups are counted.
        lists: Which languages glossaries can be for.
        room: Bytes of documents that are here.
    """

    watch: Watch
    settings: Settings
    reader: BodyReader
    arrivals: Arrivals
    detection: LanguageDetection
    metrics: RouterMetrics
    lists: LanguageLists
    room: UploadRoom

    @property
    def directory(self) -> Directory:
        """What is known of the groups now."""
        return self.watch.directory

    async def translate(self, request: Request) -> Response:
        """Pass a translation to the group of its languages."""
        wording = OF_TEXTS[request.scope["path"]]
        data = await self.reader.read_bytes(request)
        values = await self._values(request, data, takes_forms=wording.takes_forms)
        find, read_texts = partial(wording.find, values), partial(self._texts, wording, values)
        groups = await choose(self.directory, find, read_texts, self._detect)
        name, answer = await self._first(request, self._asked(request, data), groups)
        return PassedAnswer(answer, name)

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
            name, answer = await self._first(request, self._asked(request, body), groups)
            return PassedAnswer(answer, name)

    async def detect(self, request: Request) -> Response:
        """Tell a text's language among those of all groups, if a group would tell it its own."""
        data = await self.reader.read_bytes(request)
        asked = self._asked(request, data)
        name, answer = await self._first(request, asked, self.directory.answering)
        body = await self._read(answer, name)
        if answer.status != 200 or not self.detection.is_on:
            return _copied(answer, body)
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
        return PassedAnswer(await self._ask(request, self._asked(request, data), group), group.name)

    async def joined_list(self, request: Request) -> Response:
        """Join a list of all groups that answer."""
        return await self._joined(request, self.directory.answering, joined, is_whole=False)

    async def complete_list(self, request: Request) -> Response:
        """Join a list of all groups, of which none may be missing."""
        away = self.directory.away
        if away:
            raise groups_unavailable(away)
        return await self._joined(request, self.directory.groups, summed, is_whole=True)

    async def by_id(self, request: Request) -> Response:
        """Ask one group after another until one knows what is asked for.

        Those that are away come last, and only where asking changes nothing. While one of them may
        have it, nobody says that there is no such thing.
        """
        asked = self._asked(request, await self.reader.read_bytes(request))
        unknown = refusal = failure = None
        missing: set[str] = set()
        for group in (*self.directory.answering, *self.directory.away):
            is_away = not group.is_answering
            if is_away and not asked.is_safe:
                missing.add(group.name)
                continue
            found = await self._tried(request, asked, group, is_brief=is_away)
            if isinstance(found, RequestError):
                missing.add(group.name)
                failure = failure or (None if is_away else found)
            elif found.is_refusal:
                refusal = refusal or PassedAnswer(found, group.name)
            elif found.status == _UNKNOWN:
                unknown = _copied(found, await self._read(found, group.name))
            else:
                return PassedAnswer(found, group.name)
        if refusal is not None:
            return refusal
        if failure is not None and failure.problem.code != NOT_REACHED:
            raise failure
        if missing:
            raise groups_unavailable([one for one in self.directory.groups if one.name in missing])
        assert unknown is not None  # a router has a group
        return unknown

    async def from_any(self, request: Request) -> Response:
        """Pass on what every group answers alike."""
        asked = self._asked(request, await self.reader.read_bytes(request))
        name, answer = await self._first(request, asked, self.directory.answering)
        return PassedAnswer(answer, name)

    def _asked(self, request: Request, body: bytes | Body) -> Asked:
        """What groups are asked for a request with this body."""
        data = BytesBody(data=body) if isinstance(body, bytes) else body
        return asked_of(request, data, self.settings.trusted_proxies)

    async def _first(
        self, request: Request, asked: Asked, groups: Sequence[GroupState]
    ) -> tuple[str, Answer]:
        """The answer of the first group that does not refuse all; else the first one's refusal.

        Raises:
            RequestError: As of `_ask`.
        """
        refusal: tuple[str, Answer] | None = None
        failure: RequestError | None = None
        for group in groups:
            found = await self._tried(request, asked, group)
            if isinstance(found, RequestError):
                failure = failure or found
            elif found.is_refusal:
                refusal = refusal or (group.name, found)
            else:
                return group.name, found
        if refusal is not None:
            return refusal
        raise failure or groups_unavailable(self.directory.groups)

    async def _tried(
        self, request: Request, asked: Asked, group: GroupState, *, is_brief: bool = False
    ) -> Answer | RequestError:
        """A group's answer, or why there is none where another group may be asked instead.

        Raises:
            RequestError: A 502: it gave no answer, and may have done what was asked.
        """
        try:
            return await self._ask(request, asked, group, is_brief=is_brief)
        except RequestError as error:
            if error.problem.code != NOT_REACHED and not asked.is_safe:
                raise
            return error

    async def _ask(
        self, request: Request, asked: Asked, group: GroupState, *, is_brief: bool = False
    ) -> Answer:
        """A group's answer; dropped if the client goes before it is there.

        Raises:
            RequestError: A 503: it was not reached, so nothing was done; a 502: it gave no answer.
            ClientGoneError: The client has gone.
        """
        pool = self.watch.pools[group.name]
        work = pool.ask_briefly(asked, seconds=_BRIEF_SECONDS) if is_brief else pool.ask(asked)
        try:
            answer = await cancelled_on_disconnect(request, work)
        except ConnectError as error:
            self.metrics.passed(group.name, None)
            self.watch.mark_unreachable(group.name, str(error))
            raise group_unavailable([group.name], str(error)) from error
        except LostError as error:
            self.metrics.passed(group.name, None)
            raise group_lost(group.name, str(error)) from error
        self.metrics.passed(group.name, answer.status)
        return answer

    def _address(self, request: Request) -> str:
        """The client that a request counts for, as a server would count it without a key."""
        peer = request.client.host if request.client else None
        forwarded = request.headers.getlist("x-forwarded-for")
        return client_of(peer, forwarded, self.settings.trusted_proxies)

    async def _joined(
        self,
        request: Request,
        groups: Sequence[GroupState],
        join: Callable[[Sequence[Any]], object],
        *,
        is_whole: bool,
    ) -> Response:
        """The lists of some groups as one; unless it has to be whole, one may miss of several."""
        asked = self._asked(request, await self.reader.read_bytes(request))
        if not groups:
            raise groups_unavailable(self.directory.groups)
        contents = []
        failure: RequestError | None = None
        refusal: Response | None = None
        for group in groups:
            try:
                answer = await self._ask(request, asked, group)
                data = await self._read(answer, group.name)
            except RequestError as error:
                if is_whole:
                    raise
                failure = failure or error
                continue
            if answer.is_refusal and not is_whole:
                refusal = refusal or _copied(answer, data)
                continue
            if answer.status != 200:
                return _copied(answer, data)
            with suppress(ValueError):
                contents.append(await asyncio.to_thread(json.loads, data))
        if not contents and refusal is not None:
            return refusal
        if not contents and failure is not None:
            raise failure
        return JsonReply(join(contents) if contents else [])

    async def _read(self, answer: Answer, group: str) -> bytes:
        try:
            return await answer.read(max_bytes=_MAX_LIST_BYTES)
        except LostError as error:
            raise group_lost(group, str(error)) from error

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
    """The values of a body, and of the query string where forms are taken."""
    media_type = body_type(request)
    if not takes_forms:
        return decode_object(data)
    values = decode_form(request.scope["query_string"], "", "the query string")
    if not data:
        return values
    if media_type == "application/json" or media_type.endswith("+json"):
        return values | decode_object(data)
    content_type = request.headers.get("content-type", "")
    if media_type not in (FORM_TYPE, "application/x-www-form-urlencoded"):
        return values  # a group refuses it in its own words
    return values | decode_form(data, content_type, "the form")


def _copied(answer: Answer, body: bytes) -> Response:
    """A group's answer that was read."""
    return PassedAnswer(Answer(answer.status, answer.headers, beginning=body), "")
