"""What LibreTranslate's contract tells a page: limits, keys, and the languages to begin with.

Owns `GET /frontend/settings`: its shape and its values.
"""

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, Field

from model.documents.kinds import ENDINGS
from model.errors import InputError
from service.access.access import Access
from service.api.languages import AUTO, LIBRETRANSLATE_ALIASES, find_tags, language_name
from service.front import Front
from service.http.replies import error_responses
from service.models.routes.pivot import reachable
from service.models.routes.routing import RoutingTable

_TYPING_MILLISECONDS = 500
_MAX_WANTED = 20


class FrontendLanguage(BaseModel):
    """A language, or "auto"."""

    code: str
    name: str


class FrontendLanguages(BaseModel):
    """The languages that a page begins with."""

    source: FrontendLanguage
    target: FrontendLanguage


class FrontendReply(BaseModel):
    """What a page needs to know of the server."""

    charLimit: int = Field(description="Characters of one text.")  # noqa: N815  # the contract's own spelling
    frontendTimeout: int = Field(  # noqa: N815  # same
        description="Milliseconds to wait for further typing."
    )
    apiKeys: bool = Field(description="The server has keys.")  # noqa: N815  # same
    keyRequired: bool = Field(description="A translation needs one.")  # noqa: N815  # same
    suggestions: bool
    filesTranslation: bool  # noqa: N815  # same
    supportedFilesFormat: list[str]  # noqa: N815  # same
    language: FrontendLanguages


FRONTEND_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {"model": FrontendReply, "description": "Settings of a page."},
    **error_responses(503),
}


def frontend_content(front: Front, access: Access, accepted: str) -> dict[str, object]:
    """A `FrontendReply` as plain values.

    Args:
        front: What is loaded, and the settings.
        access: Whether keys are taken.
        accepted: The languages that a browser wants (Accept-Language), or nothing.

    Raises:
        RequestError: A 503: no language is loaded yet.
    """
    table = front.table
    return {
        "charLimit": front.settings.max_text_characters,
        "frontendTimeout": _TYPING_MILLISECONDS,
        "apiKeys": access.takes_keys,
        "keyRequired": access.needs_key,
        "suggestions": front.settings.suggestions is not None,
        "filesTranslation": front.settings.documents,
        "supportedFilesFormat": _file_endings(front),
        "language": {
            "source": _source(table, is_detected=front.detection.is_on),
            "target": _language(_target(table, accepted)),
        },
    }


def _file_endings(front: Front) -> list[str]:
    return [f".{ending}" for ending in ENDINGS] if front.settings.documents else []


def _source(table: RoutingTable, *, is_detected: bool) -> dict[str, str]:
    if is_detected:
        return {"code": AUTO, "name": "Auto Detect"}
    return _language(table.all.all_sources[0])


def _language(tag: str) -> dict[str, str]:
    return {"code": tag, "name": language_name(tag)}


def _target(table: RoutingTable, accepted: str) -> str:
    """The first wanted language that is translated to; else the first target of all."""
    first = reachable(table, table.all.all_sources[0])
    targets = [tag for tag in table.all.languages if table.all.sources(tag)]
    for wanted in accepted.split(",")[:_MAX_WANTED]:
        for tag in _meant(wanted.partition(";")[0].strip(), targets):
            return tag
    return first[0]


def _meant(code: str, targets: Sequence[str]) -> list[str]:
    try:
        return find_tags(code, LIBRETRANSLATE_ALIASES, targets)
    except InputError:
        return []
