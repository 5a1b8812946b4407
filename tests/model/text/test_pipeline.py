from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from model.checkpoint.description.config_file import read_manifest
from model.checkpoint.manifest import Manifest
from model.checkpoint.tokenizer import load_tokenizer
from model.config import LengthLimits
from model.text.drafts.segments import PreparedText, Translation
from model.text.languages.tags import LanguagePair
from model.text.pipeline import TextPipeline, hypotheses_at, target_cap
from model.text.subwords.pieces import OwnTable, PieceModel
from model.text.subwords.tokenizer import Tokenizer
from support.tiny_checkpoint import (
    EN_ZH,
    TINY_LIMITS,
    TINY_TOKENS,
    ZH_EN,
    tiny_spm,
    write_tiny_checkpoint,
)

AWKWARD = st.text(
    st.sampled_from(
        "aZ. !?…。！？，,:'“”（）中猫あ1é😀\n\r\t\0 \u00a0\u3000\u2028\ufeff\ud800\udfff"
    )
)
ANY_TEXT = st.one_of(AWKWARD, st.text(st.characters(codec=None)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    token_ids: tuple[int, ...]
    score: float = -0.5
    is_truncated: bool = False
    alignment: tuple[int, ...] | None = None


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_checkpoint(tmp_path_factory.mktemp("translation") / "tiny")


@pytest.fixture(scope="module")
def manifest(directory: Path) -> Manifest:
    return read_manifest(directory)


@pytest.fixture(scope="module")
def tokenizer(directory: Path, manifest: Manifest) -> Tokenizer:
    return load_tokenizer(directory, manifest)


@pytest.fixture(scope="module")
def pipeline(tokenizer: Tokenizer, manifest: Manifest) -> TextPipeline:
    return TextPipeline(tokenizer, manifest.limits)


def echoed(pipeline: TextPipeline, prepared: PreparedText) -> Translation:
    """What a network that copies its source would give: one numbering serves both sides."""
    outputs = [Output(token_ids=segment.source_ids[:-1]) for segment in prepared.network_segments]
    return pipeline.finish(prepared, outputs)


def without_surrogates(text: str) -> str:
    return "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in text)


@given(ANY_TEXT, st.sampled_from([EN_ZH, ZH_EN]))
@settings(max_examples=500, deadline=None)
def test_segments_and_separators_are_the_text_byte_for_byte(
    pipeline: TextPipeline, text: str, pair: LanguagePair
) -> None:
    prepared = pipeline.prepare(text, pair)
    assert prepared.text == without_surrogates(text)
    assert len(prepared.separators) == len(prepared.segments) + 1
    assert all(
        len(segment.source_ids) <= TINY_LIMITS.max_source_length for segment in prepared.segments
    )


@given(ANY_TEXT, st.sampled_from([EN_ZH, ZH_EN]))
@settings(max_examples=300, deadline=None)
def test_the_line_breaks_of_a_translation_are_those_of_its_source(
    pipeline: TextPipeline, text: str, pair: LanguagePair
) -> None:
    translation = echoed(pipeline, pipeline.prepare(text, pair))
    breaks = [character for character in text if character in "\n\r\t\u2028"]
    assert [c for c in translation.text if c in "\n\r\t\u2028"] == breaks


@given(st.text(st.sampled_from("0123456789 .,:%$€+-/()\n!?😀\u2028…。"), max_size=60))
@settings(max_examples=200, deadline=None)
def test_a_text_without_letters_is_copied(pipeline: TextPipeline, text: str) -> None:
    prepared = pipeline.prepare(text, ZH_EN)
    assert prepared.network_segments == ()
    translation = pipeline.finish(prepared, [])
    assert translation.text == text
    assert translation.num_source_tokens == translation.num_target_tokens == 0


@pytest.mark.parametrize("text", ["", " ", "\n", "\r\n \t\u3000\n"])
def test_a_blank_text_has_no_segments_and_comes_back_unchanged(
    pipeline: TextPipeline, text: str
) -> None:
    prepared = pipeline.prepare(text, EN_ZH)
    assert prepared.segments == ()
    assert pipeline.finish(prepared, []).text == text


def test_leading_and_empty_lines_are_kept(pipeline: TextPipeline) -> None:
    text = "\n\n  The cat sees the river. She sells a letter!\r\n\r\n\t- Nobody waits.\n"
    assert echoed(pipeline, pipeline.prepare(text, EN_ZH)).text == text


@pytest.mark.parametrize(
    "text",
    [
        "\0",
        "\ufeffThe cat waits.\u200e",
        "The\0cat sees\x07 the \x1b[31mriver\x1b[0m.",
        "Nobody \u202bwaits\u202c, the\u200bcat\u2060sees.",
        "cat\0" * 500,
        "The\U0010a000\u200d",
    ],
)
def test_what_nobody_sees_comes_back(pipeline: TextPipeline, text: str) -> None:
    translated = echoed(pipeline, pipeline.prepare(text, EN_ZH)).text

    def unseen(one: str) -> list[str]:
        return sorted(sign for sign in one if not sign.isprintable())

    assert unseen(translated) == unseen(text)


def test_a_soft_hyphen_is_no_part_of_the_word_that_is_read(pipeline: TextPipeline) -> None:
    hyphenated, plain = (
        pipeline.prepare(text, EN_ZH).segments for text in ("The ri\xadver.", "The river.")
    )
    assert [one.source_ids for one in hyphenated] == [one.source_ids for one in plain]
    assert [one.text for one in hyphenated] == ["The ri\xadver."]


@pytest.mark.parametrize(
    "text", ["\xadThe<br/> cat sees", "The ri\xadver <b>waits</b> now", "\xad<br/> @name sees"]
)
def test_a_soft_hyphen_moves_no_mark(pipeline: TextPipeline, text: str) -> None:
    prepared = pipeline.prepare(text, EN_ZH)
    outputs = [
        Output(token_ids=one.source_ids[:-1], alignment=tuple(range(len(one.source_ids) - 1)))
        for one in prepared.network_segments
    ]
    assert pipeline.finish(prepared, outputs).text == text.replace("\xad", "")


def test_every_sentence_is_a_segment_of_its_own(pipeline: TextPipeline) -> None:
    prepared = pipeline.prepare("The cat waits. 7.30! See https://a.example/b?c=1 now.", EN_ZH)
    assert [segment.text for segment in prepared.segments] == [
        "The cat waits.",
        "7.30!",
        "See https://a.example/b?c=1 now.",
    ]
    assert [segment.is_verbatim for segment in prepared.segments] == [False, True, False]
    assert prepared.network_segments[0].source_ids[-1] == TINY_TOKENS.eos_id
    assert prepared.num_source_tokens == sum(
        len(segment.source_ids) for segment in prepared.network_segments
    )


@pytest.mark.parametrize(
    ("text", "is_verbatim"),
    [
        ("https://example.org/a?b=c#d", True),
        ("www.example.org", True),
        ("someone@example.org", True),
        ("HTTPS://Example.ORG/A", True),
        ("WWW.EXAMPLE.ORG", True),
        ("http://example.org", True),
        ("https://example.org and more", False),
        ("see https://example.org", False),
        ("some one@example.org", False),
        ("a@b@c", False),
        ("请联系我@微信", False),
        ("https://example.org看看吧", False),
        ("3 kg", False),
        ("三", False),
        ("½ ① ♥ \ufffd", True),
    ],
)
def test_an_address_is_copied_and_a_word_is_not(
    pipeline: TextPipeline, text: str, is_verbatim: bool
) -> None:
    (segment,) = pipeline.prepare(text, ZH_EN).segments
    assert segment.is_verbatim is is_verbatim


def test_lone_surrogates_become_the_replacement_character(pipeline: TextPipeline) -> None:
    prepared = pipeline.prepare("a \ud83d cat \ude00.\ud800", EN_ZH)
    assert prepared.text == "a \ufffd cat \ufffd.\ufffd"
    echoed(pipeline, prepared).text.encode("utf-8")


def test_sentences_end_by_the_rules_of_the_source_language(
    directory: Path, manifest: Manifest
) -> None:
    de_en, en_de = (LanguagePair(source=s, target=t) for s, t in (("de", "en"), ("en", "de")))
    both = replace(manifest, pairs=(de_en, en_de))
    pipeline = TextPipeline(load_tokenizer(directory, both), both.limits)
    text = "Am 3. Oktober kam er."
    found = [
        [segment.text for segment in pipeline.prepare(text, pair).segments]
        for pair in (de_en, en_de)
    ]
    assert found == [[text], ["Am 3.", "Oktober kam er."]]


def test_a_sentence_that_is_too_long_is_cut_and_says_so(pipeline: TextPipeline) -> None:
    long = " ".join(["The cat sees the river, nobody waits"] * 30)
    text = f"She paints. {long}. She sells."
    prepared = pipeline.prepare(text, EN_ZH)
    assert prepared.text == text
    cuts = [segment.is_cut for segment in prepared.segments]
    assert (cuts[0], cuts[-1]) == (False, False)
    assert all(cuts[1:-1])
    assert len(cuts) > 5
    translation = echoed(pipeline, prepared)
    assert translation.is_cut
    assert translation.text == text


@pytest.mark.parametrize("word", ["cat ", "cat", "猫", "e\u0301 and ", "A. "])
def test_a_word_repeated_five_thousand_times_is_cut_and_kept(
    pipeline: TextPipeline, word: str
) -> None:
    text = word * 5000
    prepared = pipeline.prepare(text, EN_ZH)
    assert prepared.text == text
    assert all(
        len(segment.source_ids) <= TINY_LIMITS.max_source_length for segment in prepared.segments
    )
    assert all(segment.is_cut for segment in prepared.segments)
    # Pieces are about as long as they may be: two thirds of the limit and more, on average.
    assert prepared.num_source_tokens > 0.6 * TINY_LIMITS.max_source_length * len(prepared.segments)


def limited(tokenizer: Tokenizer, manifest: Manifest, max_source_length: int) -> TextPipeline:
    limits = LengthLimits(max_source_length=max_source_length, max_target_length=64)
    return TextPipeline(tokenizer, limits)


@pytest.mark.parametrize("text", ["The cat sees the river", "猫看见那条河", "cat cat"])
def test_a_sentence_of_just_the_limit_is_whole_and_one_token_more_is_cut(
    tokenizer: Tokenizer, manifest: Manifest, text: str
) -> None:
    length = len(tokenizer.encode(text, EN_ZH))
    for limit in (length, length + 1):
        (whole,) = limited(tokenizer, manifest, limit).prepare(text, EN_ZH).segments
        assert (whole.text, whole.is_cut) == (text, False)
        assert whole.source_ids == tuple(tokenizer.encode(text, EN_ZH))
    pieces = limited(tokenizer, manifest, length - 1).prepare(text, EN_ZH).segments
    assert len(pieces) > 1
    assert all(piece.is_cut and not piece.is_verbatim for piece in pieces)


def test_a_character_of_just_the_limit_is_translated_and_one_token_more_is_copied(
    tokenizer: Tokenizer, manifest: Manifest
) -> None:
    length = len(tokenizer.encode("鬱", ZH_EN))
    for limit, is_verbatim in ((length, False), (length - 1, True)):
        prepared = limited(tokenizer, manifest, limit).prepare("鬱鬱", ZH_EN)
        found = [
            (segment.text, segment.is_cut, segment.is_verbatim) for segment in prepared.segments
        ]
        assert found == [("鬱", True, is_verbatim)] * 2


class NothingLeft(Tokenizer):
    """A tokenizer whose normalisation leaves nothing of any text."""

    def encode(self, text: str, pair: LanguagePair) -> list[int]:  # all the same
        return super().encode("", pair)


@pytest.mark.parametrize("has_source_eos", [True, False])
@pytest.mark.parametrize("source_prefix", [(), ("▁cat",), ("▁cat", "▁sees")])
def test_a_text_that_has_no_pieces_is_copied_whatever_would_stand_around_it(
    directory: Path, manifest: Manifest, source_prefix: tuple[str, ...], has_source_eos: bool
) -> None:
    pair = replace(EN_ZH, source_prefix=source_prefix)
    tokens = replace(manifest.tokens, has_source_eos=has_source_eos)
    tagged = replace(manifest, pairs=(pair,), tokens=tokens)
    pieces = PieceModel(tiny_spm())
    nothing_left = NothingLeft(
        tokens=tagged.tokens,
        pairs=tagged.pairs,
        source_size=len(pieces),
        target_size=len(pieces),
        source_model=pieces,
        target_model=pieces,
        source_table=OwnTable(pieces),
        target_table=OwnTable(pieces),
    )
    prepared = TextPipeline(nothing_left, tagged.limits).prepare("a. B.", pair)
    assert prepared.network_segments == ()
    tokenizer = load_tokenizer(directory, tagged)
    (segment,) = TextPipeline(tokenizer, tagged.limits).prepare("猫", pair).network_segments
    assert segment.source_ids == tuple(tokenizer.encode("猫", pair))


def test_a_character_that_no_cut_makes_fit_is_copied(
    tokenizer: Tokenizer, manifest: Manifest
) -> None:
    limits = LengthLimits(max_source_length=3, max_target_length=8)
    narrow = TextPipeline(tokenizer, limits)
    prepared = narrow.prepare("ḝḝ", EN_ZH)  # three bytes each, so five tokens
    assert [segment.is_verbatim for segment in prepared.segments] == [True, True]
    assert narrow.finish(prepared, []).text == "ḝḝ"
    assert narrow.finish(prepared, []).is_cut


def test_sentences_of_an_unspaced_script_get_a_space_in_a_spaced_one(
    pipeline: TextPipeline,
) -> None:
    prepared = pipeline.prepare("猫等待。123。她画。\n没有人。 她卖掉。", ZH_EN)
    assert prepared.separators == ("", "", "", "\n", " ", "")
    assert echoed(pipeline, prepared).text == "猫等待。 123。 她画。\n没有人。 她卖掉。"


UNSPACED = ("zh-Hans", "zh-Hant-TW", "ja", "yue", "wuu", "th", "lo", "km", "my", "bo")


@pytest.mark.parametrize(
    ("source", "target", "is_spaced"),
    [
        *((source, "en", True) for source in UNSPACED),
        *((source, "ja", False) for source in UNSPACED),
        *(("en", target, False) for target in UNSPACED),
        ("ko", "en", False),
        ("en", "de", False),
    ],
)
def test_only_from_an_unspaced_script_to_a_spaced_one_is_a_space_added(
    directory: Path, manifest: Manifest, source: str, target: str, is_spaced: bool
) -> None:
    pair = LanguagePair(source=source, target=target)
    only = replace(manifest, pairs=(pair,))
    pipeline = TextPipeline(load_tokenizer(directory, only), only.limits)
    prepared = pipeline.prepare("猫等待。她画。", pair)
    assert prepared.separators == ("", "", "")
    translation = echoed(pipeline, prepared)
    assert translation.text == ("猫等待。 她画。" if is_spaced else "猫等待。她画。")


def test_no_space_is_added_at_the_ends_nor_between_what_is_copied(pipeline: TextPipeline) -> None:
    assert echoed(pipeline, pipeline.prepare("猫等待。", ZH_EN)).text == "猫等待。"
    assert echoed(pipeline, pipeline.prepare("1。2。猫。", ZH_EN)).text == "1。2。 猫。"
    assert echoed(pipeline, pipeline.prepare("猫。1。2。", ZH_EN)).text == "猫。 1。2。"


def test_a_space_between_sentences_is_kept_in_an_unspaced_script(pipeline: TextPipeline) -> None:
    assert echoed(pipeline, pipeline.prepare("The cat waits. She sells.", EN_ZH)).text == (
        "The cat waits. She sells."
    )


def test_an_empty_translation_leaves_the_text_around_it(pipeline: TextPipeline) -> None:
    prepared = pipeline.prepare("猫等待。她画。", ZH_EN)
    first, second = prepared.network_segments
    translation = pipeline.finish(
        prepared, [Output(token_ids=()), Output(token_ids=second.source_ids[:-1])]
    )
    assert translation.text == "她画。"
    assert first.text == translation.segments[0].source


def test_a_translation_cannot_break_a_line(pipeline: TextPipeline, tokenizer: Tokenizer) -> None:
    prepared = pipeline.prepare("The cat waits.", EN_ZH)
    token_ids = (
        *tokenizer.encode_target("\n\t")[:-1],
        *tokenizer.encode_target("a\nb\u2028c")[:-1],
        *tokenizer.encode_target("\n")[:-1],
    )
    assert pipeline.finish(prepared, [Output(token_ids=token_ids)]).text == "a b c"


def test_a_translation_tells_the_facts_of_every_segment(pipeline: TextPipeline) -> None:
    prepared = pipeline.prepare("The cat waits. 12! She sells.", EN_ZH)
    first, second = prepared.network_segments
    translation = pipeline.finish(
        prepared,
        [
            Output(token_ids=first.source_ids[:-1], score=-0.25),
            Output(token_ids=second.source_ids[:-1], score=-2.0, is_truncated=True),
        ],
    )
    assert [segment.score for segment in translation.segments] == [-0.25, None, -2.0]
    assert [segment.is_truncated for segment in translation.segments] == [False, False, True]
    assert [segment.is_verbatim for segment in translation.segments] == [False, True, False]
    assert translation.is_truncated
    assert not translation.is_cut
    assert translation.num_source_tokens == len(first.source_ids) + len(second.source_ids)
    assert translation.num_target_tokens == translation.num_source_tokens - 2


def test_casing_is_left_as_it_is(pipeline: TextPipeline) -> None:
    prepared = pipeline.prepare("the cat waits. nobody sells. SHE SELLS.", EN_ZH)
    assert echoed(pipeline, prepared).text == "the cat waits. nobody sells. SHE SELLS."


def test_the_wrong_number_of_outputs_is_a_fault(pipeline: TextPipeline) -> None:
    prepared = pipeline.prepare("The cat waits. She sells.", EN_ZH)
    output = Output(token_ids=(5,))
    for outputs in ([output], [output] * 3):
        with pytest.raises(ValueError, match="zip"):
            pipeline.finish(prepared, outputs)


def test_the_cap_is_about_twice_the_source_within_the_limit() -> None:
    limits = LengthLimits(max_source_length=100, max_target_length=128)
    assert target_cap(1, limits) == 18
    assert target_cap(20, limits) == 56
    assert target_cap(100, limits) == 128


def test_the_decoder_starts_with_the_pairs_prefix(pipeline: TextPipeline) -> None:
    assert pipeline.prefix_ids(EN_ZH) == (TINY_TOKENS.start_id,)


def test_a_segment_with_fewer_hypotheses_repeats_its_last() -> None:
    found = [("a", "b", "c"), ("d",), ("e", "f")]
    assert [hypotheses_at(found, rank) for rank in range(3)] == [
        ["a", "d", "e"],
        ["b", "d", "f"],
        ["c", "d", "f"],
    ]
    assert hypotheses_at([], 1) == []
