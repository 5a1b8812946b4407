"""Requests of DeepL's contract: from values as its clients send them to a translation.

Owns its fields, what each of them does here, and their description in the OpenAPI document. Values
come as JSON or as a form, so they are read here, not by Pydantic. What is asked for and cannot be
done is refused, unless DeepL itself takes it for a wish (`context`, `prefer_more`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

from model.documents.notation.document import DocumentOptions
from model.text.pipeline import without_surrogates
from service.api.checks import MAX_TAG_NAMES, search_beam
from service.api.deepl.bodies import content, json_or_form
from service.api.deepl.languages import (
    all_source_codes,
    all_target_codes,
    find_source,
    find_target,
)
from service.api.deepl.values import FLAGS, choice, flag, needed, string, unsupported
from service.api.languages import AUTO, NO_ALIASES, ChosenRoute, choose_route, listed
from service.errors import invalid, scalar, too_long
from service.front import Front
from service.models.requests.translation import Markup, TranslationRequest
from service.models.routes.routing import RoutingTable
from service.settings import Settings

MAX_TEXTS = 50
"""Texts of one request, as DeepL has it."""
MAX_GLOSSARIES = 5
"""Glossaries of one request, likewise."""

_SOURCES, _TARGETS = ("source codes",), ("target codes",)
"""What a table remembers its lists of languages by."""
_FAST, _GOOD = "latency_optimized", "quality_optimized"
_MODEL_TYPES: Mapping[str, str] = MappingProxyType(
    {_FAST: _FAST, _GOOD: _GOOD, "prefer_quality_optimized": _GOOD}
)
_SPLITTING = ("0", "1", "nonewlines")
_FORMALITIES = ("default", "more", "less", "prefer_more", "prefer_less")
_ASKS_FOR_IT = frozenset({"more", "less"})
_TAG_LISTS: Mapping[str, str] = MappingProxyType(
    {
        "ignore_tags": "Elements that are copied with all that is in them.",
        "splitting_tags": "Elements that no sentence goes across.",
        "non_splitting_tags": "Elements that are inside a sentence.",
    }
)
_REFUSED: Mapping[str, str] = MappingProxyType(
    {
        "style_id": "this server has no style rules",
        "translation_memory_id": "this server has no translation memories",
        "custom_instructions": "no model of this server takes instructions",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyOptions:
    """What the reply depends on beside the results.

    Attributes:
        num_characters: Characters of each text; None where they were not asked for.
        model_type: The type that is used; None where none was asked for.
        glossary_ids: Of the glossaries that are asked for; of equal terms the first one counts.
    """

    num_characters: tuple[int, ...] | None
    model_type: str | None
    glossary_ids: tuple[str, ...] = ()


def parse(values: Mapping[str, object], front: Front) -> tuple[TranslationRequest, ReplyOptions]:
    """A request's values, checked.

    Raises:
        RequestError: 400 or 413; 503 where no language is loaded yet.
    """
    texts = _texts(values)
    chosen = parse_route(values, front.table)
    _check_formality(values)
    _check_refused(values)
    choice(values, "split_sentences", _SPLITTING)
    flag(values, "preserve_formatting")
    string(values, "context")
    markup = _markup(values)
    model_type = _model_type(values)
    has_count = flag(values, "show_billed_characters")
    options = ReplyOptions(
        num_characters=tuple(map(len, texts)) if has_count else None,
        model_type=model_type,
        glossary_ids=glossary_ids(values),
    )
    return _job(texts, chosen, front.settings, markup, is_fast=model_type == _FAST), options


def parse_options(values: Mapping[str, object], front: Front) -> ChosenRoute:
    """The route of a document, whose other options are checked as those of texts are.

    Raises:
        RequestError: A 400; a 503 where no language is loaded yet.
    """
    chosen = parse_route(values, front.table)
    _check_formality(values)
    _check_refused(values)
    glossary_ids(values)
    return chosen


def list_type(values: Mapping[str, object]) -> str:
    """Which list of languages is asked for: "source" or "target".

    Raises:
        RequestError: A 400.
    """
    return choice(values, "type", ("source", "target")) or "source"


_RESOURCES = (
    "translate_text",
    "translate_document",
    "glossary",
    "voice",
    "write",
    "style_rules",
    "translation_memory",
)


def is_translated(values: Mapping[str, object], *, has_documents: bool) -> bool:
    """Whether the languages of what is translated here are asked for: texts, documents, glossaries.

    Raises:
        RequestError: A 400.
    """
    found = choice(values, "resource", _RESOURCES)
    if found is None:
        raise invalid("Missing or invalid argument: resource", limit=", ".join(_RESOURCES))
    return found in ("translate_text", "glossary") or (
        has_documents and found == "translate_document"
    )


def _texts(values: Mapping[str, object]) -> tuple[str, ...]:
    given = values.get("text")
    if given is None or given == []:
        raise invalid("Parameter 'text' not specified.", limit="text")
    texts = given if isinstance(given, list) else [given]
    if len(texts) > MAX_TEXTS:
        raise too_long(
            f"the request has {len(texts)} texts; the limit is {MAX_TEXTS}",
            value=len(texts),
            limit=MAX_TEXTS,
        )
    clean = tuple(without_surrogates(text) for text in texts if isinstance(text, str))
    if len(clean) < len(texts):
        raise unsupported("text", limit="string or list of strings")
    return clean


def parse_route(values: Mapping[str, object], table: RoutingTable) -> ChosenRoute:
    """The route that `source_lang` and `target_lang` mean.

    Raises:
        RequestError: A 400.
    """
    known = table.all.languages
    given = needed(values, "target_lang")
    target = find_target(given, known)
    if target is None:
        codes = table.remembered(_TARGETS, partial(all_target_codes, table))
        raise unsupported("target_lang", given, limit=listed(codes))
    named = string(values, "source_lang")
    source = AUTO if named is None else find_source(named, known)
    if source is None:
        codes = table.remembered(_SOURCES, partial(all_source_codes, table))
        raise unsupported("source_lang", named, limit=listed(codes))
    return choose_route(table, source=source, target=target, aliases=NO_ALIASES)


def glossary_ids(values: Mapping[str, object]) -> tuple[str, ...]:
    """The glossaries that are asked for; with them the source has to be named, as DeepL has it.

    Raises:
        RequestError: A 400.
    """
    one, given = string(values, "glossary_id"), values.get("glossary_ids") or []
    several = given.split(",", MAX_GLOSSARIES) if isinstance(given, str) else given
    if not isinstance(several, list) or not all(isinstance(name, str) for name in several):
        raise unsupported("glossary_ids", limit="a list of strings")
    if len(several) > MAX_GLOSSARIES or (one and several):
        reason = "without glossary_id" if one else f"at most {MAX_GLOSSARIES} of them"
        raise unsupported("glossary_ids", limit=reason)
    ids = (one,) if one else tuple(without_surrogates(name.strip()) for name in several)
    if ids and string(values, "source_lang") is None:
        raise invalid("Use of a glossary requires the source_lang parameter.", limit="source_lang")
    return ids


def _check_formality(values: Mapping[str, object]) -> None:
    """Refuse what must have a tone: no model here has several, as for many languages of DeepL."""
    if choice(values, "formality", _FORMALITIES) in _ASKS_FOR_IT:
        raise invalid(
            "Target language does not support formality here; prefer_more and prefer_less are"
            " wishes that it need not",
            value=scalar(values["formality"]),
            limit="default, prefer_more, prefer_less",
        )


def _check_refused(values: Mapping[str, object]) -> None:
    for name, reason in _REFUSED.items():
        value = values.get(name)
        if value not in (None, "", []):
            raise unsupported(name, value, reason=reason)


def _markup(values: Mapping[str, object]) -> Markup | None:
    """The notation of the texts; None where they are plain, whatever is said of tags then."""
    kind = choice(values, "tag_handling", ("html", "xml"))
    choice(values, "tag_handling_version", ("v1", "v2"))
    has_outline = choice(values, "outline_detection", tuple(FLAGS))
    options = DocumentOptions(
        ignored_elements=_tag_names(values, "ignore_tags"),
        splitting_elements=_tag_names(values, "splitting_tags"),
        inline_elements=_tag_names(values, "non_splitting_tags"),
        has_outline=FLAGS[has_outline or "1"],
    )
    if kind is None:
        return None
    return Markup(kind="html" if kind == "html" else "xml", options=options)


def _tag_names(values: Mapping[str, object], name: str) -> frozenset[str]:
    """Names of elements: in a list, and in each of its strings with commas between them."""
    given = values.get(name)
    listed = given if isinstance(given, list) else [] if given is None else [given]
    if len(listed) > MAX_TAG_NAMES or not all(isinstance(one, str) for one in listed):
        raise unsupported(name, limit=f"at most {MAX_TAG_NAMES} strings")
    if sum(str(text).count(",") + 1 for text in listed) > MAX_TAG_NAMES:
        raise unsupported(name, limit=f"at most {MAX_TAG_NAMES} names")
    names = [one.strip() for text in listed for one in str(text).split(",")]
    return frozenset(filter(None, names))


def _model_type(values: Mapping[str, object]) -> str | None:
    requested = choice(values, "model_type", tuple(_MODEL_TYPES))
    return None if requested is None else _MODEL_TYPES[requested]


def _job(
    texts: tuple[str, ...],
    chosen: ChosenRoute,
    settings: Settings,
    markup: Markup | None,
    *,
    is_fast: bool,
) -> TranslationRequest:
    beam_size = 1 if is_fast else settings.beam_size
    return TranslationRequest(
        texts=texts,
        route=chosen.route,
        by_source=chosen.by_source,
        beam_size=search_beam(beam_size, 0, settings),
        length_penalty=settings.length_penalty,
        num_alternatives=0,
        max_length=None,
        with_alignment=False,
        timeout_seconds=settings.timeout_seconds,
        stopping=settings.stopping,
        markup=markup,
    )


def translate_operation(settings: Settings) -> dict[str, Any]:
    """Bodies of `POST /v2/translate`."""
    text = {"type": "string", "maxLength": settings.max_text_characters}
    num_texts = min(MAX_TEXTS, settings.max_texts)
    texts = {"type": "array", "items": text, "minItems": 1, "maxItems": num_texts}
    required, options = ("text", "target_lang"), _options()
    one_or_more = {"oneOf": [text, texts], "description": "Text, or a list of texts."}
    fields = {**texts, "description": "Texts, one field each."}
    return json_or_form(
        content(required, {"text": one_or_more, **options}, _EXAMPLE),
        content(required, {"text": fields, **options}, _EXAMPLE),
    )


_EXAMPLE = {"text": ["Where is the station?"], "target_lang": "ZH-HANS"}


def _options() -> dict[str, Any]:
    """Schemas of all fields but the texts."""
    word = {"type": "string"}
    names = {"type": "array", "items": word, "maxItems": MAX_TAG_NAMES}
    return {
        "source_lang": {**word, "description": "Source language; without it, it is detected."},
        "target_lang": {**word, "description": "Target language.", "example": "ZH-HANS"},
        "context": {**word, "description": "Taken, and changes nothing."},
        "split_sentences": {
            **word,
            "enum": list(_SPLITTING),
            "description": "Taken; texts are always split at sentences and line breaks.",
        },
        "preserve_formatting": {
            "type": "boolean",
            "description": "Taken; line breaks and spaces always come back as they were.",
        },
        "formality": {
            **word,
            "enum": [word for word in _FORMALITIES if word not in _ASKS_FOR_IT],
            "description": "Taken; no model has several tones, so more and less are refused.",
        },
        "tag_handling": {
            **word,
            "enum": ["html", "xml"],
            "description": "Texts have tags, which come back around what they were around.",
        },
        "tag_handling_version": {**word, "enum": ["v1", "v2"], "description": "Taken."},
        "outline_detection": {
            "type": "boolean",
            "default": True,
            "description": "Of XML: an element beside which there is no text ends a sentence.",
        },
        **{name: {**names, "description": text} for name, text in _TAG_LISTS.items()},
        "glossary_id": {**word, "description": "A glossary; with `source_lang`."},
        "glossary_ids": {
            **names,
            "maxItems": MAX_GLOSSARIES,
            "description": "Glossaries; of equal terms the first one counts.",
        },
        "show_billed_characters": {"type": "boolean", "default": False},
        "model_type": {
            **word,
            "enum": list(_MODEL_TYPES),
            "description": "latency_optimized searches greedily.",
        },
    }


def _query(name: str, choices: tuple[str, ...], *, is_required: bool) -> dict[str, Any]:
    parameter = {
        "name": name,
        "in": "query",
        "required": is_required,
        "schema": {"type": "string", "enum": list(choices)},
    }
    return {"parameters": [parameter]}


LANGUAGE_LIST = _query("type", ("source", "target"), is_required=False)
"""Parameter of `GET /v2/languages`."""

LANGUAGE_RESOURCE = _query("resource", _RESOURCES, is_required=True)
"""Parameter of `GET /v3/languages`."""
