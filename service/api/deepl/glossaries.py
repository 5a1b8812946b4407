"""Glossaries of DeepL's contract: `/v2/glossaries` with one dictionary each, `/v3/glossaries`.

Owns these paths. What is asked for is `service.api.deepl.dictionaries`, what is answered
`service.api.deepl.glossary_reply`. A glossary is its caller's: for others it is not there.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

from fastapi import APIRouter, Request
from starlette.responses import Response

from model.text.constraints.glossary import Glossary
from service.access.access import DOCUMENTED
from service.api.admission import Admission, Wire
from service.api.deepl import glossary_reply as reply
from service.api.deepl.dictionaries import (
    CHANGE,
    NEW_GLOSSARIES,
    NEW_GLOSSARY,
    ONE_DICTIONARY,
    ONE_GLOSSARY,
    REPLACEMENT,
    read_dictionaries,
    read_dictionary,
    read_languages,
    read_name,
    read_new_name,
)
from service.api.deepl.languages import LanguageLists, base_code
from service.api.deepl.reply import answered
from service.api.deepl.request import ReplyOptions
from service.api.receiving import owner_of
from service.documents.jobs import Owner
from service.glossaries.entries import as_tsv
from service.glossaries.keeping import Glossaries
from service.glossaries.store import GlossaryInfo, GlossaryStore, no_such_glossary
from service.http.replies import JsonReply

T = TypeVar("T")


class GlossaryAccess:
    """Access of a request to the glossaries of its caller: what all routes have in common.

    Args:
        admission: What admits callers and reads their values.
        glossaries: What they keep.
        wire: How their requests are read.
    """

    def __init__(
        self, admission: Admission, glossaries: Glossaries, wire: Wire[ReplyOptions]
    ) -> None:
        self._admission = admission
        self._glossaries = glossaries
        self._wire = wire
        self._lists = LanguageLists()

    async def read(self, request: Request) -> tuple[str, dict[str, object]]:
        """The owner that a request's caller is, and its values."""
        caller, values = await self._admission.read(request, self._wire, needs_room=False)
        return owner_of(caller).key_name, values

    async def ask(self, question: Callable[[GlossaryStore], T]) -> T:
        """The store's answer."""
        return await self._glossaries.ask(question)

    @property
    def lists(self) -> LanguageLists:
        """The languages that are translated now."""
        return self._lists.of(self._admission.front.table)


def build_glossaries(
    admission: Admission, glossaries: Glossaries, wire: Wire[ReplyOptions]
) -> APIRouter:
    """The routes of glossaries."""
    router = APIRouter(tags=["DeepL"], dependencies=[DOCUMENTED])
    access = GlossaryAccess(admission, glossaries, wire)
    _add_pairs(router, access)
    _add_single(router, access)
    _add_multilingual(router, access)
    _add_dictionaries(router, access)
    return router


async def found_terms(
    glossaries: Glossaries, owner: Owner, names: Sequence[str], languages: tuple[str, str]
) -> Glossary:
    """What some glossaries of a caller have for two languages.

    Args:
        glossaries: Of all callers.
        owner: Whose they have to be.
        names: Their ids; of equal terms the first one's counts.
        languages: Tags of source and target.

    Raises:
        RequestError: A 404: there is none of this name and these languages; a 400; a 503.
    """
    source, target = languages
    return await glossaries.terms(owner.key_name, names, (base_code(source), base_code(target)))


def _add_pairs(router: APIRouter, access: GlossaryAccess) -> None:
    @router.get(
        "/v2/glossary-language-pairs",
        summary="Languages that a glossary can be for",
        responses=reply.responses(reply.DeepLLanguagePairs, may_miss=False),
    )
    @answered
    async def pairs(request: Request) -> Response:
        await access.read(request)
        return JsonReply(reply.pairs_content(access.lists.pairs))


def _add_single(router: APIRouter, access: GlossaryAccess) -> None:
    """Add glossaries with one dictionary."""

    @router.post(
        "/v2/glossaries",
        summary="Keep a glossary",
        status_code=201,
        responses=reply.responses(reply.DeepLGlossary, 201, may_miss=False),
        openapi_extra=NEW_GLOSSARY,
    )
    @answered
    async def add(request: Request) -> Response:
        owner, values = await access.read(request)
        name, dictionary = read_name(values), read_dictionary(values, access.lists)
        info = await access.ask(lambda store: store.add(owner, name, [dictionary]))
        return JsonReply(reply.glossary_content(info), 201)

    @router.get(
        "/v2/glossaries",
        summary="Glossaries of the caller",
        responses=reply.responses(reply.DeepLGlossaries, may_miss=False),
    )
    @answered
    async def every(request: Request) -> Response:
        owner, _ = await access.read(request)
        return JsonReply(
            reply.glossaries_content(await access.ask(lambda store: store.every(owner)))
        )

    @router.get(
        "/v2/glossaries/{glossary_id}",
        summary="A glossary",
        responses=reply.responses(reply.DeepLGlossary),
        openapi_extra=ONE_GLOSSARY,
    )
    @answered
    async def one(request: Request) -> Response:
        owner, _ = await access.read(request)
        name = _named(request)
        info = await access.ask(lambda store: _single(store, owner, name))
        return JsonReply(reply.glossary_content(info))

    @router.get(
        "/v2/glossaries/{glossary_id}/entries",
        summary="Entries of a glossary",
        response_class=Response,
        responses=reply.ENTRIES_RESPONSES,
        openapi_extra=ONE_GLOSSARY,
    )
    @answered
    async def entries(request: Request) -> Response:
        owner, _ = await access.read(request)
        name = _named(request)
        text = await access.ask(lambda store: _entries(store, owner, name))
        return Response(text, media_type="text/tab-separated-values")

    @router.delete(
        "/v2/glossaries/{glossary_id}",
        summary="Forget a glossary",
        status_code=204,
        responses=reply.responses(None, 204),
        openapi_extra=ONE_GLOSSARY,
    )
    @answered
    async def remove(request: Request) -> Response:
        owner, _ = await access.read(request)
        name = _named(request)
        await access.ask(lambda store: store.remove(owner, _single(store, owner, name).id))
        return Response(status_code=204)


