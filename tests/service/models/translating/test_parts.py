import asyncio
import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from model.request import Hypothesis
from model.text.drafts.rounds import Draft, Piece, started
from model.text.drafts.segments import PreparedText, Segment, TranslatedSegment
from model.text.languages.tags import LanguagePair
from service.models.translating.parts import (
    REPORTS_PER_TURN,
    DonePart,
    Parts,
    WholeTexts,
    parted,
)

PAIR = LanguagePair(source="en", target="de")


def _text(*segments: str) -> Draft[Hypothesis]:
    """A text of these segments, of which those in capitals are copied."""
    made = tuple(Segment(text=text, source_ids=() if text.isupper() else (7,)) for text in segments)
    separators = (">", *(" - " for _ in made[1:]), "<") if made else (" ",)
    return started(PreparedText(pair=PAIR, segments=made, separators=separators))


def _translated(source: str, text: str) -> TranslatedSegment:
    return TranslatedSegment(
        source=source,
        text=text,
        score=-1.0,
        is_verbatim=False,
        is_cut=False,
        is_truncated=False,
        num_source_tokens=1,
        num_target_tokens=1,
    )


def _parts(*texts: Draft[Hypothesis], told: Callable[[DonePart], None]) -> Parts:
    return Parts([parted(text) for text in texts], told)


def _found() -> tuple[Hypothesis, ...]:
    one = Hypothesis(token_ids=(1,), score=-1.0, token_log_probs=(-1.0, -1.0), is_truncated=False)
    return (one,)


def _done(part: Draft[Hypothesis], *texts: str) -> Draft[Hypothesis]:
    """A sentence that became these pieces, with a mark between them."""
    (piece,) = part.pieces
    pieces = tuple(
        Piece(segment=piece.segment, found=piece.found, translated=_translated("s", text))
        for text in texts
    )
    return Draft(pair=PAIR, pieces=pieces, separators=("(", *("|" for _ in texts[1:]), ")"))


def test_sentences_are_told_as_they_end_and_become_their_texts_again() -> None:
    told: list[DonePart] = []
    parts = _parts(_text("one", "TWO", "three"), _text(), _text("four"), told=told.append)
    asyncio.run(parts.report_copied())
    for number, texts in ((2, ["vier"]), (1, ["drei", "III"]), (0, ["eins"])):
        parts.finish(number, _done(parts.answered(number, _found()), *texts))
    segments = [one.segment for one in told]
    assert [(one.text_index, one.index, one.start) for one in segments] == [
        (0, 1, 7),
        (2, 0, 1),
        (0, 2, 13),
        (0, 0, 1),
    ]
    assert [(one.source, one.text) for one in segments] == [
        ("TWO", "TWO"),
        ("four", "(vier)"),
        ("three", "(drei|III)"),
        ("one", "(eins)"),
    ]
    assert [parts.whole(place).translation.text for place in range(3)] == [
        ">(eins) - TWO - (drei|III)<",
        " ",
        ">(vier)<",
    ]


def test_a_text_is_told_when_its_last_sentence_is() -> None:
    whole: list[tuple[int, str]] = []
    texts = WholeTexts(lambda place, text: whole.append((place, text.translation.text)))
    parts = _parts(_text("one", "two"), _text("three"), told=texts)
    for number, text in ((1, "zwei"), (2, "drei")):
        parts.finish(number, _done(parts.answered(number, _found()), text))
    assert whole == [(1, ">(drei)<")]
    parts.finish(0, _done(parts.answered(0, _found()), "eins"))
    assert whole[1:] == [(0, ">(eins) - (zwei)<")]


def test_others_have_their_turn_while_many_copied_sentences_are_told() -> None:
    told: list[DonePart] = []
    texts = [_text(*["A"] * 300), _text("one", *["B"] * 200)]
    parts = _parts(*texts, told=told.append)
    seen: list[int] = []

    async def scenario() -> None:
        telling = asyncio.create_task(parts.report_copied())
        while not telling.done():
            await asyncio.sleep(0)
            seen.append(len(told))

    asyncio.run(scenario())
    steps = [after - before for before, after in zip([0, *seen], seen, strict=False)]
    assert max(steps) == REPORTS_PER_TURN
    assert [(one.text_index, one.index) for one in told] == [
        *((0, index) for index in range(300)),
        *((1, index) for index in range(1, 201)),
    ]


@pytest.mark.parametrize(("source", "target"), [("zh-Hans", "en"), ("en", "zh-Hans"), ("ja", "zh")])
def test_sentences_with_what_stands_before_them_are_the_translation(
    source: str, target: str
) -> None:
    chance = random.Random(7)
    pair = LanguagePair(source=source, target=target)
    for _ in range(200):
        num_segments = chance.randrange(6)
        segments = tuple(
            Segment(text="7" if is_copied else "s", source_ids=() if is_copied else (7,))
            for is_copied in chance.choices([True, False], k=num_segments)
        )
        separators = tuple(chance.choices(["", "", " ", "\n\n"], k=num_segments + 1))
        told: list[DonePart] = []
        text = started(PreparedText(pair=pair, segments=segments, separators=separators))
        parts = _parts(text, told=told.append)
        asyncio.run(parts.report_copied())
        for number in range(len(parts.asked)):
            (piece,) = parts.answered(number, _found()).pieces
            whole = replace(piece, translated=_translated("s", "word"))
            parts.finish(number, Draft(pair=pair, pieces=(whole,), separators=("", "")))
        done = sorted((one.segment for one in told), key=lambda one: one.index)
        behind = separators[-1] if done else "".join(separators)
        shown = "".join(one.separator + one.text for one in done) + behind
        assert shown == parts.whole(0).translation.text
