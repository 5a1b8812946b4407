"""Requests of Dragoman's contract: strict fields, from JSON to a translation.

Owns the fields, their meaning and their description in the OpenAPI document. Unknown fields are
refused, languages are BCP-47, and every limit that is not the server's own comes from the
checkpoint. Refusals in Pydantic's place are `service.api.v1.validation`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BeforeValidator, ConfigDict, Field, ValidationError

from model.checkpoint.description.names import MAX_NAME_CHARACTERS
from model.config import LengthLimits
from model.documents.notation.document import DocumentOptions
from service.api.checks import MAX_ALTERNATIVES, MAX_TAG_NAMES, check_number, search_beam
from service.api.languages import NO_ALIASES, ChosenRoute, choose_route
from service.api.v1.control import ControlFields, Text, clean
from service.api.v1.validation import request_error, unknown_field
from service.bounds import MAX_BEAM_SIZE
from service.errors import invalid
from service.front import Front
from service.models.requests.translation import Markup, TranslationRequest
from service.models.routes.routing import Route
from service.priority import Priority
from service.settings import Settings

Code = Annotated[str, BeforeValidator(clean), Field(min_length=1, max_length=64)]


TextFormat = Literal["text", "html", "xml"]
TagNames = Annotated[list[Code], Field(max_length=MAX_TAG_NAMES)]

MAX_ATTENTION_CHARACTERS = 2_000
"""Of all texts of a request that asks for attention."""

_EXAMPLE = {
    "texts": ["Two dogs are running on the grass.", "Thank you."],
    "source": "en",
    "target": "zh-Hans",
    "alternatives": 2,
}


class TranslateRequest(ControlFields):
    """What `POST /v1/translate` takes."""

    model_config = ConfigDict(extra="forbid", strict=True)

    texts: Text | list[Text] = Field(description="A text, or a list of texts.")
    source: Code = Field(
        default="auto",
        description='BCP-47 tag, or "auto": the language of each text is detected, among those'
        " that can be translated to the target.",
    )
    target: Code = Field(
        description="BCP-47 tag. Texts that are in this language already stay as they are."
    )
    format: TextFormat = Field(
        default="text",
        description="Notation of the texts. Of html and xml tags, attributes, comments, scripts and"
        " code stay as they are; the limit of a text counts what it says, without its tags.",
    )
    ignore_tags: TagNames = Field(
        default=[], description="Elements that are copied with all that is in them."
    )
    splitting_tags: TagNames = Field(
        default=[], description="Elements that no sentence goes across."
    )
    non_splitting_tags: TagNames = Field(
        default=[], description="Elements that are inside a sentence, whatever they are elsewhere."
    )
    model: Annotated[str, BeforeValidator(clean)] | None = Field(
        default=None,
        min_length=1,
        max_length=MAX_NAME_CHARACTERS,
        description="Name of the model that translates, of those that `GET /v1/models` lists; by"
        " default the server chooses, and goes by way of a pivot language where it has to.",
    )
    beam_size: int | None = Field(
        default=None,
        ge=1,
        le=MAX_BEAM_SIZE,
        description="Hypotheses kept at every step; 1 is greedy. Raised to alternatives + 1. Where"
        " translations are drawn, so many are, and the likeliest of them stand: by default 1.",
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
    confidence: bool = Field(
        default=False, description="Return the confidence of every token; a segment's always comes."
    )
    alignment: bool = Field(
        default=False, description="Return the source token each target token attended to most."
    )
    attention: bool = Field(
        default=False,
        description="Return how much each target token attended to each source token, of texts of"
        f" up to {MAX_ATTENTION_CHARACTERS} characters together. The engine does that work a second"
        " time.",
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyOptions:
    """What the reply depends on beside the results.

    Attributes:
        route: From where to where, and by which checkpoints; of "auto" that of a text that says
            nothing of its language.
        num_characters: Characters of all texts.
        has_alternatives: Alternatives were asked for.
        has_scores: Scores were asked for.
        has_alignment: The alignment was asked for.
        has_attention: The attention was asked for.
        has_confidence: The confidence of tokens was asked for.
        has_glossary: A glossary was given.
        unsupported: Options that were asked for and that no model here has.
    """

    route: Route
    num_characters: int
    has_alternatives: bool
    has_scores: bool
    has_alignment: bool
    has_attention: bool
    has_confidence: bool
    has_glossary: bool
    unsupported: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DragomanWire:
    """Wire of all requests for translation; see `service.api.admission.Wire`.

    Attributes:
        front: What is loaded, and the settings.
    """

    front: Front
    takes_forms: bool = False
    key_name: str | None = None

    def parse(self, values: Mapping[str, object]) -> tuple[TranslationRequest, ReplyOptions]:
        """The request's values, checked.

        Raises:
            RequestError: 400 or 413; 503 where no language is loaded yet.
        """
        return job_of(validated(values, self.front.settings, TranslateRequest), self.front)


FieldsT = TypeVar("FieldsT", bound=TranslateRequest)


def job_of(fields: TranslateRequest, front: Front) -> tuple[TranslationRequest, ReplyOptions]:
    """What is to be translated by checked fields, and what the reply depends on beside it.

    Raises:
        RequestError: 400 or 413; 503 where no language is loaded yet.
    """
    texts = (fields.texts,) if isinstance(fields.texts, str) else tuple(fields.texts)
    chosen = choose_route(
        front.table,
        source=fields.source,
        target=fields.target,
        aliases=NO_ALIASES,
        model=fields.model,
    )
    options = ReplyOptions(
        route=chosen.route,
        num_characters=sum(map(len, texts)),
        has_alternatives=fields.alternatives > 0,
        has_scores=fields.scores,
        has_alignment=fields.alignment,
        has_attention=fields.attention,
        has_confidence=fields.confidence,
        has_glossary=bool(fields.glossary),
        unsupported=tuple(fields.unsupported),
    )
    limits = front.limits(chosen.route) if chosen.route.hops else None
    return _job(fields, texts, chosen, front.settings, limits), options


def validated(values: Mapping[str, object], settings: Settings, fields: type[FieldsT]) -> FieldsT:
    """The fields of a request, each checked by itself.

    Raises:
        RequestError: A 400 or 413.
    """
    # Of what is too long, Pydantic would look at every element.
    texts, prefixes = values.get("texts"), values.get("target_prefix")
    if isinstance(texts, list):
        check_number(texts, settings)
    if isinstance(prefixes, list):
        _check_at_most("target_prefix: texts", len(prefixes), settings.max_texts)
    for name in values:
        if name not in fields.model_fields:
            raise unknown_field(name)
    try:
        return fields.model_validate(values)
    except ValidationError as error:
        raise request_error(error) from None


def _job(
    fields: TranslateRequest,
    texts: tuple[str, ...],
    chosen: ChosenRoute,
    settings: Settings,
    limits: LengthLimits | None,
) -> TranslationRequest:
    if fields.attention:
        _check_at_most("attention: characters", sum(map(len, texts)), MAX_ATTENTION_CHARACTERS)
    sampling = fields.sampling()
    num_groups, diversity_penalty = fields.groups()
    penalty = settings.length_penalty if fields.length_penalty is None else fields.length_penalty
    seconds = settings.timeout_seconds if fields.timeout_seconds is None else fields.timeout_seconds
    _check_at_most("timeout_seconds", seconds, settings.max_timeout_seconds)
    if fields.max_length is not None and limits is not None:
        _check_at_most("max_length", fields.max_length, limits.max_target_length)
    return TranslationRequest(
        texts=texts,
        route=chosen.route,
        by_source=chosen.by_source,
        beam_size=_beam(fields, settings, num_groups=num_groups),
        length_penalty=penalty,
        num_alternatives=fields.alternatives,
        max_length=fields.max_length,
        with_alignment=fields.alignment or fields.attention,
        with_attention=fields.attention,
        timeout_seconds=seconds,
        priority=fields.priority or "interactive",
        stopping=settings.stopping,
        target_prefixes=fields.prefixes(len(texts)),
        glossary=fields.terms(),
        sampling=sampling,
        diversity=fields.diversity if fields.alternatives else 0.0,
        num_groups=num_groups,
        diversity_penalty=diversity_penalty,
        no_repeat_ngram=fields.no_repeat_ngram,
        markup=_markup(fields),
    )


def _markup(fields: TranslateRequest) -> Markup | None:
    """The notation of the texts; None where they are plain."""
    if fields.format == "text":
        for name in ("ignore_tags", "splitting_tags", "non_splitting_tags"):
            if getattr(fields, name):
                raise invalid(f"{name} is for html and xml; format is text", value=name)
        return None
    if fields.target_prefix is not None:
        raise invalid(f"target_prefix is for plain text; format is {fields.format}", limit="text")
    return Markup(
        kind=fields.format,
        options=DocumentOptions(
            ignored_elements=frozenset(fields.ignore_tags),
            splitting_elements=frozenset(fields.splitting_tags),
            inline_elements=frozenset(fields.non_splitting_tags),
        ),
    )


def _beam(fields: TranslateRequest, settings: Settings, *, num_groups: int) -> int:
    """Hypotheses kept at every step, of all groups.

    Raises:
        RequestError: A 400: there would be more than the server allows, or groups would not be
            equally large.
    """
    default = settings.beam_size if fields.sampling() is None else 1
    requested = default if fields.beam_size is None else fields.beam_size
    beam_size = search_beam(requested, fields.alternatives, settings)
    if num_groups == 1:
        return _widened(beam_size, fields, settings)
    if fields.beam_size is not None and fields.beam_size % num_groups:
        raise invalid(
            f"beam_size is {fields.beam_size}; it must be a multiple of beam_groups ({num_groups})",
            value=fields.beam_size,
            limit=num_groups,
        )
    beam_size = -(-beam_size // num_groups) * num_groups
    if beam_size > settings.max_beam_size:
        raise invalid(
            f"beam_groups is {num_groups}; of equally large groups the beam would be {beam_size},"
            f" and it must be at most {settings.max_beam_size}",
            value=beam_size,
            limit=settings.max_beam_size,
        )
    return beam_size


def _widened(beam_size: int, fields: TranslateRequest, settings: Settings) -> int:
    """A beam in which there is something to choose from, where alternatives are to differ."""
    if not (fields.alternatives and fields.diversity):
        return beam_size
    return max(beam_size, min(2 * (fields.alternatives + 1), settings.max_beam_size))


def _check_at_most(name: str, value: float, limit: float) -> None:
    if value > limit:
        shown, most = _shortest(value), _shortest(limit)
        raise invalid(f"{name} is {shown}; it must be at most {most}", value=value, limit=limit)


_MANY = 1e15
"""From here on a float has no digits behind its point to tell, and is short with an exponent."""


def _shortest(number: float) -> str:
    """A number with all digits that it has, and no others: 300, 300.00001."""
    return str(int(number)) if number == int(number) and number < _MANY else str(number)


def request_body(
    settings: Settings,
    fields: type[TranslateRequest] = TranslateRequest,
    *,
    example: Mapping[str, object] = _EXAMPLE,
) -> dict[str, Any]:
    """The schema of a request, with this server's own limits in it."""
    schema = fields.model_json_schema()
    properties = schema["properties"]
    text = {"type": "string", "maxLength": settings.max_text_characters}
    properties["texts"]["anyOf"] = [
        text,
        {"type": "array", "items": text, "maxItems": settings.max_texts},
    ]
    properties["target_prefix"]["anyOf"][1]["maxItems"] = settings.max_texts
    properties["timeout_seconds"]["anyOf"][0]["maximum"] = settings.max_timeout_seconds
    for name in ("beam_size", "beam_groups"):
        properties[name]["anyOf"][0]["maximum"] = settings.max_beam_size
    properties["alternatives"]["maximum"] = settings.max_beam_size - 1
    # A reference would begin at the root of the document that this becomes a part of.
    entry = schema.pop("$defs")["GlossaryEntry"]
    properties["glossary"]["anyOf"][0]["items"] = entry
    content = {"schema": schema, "example": example}
    return {"required": True, "content": {"application/json": content}}
