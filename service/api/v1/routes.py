"""Our own contract: `POST /v1/translate`, typed and strict.

Owns its fields and their meaning. Unknown fields are refused, languages are BCP-47, and every
limit that is not the server's own comes from the checkpoint.
"""

from typing import Annotated, Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from model.config import LengthLimits
from model.text.language import LanguagePair
from model.text.pipeline import without_surrogates
from service.access.access import DOCUMENTED, Access
from service.api.admission import translate_for
from service.api.checks import (
    MAX_ALTERNATIVES,
    check_number,
    search_beam,
)
from service.api.languages import NO_ALIASES, choose_pair
from service.api.v1.reply import TranslateReply, reply_content
from service.api.validation import request_error, unknown_field
from service.bounds import MAX_BEAM_SIZE
from service.errors import invalid
from service.front import Front
from service.http.body import BodyReaders
from service.http.replies import JsonReply, error_responses
from service.models.translator import TranslationRequest
from service.priority import Priority
from service.settings import Settings


def _clean(value: object) -> object:
    return without_surrogates(value) if isinstance(value, str) else value


Text = Annotated[str, BeforeValidator(_clean)]
Code = Annotated[str, BeforeValidator(_clean), Field(min_length=1, max_length=64)]


class TranslateRequest(BaseModel):
    """What `POST /v1/translate` takes."""

    model_config = ConfigDict(extra="forbid", strict=True)

    texts: Text | list[Text] = Field(description="A text, or a list of texts.")
    source: Code = Field(default="auto", description='BCP-47 tag, or "auto".')
    target: Code = Field(description="BCP-47 tag.")
    beam_size: int | None = Field(
        default=None,
        ge=1,
        le=MAX_BEAM_SIZE,
        description="Hypotheses kept at every step; 1 is greedy. Raised to alternatives + 1.",
    )
    length_penalty: float | None = Field(
        default=None,
        ge=-10.0,
        le=10.0,
        allow_inf_nan=False,
        description="α in the score: log-probability / length^α.",
    )
    max_length: int | None = Field(
        default=None,
        ge=1,
        description="Cap in target tokens of a segment, with its end token; a cap of twice the"
        " source's tokens and 16 holds in any case.",
    )
    alternatives: int = Field(
        default=0, ge=0, le=MAX_ALTERNATIVES, description="Further translations per text."
    )
    scores: bool = Field(default=False, description="Return scores of segments and tokens.")
    alignment: bool = Field(
        default=False, description="Return the source token each target token attended to most."
    )
    timeout_seconds: float | None = Field(
        default=None,
        gt=0.0,
        allow_inf_nan=False,
        description="Deadline of this request; after it a 504, and the work is dropped.",
    )
    priority: Priority | None = Field(
        default=None,
        description="How urgent it is: interactive goes first, bulk has a share of the server in"
        " any case. What is more than a page or so is bulk, whatever it says.",
    )


def build_router(front: Front, readers: BodyReaders, access: Access) -> APIRouter:
    """The routes of this contract."""
    router = APIRouter(prefix="/v1", tags=["Dragoman"])

    @router.post(
        "/translate",
        summary="Translate texts, with every option",
        responses={
            200: {"model": TranslateReply, "description": "One translation per text, in order."},
            **error_responses(400, 401, 403, 408, 413, 429, 431, 503, 504),
        },
        openapi_extra={"requestBody": _request_body(front.settings)},
        dependencies=[DOCUMENTED],
    )
    async def translate(request: Request) -> JsonReply:
        caller = await access.admit(request) or await access.admit_with(request, None)
        front.check_room()
        wish = _parse(await readers.of(caller).read_json(request), front.settings)
        texts = (wish.texts,) if isinstance(wish.texts, str) else tuple(wish.texts)
        chosen = choose_pair(
            front.pairs, source=wish.source, target=wish.target, aliases=NO_ALIASES
        )
        job = _job(wish, texts, chosen.pair, front.settings, front.limits(chosen.pair))
        results = await translate_for(request, front, access, caller, job)
        return JsonReply(
            reply_content(
                results,
                pair=chosen.pair,
                num_characters=sum(map(len, texts)),
                has_alternatives=wish.alternatives > 0,
                has_scores=wish.scores,
                has_alignment=wish.alignment,
            )
        )

    return router


def _parse(values: dict[str, object], settings: Settings) -> TranslateRequest:
    texts = values.get("texts")
    if isinstance(texts, list):  # of what is too long, Pydantic would look at every element
        check_number(texts, settings)
    for name in values:
        if name not in TranslateRequest.model_fields:
            raise unknown_field(name)
    try:
        return TranslateRequest.model_validate(values)
    except ValidationError as error:
        raise request_error(error) from None


def _job(
    wish: TranslateRequest,
    texts: tuple[str, ...],
    pair: LanguagePair,
    settings: Settings,
    limits: LengthLimits,
) -> TranslationRequest:
    beam_size = settings.beam_size if wish.beam_size is None else wish.beam_size
    penalty = settings.length_penalty if wish.length_penalty is None else wish.length_penalty
    seconds = settings.timeout_seconds if wish.timeout_seconds is None else wish.timeout_seconds
    _check_at_most("timeout_seconds", seconds, settings.max_timeout_seconds)
    if wish.max_length is not None:
        _check_at_most("max_length", wish.max_length, limits.max_target_length)
    return TranslationRequest(
        texts=texts,
        pair=pair,
        beam_size=search_beam(beam_size, wish.alternatives, settings),
        length_penalty=penalty,
        num_alternatives=wish.alternatives,
        max_length=wish.max_length,
        with_alignment=wish.alignment,
        timeout_seconds=seconds,
        priority=wish.priority or "interactive",
        stopping=settings.stopping,
    )


def _check_at_most(name: str, value: float, limit: float) -> None:
    if value > limit:
        raise invalid(
            f"{name} is {value:g}; it must be at most {limit:g}", value=value, limit=limit
        )


def _request_body(settings: Settings) -> dict[str, Any]:
    """The schema of the request, with this server's own limits in it."""
    schema = TranslateRequest.model_json_schema()
    properties = schema["properties"]
    text = {"type": "string", "maxLength": settings.max_text_characters}
    properties["texts"]["anyOf"] = [
        text,
        {"type": "array", "items": text, "maxItems": settings.max_texts},
    ]
    properties["timeout_seconds"]["anyOf"][0]["maximum"] = settings.max_timeout_seconds
    return {"required": True, "content": {"application/json": {"schema": schema}}}
