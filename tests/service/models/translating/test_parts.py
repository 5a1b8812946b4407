from model.request import Hypothesis
from model.text.drafts.rounds import Draft, Piece, started
from model.text.drafts.segments import PreparedText, Segment, TranslatedSegment
from model.text.languages.tags import LanguagePair
from service.models.translating.parts import DonePart, Parts, WholeTexts

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
    parts = Parts([_text("one", "TWO", "three"), _text(), _text("four")], told.append)
    parts.report_copied()
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
    assert [text.translation.text for text in parts.texts] == [
        ">(eins) - TWO - (drei|III)<",
        " ",
        ">(vier)<",
    ]


def test_a_text_is_told_when_its_last_sentence_is() -> None:
    whole: list[tuple[int, str]] = []
    texts = WholeTexts(lambda place, text: whole.append((place, text.translation.text)))
    parts = Parts([_text("one", "two"), _text("three")], texts)
    for number, text in ((1, "zwei"), (2, "drei")):
        parts.finish(number, _done(parts.answered(number, _found()), text))
    assert whole == [(1, ">(drei)<")]
    parts.finish(0, _done(parts.answered(0, _found()), "eins"))
    assert whole[1:] == [(0, ">(eins) - (zwei)<")]
