"""Texts with inline codes, translated by the real text path over a network that shuffles words."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from model.text.drafts.segments import Segment
from model.text.languages.tags import LanguagePair
from model.text.pipeline import TextPipeline


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    token_ids: tuple[int, ...]
    score: float = -0.5
    is_truncated: bool = False
    alignment: tuple[int, ...] | None = None


def shuffled(segment: Segment, chance: random.Random) -> Output:
    """The source's tokens in another order, some doubled and some lost, with their alignment."""
    places = list(range(max(1, len(segment.source_ids) - 1)))
    chance.shuffle(places)
    kept = [place for place in places if chance.random() > 0.2] or places[:1]
    kept += [place for place in places if chance.random() > 0.9]
    ids = tuple(segment.source_ids[place] for place in kept)
    return Output(token_ids=ids, alignment=tuple(kept))


def translated_badly(
    texts: Sequence[str], pipeline: TextPipeline, pair: LanguagePair, seed: int
) -> list[str]:
    """Texts as such a network would translate them, all rounds of the text path gone through."""
    chance = random.Random(seed)
    done = []
    for text in texts:
        draft = pipeline.draft(text, pair)
        while draft.asked:
            found = [[shuffled(segment, chance)] for segment in draft.asked]
            draft = pipeline.review(draft.answered(found))
        done.append(draft.translation.text)
    return done
