"""Results of a text: what was found for its segments, put together once per rank. Pure.

Owns which hypotheses stand where alternatives are to differ, and which facts a result has. What is
searched, and when, is `service.models.translating.translator`.
"""

from collections.abc import Sequence

from model.request import Hypothesis
from model.text.drafts.diversity import differing
from model.text.drafts.rounds import Draft
from model.text.pipeline import TextPipeline, hypotheses_at
from model.text.subwords.spans import TokenSpans
from service.models.requests.translation import SearchedText, TranslatedText, TranslationRequest


def searched(draft: Draft[Hypothesis], request: TranslationRequest) -> SearchedText:
    """A finished text with the hypotheses of its segments."""
    found = draft.found
    if request.diversity:
        num = request.num_alternatives + 1
        found = [differing(ranked, num, request.diversity) for ranked in found]
    return SearchedText(prepared=draft.prepared, found=tuple(found), translation=draft.translation)


def finished(
    pipeline: TextPipeline, text: SearchedText, *, num_alternatives: int, with_spans: bool
) -> TranslatedText:
    """Put a text together once per rank; a segment with fewer hypotheses repeats its last."""
    prepared = text.prepared
    best = text.translation
    texts = {best.text: None}
    for rank in range(1, num_alternatives + 1):
        texts[pipeline.finish(prepared, hypotheses_at(text.found, rank)).text] = None
    remaining = iter(text.best)
    hypotheses = tuple(
        None if segment.is_verbatim else next(remaining) for segment in prepared.segments
    )
    return TranslatedText(
        best=best,
        alternatives=tuple(texts)[1:],
        hypotheses=hypotheses,
        spans=_spans(pipeline, text, hypotheses) if with_spans else None,
    )


def _spans(
    pipeline: TextPipeline, text: SearchedText, hypotheses: Sequence[Hypothesis | None]
) -> tuple[TokenSpans | None, ...]:
    """Where the tokens of each segment are."""
    prepared = text.prepared
    every = zip(prepared.segments, text.translation.segments, hypotheses, strict=True)
    return tuple(
        None
        if found is None
        else TokenSpans(
            source=pipeline.source_spans(segment, prepared.pair),
            target=pipeline.target_spans(translated.text, found.token_ids),
        )
        for segment, translated, found in every
    )
