"""LibreTranslate's contract: `POST /translate` and `/languages`, pure but for additive fields.

Owns how its clients ask (JSON, form or query string; `q` a string or a list; aliases such as
`zh`) and how they are answered. Names and messages are LibreTranslate's where it has one.
"""

import re
from collections.abc import Mapping

from fastapi import APIRouter, Request

from model.text.language import LanguagePair
from model.text.pipeline import without_surrogates
from service.access.access import DOCUMENTED, Access, Caller
from service.api.admission import translate_for
from service.api.checks import check_number, search_beam
from service.api.languages import LIBRETRANSLATE_ALIASES, choose_pair, language_name
from service.api.libretranslate.schema import (
    LANGUAGES_RESPONSES,
    TRANSLATE_RESPONSES,
    translate_operation,
)
from service.errors import RequestError, invalid
from service.front import Front
from service.http.body import BodyReaders
from service.http.replies import JsonReply
from service.models.translator import TranslatedText, TranslationRequest
from service.settings import Settings

_INTEGER = re.compile("-?[0-9]{1,18}")


def build_router(front: Front, readers: BodyReaders, access: Access) -> APIRouter:
    """The routes of this contract."""
    router = APIRouter(tags=["LibreTranslate"])

    @router.post(
        "/translate",
        summary="Translate texts",
        responses=TRANSLATE_RESPONSES,
        openapi_extra=translate_operation(front.settings),
        dependencies=[DOCUMENTED],
    )
    async def translate(request: Request) -> JsonReply:
        caller, values = await _read(request, front, readers, access)
        texts, is_batch = _texts(values, front.settings)
        chosen = choose_pair(
            front.pairs,
            source=_code(values, "source"),
            target=_code(values, "target"),
            aliases=LIBRETRANSLATE_ALIASES,
        )
        _check_format(values)
        num_alternatives = _num_alternatives(values)
        job = _request(texts, chosen.pair, num_alternatives, front.settings)
        results = await translate_for(request, front, access, caller, job)
        content = _content(results, is_batch=is_batch, is_asked=num_alternatives > 0)
        if chosen.is_detected:
            detected = {"confidence": 0, "language": chosen.pair.source}
            content["detectedLanguage"] = [detected] * len(texts) if is_batch else detected
        return JsonReply(content)

    # libretranslatepy sends a body, which makes its request a POST.
    @router.post("/languages", include_in_schema=False)
    @router.get("/languages", summary="Loaded languages", responses=LANGUAGES_RESPONSES)
    async def languages() -> JsonReply:
        return JsonReply(_languages(front.pairs))

    return router


async def _read(
    request: Request, front: Front, readers: BodyReaders, access: Access
) -> tuple[Caller, dict[str, object]]:
    """Who asks, and for what; whose key may still come is not told how busy it is here."""
    caller = await access.admit(request)
    if caller is not None:
        front.check_room()
    query = await readers.of(caller).read_query(request)
    if caller is None and query.get("api_key"):
        caller = await access.admit_with(request, query["api_key"])
        front.check_room()
    values = await readers.of(caller).read_values(request, query)
    if caller is None:
        caller = await access.admit_with(request, values.get("api_key"))
    return caller, values


def _texts(values: Mapping[str, object], settings: Settings) -> tuple[tuple[str, ...], bool]:
    """The texts of `q`, and whether it was a list."""
    q = values.get("q")
    if q is None:
        raise _missing("q")
    if isinstance(q, str):
        return (without_surrogates(q),), False
    if not isinstance(q, list):
        raise invalid("q must be a string or a list of strings", limit="string or list")
    check_number(q, settings)
    texts = [without_surrogates(text) for text in q if isinstance(text, str)]
    if len(texts) < len(q):
        raise invalid("q must be a string or a list of strings", limit="string or list")
    return tuple(texts), True


def _missing(name: str) -> RequestError:
    return invalid(f"Invalid request: missing {name} parameter", limit=name)


def _code(values: Mapping[str, object], name: str) -> str:
    code = values.get(name)
    if code is None or code == "":
        raise _missing(name)
    if not isinstance(code, str):
        raise invalid(f"{name} must be a string", limit="string")
    return code


def _check_format(values: Mapping[str, object]) -> None:
    text_format = values.get("format")
    if text_format in (None, "", "text"):
        return
    shown = text_format if text_format == "html" else "this"
    raise invalid(f"{shown} format is not supported", value=shown, limit="text")


def _num_alternatives(values: Mapping[str, object]) -> int:
    number = values.get("alternatives")
    if number is None or number == "":
        return 0
    if isinstance(number, str) and _INTEGER.fullmatch(number):
        number = int(number)
    if isinstance(number, bool) or not isinstance(number, int):
        raise invalid("alternatives must be an integer", limit="integer")
    return number


def _request(
    texts: tuple[str, ...], pair: LanguagePair, num_alternatives: int, settings: Settings
) -> TranslationRequest:
    return TranslationRequest(
        texts=texts,
        pair=pair,
        beam_size=search_beam(settings.beam_size, num_alternatives, settings),
        length_penalty=settings.length_penalty,
        num_alternatives=num_alternatives,
        max_length=None,
        with_alignment=False,
        timeout_seconds=settings.timeout_seconds,
        stopping=settings.stopping,
    )


def _content(results: list[TranslatedText], *, is_batch: bool, is_asked: bool) -> dict[str, object]:
    """The reply in `q`'s shape; whether text was cut or truncated is additive."""
    content: dict[str, object] = {"translatedText": [result.best.text for result in results]}
    if is_asked:
        content["alternatives"] = [list(result.alternatives) for result in results]
    if any(result.best.is_cut for result in results):
        content["isCut"] = [result.best.is_cut for result in results]
    if any(result.best.is_truncated for result in results):
        content["isTruncated"] = [result.best.is_truncated for result in results]
    if is_batch:
        return content
    return {name: values[0] for name, values in content.items() if isinstance(values, list)}


def _languages(pairs: tuple[LanguagePair, ...]) -> list[dict[str, object]]:
    tags = dict.fromkeys(tag for pair in pairs for tag in (pair.source, pair.target))
    return [
        {
            "code": tag,
            "name": language_name(tag),
            "targets": [pair.target for pair in pairs if pair.source == tag],
        }
        for tag in tags
    ]
