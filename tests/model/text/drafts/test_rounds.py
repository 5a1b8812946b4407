"""The text path with networks that do whatever they like."""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from model.config import LengthLimits, Sampling, SearchConfig
from model.text.drafts.rounds import Draft
from model.text.drafts.segments import RETRY_NGRAM, Segment, Translation
from model.text.drafts.tries import MAX_TRIES
from model.text.languages.tags import LanguagePair
from model.text.marks.finding import LOOSE_KINDS, find_marks
from model.text.pipeline import TextPipeline
from model.text.subwords.pieces import OwnTable, PieceModel
from model.text.subwords.tokenizer import Tokenizer
from support.tiny_checkpoint import EN_ZH, TINY_TOKENS, ZH_EN, tiny_spm

EN_DE = LanguagePair(source="en", target="de")
MARKS = (
    *("{name}", "%s", "%d", "%(x)d", "%1$s", "${x}", "{{x}}", "{}", "<0>", ":name", "@name"),
    *("https://example.org/a?b=c", "jo@example.org", "192.168.0.1", "/usr/bin/x", "a.txt"),
    *("`git push`", "<b>", "</b>", "&amp;", "😀", "👩‍🚀", "**", "00:01.000"),
)
WORDS = ("The", "cat", "sees", "the", "river", "SHE", "猫", "ĝis", "12", "3.50", ".", "!", ",", "?")


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


@pytest.fixture(scope="module")
def tokenizer(pieces: PieceModel) -> Tokenizer:
    return Tokenizer(
        tokens=TINY_TOKENS,
        pairs=(EN_ZH, ZH_EN, EN_DE),
        source_size=len(pieces),
        target_size=len(pieces),
        source_model=pieces,
        target_model=pieces,
        source_table=OwnTable(pieces),
        target_table=OwnTable(pieces),
    )


@pytest.fixture(scope="module")
def pipeline(tokenizer: Tokenizer) -> TextPipeline:
    return TextPipeline(tokenizer, LengthLimits(max_source_length=64, max_target_length=128))


def driven(
    pipeline: TextPipeline, text: str, network: Network, pair: LanguagePair = EN_DE
) -> tuple[Translation, list[Segment]]:
    """The translation, and everything that the network was asked."""
    draft: Draft[Output] = pipeline.draft(text, pair)
    asked: list[Segment] = []
    for _ in range(MAX_TRIES + 2):
        asked += draft.asked
        draft = pipeline.review(draft.answered([network(segment) for segment in draft.asked]))
        if not draft.asked:
            break
    assert not draft.asked
    best = [ranked[0] for ranked in draft.found]
    assert pipeline.finish(draft.prepared, best).text == draft.translation.text
    return draft.translation, asked


def copying(segment: Segment) -> list[Output]:
    ids = segment.source_ids[:-1]
    return [Output(token_ids=ids, alignment=tuple(range(len(ids))))]


def saying(tokenizer: Tokenizer, text: str) -> Network:
    """A network that writes the same whatever it reads."""
    ids = tuple(tokenizer.encode_target(text)[:-1])
    return lambda _: [Output(token_ids=ids, alignment=(0,) * len(ids))]


def adversary(seed: int, size: int) -> Network:
    """A network that drops, doubles, swaps and invents."""
    chance = random.Random(seed)

    def network(segment: Segment) -> list[Output]:
        outputs = []
        for _ in range(chance.randint(1, 3)):
            ids = list(segment.source_ids[:-1])
            for _ in range(chance.randint(0, 4)):
                place = chance.randint(0, len(ids))
                change = chance.choice(["drop", "double", "invent", "cut", "shuffle"])
                if change == "drop":
                    del ids[place : place + 3]
                elif change == "double":
                    ids[place:place] = ids[max(0, place - 4) : place]
                elif change == "invent":
                    ids[place:place] = [chance.randrange(size) for _ in range(3)]
                elif change == "cut":
                    del ids[place:]
                else:
                    chance.shuffle(ids)
            alignment = tuple(chance.randrange(len(segment.source_ids)) for _ in ids)
            is_truncated = chance.random() < 0.1
            outputs.append(
                Output(token_ids=tuple(ids), alignment=alignment, is_truncated=is_truncated)
            )
        return outputs

    return network


