"""Contract of LibreTranslate: `/translate`, `/detect`, `/languages`, with additive fields only.

Owns its paths. How its clients ask is `service.api.libretranslate.request`, how they are answered
`service.api.libretranslate.reply`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fastapi import APIRouter, Request
from starlette.responses import Response

from service.access.access import DOCUMENTED
from service.api.admission import Admission
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
    Asked,
    detect_operation,
    detect_texts,
    parse,
    translate_operation,
)
from service.front import Front
from service.http.replies import JsonReply
from service.models.translation import TranslatedText, TranslationRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class LibreTranslate:
    """Wire of `POST /translate`; see `service.api.admission.Contract`.

    Attributes:
        front: What is loaded, and the settings.
    """

    front: Front
    takes_forms: bool = True
    key_name: str | None = KEY_NAME

    def parse(self, values: Mapping[str, object]) -> tuple[TranslationRequest, Asked]:
        """The request's values, checked."""
        return parse(values, self.front)

    def reply(self, results: Sequence[TranslatedText], asked: Asked) -> Response:
        """A `LibreTranslateReply`."""
        return JsonReply(reply_content(results, asked))


def build_router(admission: Admission) -> APIRouter:
    """The routes of this contract."""
    router = APIRouter(tags=["LibreTranslate"])
    front = admission.front
    contract = LibreTranslate(front=front)
    language_list = LanguageList()

    @router.post(
        "/translate",
        summary="Translate texts",
        responses=TRANSLATE_RESPONSES,
        openapi_extra=translate_operation(front.settings),
        dependencies=[DOCUMENTED],
    )
    async def translate(request: Request) -> Response:
        return await admission.answer(request, contract)

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

    # libretranslatepy sends a body, which makes its request a POST.
    @router.post("/languages", include_in_schema=False)
    @router.get("/languages", summary="Loaded languages", responses=LANGUAGES_RESPONSES)
    async def languages() -> JsonReply:
        return language_list.of(front.table)

    return router
