"""Reply of `POST /v1/translate`: its shape, and how results are put into it.

Owns both. Errors have the shape of `service.http.replies`.
"""

import math
import struct
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, Field

from model.request import MAX_ATTENTION_WEIGHTS, Hypothesis
from model.text.drafts.checks import CheckName, Quality
from model.text.drafts.segments import TranslatedSegment
from model.text.subwords.spans import TokenSpans
from service.api.v1.request import ReplyOptions
from service.http.replies import error_responses
from service.models.requests.translation import Between, Origin, TranslatedText
from service.models.routes.routing import Route


class PivotReply(BaseModel):
    """What a segment was in the pivot language."""

    text: str
    score: float | None = Field(default=None, description="Of the first model; with `scores`.")
    token_log_probs: list[float] | None = Field(
        default=None, description="One per token of the first model; with `scores`."
    )


class QualityReply(BaseModel):
    """What is known of a segment's translation beside its scores."""

    checked: list[CheckName] = Field(
        description="What was looked at: marks (placeholders, links, code, tags, emoji) are all"
        " there, and no others; so are the digits of numbers; characters are readable; length is"
        " plausible; no loop; no copy of the source; the end was reached; with a glossary, its"
        " terms have what stands for them. Empty if verbatim."
    )
    failed: list[CheckName] = Field(description="What of that is wrong.")
    num_tries: int = Field(description="How often it was translated again in another way.")


class TermReply(BaseModel):
    """A term of a glossary."""

    source: str
    target: str
    is_hit: bool = Field(description="The translation has the target, once for each term.")


class SegmentReply(BaseModel):
    """What the network saw at once: a sentence, or a piece of one."""

    source: str
    text: str
    is_verbatim: bool = Field(description="Copied: there was nothing to translate in it.")
    is_cut: bool = Field(
        description="A piece of a sentence that was too long for the network, or was split around"
        " its marks."
    )
    is_truncated: bool = Field(description="Reached the length limit and stops short.")
    num_source_tokens: int
    num_target_tokens: int
    quality: QualityReply
    score: float | None = Field(
        default=None, description="Log-probability / length^α; with `scores`, not if verbatim."
    )
    token_log_probs: list[float] | None = Field(
        default=None, description="One per target token, the end token's last; with `scores`."
    )
    confidence: float | None = Field(
        default=None,
        description="How sure the model was, from 0 to 1: the geometric mean of its tokens'"
        " probabilities, which does not say whether it is right. Not if verbatim.",
    )
    token_confidence: list[float] | None = Field(
        default=None,
        description="One per target token, the end token's last; 1 where it was forced; with"
        " `confidence`.",
    )
    glossary: list[TermReply] | None = Field(
        default=None, description="The terms of its source; with `glossary`."
    )
    alignment: list[int] | None = Field(
        default=None,
        description="For every target token the index of a source token; with `alignment`."
        " Through a pivot it is composed of both models' alignments.",
    )
    attention: list[list[float]] | None = Field(
        default=None,
        description="For every target token how much it attended to each source token, from 0 to 1;"
        " with `attention`. Null through a pivot, and for more than"
        f" {MAX_ATTENTION_WEIGHTS} weights.",
    )
    source_spans: list[tuple[int, int] | None] | None = Field(
        default=None,
        description="For every source token where it is in `source`: beginning and end, in"
        " characters; null for a tag and the end token. With `alignment` or `attention`, in plain"
        " text.",
    )
    target_spans: list[tuple[int, int] | None] | None = Field(
        default=None, description="The same for every target token in `text`."
    )
    pivot: PivotReply | None = Field(
        default=None,
        description="Of a reply with `pivot`, unless verbatim: what both models' segment was"
        " between them. `score` and `token_log_probs` beside it are then the second model's.",
    )


class DetectedReply(BaseModel):
    """The language that a text was found to be in."""

    language: str
    confidence: int = Field(
        ge=0, le=100, description="How sure that is; 0 when there was nothing to go by."
    )


class TranslationReply(BaseModel):
    """One text's translation."""

    text: str
    detected: DetectedReply | None = Field(default=None, description='With `source` "auto".')
    models: list[str] | None = Field(
        default=None,
        description='With `source` "auto": which models translated this text; none where it was in'
        " the target's language already.",
    )
    is_cut: bool = Field(description="A sentence of it was cut.")
    is_truncated: bool = Field(description="A translation in it stops short.")
    segments: list[SegmentReply]
    alternatives: list[str] | None = Field(
        default=None, description="Further translations, best first; with `alternatives`."
    )


class UsageReply(BaseModel):
    """What the request cost."""

    num_texts: int
    num_characters: int
    num_segments: int
    num_source_tokens: int
    num_target_tokens: int


class TranslateReply(BaseModel):
    """What `POST /v1/translate` answers."""

    translations: list[TranslationReply]
    source: str | None = Field(
        description='The language of the texts; null where "auto" has found several.'
    )
    target: str
    models: list[str] = Field(
        description="Names of the models that translated: one, or two by way of `pivot`; more where"
        ' "auto" has found several languages, none where nothing was to be translated.'
    )
    pivot: str | None = Field(
        default=None,
        description="Language between two models; only where a text needed two.",
    )
    unsupported: list[str] | None = Field(
        default=None,
        description="Options that were asked for and that no model here has; if there are any.",
    )
    usage: UsageReply