TEXTS = st.lists(
    st.tuples(st.sampled_from((*MARKS, *WORDS)), st.sampled_from(("", " ", " ", "\n"))), max_size=24
).map(lambda pairs: "".join(word + space for word, space in pairs))


@given(TEXTS, st.integers(0, 10**9), st.sampled_from([EN_DE, EN_ZH, ZH_EN]))
@settings(max_examples=200, deadline=None)
def test_whatever_a_network_does_every_mark_is_kept_and_what_is_wrong_is_said(
    pipeline: TextPipeline, pieces: PieceModel, text: str, seed: int, pair: LanguagePair
) -> None:
    translation, _ = driven(pipeline, text, adversary(seed, len(pieces)), pair)
    marks = Counter(text[mark.start : mark.end] for mark in find_marks(text))
    for mark, number in marks.items():
        assert translation.text.count(mark) >= number, mark
    # Parts of words, and what is glued to another mark, may look like marks once they are alone.
    sure = {mark for mark, number in marks.items() if text.count(mark) == number}
    for segment in translation.segments:
        own = {segment.source[mark.start : mark.end] for mark in find_marks(segment.source)}
        wrong = [
            mark for mark in own & sure if segment.text.count(mark) != segment.source.count(mark)
        ]
        assert not wrong or "marks" in segment.quality.failed or segment.is_verbatim


@given(TEXTS)
@example("The<0>cat sees")
@example("The😀cat sees")
@settings(max_examples=200, deadline=None)
def test_a_network_that_copies_changes_nothing(pipeline: TextPipeline, text: str) -> None:
    translation, _ = driven(pipeline, text, copying)
    there, here = ("".join(one.split()) for one in (translation.text, text))
    # A piece of the vocabulary may reach over a loose mark, which then stands beside it.
    has_loose = any(mark.kind in LOOSE_KINDS for mark in find_marks(text))
    assert (Counter(there) == Counter(here)) if has_loose else there == here


def test_a_plain_sentence_is_asked_once_and_as_ever(
    pipeline: TextPipeline, tokenizer: Tokenizer
) -> None:
    text = "The cat sees the river."
    translation, asked = driven(pipeline, text, saying(tokenizer, "Nobody waits."))
    assert translation.text == "Nobody waits."
    assert [segment.source_ids for segment in asked] == [tuple(tokenizer.encode(text, EN_DE))]
    search = SearchConfig()
    assert asked[0].searched(search) is search
    quality = translation.segments[0].quality
    assert (quality.failed, quality.num_tries, len(quality.checked)) == ((), 0, 7)


def test_a_mark_is_carried_by_a_stand_in_that_comes_back_where_the_network_put_it(
    pipeline: TextPipeline, tokenizer: Tokenizer
) -> None:
    translation, asked = driven(
        pipeline, "The cat sees {name}.", saying(tokenizer, "X1 sees the river.")
    )
    assert translation.text == "{name} sees the river."
    assert [segment.carried.shown for segment in asked if segment.carried] == ["The cat sees X1."]


def test_of_all_hypotheses_the_first_that_kept_the_marks_is_taken(
    pipeline: TextPipeline, tokenizer: Tokenizer
) -> None:
    def network(_: Segment) -> list[Output]:
        texts = ("Nobody waits.", "X1 X1 waits.", "Nobody sees X1.", "X1 sees nobody.")
        return [Output(token_ids=tuple(tokenizer.encode_target(text)[:-1])) for text in texts]

    translation, asked = driven(pipeline, "The cat sees {name}.", network)
    assert translation.text == "Nobody sees {name}."
    assert len(asked) == 1
    search = asked[0].searched(SearchConfig(beam_size=3))
    assert (search.num_hypotheses, search.with_alignment) == (3, False)


