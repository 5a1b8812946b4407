"""Beginnings and terms, with networks that do as they are told and networks that do not."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pytest

from model.config import LengthLimits, Sampling, SearchConfig
from model.errors import InputError
from model.text.constraints.control import Beginning, Control
from model.text.constraints.glossary import Entry, Glossary
from model.text.drafts.rounds import Draft
from model.text.drafts.segments import Segment, Translation
from model.text.drafts.tries import MAX_TRIES
from model.text.languages.tags import LanguagePair
from model.text.pipeline import TextPipeline, segment_cap
from model.text.subwords.pieces import OwnTable, PieceModel
from model.text.subwords.tokenizer import Tokenizer
from support.tiny_checkpoint import TINY_TOKENS, tiny_spm

EN_DE = LanguagePair(source="en", target="de")
EN_ZH = LanguagePair(source="en", target="zh-Hans")
ZH_EN = LanguagePair(source="zh-Hans", target="en")
LIMITS = LengthLimits(max_source_length=64, max_target_length=128)


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    token_ids: tuple[int, ...]
    score: float = -0.5
    is_truncated: bool = False
    alignment: tuple[int, ...] | None = None


Network = Callable[[Segment], Sequence[Output]]


@pytest.fixture(scope="module")
def pieces() -> PieceModel:
    return PieceModel(tiny_spm())


def tokenizer_of(pieces: PieceModel, *, forced_first_id: int | None = None) -> Tokenizer:
    return Tokenizer(
        tokens=replace(TINY_TOKENS, forced_first_id=forced_first_id),
        pairs=(EN_DE, EN_ZH, ZH_EN),
        source_size=len(pieces),
        target_size=len(pieces),
        source_model=pieces,
        target_model=pieces,
        source_table=OwnTable(pieces),
        target_table=OwnTable(pieces),
    )


@pytest.fixture(scope="module")
def tokenizer(pieces: PieceModel) -> Tokenizer:
    return tokenizer_of(pieces)


@pytest.fixture(scope="module")
def pipeline(tokenizer: Tokenizer) -> TextPipeline:
    return TextPipeline(tokenizer, LIMITS)


def driven(
    pipeline: TextPipeline,
    text: str,
    network: Network,
    control: Control,
    *,
    can_hold: bool = False,
    pair: LanguagePair = EN_DE,
) -> tuple[Translation, list[Segment]]:
    draft: Draft[Output] = pipeline.draft(text, pair, control)
    asked: list[Segment] = []
    for _ in range(MAX_TRIES + 3):
        asked += draft.asked
        answered = draft.answered([network(segment) for segment in draft.asked])
        draft = pipeline.review(answered, can_hold=can_hold)
        if not draft.asked:
            break
    assert not draft.asked
    return draft.translation, asked


def going_on(tokenizer: Tokenizer, *texts: str, first: tuple[int, ...] = ()) -> Network:
    """A network that begins as it has to, and then writes one of these texts after another."""
    remaining = list(texts)

    def network(segment: Segment) -> list[Output]:
        text = remaining.pop(0) if len(remaining) > 1 else remaining[0]
        own = (*first, *segment.forced_ids, *tokenizer.encode_target(text)[:-1])
        alignment = tuple(min(n, len(segment.source_ids) - 1) for n in range(len(own)))
        return [Output(token_ids=own, alignment=alignment)]

    return network


def terms(*pairs: tuple[str, str], is_carried: bool = False) -> Control:
    entries = [Entry(source=source, target=target) for source, target in pairs]
    return Control(glossary=Glossary(entries, is_carried=is_carried))


@pytest.mark.parametrize(
    ("prefix", "expected"),
    [
        ("My friend", "My friend sees the river."),
        ("My  friend ", "My  friend sees the river."),
        ("Ĝis — 猫", "Ĝis — 猫 sees the river."),
        ("A\ufffdB", "A\ufffdB sees the river."),
    ],
)
def test_a_beginning_stays_as_it_was_written_and_the_network_goes_on(
    pipeline: TextPipeline, tokenizer: Tokenizer, prefix: str, expected: str
) -> None:
    network = going_on(tokenizer, "sees the river.")
    text = "- The cat sees it. The cat waits."
    translation, asked = driven(pipeline, text, network, Control(target_prefix=prefix))
    first, second = asked
    assert first.forced_ids == tuple(tokenizer.encode_target(prefix)[:-1])
    assert second.forced_ids == ()
    assert translation.text == f"- {expected} sees the river."
    assert segment_cap(first, LIMITS) == 2 * len(first.source_ids) + 16 + len(first.forced_ids)


def test_a_first_token_that_the_network_always_begins_with_is_no_part_of_the_text(
    pieces: PieceModel,
) -> None:
    tokenizer = tokenizer_of(pieces, forced_first_id=TINY_TOKENS.unk_id)
    network = going_on(tokenizer, "waits.", first=(TINY_TOKENS.unk_id,))
    pipeline = TextPipeline(tokenizer, LIMITS)
    translation, _ = driven(pipeline, "The cat sees it.", network, Control(target_prefix="My"))
    assert translation.text == "My waits."


def test_marks_in_a_beginning_are_there_and_the_others_come_back_behind_it(
    pipeline: TextPipeline, tokenizer: Tokenizer
) -> None:
    network = going_on(tokenizer, "waits for X2.")
    translation, asked = driven(
        pipeline, "The cat {name} sees {river}.", network, Control(target_prefix="A {name}")
    )
    assert translation.text == "A {name} waits for {river}."
    assert asked[0].forced_ids == tuple(tokenizer.encode_target("A X1")[:-1])
    assert translation.segments[0].quality.failed == ()


def test_marks_that_only_the_beginning_has_are_no_fault_of_the_network(
    pipeline: TextPipeline, tokenizer: Tokenizer
) -> None:
    control = Control(target_prefix="See https://example.org,")
    translation, asked = driven(pipeline, "The cat.", going_on(tokenizer, "the cat."), control)
    assert translation.text == "See https://example.org, the cat."
    assert translation.segments[0].quality.failed == ()
    assert len(asked) == 1


def test_another_try_begins_in_the_same_way_and_is_never_a_part(
    pipeline: TextPipeline, tokenizer: Tokenizer
) -> None:
    network = going_on(tokenizer, "waits.")
    translation, asked = driven(
        pipeline, "The cat sees {name}.", network, Control(target_prefix="My friend")
    )
    assert len(asked) == 2
    assert all(segment.forced_ids for segment in asked)
    assert translation.text == "My friend waits. {name}"
    assert translation.segments[0].quality.failed == ("marks",)


def test_where_nothing_is_translated_nothing_begins(
    pipeline: TextPipeline, tokenizer: Tokenizer
) -> None:
    translation, asked = driven(
        pipeline, "7.30", going_on(tokenizer, "waits."), Control(target_prefix="My")
    )
    assert (translation.text, asked) == ("7.30", [])


@pytest.mark.parametrize(
    ("prefix", "expected"),
    [
        ("Ich sage", "Ich sage Danke. waits."),
        ("Ich sage ", "Ich sage Danke. waits."),
        ("Dan", "Danke. waits."),
    ],
)
def test_a_term_alone_has_the_beginning_before_it(
    pipeline: TextPipeline, tokenizer: Tokenizer, prefix: str, expected: str
) -> None:
    control = replace(terms(("thank you", "danke")), target_prefix=prefix)
    network = going_on(tokenizer, "waits.")
    translation, asked = driven(pipeline, "Thank you. The cat waits.", network, control)
    assert translation.text == expected
    assert [segment.forced_ids for segment in asked] == [()]
    assert [term.is_hit for term in translation.segments[0].terms] == [True]


def test_what_stands_for_no_character_is_left_out_behind_a_beginning_only(
    pipeline: TextPipeline, tokenizer: Tokenizer
) -> None:
    def network(segment: Segment) -> list[Output]:
        byte_id = tokenizer.encode("\xe9", EN_DE)[-2]  # the second byte of two
        return [Output(token_ids=(*segment.forced_ids, byte_id))]

    control = Control(target_prefix="A\ufffdB")
    translation, _ = driven(pipeline, "The cat waits.", network, control)
    assert translation.text == "A\ufffdB"
    assert translation.segments[0].quality.failed == ("characters",)


def test_a_beginning_that_the_network_cannot_write_is_refused(pipeline: TextPipeline) -> None:
    with pytest.raises(InputError, match=r"target_prefix has \d+ tokens; it may have 64") as error:
        pipeline.draft("The cat.", EN_DE, Control(target_prefix="river " * 70))
    assert error.value.limit == 64


def test_a_space_at_the_end_of_a_beginning_is_the_only_one() -> None:
    assert Beginning(text="Der ", token_ids=()).joined(" Hund") == "Der Hund"
    assert Beginning(text="Der", token_ids=()).joined(" Hund ") == "Der Hund"


def test_a_term_that_the_network_writes_by_itself_is_a_hit_in_one_round(
    pipeline: TextPipeline, tokenizer: Tokenizer
) -> None:
    network = going_on(tokenizer, "My friend waits.")
    translation, asked = driven(pipeline, "The cat sees it.", network, terms(("cat", "friend")))
    assert translation.text == "My friend waits."
    (segment,) = translation.segments
    assert [(one.source, one.target, one.is_hit) for one in segment.terms] == [
        ("cat", "friend", True)
    ]
    assert (segment.quality.failed, segment.quality.checked[-1]) == ((), "terms")
    assert [one.carried for one in asked] == [None]
    assert asked[0].searched(SearchConfig(beam_size=3)).num_hypotheses == 3


def test_a_term_that_it_does_not_write_is_carried(
    pipeline: TextPipeline, tokenizer: Tokenizer
) -> None:
    network = going_on(tokenizer, "My friend waits.", "The river sees API.")
    translation, asked = driven(pipeline, "The cat sees it.", network, terms(("cat", "Rhein 4")))
    assert translation.text == "The river sees Rhein 4."
    assert translation.segments[0].terms[0].is_hit
    assert translation.segments[0].quality.failed == ()
    assert asked[1].carried is not None


def test_a_term_that_is_not_carried_through_is_asked_of_the_search(
    pipeline: TextPipeline, tokenizer: Tokenizer
) -> None:
    network = going_on(tokenizer, "My friend waits.", "My friend waits.", "The river sees Rhein 4.")
    control = terms(("cat", "Rhein 4"))
    translation, asked = driven(pipeline, "The cat sees it.", network, control, can_hold=True)
    assert translation.text == "The river sees Rhein 4."
    assert translation.segments[0].quality.failed == ()
    assert translation.segments[0].quality.num_tries == 2
    plain, carried, held = asked
    assert carried.carried is not None
    assert plain.source_ids == held.source_ids != carried.source_ids
    phrases = ((tuple(tokenizer.encode_target("Rhein 4")[:-1]),),)
    assert [one.required_phrases for one in asked] == [(), (), phrases]


def test_what_the_search_cannot_write_either_is_copied(
    pipeline: TextPipeline, tokenizer: Tokenizer
) -> None:
    text, control = "She sees the cat and waits.", terms(("cat", "Kater"))
    network = going_on(tokenizer, "My friend waits.")
    translation, asked = driven(pipeline, text, network, control, can_hold=True)
    assert " Kater " in translation.text
    assert all(use.is_hit for segment in translation.segments for use in segment.terms)
    assert [one.is_held for one in asked[:3]] == [False, False, True]
    assert all(one.was_held for one in asked[3:])
    assert max(segment.quality.num_tries for segment in translation.segments) == MAX_TRIES + 1


def test_a_term_that_is_lost_again_and_again_is_copied_between_what_stands_around_it(
    pipeline: TextPipeline, tokenizer: Tokenizer
) -> None:
    network = going_on(tokenizer, "My friend waits.")
    translation, _ = driven(
        pipeline, "She sees the cat and waits.", network, terms(("cat", "Kater"))
    )
    assert " Kater " in translation.text
    uses = [use for segment in translation.segments for use in segment.terms]
    assert [(use.source, use.is_hit) for use in uses] == [("cat", True)]


def test_without_another_round_a_term_is_missed_and_that_is_said(
    pipeline: TextPipeline, tokenizer: Tokenizer
) -> None:
    draft: Draft[Output] = pipeline.draft("The cat sees it.", EN_DE, terms(("cat", "Kater")))
    network = going_on(tokenizer, "My friend waits.")
    draft = draft.answered([network(segment) for segment in draft.asked])
    (segment,) = pipeline.review(draft, is_last=True).translation.segments
    assert segment.quality.failed == ("terms",)
    assert not segment.terms[0].is_hit


@pytest.mark.parametrize(
    ("text", "expected"), [("Cat", "Kater"), ("cat: {name}, CAT!", "Kater: {name}, KATER!")]
)
def test_what_is_all_terms_is_not_asked_for(
    pipeline: TextPipeline, tokenizer: Tokenizer, text: str, expected: str
) -> None:
    control = terms(("cat", "Kater"), ("CAT", "KATER"))
    translation, asked = driven(pipeline, text, going_on(tokenizer, "waits."), control)
    assert asked == []
    assert translation.text.casefold() == expected.casefold()
    assert all(use.is_hit for segment in translation.segments for use in segment.terms)


def test_a_sentence_of_terms_that_stand_side_by_side_has_words_and_signs_of_the_target(
    pipeline: TextPipeline, tokenizer: Tokenizer
) -> None:
    control = terms(("用户", "user"), ("登录", "log in"), ("后台", "admin panel"))
    network = going_on(tokenizer, "waits.")
    translation, asked = driven(pipeline, "用户登录后台。", network, control, pair=ZH_EN)
    assert (translation.text, asked) == ("user log in admin panel.", [])
    (segment,) = translation.segments
    assert [term.is_hit for term in segment.terms] == [True] * 3
    assert (segment.quality.checked, segment.quality.failed) == (("terms",), ())


def test_a_sentence_that_is_split_around_its_terms_has_signs_of_the_target(
    pipeline: TextPipeline, tokenizer: Tokenizer
) -> None:
    control = terms(("用户", "user"), ("登录", "log in"))
    network = going_on(tokenizer, "waits")
    translation, _ = driven(pipeline, "猫用户登录。", network, control, pair=ZH_EN)
    assert translation.text == "waits user log in."


def test_a_term_that_follows_a_beginning_in_chinese_has_no_space_before_it(
    pipeline: TextPipeline, tokenizer: Tokenizer
) -> None:
    control = replace(terms(("cat", "小猫"), is_carried=True), target_prefix="现在")
    network = going_on(tokenizer, "X1 看 X2")
    translation, _ = driven(pipeline, "The cat {x}.", network, control, pair=EN_ZH)
    assert translation.text == "现在小猫看 {x}"


def test_on_the_way_into_a_pivot_terms_are_carried_at_once(
    pipeline: TextPipeline, tokenizer: Tokenizer
) -> None:
    network = going_on(tokenizer, "She sees X1.")
    translation, asked = driven(
        pipeline, "The cat waits.", network, terms(("cat", "Kater"), is_carried=True)
    )
    assert translation.text == "She sees Kater."
    assert len(asked) == 1


def test_in_a_sentence_that_has_to_be_cut_terms_are_carried(
    pipeline: TextPipeline, tokenizer: Tokenizer
) -> None:
    text = "the cat sees the river and " * 8 + "waits."

    def copying(segment: Segment) -> list[Output]:
        ids = segment.source_ids[:-1]
        return [Output(token_ids=ids, alignment=tuple(range(len(ids))))]

    translation, asked = driven(pipeline, text, copying, terms(("cat", "Kater")))
    assert len(asked) > 1
    assert translation.text.count("Kater") == 8
    assert sum(use.is_hit for segment in translation.segments for use in segment.terms) == 8


def test_terms_and_a_beginning_go_together(pipeline: TextPipeline, tokenizer: Tokenizer) -> None:
    control = replace(terms(("cat", "Kater")), target_prefix="Der Kater")
    network = going_on(tokenizer, "waits.")
    translation, asked = driven(pipeline, "The cat waits.", network, control)
    assert translation.text == "Der Kater waits."
    assert len(asked) == 1
    assert translation.segments[0].terms[0].is_hit


def test_a_seed_becomes_the_segments_own_by_what_it_says_and_how_often_it_was_tried() -> None:
    search = SearchConfig(sampling=Sampling(seed=7))
    one, same, other = (Segment(text="", source_ids=ids) for ids in ((4, 5), (4, 5), (5, 4)))
    seeds = [
        segment.searched(search).sampling
        for segment in (one, same, other, replace(one, num_tries=1))
    ]
    assert seeds[0] == seeds[1]
    assert len({sampling.seed for sampling in seeds if sampling is not None}) == 3