def _add_multilingual(router: APIRouter, access: GlossaryAccess) -> None:
    """Add glossaries with any number of dictionaries."""

    @router.post(
        "/v3/glossaries",
        summary="Keep a glossary with several dictionaries",
        status_code=201,
        responses=reply.responses(reply.DeepLMultilingualGlossary, 201, may_miss=False),
        openapi_extra=NEW_GLOSSARIES,
    )
    @answered
    async def add(request: Request) -> Response:
        owner, values = await access.read(request)
        name = read_name(values)
        added = read_dictionaries(values, access.lists, is_needed=True)
        info = await access.ask(lambda store: store.add(owner, name, added))
        return JsonReply(reply.multilingual_content(info), 201)

    @router.get(
        "/v3/glossaries",
        summary="All glossaries of the caller",
        responses=reply.responses(reply.DeepLMultilingualGlossaries, may_miss=False),
    )
    @answered
    async def every(request: Request) -> Response:
        owner, _ = await access.read(request)
        infos = await access.ask(lambda store: store.every(owner))
        return JsonReply({"glossaries": [reply.multilingual_content(one) for one in infos]})

    @router.get(
        "/v3/glossaries/{glossary_id}",
        summary="A glossary with its dictionaries",
        responses=reply.responses(reply.DeepLMultilingualGlossary),
        openapi_extra=ONE_GLOSSARY,
    )
    @answered
    async def one(request: Request) -> Response:
        owner, _ = await access.read(request)
        name = _named(request)
        info = await access.ask(lambda store: store.find(owner, name))
        return JsonReply(reply.multilingual_content(info))

    @router.patch(
        "/v3/glossaries/{glossary_id}",
        summary="Another name, further entries, further dictionaries",
        responses=reply.responses(reply.DeepLMultilingualGlossary),
        openapi_extra=CHANGE,
    )
    @answered
    async def change(request: Request) -> Response:
        owner, values = await access.read(request)
        name, glossary_id = read_new_name(values), _named(request)
        added = read_dictionaries(values, access.lists, is_needed=name is None)
        info = await access.ask(
            lambda store: store.change(owner, glossary_id, name=name, added=added)
        )
        return JsonReply(reply.multilingual_content(info))

    @router.delete(
        "/v3/glossaries/{glossary_id}",
        summary="Forget a glossary with all its dictionaries",
        status_code=204,
        responses=reply.responses(None, 204),
        openapi_extra=ONE_GLOSSARY,
    )
    @answered
    async def remove(request: Request) -> Response:
        owner, _ = await access.read(request)
        name = _named(request)
        await access.ask(lambda store: store.remove(owner, name))
        return Response(status_code=204)


def _add_dictionaries(router: APIRouter, access: GlossaryAccess) -> None:
    """Add the dictionaries of a glossary, one by one."""

    @router.get(
        "/v3/glossaries/{glossary_id}/entries",
        summary="Entries of a dictionary",
        responses=reply.responses(reply.DeepLEntries),
        openapi_extra=ONE_DICTIONARY,
    )
    @answered
    async def entries(request: Request) -> Response:
        owner, values = await access.read(request)
        name, languages = _named(request), read_languages(values)
        found = await access.ask(lambda store: store.entries(owner, name, languages))
        return JsonReply(reply.entries_content(languages, found))

    @router.put(
        "/v3/glossaries/{glossary_id}/dictionaries",
        summary="Replace a dictionary, or begin it",
        responses=reply.responses(reply.DeepLDictionary),
        openapi_extra=REPLACEMENT,
    )
    @answered
    async def replace(request: Request) -> Response:
        owner, values = await access.read(request)
        name, dictionary = _named(request), read_dictionary(values, access.lists)
        info = await access.ask(lambda store: store.replace(owner, name, dictionary))
        return JsonReply(reply.dictionary_content(info))

    @router.delete(
        "/v3/glossaries/{glossary_id}/dictionaries",
        summary="Forget a dictionary",
        status_code=204,
        responses=reply.responses(None, 204),
        openapi_extra=ONE_DICTIONARY,
    )
    @answered
    async def remove(request: Request) -> Response:
        owner, values = await access.read(request)
        name, languages = _named(request), read_languages(values)
        await access.ask(lambda store: store.remove_dictionary(owner, name, languages))
        return Response(status_code=204)


def _named(request: Request) -> str:
    return str(request.path_params["glossary_id"])


def _single(store: GlossaryStore, owner: str, glossary_id: str) -> GlossaryInfo:
    """A glossary with one dictionary: others have no place in version 2."""
    info = store.find(owner, glossary_id)
    if len(info.dictionaries) != 1:
        number = len(info.dictionaries)
        raise no_such_glossary(f"the glossary has {number} dictionaries: ask /v3/glossaries")
    return info


def _entries(store: GlossaryStore, owner: str, glossary_id: str) -> str:
    info = _single(store, owner, glossary_id)
    return as_tsv(store.entries(owner, glossary_id, info.dictionaries[0].languages))