TRANSLATE_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {"model": TranslateReply, "description": "One translation per text, in order."},
    **error_responses(400, 401, 403, 408, 413, 415, 429, 431, 503, 504),
}


def reply_content(results: Sequence[TranslatedText], options: ReplyOptions) -> dict[str, object]:
    """A `TranslateReply` as plain values; options that were not asked for are left out."""
    origins = [result.origin or Origin(route=options.route) for result in results]
    return {
        "translations": [
            {
                "text": result.best.text,
                **_detected(origin),
                "is_cut": result.best.is_cut,
                "is_truncated": result.best.is_truncated,
                "segments": _segments(result, options),
                **({"alternatives": list(result.alternatives)} if options.has_alternatives else {}),
            }
            for result, origin in zip(results, origins, strict=True)
        ],
        **_routes([origin.route for origin in origins] or [options.route]),
        **({"unsupported": list(options.unsupported)} if options.unsupported else {}),
        "usage": {
            "num_texts": len(results),
            "num_characters": options.num_characters,
            "num_segments": sum(len(result.hypotheses) for result in results),
            "num_source_tokens": sum(result.best.num_source_tokens for result in results),
            "num_target_tokens": sum(result.best.num_target_tokens for result in results),
        },
    }


def _detected(origin: Origin) -> dict[str, object]:
    """What was found of a text's language, and who translated it."""
    found = origin.detected
    if found is None:
        return {}
    return {
        "detected": {"language": found.tag, "confidence": found.confidence},
        "models": list(origin.route.checkpoints),
    }


def _routes(routes: Sequence[Route]) -> dict[str, object]:
    """The languages and models of all texts together."""
    sources = {route.source for route in routes}
    pivot = next((route.pivot for route in routes if route.pivot), None)
    return {
        "source": routes[0].source if len(sources) == 1 else None,
        "target": routes[0].target,
        "models": list(dict.fromkeys(name for route in routes for name in route.checkpoints)),
        **({"pivot": pivot} if pivot else {}),
    }


def _segments(result: TranslatedText, options: ReplyOptions) -> list[dict[str, object]]:
    between = result.between or (None,) * len(result.hypotheses)
    spans = result.spans or (None,) * len(result.hypotheses)
    return [
        _segment(*one, options)
        for one in zip(result.best.segments, result.hypotheses, between, spans, strict=True)
    ]


def _segment(
    segment: TranslatedSegment,
    hypothesis: Hypothesis | None,
    between: Between | None,
    spans: TokenSpans | None,
    options: ReplyOptions,
) -> dict[str, object]:
    content: dict[str, object] = {
        "source": segment.source,
        "text": segment.text,
        "is_verbatim": segment.is_verbatim,
        "is_cut": segment.is_cut,
        "is_truncated": segment.is_truncated,
        "num_source_tokens": segment.num_source_tokens,
        "num_target_tokens": segment.num_target_tokens,
        "quality": quality_content(segment.quality),
        **_scores(hypothesis, options),
        **_confidence(hypothesis, options),
    }
    if options.has_glossary:
        content["glossary"] = [
            {"source": one.source, "target": one.target, "is_hit": one.is_hit}
            for one in segment.terms
        ]
    if hypothesis is not None and options.has_alignment:
        content["alignment"] = hypothesis.alignment
    if hypothesis is not None and options.has_attention:
        content["attention"] = _attention(hypothesis)
    if options.has_alignment or options.has_attention:
        content |= _places(spans)
    if between is not None:
        content["pivot"] = {"text": between.text, **_scores(between.hypothesis, options)}
    return content


def quality_content(quality: Quality) -> dict[str, object]:
    """A `QualityReply` as plain values."""
    return {
        "checked": quality.checked,
        "failed": quality.failed,
        "num_tries": quality.num_tries,
    }


def _scores(hypothesis: Hypothesis | None, options: ReplyOptions) -> dict[str, object]:
    if hypothesis is None or not options.has_scores:
        return {}
    return {"score": hypothesis.score, "token_log_probs": hypothesis.token_log_probs}


def _attention(hypothesis: Hypothesis) -> list[list[float]] | None:
    """The weights of a hypothesis, row by row, as precise as they are."""
    packed = hypothesis.attention
    if packed is None:
        return None
    values = [round(value, 4) for (value,) in struct.iter_unpack("<e", packed)]
    width = len(values) // len(hypothesis.token_ids)
    return [values[start : start + width] for start in range(0, len(values), width)]


def _places(spans: TokenSpans | None) -> dict[str, object]:
    if spans is None:
        return {}
    return {"source_spans": spans.source, "target_spans": spans.target}


def _confidence(hypothesis: Hypothesis | None, options: ReplyOptions) -> dict[str, object]:
    if hypothesis is None:
        return {}
    log_probs = hypothesis.token_log_probs
    content: dict[str, object] = {"confidence": math.exp(sum(log_probs) / len(log_probs))}
    if options.has_confidence:
        content["token_confidence"] = [math.exp(value) for value in log_probs]
    return content