def test_a_lost_mark_is_carried_by_others_and_then_split_around(
    pipeline: TextPipeline, tokenizer: Tokenizer
) -> None:
    network = saying(tokenizer, "Nobody waits")
    translation, asked = driven(pipeline, "The cat sees {name}, and the river.", network)
    assert translation.text == "Nobody waits {name}, Nobody waits"
    shown = [segment.carried.shown if segment.carried else segment.text for segment in asked]
    assert shown[1].startswith("The cat sees API")
    assert shown[2:] == ["The cat sees", "and the river."]
    assert [segment.quality.num_tries for segment in translation.segments] == [2, 0, 2]
    assert all(segment.is_cut for segment in translation.segments)
    assert translation.num_flagged == 0


def test_a_mark_that_the_network_invents_is_flagged(
    pipeline: TextPipeline, tokenizer: Tokenizer
) -> None:
    translation, _ = driven(
        pipeline, "The cat sees the river.", saying(tokenizer, "The cat {x} sees.")
    )
    assert translation.segments[0].quality.failed == ("marks",)
    assert translation.num_flagged == 1


def test_marks_that_are_filled_in_by_their_order_keep_it(
    pipeline: TextPipeline, tokenizer: Tokenizer
) -> None:
    swapping = saying(tokenizer, "X2 sees X1.")
    translation, _ = driven(pipeline, "The cat %s sees %s.", swapping)
    assert translation.text.count("%s") == 2
    assert len(translation.segments) > 1  # split
    translation, _ = driven(pipeline, "The cat %1$s sees %2$s.", swapping)
    assert translation.text == "%2$s sees %1$s."


def test_a_lost_number_is_carried_like_a_mark(pipeline: TextPipeline, tokenizer: Tokenizer) -> None:
    def network(segment: Segment) -> list[Output]:
        text = "She sells 47." if segment.carried else "She sells."
        return [Output(token_ids=tuple(tokenizer.encode_target(text)[:-1]))]

    translation, asked = driven(pipeline, "The cat sees 1,234,567.", network)
    assert translation.text == "She sells 1,234,567."
    assert len(asked) == 2
    translation, _ = driven(pipeline, "The cat sees 5.", saying(tokenizer, "She sells 6."))
    assert translation.text == "She sells 6."
    quality = translation.segments[0].quality
    assert (quality.failed, quality.num_tries) == (("numbers",), 1)


def test_a_sentence_in_capitals_is_translated_in_ordinary_casing(pipeline: TextPipeline) -> None:
    translation, asked = driven(pipeline, "THE CAT SEES {name}!\nI am in the USA.", copying)
    assert asked[0].carried is not None
    assert asked[0].carried.shown == "The cat sees X1!"
    assert (asked[1].text, asked[1].carried) == ("I am in the USA.", None)
    assert translation.text == "THE CAT SEES {name}!\nI am in the USA."


def test_words_of_other_scripts_go_around_a_network_that_reads_chinese(
    pipeline: TextPipeline,
) -> None:
    text = "猫看Ĝorĝ和שלום。"
    translation, asked = driven(pipeline, text, copying, ZH_EN)
    assert translation.text == text
    assert asked[0].carried is not None
    assert asked[0].carried.shown == "猫看X1和X2。"


def test_what_no_vocabulary_can_write_goes_around_the_network(pipeline: TextPipeline) -> None:
    text = "The cat 😀 sees Ĝorĝ, ♥ and 龘."
    translation, asked = driven(pipeline, text, copying)
    assert translation.text == text
    assert asked[0].carried is not None
    assert asked[0].carried.shown == "The cat sees X1, and X2."


@pytest.mark.parametrize("word", ["สวัสดี", "नमस्ते", "שָׁלוֹם", "မင်္ဂလာပါ"])
@pytest.mark.parametrize("pair", [EN_ZH, EN_DE, ZH_EN])
def test_a_word_with_signs_above_and_below_its_letters_stays_whole(
    pipeline: TextPipeline, word: str, pair: LanguagePair
) -> None:
    text = f"The cat sees {word} again."
    translation, asked = driven(pipeline, text, copying, pair)
    assert translation.text == text
    assert asked[0].carried is not None
    assert asked[0].carried.shown == "The cat sees X1 again."


