"""Texts that come while others are translated: the same answers as in one pile."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from model.checkpoint.weights import load_checkpoint
from model.config import SearchConfig
from model.decode.session import DecodingSession
from model.errors import DecodingError, InputError
from model.offline.stream import TranslationStream
from model.offline.translator import Translator
from model.request import DecodeRequest, FinishedSentence, Hypothesis
from model.text.constraints.control import Control
from model.text.drafts.segments import Translation
from support.tiny_checkpoint import EN_ZH, generated_pairs, write_tiny_checkpoint

SEARCH = SearchConfig(beam_size=3)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_checkpoint(tmp_path_factory.mktemp("checkpoint") / "tiny")


def _texts() -> list[str]:
    texts = [source for source, _ in generated_pairs(24)]
    texts[3:3] = ["", "   \n", "12 + 30 = 42", " ".join(texts[:12]), "SHOUT: 7.30 <b>it</b>!"]
    return texts


def test_texts_of_several_piles_become_what_they_become_together(directory: Path) -> None:
    texts = _texts()
    expected = Translator(load_checkpoint(directory), max_rows=24).translate(texts, EN_ZH, SEARCH)
    stream: TranslationStream[int] = TranslationStream(
        Translator(load_checkpoint(directory), max_rows=24), EN_ZH, SEARCH, Control()
    )
    found: dict[int, Translation | DecodingError] = {}
    coming = iter(enumerate(texts))
    is_more = True
    while is_more or not stream.is_idle:
        for number, text in [next(coming, None) or (-1, "") for _ in range(3)]:  # as it runs
            is_more = number >= 0
            if is_more:
                stream.put(number % 3, number, text)
        for key, translation in stream.step():
            assert key not in found
            found[key] = translation
    ordered = [found[number] for number in range(len(texts))]
    assert [one.text for one in ordered if isinstance(one, Translation)] == [
        one.text for one in expected
    ]


def test_a_long_text_does_not_hold_back_a_short_one_of_another_pile(directory: Path) -> None:
    stream: TranslationStream[str] = TranslationStream(
        Translator(load_checkpoint(directory), max_rows=4), EN_ZH, SEARCH, Control()
    )
    sources = [source for source, _ in generated_pairs(20)]
    stream.put(0, "long", " ".join(sources))
    stream.put(1, "short", sources[0])
    order = []
    while not stream.is_idle:
        order += [key for key, _ in stream.step()]
    assert order == ["short", "long"]


def test_nothing_is_searched_again_that_would_give_the_same(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = load_checkpoint(directory)
    said = Hypothesis(
        token_ids=tuple(checkpoint.tokenizer.encode_target("她 33")[:-1]),
        score=-1.0,
        token_log_probs=(),
        is_truncated=False,
    )
    admitted: list[DecodeRequest] = []
    admit, step = DecodingSession.admit, DecodingSession.step

    def watched(session: DecodingSession, requests: Sequence[DecodeRequest]) -> list[int]:
        admitted.extend(requests)
        return admit(session, requests)

    def saying(session: DecodingSession) -> list[FinishedSentence]:
        """A number that no source has."""
        return [
            FinishedSentence(slot_id=sentence.slot_id, hypotheses=(said,))
            for sentence in step(session)
        ]

    monkeypatch.setattr(DecodingSession, "admit", watched)
    monkeypatch.setattr(DecodingSession, "step", saying)
    translator = Translator(checkpoint, max_rows=8)
    for beam_size, num_asked in ((1, 1), (2, 2)):
        stream: TranslationStream[str] = TranslationStream(
            translator, EN_ZH, SearchConfig(beam_size=beam_size), Control()
        )
        admitted.clear()
        stream.put(0, "text", "The cat sees the river.")
        while not stream.is_idle:
            stream.step()
        assert len(admitted) == num_asked


def test_a_text_without_a_finite_score_is_an_error_of_its_own(directory: Path) -> None:
    checkpoint = load_checkpoint(directory)
    checkpoint.network.output_bias.data.fill_(float("nan"))
    stream: TranslationStream[str] = TranslationStream(
        Translator(checkpoint, max_rows=8), EN_ZH, SEARCH, Control()
    )
    stream.put(0, "text", "The cat sees the river.")
    stream.put(0, "number", "7.30")
    found: dict[str, Translation | DecodingError] = {}
    while not stream.is_idle:
        found |= dict(stream.step())
    assert isinstance(found["text"], DecodingError)
    assert isinstance(found["number"], Translation)


def test_a_beam_wider_than_the_session_is_named(directory: Path) -> None:
    translator = Translator(load_checkpoint(directory), max_rows=2)
    with pytest.raises(InputError, match="beam_size is 3; this translator has 2 rows"):
        TranslationStream(translator, EN_ZH, SEARCH, Control())
