"""Contract of LibreTranslate: all its paths but those of files, with additive fields only.

Owns its paths. How its clients ask is `service.api.libretranslate.request`, how they are answered
`service.api.libretranslate.reply`, what a page is told `service.api.libretranslate.frontend`,
what is proposed `service.api.libretranslate.suggestions`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fastapi import APIRouter, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from service.access.access import DOCUMENTED
from service.api.admission import Admission
from service.api.libretranslate.frontend import FRONTEND_RESPONSES, frontend_content
from service.api.libretranslate.reply import (
    DETECT_RESPONSES,
    LANGUAGES_RESPONSES,
    TRANSLATE_RESPONSES,
    LanguageList,
    detected_language,
    reply_content,
)
from service.api.libretranslate.request import (
    KEY_NAME,
    ReplyOptions,
    detect_operation,
    detect_texts,
    parse,
    translate_operation,
)
from service.api.libretranslate.suggestions import (
    SUGGEST_RESPONSES,
    SuggestionFile,
    suggest_operation,
    suggestion,
)
from service.front import Front
from service.http.direct import DirectRoute
from service.http.replies import JsonReply
from service.models.requests.translation import TranslatedText, TranslationRequest

_FORM = "application/x-www-form-urlencoded"


@dataclass(frozen=True, slots=True, kw_only=True)
class LibreTranslate:
    """Wire of `POST /translate`; see `service.api.admission.Contract`.

    Attributes:
        front: What is loaded, and the settings.
    """

    front: Front
    takes_forms: bool = True
    key_name: str | None = KEY_NAME

    def parse(self, values: Mapping[str, object]) -> tuple[TranslationRequest, ReplyOptions]:
        """The request's values, checked."""
        return parse(values, self.front)

    def reply(self, results: Sequence[TranslatedText], options: ReplyOptions) -> Response:
        """A `LibreTranslateReply`."""
        return JsonReply(reply_content(results, options))


def build_router(admission: Admission) -> APIRouter:
    """The routes of this contract."""
    router = APIRouter(tags=["LibreTranslate"])
    front = admission.front
    contract = LibreTranslate(front=front)
    language_list = LanguageList()

    async def translate(request: Request) -> Response:
        return await admission.answer(request, contract)

    router.add_api_route(
        "/translate",
        translate,
        methods=["POST"],
        summary="Translate texts",
        responses=TRANSLATE_RESPONSES,
        openapi_extra=translate_operation(front.settings),
        dependencies=[DOCUMENTED],
        route_class_override=DirectRoute,
    )

    @router.post(
        "/detect",
        summary="Detect the language of a text",
        responses=DETECT_RESPONSES,
        openapi_extra=detect_operation(front.settings),
        dependencies=[DOCUMENTED],
    )
    async def detect(request: Request) -> JsonReply:
        _, values = await admission.read(request, contract)
        texts = detect_texts(values, front.settings)
        found = await admission.ranked_languages(request, texts)
        return JsonReply([detected_language(one) for one in found])

    @router.get("/languages", summary="Loaded languages", responses=LANGUAGES_RESPONSES)
    async def languages() -> JsonReply:
        return language_list.of(front.table)

    # libretranslatepy asks with a form; LibreTranslate has no other POST here either.
    @router.post("/languages", include_in_schema=False)
    async def languages_by_form(request: Request) -> JsonReply:
        if not request.headers.get("content-type", "").startswith(_FORM):
            raise HTTPException(405, headers={"allow": "GET"})
        return language_list.of(front.table)

    _add_rest(router, admission, contract)
    return router


def _add_rest(router: APIRouter, admission: Admission, contract: LibreTranslate) -> None:
    """Add what pages ask for beside translations."""
    settings = admission.front.settings
    file = SuggestionFile(settings.suggestions)

    @router.get("/frontend/settings", summary="Settings of a page", responses=FRONTEND_RESPONSES)
    async def frontend_settings(request: Request) -> JsonReply:
        accepted = request.headers.get("accept-language", "")
        return JsonReply(frontend_content(admission.front, admission.access, accepted))

    @router.post(
        "/suggest",
        summary="Suggest another translation",
        responses=SUGGEST_RESPONSES,
        openapi_extra=suggest_operation(is_open=settings.suggestions is not None),
        dependencies=[DOCUMENTED],
    )
    async def suggest(request: Request) -> JsonReply:
        file.check_open()
        _, values = await admission.read(request, contract, needs_room=False)
        await file.add(suggestion(values, settings))
        return JsonReply({"success": True})
