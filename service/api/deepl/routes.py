"""Contract of DeepL: `/v2/translate`, `/v2/languages`, `/v3/languages`, `/v2/usage`.

Owns its paths. How its clients ask is `service.api.deepl.request`, how they are answered
`service.api.deepl.reply`. Every route takes a key where translations need one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fastapi import APIRouter, Request
from msgspec import structs
from starlette.responses import Response

from service.access.access import DOCUMENTED, Caller
from service.api.admission import Admission
from service.api.deepl.glossaries import build_glossaries, found_terms
from service.api.deepl.languages import LanguageLists
from service.api.deepl.reply import (
    FEATURES_RESPONSES,
    LANGUAGES_RESPONSES,
    TRANSLATE_RESPONSES,
    USAGE_RESPONSES,
    answered,
    features_content,
    languages_content,
    reply_content,
    usage_content,
)
from service.api.deepl.request import (
    LANGUAGE_LIST,
    LANGUAGE_RESOURCE,
    ReplyOptions,
    is_translated,
    list_type,
    parse,
    translate_operation,
)
from service.api.receiving import owner_of
from service.front import Front
from service.glossaries.keeping import Glossaries
from service.http.direct import DirectRoute
from service.http.replies import JsonReply
from service.models.requests.translation import TranslatedText, TranslationRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class DeepL:
    """Wire of `POST /v2/translate`; see `service.api.admission.Contract`.

    Attributes:
        front: What is loaded, and the settings.
    """

    front: Front
    takes_forms: bool = True
    key_name: str | None = None

    def parse(self, values: Mapping[str, object]) -> tuple[TranslationRequest, ReplyOptions]:
        """The request's values, checked."""
        return parse(values, self.front)

    def reply(self, results: Sequence[TranslatedText], options: ReplyOptions) -> Response:
        """A `DeepLReply`."""
        return JsonReply(reply_content(results, options))


def build_routers(admission: Admission, glossaries: Glossaries) -> tuple[APIRouter, APIRouter]:
    """The routes of this contract, and of its glossaries."""
    router = APIRouter(tags=["DeepL"])
    contract = DeepL(front=admission.front)

    @answered
    async def translate(request: Request) -> Response:
        caller, values = await admission.read(request, contract)
        job, options = contract.parse(values)
        job = await _with_glossary(job, options, caller, glossaries)
        results = await admission.translate(request, caller, job)
        return await admission.reply(contract, results, options)

    router.add_api_route(
        "/v2/translate",
        translate,
        methods=["POST"],
        summary="Translate texts, as DeepL does",
        responses=TRANSLATE_RESPONSES,
        openapi_extra=translate_operation(admission.front.settings),
        dependencies=[DOCUMENTED],
        route_class_override=DirectRoute,
    )

    @router.post("/v2/usage", include_in_schema=False)
    @router.get(
        "/v2/usage",
        summary="What a caller has translated",
        responses=USAGE_RESPONSES,
        dependencies=[DOCUMENTED],
    )
    @answered
    async def usage(request: Request) -> Response:
        caller, _ = await admission.read(request, contract, needs_room=False)
        return JsonReply(usage_content(admission.access.num_characters(caller)))

    _add_languages(router, admission, contract)
    return router, build_glossaries(admission, glossaries, contract)


async def _with_glossary(
    job: TranslationRequest, options: ReplyOptions, caller: Caller, glossaries: Glossaries
) -> TranslationRequest:
    """A request with the terms of the glossaries that it names."""
    if not options.glossary_ids:
        return job
    languages = job.route.source, job.route.target
    found = await found_terms(glossaries, owner_of(caller), options.glossary_ids, languages)
    return structs.replace(job, glossary=found)


def _add_languages(router: APIRouter, admission: Admission, contract: DeepL) -> None:
    """Add the lists of what is loaded."""
    lists = LanguageLists()

    # The client for Python sends the type of the list in the body of a GET.
    @router.post("/v2/languages", include_in_schema=False)
    @router.get(
        "/v2/languages",
        summary="Loaded languages, as DeepL lists them",
        responses=LANGUAGES_RESPONSES,
        openapi_extra=LANGUAGE_LIST,
        dependencies=[DOCUMENTED],
    )
    @answered
    async def languages(request: Request) -> Response:
        _, values = await admission.read(request, contract, needs_room=False)
        found = lists.of(admission.front.table)
        return JsonReply(languages_content(found, list_type(values)))

    @router.get(
        "/v3/languages",
        summary="Loaded languages and what each can be used for",
        responses=FEATURES_RESPONSES,
        openapi_extra=LANGUAGE_RESOURCE,
        dependencies=[DOCUMENTED],
    )
    @answered
    async def features(request: Request) -> Response:
        _, values = await admission.read(request, contract, needs_room=False)
        front = admission.front
        found = lists.of(front.table)
        is_here = is_translated(values, has_documents=front.settings.documents)
        return JsonReply(features_content(found) if is_here else [])
