"""What stands between the segments of a text, and what is said of segments that are copied."""

from collections.abc import Sequence

import pytest

from model.text.constraints.glossary import Term, TermUse
from model.text.drafts.segments import (
    PreparedText,
    Segment,
    TranslatedSegment,
    copied,
    expected_separators,
    joined,
)
from model.text.languages.tags import LanguagePair

EN_ZH = LanguagePair(source="en", target="zh")
ZH_EN = LanguagePair(source="zh", target="en")
Part = tuple[str, str] | Segment
"""A part of a sentence with its translation; or one that is copied."""


def term_of(source: str, target: str) -> Segment:
    term = Term(start=0, end=len(source), target=target, is_case_sensitive=False)
    return Segment(text=source, source_ids=(), is_cut=True, terms=(term,), copy=target)


def translated(segment: Segment, text: str) -> TranslatedSegment:
    return TranslatedSegment(
        source=segment.text,
        text=text,
        score=0.0,
        is_verbatim=False,
        is_cut=segment.is_cut,
        is_truncated=False,
        num_source_tokens=1,
        num_target_tokens=1,
    )


def both(
    pair: LanguagePair,
    separators: Sequence[str],
    parts: Sequence[Part],
    *,
    is_cut: bool = True,
) -> tuple[str, list[str]]:
    """The whole translation, and the separators that were told before it was there."""
    segments, done = [], []
    for part in parts:
        if isinstance(part, Segment):
            segments.append(part)
            done.append(copied(part))
        else:
            segments.append(Segment(text=part[0], source_ids=(1,), is_cut=is_cut))
            done.append(translated(segments[-1], part[1]))
    prepared = PreparedText(pair=pair, segments=tuple(segments), separators=tuple(separators))
    return joined(prepared, done).text, expected_separators(prepared)


def test_parts_of_a_split_sentence_have_the_spaces_and_signs_of_the_target() -> None:
    text, told = both(
        ZH_EN,
        ["", "", "", "", "，", "。"],
        [
            ("请打开", "Open"),
            term_of("用户", "Kunde"),
            term_of("登录", "Sign-on"),
            term_of("页面", "Maske"),
            ("等待", "wait"),
        ],
    )
    assert text == "Open Kunde Sign-on Maske, wait."
    assert told == ["", " ", " ", " ", ", ", "."]


def test_a_mark_of_a_split_sentence_has_the_signs_of_the_target_behind_it() -> None:
    name = Segment(text="{name}", source_ids=(), is_cut=True)
    tag = '<img alt="。">'
    text, told = both(ZH_EN, ["（", "", f"）{tag}。\n"], [("打开", "Open"), name])
    assert text == f"(Open {{name}}){tag}.\n"
    assert told == ["(", " ", f"){tag}.\n"]


@pytest.mark.parametrize("lead", ["2、", "（1）", "① ", "- ", "> ", "| "])
def test_what_a_line_begins_with_keeps_its_signs(lead: str) -> None:
    name = Segment(text="{name}", source_ids=(), is_cut=True)
    parts: list[Part] = [("打开", "Open"), name, ("等待", "Wait"), name]
    text, _ = both(ZH_EN, [lead, "", f"。\n{lead}", "", "。"], parts)
    assert text == f"{lead}Open {{name}}.\n{lead}Wait {{name}}."


def test_what_stands_between_whole_sentences_is_left_as_it_is() -> None:
    parts = [("猫。", "Cat."), ("狗。", "Dog.")]
    assert both(ZH_EN, ["（", "，", "。"], parts, is_cut=False)[0] == "（Cat.，Dog.。"


def test_terms_side_by_side_that_are_each_a_segment_are_two_words() -> None:
    parts = [term_of("用户", "user"), term_of("登录", "log in")]
    assert both(ZH_EN, ["", "", ""], parts) == ("user log in", ["", " ", ""])
    marks = [Segment(text=one, source_ids=(), is_cut=True) for one in ("{a}", "{b}")]
    assert both(ZH_EN, ["", "", ""], marks)[0] == "{a}{b}"


@pytest.mark.parametrize(
    ("separators", "parts", "expected"),
    [
        (
            ["", " ", " ", "."],
            [("Open", "打开"), term_of("x", "仪表板"), ("now", "吧")],
            "打开仪表板吧。",
        ),
        (
            ["", " ", " ", "."],
            [("Open", "打开"), term_of("x", "API"), ("now", "吧")],
            "打开 API 吧。",
        ),
        (["", ", ", ""], [("Open", "打开"), ("wait", "等待")], "打开，等待"),
        (["", " ", ""], [("Open.", "打开。"), ("Wait", "等待")], "打开。 等待"),
        (["", " ", ""], [("use Foo", "用 Foo"), ("Bar", "Bar 吧")], "用 Foo Bar 吧"),
    ],
)
def test_parts_of_a_split_sentence_in_chinese_have_no_spaces_between_its_letters(
    separators: list[str], parts: list[Part], expected: str
) -> None:
    assert both(EN_ZH, separators, parts)[0] == expected


def test_a_stop_behind_a_copied_term_that_ends_in_one_is_left_out() -> None:
    parts = [("我喜欢", "I like"), term_of("苹果", "Apple Inc.")]
    assert both(ZH_EN, ["", "", "。"], parts) == ("I like Apple Inc.", ["", " ", ""])


def test_terms_of_a_copied_segment_are_checked_and_a_missed_one_is_said() -> None:
    term = Term(start=0, end=2, target="user", is_case_sensitive=False)
    whole = Segment(text="用户", source_ids=(), terms=(term,), copy="user")
    assert copied(whole).quality.checked == ("terms",)
    assert copied(whole).quality.failed == ()
    missed = copied(Segment(text="用户", source_ids=(), terms=(term,), copy="users"))
    assert missed.quality.failed == ("terms",)
    assert missed.terms == (TermUse(source="用户", target="user", is_hit=False),)
    assert copied(Segment(text="12", source_ids=())).quality.checked == ()