def test_a_line_of_300000_characters_without_a_stop_comes_through(pipeline: TextPipeline) -> None:
    part = "the cat sees the river " * 120 + "{name} https://example.org/a?b=c 😀 12 "
    text = (part * 110)[:300_000]
    translation, asked = driven(pipeline, text, copying)
    assert translation.text == text
    assert all(len(segment.source_ids) <= 64 for segment in asked)


def test_what_stands_around_a_sentence_is_no_part_of_it(pipeline: TextPipeline) -> None:
    text = "- **Nobody waits.** 😀\n| The cat | 12 |\n# She sells\n```\nfoo bar\n```\n"
    _, asked = driven(pipeline, text, copying)
    assert [segment.text for segment in asked] == ["Nobody waits.", "The cat", "She sells"]


def test_a_loop_is_cut_and_what_is_still_wrong_is_flagged(
    pipeline: TextPipeline, tokenizer: Tokenizer
) -> None:
    text = "The cat sees the river and nobody waits for a letter"
    translation, asked = driven(pipeline, text, saying(tokenizer, "cat " * 9))
    assert len(asked) > 2
    assert {segment.quality.failed for segment in translation.segments} == {("loop",)}
    untried = pipeline.draft(text, EN_DE).answered([saying(tokenizer, "cat " * 9)(asked[0])])
    settled = pipeline.review(untried, is_last=True)
    assert (settled.asked, len(settled.pieces)) == ((), 1)


def test_a_loop_is_searched_again_without_ngrams_that_come_twice(
    pipeline: TextPipeline, tokenizer: Tokenizer
) -> None:
    def network(segment: Segment) -> list[Output]:
        text = "X1 waits." if segment.is_unrepeating else "X1 " + "cat " * 9
        return [Output(token_ids=tuple(tokenizer.encode_target(text)[:-1]))]

    translation, asked = driven(pipeline, "Nobody sees {name} and the river.", network)
    assert translation.text == "{name} waits."
    assert translation.segments[0].quality.num_tries == 1
    assert [segment.is_unrepeating for segment in asked] == [False, True]
    assert asked[0].source_ids == asked[1].source_ids
    search = asked[1].searched(SearchConfig(beam_size=3))
    assert (search.no_repeat_ngram, search.num_hypotheses) == (RETRY_NGRAM, 3)
    for own, expected in ((2, 2), (RETRY_NGRAM + 1, RETRY_NGRAM)):
        search = asked[1].searched(SearchConfig(no_repeat_ngram=own))
        assert search.no_repeat_ngram == expected


def test_a_loop_that_lost_a_mark_comes_again_with_other_stand_ins_too(
    pipeline: TextPipeline, tokenizer: Tokenizer
) -> None:
    network = saying(tokenizer, "cat " * 9)
    _, asked = driven(pipeline, "Nobody sees {name} and the river.", network)
    shown = [segment.carried.shown for segment in asked if segment.carried is not None]
    assert shown == ["Nobody sees X1 and the river.", "Nobody sees API and the river."]
    assert [segment.is_unrepeating for segment in asked[:2]] == [False, True]


def test_a_loop_is_cut_first_where_it_can_be_and_its_pieces_are_then_searched_without_repeats(
    pipeline: TextPipeline, tokenizer: Tokenizer
) -> None:
    def network(segment: Segment) -> list[Output]:
        text = "Nobody waits" if segment.is_unrepeating else "cat " * 9
        return [Output(token_ids=tuple(tokenizer.encode_target(text)[:-1]))]

    text = "The cat sees the river and nobody waits for a letter"
    translation, asked = driven(pipeline, text, network)
    assert translation.text == "Nobody waits Nobody waits"
    assert translation.num_flagged == 0
    cut = [segment for segment in asked if not segment.is_unrepeating]
    assert [segment.num_tries for segment in cut] == [0, 1, 1]
    whole = [segment.text for segment in asked if segment.is_unrepeating]
    assert whole == [segment.text for segment in cut[1:]]


