"""How LibreTranslate's contract is described in the OpenAPI document.

Owns the description only: `service.api.libretranslate.routes` reads the values itself, because they
come as JSON, as a form or in the query string.
"""

from typing import Any

from pydantic import BaseModel, Field

from service.api.checks import MAX_ALTERNATIVES
from service.http.replies import error_responses
from service.settings import Settings


class DetectedLanguage(BaseModel):
    """What "auto" stood for."""

    confidence: float = Field(ge=0, le=100, description="0 when the language was not detected.")
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
        description="Only when a sentence was too long for the network and was cut in pieces.",
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
    **error_responses(400, 401, 403, 408, 413, 429, 431, 503, 504),
}
LANGUAGES_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {"model": list[LanguageReply], "description": "Loaded languages and their targets."},
    **error_responses(503),
}


def translate_operation(settings: Settings) -> dict[str, Any]:
    """Parameters and bodies of `POST /translate`."""
    properties = _properties(settings)
    form = properties | {"q": properties["q"]["oneOf"][0]}
    required = ["q", "source", "target"]
    bodies = {
        "application/json": {"type": "object", "required": required, "properties": properties},
        "application/x-www-form-urlencoded": {"type": "object", "properties": form},
        "multipart/form-data": {"type": "object", "properties": form},
    }
    return {
        "parameters": [
            {
                "name": name,
                "in": "query",
                "required": False,
                "schema": schema,
                "description": "As in the body, for clients that send none.",
            }
            for name, schema in form.items()
        ],
        "requestBody": {
            "required": False,
            "content": {kind: {"schema": schema} for kind, schema in bodies.items()},
        },
    }


def _properties(settings: Settings) -> dict[str, Any]:
    text = {"type": "string", "maxLength": settings.max_text_characters}
    code = {"type": "string", "minLength": 1, "maxLength": 64}
    return {
        "q": {
            "description": "Text, or a list of texts.",
            "oneOf": [text, {"type": "array", "items": text, "maxItems": settings.max_texts}],
        },
        "source": {**code, "description": 'Source language, or "auto".', "example": "en"},
        "target": {**code, "description": "Target language.", "example": "zh-Hans"},
        "format": {"type": "string", "enum": ["text"], "default": "text"},
        "alternatives": {
            "type": "integer",
            "minimum": 0,
            "maximum": MAX_ALTERNATIVES,
            "default": 0,
            "description": "Further translations per text.",
        },
        "api_key": {"type": "string", "description": "A key, where the server has any."},
    }
