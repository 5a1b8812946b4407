"""Requests of LibreTranslate's contract: from values as its clients send them to a translation.

Owns its fields, their meaning (`q` a string or a list; aliases such as `zh`) and their description
in the OpenAPI document. Values come as JSON, as a form or in the query string, so they are read
here, not by Pydantic. Names and messages are LibreTranslate's where it has one.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from model.text.pipeline import without_surrogates
from service.api.checks import check_number, search_beam
from service.api.languages import LIBRETRANSLATE_ALIASES, ChosenRoute, choose_route
from service.errors import RequestError, invalid, scalar
from service.front import Front
from service.models.requests.translation import Markup, TranslationRequest
from service.settings import Settings

KEY_NAME = "api_key"

_INTEGER = re.compile("-?[0-9]{1,18}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyOptions:
    """What the reply depends on beside the results.

    Attributes:
        is_batch: `q` was a list.
        has_alternatives: Alternatives were asked for.
        is_detected: The source was "auto".
    """

    is_batch: bool
    has_alternatives: bool
    is_detected: bool


def parse(values: Mapping[str, object], front: Front) -> tuple[TranslationRequest, ReplyOptions]:
    """A request's values, checked.

    Raises:
        RequestError: 400 or 413; 503 where no language is loaded yet.
    """
    texts, is_batch = parse_texts(values, front.settings)
    chosen = choose_route(
        front.table,
        source=required_string(values, "source"),
        target=required_string(values, "target"),
        aliases=LIBRETRANSLATE_ALIASES,
    )
    markup = _markup(values)
    num_alternatives = _num_alternatives(values, front.settings.max_beam_size - 1)
    options = ReplyOptions(
        is_batch=is_batch,
        has_alternatives=num_alternatives > 0,
        is_detected=chosen.is_detected,
    )
    return _job(texts, chosen, num_alternatives, front.settings, markup), options


def parse_texts(values: Mapping[str, object], settings: Settings) -> tuple[tuple[str, ...], bool]:
    """The texts of `q`, and whether it was a list.

    Raises:
        RequestError: A 400 or 413.
    """
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


def detect_texts(values: Mapping[str, object], settings: Settings) -> tuple[str, ...]:
    """The texts of `POST /detect`, of which there must be one that is not empty.

    Raises:
        RequestError: A 400 or 413.
    """
    texts, _ = parse_texts(values, settings)
    if not any(texts):
        raise _missing("q")
    return texts


def _missing(name: str) -> RequestError:
    return invalid(f"Invalid request: missing {name} parameter", limit=name)


def required_string(values: Mapping[str, object], name: str) -> str:
    """A value that must be there and not empty.

    Raises:
        RequestError: A 400.
    """
    value = values.get(name)
    if value is None or value == "":
        raise _missing(name)
    if not isinstance(value, str):
        raise invalid(f"{name} must be a string", limit="string")
    return value


def _markup(values: Mapping[str, object]) -> Markup | None:
    """The notation of the texts; None where they are plain."""
    text_format = values.get("format")
    if text_format in (None, "", "text"):
        return None
    if text_format == "html":
        return Markup(kind="html")
    if isinstance(text_format, list):
        raise invalid("format must be a string", limit="text, html")
    value = scalar(text_format)
    name = value if isinstance(value, str) else "this"
    raise invalid(f"{name} format is not supported", value=value, limit="text, html")


def _num_alternatives(values: Mapping[str, object], limit: int) -> int:
    number = values.get("alternatives")
    if number is None or number == "":
        return 0
    if isinstance(number, str) and _INTEGER.fullmatch(number):
        number = int(number)
    if isinstance(number, float) and number.is_integer():
        number = int(number)
    if isinstance(number, bool) or not isinstance(number, int):
        wanted = "an integer" if isinstance(number, float) else "a number"
        raise invalid(
            f"Invalid request: alternatives parameter is not {wanted}",
            value=scalar(number),
            limit="integer",
        )
    if number > limit:
        raise invalid(
            f"Invalid request: alternatives parameter must be <= {limit}", value=number, limit=limit
        )
    return number


def _job(
    texts: tuple[str, ...],
    chosen: ChosenRoute,
    num_alternatives: int,
    settings: Settings,
    markup: Markup | None,
) -> TranslationRequest:
    return TranslationRequest(
        texts=texts,
        route=chosen.route,
        by_source=chosen.by_source,
        beam_size=search_beam(settings.beam_size, num_alternatives, settings),
        length_penalty=settings.length_penalty,
        num_alternatives=num_alternatives,
        max_length=None,
        with_alignment=False,
        timeout_seconds=settings.timeout_seconds,
        stopping=settings.stopping,
        markup=markup,
    )


def translate_operation(settings: Settings) -> dict[str, Any]:
    """Parameters and bodies of `POST /translate`."""
    return _operation(
        _properties(settings),
        required=["q", "source", "target"],
        example={"q": "Where is the station?", "source": "en", "target": "zh"},
    )


def detect_operation(settings: Settings) -> dict[str, Any]:
    """Parameters and bodies of `POST /detect`."""
    properties = _properties(settings)
    return _operation(
        {name: properties[name] for name in ("q", KEY_NAME)},
        required=["q"],
        example={"q": "Guten Tag"},
    )


def _operation(
    properties: dict[str, Any], *, required: list[str], example: Mapping[str, str] | None = None
) -> dict[str, Any]:
    form = properties | {"q": properties["q"]["oneOf"][0]}
    bodies = {
        "application/json": {"type": "object", "required": required, "properties": properties},
        "application/x-www-form-urlencoded": {"type": "object", "properties": form},
        "multipart/form-data": {"type": "object", "properties": form},
    }
    contents: dict[str, Any] = {kind: {"schema": schema} for kind, schema in bodies.items()}
    if example is not None:
        contents["application/json"]["example"] = example
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
            "content": contents,
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
        "format": {
            "type": "string",
            "enum": ["text", "html"],
            "default": "text",
            "description": "Of html the limit of a text counts what a page says, without its tags.",
        },
        "alternatives": {
            "type": "integer",
            "minimum": 0,
            "maximum": settings.max_beam_size - 1,
            "default": 0,
            "description": "Further translations per text.",
        },
        KEY_NAME: {"type": "string", "description": "A key, where the server has any."},
    }
