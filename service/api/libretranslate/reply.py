"""Replies of LibreTranslate's contract: their shapes, and how results are put into them.

Owns both, for texts and for languages. Errors have the shape of `service.http.replies`.
"""

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, Field

from model.text.languages.detection import Detection
from service.api.languages import language_name
from service.api.libretranslate.request import ReplyOptions
from service.http.replies import JsonReply, error_responses
from service.models.requests.translation import TranslatedText
from service.models.routes.pivot import reachable
from service.models.routes.routing import RoutingTable


class DetectedLanguage(BaseModel):
    """The language that a text is in."""

    confidence: float = Field(
        ge=0, le=100, description="How sure that is; 0 when there was nothing to go by."
    )
    language: str


class LibreTranslateReply(BaseModel):
    """Every field has the shape of `q`: one value for a string, a list for a list."""

    translatedText: str | list[str]  # noqa: N815  # the contract's own spelling
    alternatives: list[str] | list[list[str]] | None = Field(
        default=None, description="Only when asked for."
    )
    detectedLanguage: DetectedLanguage | list[DetectedLanguage] | None = Field(  # noqa: N815  # same
        default=None, description='Only when source is "auto".'
    )
    isCut: bool | list[bool] | None = Field(  # noqa: N815  # same
        default=None,
        description="Only when a sentence was too long for the network, or was split around its"
        " marks, and was translated in pieces.",
    )
    isTruncated: bool | list[bool] | None = Field(  # noqa: N815  # same
        default=None,
        description="Only when a translation reached the length limit and stops short.",
    )


class LanguageReply(BaseModel):
    """One loaded language."""

    code: str
    name: str
    targets: list[str]


TRANSLATE_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {"model": LibreTranslateReply, "description": "The translation, in the shape of `q`."},
    **error_responses(400, 401, 403, 408, 413, 415, 429, 431, 503, 504),
}
DETECT_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "model": list[DetectedLanguage],
        "description": "The loaded languages that the text may be in, the likeliest first.",
    },
    **error_responses(400, 401, 403, 408, 413, 415, 429, 431, 503, 504),
}
LANGUAGES_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {"model": list[LanguageReply], "description": "Loaded languages and their targets."},
    **error_responses(503),
}


def reply_content(results: Sequence[TranslatedText], options: ReplyOptions) -> dict[str, object]:
    """A `LibreTranslateReply` as plain values; whether text was cut or truncated is additive."""
    content: dict[str, object] = {"translatedText": [result.best.text for result in results]}
    if options.has_alternatives:
        content["alternatives"] = [list(result.alternatives) for result in results]
    if any(result.best.is_cut for result in results):
        content["isCut"] = [result.best.is_cut for result in results]
    if any(result.best.is_truncated for result in results):
        content["isTruncated"] = [result.best.is_truncated for result in results]
    if options.is_detected:
        origins = [result.origin for result in results]
        content["detectedLanguage"] = [
            detected_language(origin.detected) for origin in origins if origin and origin.detected
        ]
    if options.is_batch:
        return content
    return {name: values[0] for name, values in content.items() if isinstance(values, list)}


def detected_language(found: Detection) -> dict[str, object]:
    """A `DetectedLanguage` as plain values."""
    return {"confidence": found.confidence, "language": found.tag}


class LanguageList:
    """List of the loaded languages, made once for what is loaded: it may be long."""

    def __init__(self) -> None:
        self._table: RoutingTable | None = None
        self._reply = JsonReply([])

    def of(self, table: RoutingTable) -> JsonReply:
        """Every language of the table as a `LanguageReply`."""
        if table is not self._table:
            self._reply = JsonReply(languages_content(table))
            self._table = table
        return self._reply


def languages_content(table: RoutingTable) -> list[dict[str, object]]:
    """Every loaded language as a `LanguageReply`, as plain values; targets by pivot come last."""
    return [
        {"code": tag, "name": language_name(tag), "targets": reachable(table, tag)}
        for tag in table.all.languages
    ]
