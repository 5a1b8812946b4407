"""Replies of DeepL's contract: their shapes, how results are put into them, and its errors.

Owns all three, and on which paths errors are DeepL's. What an error is comes from
`service.http.problems`; here it gets DeepL's status and body, because its clients know no 401 and
read `message`.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from typing import Any

from pydantic import BaseModel, Field
from starlette.requests import Request
from starlette.responses import Response

from model.text.languages.tags import canonical_tag
from service.api.deepl.languages import LanguageLists, code_name, source_code
from service.api.deepl.request import ReplyOptions
from service.errors import Problem
from service.http.middleware import note_problem
from service.http.replies import JsonReply, problem_headers
from service.http.replies import error_reply as own_error_reply
from service.models.requests.translation import TranslatedText
from service.telemetry.request_context import context_of

Handler = Callable[[Request], Awaitable[Response]]

_PATHS = ("/v2/", "/v3/")
NO_CHARACTER_LIMIT = 1_000_000_000_000
"""What DeepL says where there is no limit of characters."""


class DeepLTranslation(BaseModel):
    """One text's translation."""

    detected_source_language: str = Field(description="As it was named, or detected.")
    text: str
    billed_characters: int | None = Field(
        default=None,
        description="Characters of the source, tags left out; with `show_billed_characters`.",
    )
    model_type_used: str | None = Field(default=None, description="With `model_type`.")


class DeepLReply(BaseModel):
    """One translation per text, in order."""

    translations: list[DeepLTranslation]


class DeepLLanguage(BaseModel):
    """A loaded language."""

    language: str
    name: str
    supports_formality: bool | None = Field(default=None, description="Of targets: false.")


class DeepLFeatureLanguage(BaseModel):
    """A loaded language, as a source, a target or both."""

    lang: str
    name: str
    usable_as_source: bool
    usable_as_target: bool
    status: str
    features: dict[str, Any]


class DeepLUsage(BaseModel):
    """What was translated so far."""

    character_count: int = Field(
        description="Of the key, or of the address without one, since the server started."
    )
    character_limit: int = Field(description="So large that there is none.")


class DeepLError(BaseModel):
    """Every error of this contract."""

    message: str


_DESCRIPTIONS = {
    400: "The request is invalid, or asks for what this server cannot do.",
    403: "The key is wrong, or there is none where one is required.",
    408: "The body did not arrive in time.",
    413: "The request is too long, or has too many texts.",
    415: "The body is compressed.",
    429: "Too much is waiting, or too much was asked for; Retry-After says when to come back.",
    503: "Booting, shutting down or without an engine; Retry-After says when to come back.",
    504: "Not finished within the deadline; the work was dropped.",
}
ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": DeepLError, "description": text} for status, text in _DESCRIPTIONS.items()
}
TRANSLATE_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {"model": DeepLReply, "description": "The translations."},
    **ERRORS,
    404: {"model": DeepLError, "description": "There is no such glossary."},
}
LANGUAGES_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {"model": list[DeepLLanguage], "description": "Loaded languages."},
    **ERRORS,
}
FEATURES_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {"model": list[DeepLFeatureLanguage], "description": "Loaded languages."},
    **ERRORS,
}
USAGE_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {"model": DeepLUsage, "description": "What was translated so far."},
    **ERRORS,
}


def answered(handler: Handler) -> Handler:
    """A handler whose errors have DeepL's shape."""

    @wraps(handler)
    async def answer(request: Request) -> Response:
        try:
            return await handler(request)
        except Exception as error:
            return error_reply(note_problem(context_of(request), error))

    return answer


def error_reply(problem: Problem, headers: Mapping[str, str] | None = None) -> JsonReply:
    """A problem as DeepL answers it, with further headers: no key is a 403, too."""
    if problem.status == 401:
        message = "an API key is required: send it as Authorization: DeepL-Auth-Key KEY"
        problem = replace(problem, status=403, message=message)
    if problem.code == "invalid_markup":
        message = f"Tag handling parsing failed, please check input: {problem.message}"
        problem = replace(problem, message=message)
    all_headers = dict(headers or {}) | problem_headers(problem)
    return JsonReply({"message": problem.message}, problem.status, all_headers)


def is_of_deepl(path: str) -> bool:
    """Whether a path is of this contract, whether there is anything or not."""
    return path.startswith(_PATHS)


def error_reply_at(
    path: str, problem: Problem, headers: Mapping[str, str] | None = None
) -> JsonReply:
    """A problem in the shape of the API that has a path: DeepL's, or the server's own.

    Args:
        path: That was asked for.
        problem: What it is answered with.
        headers: Further ones.
    """
    if is_of_deepl(path):
        return error_reply(problem, headers)
    return own_error_reply(problem, headers)


def reply_content(results: Sequence[TranslatedText], options: ReplyOptions) -> dict[str, object]:
    """A `DeepLReply` as plain values; options that were not asked for are left out."""
    counts = options.num_characters or [None] * len(results)
    return {
        "translations": [
            _translation(result, count, options)
            for result, count in zip(results, counts, strict=True)
        ]
    }


def _translation(
    result: TranslatedText, num_characters: int | None, options: ReplyOptions
) -> dict[str, object]:
    content: dict[str, object] = {"text": result.best.text}
    if result.origin is not None:
        found = result.origin.detected
        tag = result.origin.route.source if found is None else found.tag
        content = {"detected_source_language": source_code(tag)} | content
    if num_characters is not None:
        without_tags = result.num_characters
        content["billed_characters"] = num_characters if without_tags is None else without_tags
    if options.model_type is not None:
        content["model_type_used"] = options.model_type
    return content


def languages_content(lists: LanguageLists, list_type: str) -> list[dict[str, object]]:
    """Every source or target language as a `DeepLLanguage`, as plain values."""
    if list_type == "source":
        return [{"language": code, "name": code_name(code)} for code in lists.sources]
    return [
        {"language": code, "name": code_name(code), "supports_formality": False}
        for code in lists.targets
    ]


def features_content(lists: LanguageLists) -> list[dict[str, object]]:
    """Every language as a `DeepLFeatureLanguage`, as plain values."""
    return [
        {
            "lang": canonical_tag(code),
            "name": code_name(code),
            "usable_as_source": code in lists.sources,
            "usable_as_target": code in lists.targets,
            "status": "stable",
            "features": {},
        }
        for code in sorted({*lists.sources, *lists.targets})
    ]


def usage_content(num_characters: int) -> dict[str, object]:
    """A `DeepLUsage` as plain values."""
    return {"character_count": num_characters, "character_limit": NO_CHARACTER_LIMIT}
