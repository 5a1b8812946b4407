"""Contract of DeepL: `/v2/translate`, `/v2/languages`, `/v2/usage`, and the lists of `/v3`.

Owns its paths. How its clients ask is `service.api.deepl.request`, how they are answered
`service.api.deepl.reply`. Every route takes a key where translations need one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fastapi import APIRouter, Request
from starlette.responses import Response

from service.access.access import DOCUMENTED
from service.api.admission import Admission
from service.api.deepl.languages import LanguageLists
from service.api.deepl.reply import (
    FEATURES_RESPONSES,
    LANGUAGES_RESPONSES,
    NO_GLOSSARIES,
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
    Asked,
    is_of_texts,
    list_type,
    parse,
    translate_operation,
)
from service.front import Front
from service.http.replies import JsonReply
from service.models.translator import TranslatedText, TranslationRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class DeepL:
    """Wire of `POST /v2/translate`; see `service.api.admission.Contract`.

    Attributes:
        front: What is loaded, and the settings.
    """

    front: Front
    takes_forms: bool = True
    key_name: str | None = None

    def parse(self, values: Mapping[str, object]) -> tuple[TranslationRequest, Asked]:
        """The request's values, checked."""
        return parse(values, self.front)

    def reply(self, results: Sequence[TranslatedText], asked: Asked) -> Response:
        """A `DeepLReply`."""
        return JsonReply(reply_content(results, asked))


def build_router(admission: Admission) -> APIRouter:
    """The routes of this contract."""
    router = APIRouter(tags=["DeepL"])
    contract = DeepL(front=admission.front)

    @router.post(
        "/v2/translate",
        summary="Translate texts, as DeepL does",
        responses=TRANSLATE_RESPONSES,
        openapi_extra=translate_operation(admission.front.settings),
        dependencies=[DOCUMENTED],
    )
    async def translate(request: Request) -> Response:
        return await answered(request, admission.answer(request, contract))

    _add_lists(router, admission, contract)
    return router


def _add_lists(router: APIRouter, admission: Admission, contract: DeepL) -> None:
    """Add what clients ask for beside translations."""
    lists = LanguageLists()

    async def list_languages(request: Request) -> Response:
        _, values = await admission.read(request, contract)
        found = lists.of(admission.front.table)
        return JsonReply(languages_content(found, list_type(values)))

    async def list_features(request: Request) -> Response:
        _, values = await admission.read(request, contract)
        found = lists.of(admission.front.table)
        return JsonReply(features_content(found) if is_of_texts(values) else [])

    async def tell_usage(request: Request) -> Response:
        caller, _ = await admission.read(request, contract)
        return JsonReply(usage_content(admission.access.num_characters(caller)))

    # The client for Python sends the type of the list in the body of a GET.
    @router.post("/v2/languages", include_in_schema=False)
    @router.get(
        "/v2/languages",
        summary="Loaded languages, as DeepL lists them",
        responses=LANGUAGES_RESPONSES,
        openapi_extra=LANGUAGE_LIST,
        dependencies=[DOCUMENTED],
    )
    async def languages(request: Request) -> Response:
        return await answered(request, list_languages(request))

    @router.get(
        "/v3/languages",
        summary="Loaded languages and what each can be used for",
        responses=FEATURES_RESPONSES,
        openapi_extra=LANGUAGE_RESOURCE,
        dependencies=[DOCUMENTED],
    )
    async def features(request: Request) -> Response:
        return await answered(request, list_features(request))

    async def list_nothing(request: Request) -> Response:
        await admission.read(request, contract)
        return JsonReply(dict(NO_GLOSSARIES))

    # Programs ask for the list when they start, and there are none.
    @router.get("/v2/glossary-language-pairs", include_in_schema=False)
    @router.get("/v2/glossaries", include_in_schema=False)
    @router.get("/v3/glossaries", include_in_schema=False)
    async def glossaries(request: Request) -> Response:
        return await answered(request, list_nothing(request))

    @router.post("/v2/usage", include_in_schema=False)
    @router.get(
        "/v2/usage",
        summary="What a caller has translated",
        responses=USAGE_RESPONSES,
        dependencies=[DOCUMENTED],
    )
    async def usage(request: Request) -> Response:
        return await answered(request, tell_usage(request))