def test_bytes_that_are_no_text_do_not_come_through(
    pipeline: TextPipeline, tokenizer: Tokenizer
) -> None:
    broken = tokenizer.encode_target("She sells ḝ")[:-2]
    outputs = [Output(token_ids=tuple(broken))]
    translation, _ = driven(pipeline, "The cat waits.", lambda _: outputs)
    assert "\ufffd" not in translation.text
    assert translation.segments[0].quality.failed == ("characters",)


def test_more_marks_than_there_are_stand_ins_are_shared_out(pipeline: TextPipeline) -> None:
    text = " ".join(f"the cat {{a{n}}} sees <b>river</b>" for n in range(40))
    translation, asked = driven(pipeline, text, copying)
    assert translation.text == text
    assert all(len(segment.source_ids) <= 64 for segment in asked)
    assert all(segment.is_cut for segment in asked)
    assert len(asked) < 40


def test_a_try_of_a_part_does_not_bring_the_rest_twice(
    pipeline: TextPipeline, tokenizer: Tokenizer
) -> None:
    """What is behind the last word is a separator of the last try, and was in the ones before."""
    network = saying(tokenizer, "Nobody sees a.txt")
    translation, asked = driven(pipeline, "The cat sees the river <b>!!!", network)
    assert asked[-1].text == "The cat sees the river"
    assert translation.text == "Nobody sees a.txt <b>!!!"
    assert translation.segments[0].quality.failed == ("marks",)


def test_a_dash_between_marks_is_no_beginning_of_a_line(
    pipeline: TextPipeline, tokenizer: Tokenizer
) -> None:
    network = saying(tokenizer, "- nobody waits")
    translation, asked = driven(pipeline, "{name} - the cat sees the river", network)
    assert translation.text == "{name} - nobody waits"
    assert (asked[-1].text, asked[-1].carried) == ("- the cat sees the river", None)


def test_a_beam_that_is_here_whole_is_looked_through_without_asking_again(
    pipeline: TextPipeline, tokenizer: Tokenizer
) -> None:
    lost, kept = (
        Output(token_ids=tuple(tokenizer.encode_target(text)[:-1]))
        for text in ("She sells {x}.", "She sells it.")
    )
    text = "The cat sees the river."
    for is_exhaustive, num_asked in ((True, 1), (False, 2)):
        draft: Draft[Output] = pipeline.draft(text, EN_DE)
        asked: list[Segment] = []
        while draft.asked:
            asked += draft.asked
            found = [[lost, kept] for _ in draft.asked]
            draft = pipeline.review(draft.answered(found), is_exhaustive=is_exhaustive)
        assert len(asked) == num_asked
        assert draft.translation.text == "She sells it."
        assert draft.translation.segments[0].quality.num_tries == 1
        assert draft.found == [(kept,)]


def test_a_beam_without_a_sound_hypothesis_is_asked_once_and_says_what_failed(
    pipeline: TextPipeline, tokenizer: Tokenizer
) -> None:
    found = [Output(token_ids=tuple(tokenizer.encode_target("She sells {x}.")[:-1]))] * 2
    draft: Draft[Output] = pipeline.draft("The cat sees the river.", EN_DE)
    draft = pipeline.review(draft.answered([found]), is_exhaustive=True)
    assert not draft.asked
    assert draft.translation.segments[0].quality.failed == ("marks",)


def test_a_search_that_gives_its_whole_beam_finds_nothing_else_again() -> None:
    assert SearchConfig(beam_size=4, num_hypotheses=4).is_exhaustive
    assert SearchConfig(beam_size=1).is_exhaustive
    assert not SearchConfig(beam_size=4).is_exhaustive
    assert not SearchConfig(beam_size=1, sampling=Sampling(seed=3)).is_exhaustive
