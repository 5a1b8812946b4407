from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from model.errors import ConfigError
from model.train.config.filters import FilterConfig, script_names
from model.train.data.filtering import (
    LineFilter,
    Verdict,
    mark_duplicates,
    pair_hash,
    report_corpus,
    script_share,
    verdict_on_lengths,
)
from model.train.data.languages import LanguageProfiles


def reason(config: FilterConfig, source: str, target: str, *, tags: str = "en zh-Hans") -> str:
    first, second = tags.split()
    return LineFilter(config, source=first, target=second).verdict(source, target).words


def test_verdicts_and_their_words_are_what_stored_text_has() -> None:
    assert {verdict.words: int(verdict) for verdict in Verdict} == {
        "kept": 0,
        "blank": 1,
        "characters": 2,
        "identical": 3,
        "source script": 4,
        "target script": 5,
        "source language": 6,
        "target language": 7,
        "duplicate": 8,
        "length": 9,
        "ratio": 10,
        "no variant": 11,
    }


def test_without_filters_only_blank_sides_are_left_out() -> None:
    assert reason(FilterConfig(), "same", "same") == "kept"
    assert reason(FilterConfig(), "猫" * 5000, "cat") == "kept"
    assert reason(FilterConfig(), "text", " \u3000") == "blank"


@pytest.mark.parametrize(
    ("config", "source", "target", "expected"),
    [
        (FilterConfig(max_characters=5), "12345", "123456", "characters"),
        (FilterConfig(max_characters=6), "12345", "123456", "kept"),
        (FilterConfig(drop_identical=True), "Press F1!", "press F1", "identical"),
        (FilterConfig(drop_identical=True), "12", "12", "identical"),
        (FilterConfig(drop_identical=True), "12", "13", "kept"),
        (FilterConfig(drop_identical=True), "Straße 1", "STRASSE 2", "identical"),
        (FilterConfig(drop_identical=True), "a", "b", "kept"),
        (FilterConfig(drop_identical=True), "12 ", " 12", "identical"),
        (FilterConfig(max_characters=1), "1", "1", "kept"),
        (FilterConfig(max_characters=5), "123456", "1", "characters"),
        (FilterConfig(), "", "a", "blank"),
        (FilterConfig(), "a", "", "blank"),
        (FilterConfig(min_script_share=0.5), "ab猫猫", "猫a", "kept"),
        (FilterConfig(min_script_share=0.5), "a猫猫", "猫a", "source script"),
        (FilterConfig(min_script_share=1.0), "abc", "猫", "kept"),
        (FilterConfig(min_script_share=1.0), "abc", "猫a", "target script"),
        (FilterConfig(min_script_share=0.5), "猫 is here", "猫在这里", "kept"),
        (FilterConfig(min_script_share=0.5), "猫在这里", "猫在这里", "source script"),
        (FilterConfig(min_script_share=0.5), "It is here", "It is here", "target script"),
        (FilterConfig(min_script_share=0.5), "1 + 1", "1 + 1", "kept"),
        (FilterConfig(min_script_share=0.5), "25 m²", "25㎡", "kept"),  # an abbreviation, no letter
        (FilterConfig(min_script_share=0.5), "III", "Ⅲ", "kept"),
    ],
)
def test_a_pair_is_left_out_for_the_reason_that_is_said(
    config: FilterConfig, source: str, target: str, expected: str
) -> None:
    assert reason(config, source, target) == expected


class Foreign(LanguageProfiles):
    """Holds a line for foreign if its first word is not the tag it is to be in."""

    def are_foreign(self, lines: Sequence[str], tag: str, margin: float) -> NDArray[np.bool_]:
        assert margin == 0.2
        return np.array([line.split()[0] != tag for line in lines], dtype=bool)


def test_a_side_in_another_language_is_left_out_under_its_own_reason() -> None:
    profiles = Foreign(
        languages=(),
        symbols=np.zeros(0, dtype=np.uint8),
        log_probabilities=np.zeros(0, dtype=np.float32),
    )
    config = FilterConfig(language_margin=0.2, max_characters=20)
    line_filter = LineFilter(config, source="en", target="de", languages=profiles)
    pairs = [
        ("en a", "de b"),
        ("de a", "de b"),
        ("en a", "en b"),
        ("de a", "en b"),
        (" ", "en b"),
        ("de a", "en " + 20 * "b"),
    ]
    found = [Verdict(verdict).words for verdict in line_filter.verdicts(pairs)]
    assert found == [
        "kept",
        "source language",
        "target language",
        "source language",
        "blank",
        "characters",
    ]
    assert line_filter.verdicts([]).tolist() == []
    without = LineFilter(config, source="en", target="de")
    assert without.verdicts(pairs[:4]).tolist() == [0, 0, 0, 0]


def test_scripts_are_known_by_language_or_by_subtag() -> None:
    assert script_names("pt-BR") == {"LATIN"}
    assert script_names("sr-Cyrl") == script_names("sr-cyrl") == {"CYRILLIC"}
    assert script_names("EN") == script_names("en-Latn-GB") == {"LATIN"}
    assert script_share("ひらがな", script_names("ja")) == 1.0
    assert script_share("ｶﾀｶﾅ 人々 ﾊﾟｰ", script_names("ja")) == 1.0
    assert script_share("ﾡ한", script_names("ko")) == 1.0
    assert script_share("ＡＢＣ", script_names("en")) == 1.0
    assert script_share("Ünïcödé", script_names("de")) == 1.0
    assert script_share("ab猫猫", script_names("en")) == 0.5
    with pytest.raises(ConfigError, match="min_script_share: the script of 'sr' is not known"):
        LineFilter(FilterConfig(min_script_share=0.1), source="en", target="sr")
    LineFilter(FilterConfig(), source="en", target="sr")  # not asked for


def test_the_first_of_equal_pairs_stays() -> None:
    pairs = [("a", "b"), ("c", "d"), ("a", "b"), ("a", "x"), ("c", "d"), ("a", "b")]
    verdicts = np.array([0, 1, 0, 0, 0, 0], dtype=np.uint8)  # the second is left out already
    mark_duplicates(verdicts, np.array([pair_hash(*pair) for pair in pairs], dtype=np.uint64))
    assert [Verdict(verdict).words for verdict in verdicts] == [
        "kept",
        "blank",
        "duplicate",
        "kept",
        "kept",
        "duplicate",
    ]
    assert pair_hash("ab", "c") != pair_hash("a", "bc")


def test_lengths_and_ratios_are_of_tokens() -> None:
    config = FilterConfig(max_ratio=2.0)
    found = [
        verdict_on_lengths(*sizes, max_length=10, config=config).words
        for sizes in ((10, 10), (11, 2), (2, 11), (5, 10), (4, 9), (9, 4))
    ]
    assert found == ["kept", "length", "length", "kept", "ratio", "ratio"]


def test_a_report_counts_and_says_only_what_happened() -> None:
    counted = [0, 0, Verdict.LENGTH, Verdict.DUPLICATE, Verdict.DUPLICATE]
    report = report_corpus("en-zh", "talk", np.array(counted, dtype=np.uint8))
    assert (report.num_pairs, report.num_kept) == (5, 2)
    assert str(report) == "en-zh talk: 2 of 5 pairs; left out: duplicate 2, length 1"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"max_characters": -1}, "data.filters.max_characters is -1"),
        ({"max_ratio": 1.0}, "data.filters.max_ratio is 1.0; it must be above 1, or 0"),
        ({"max_ratio": float("nan")}, "data.filters.max_ratio is nan"),
        ({"min_script_share": -0.1}, "data.filters.min_script_share is -0.1"),
        ({"language_margin": 5.1}, "data.filters.language_margin is 5.1"),
        ({"max_ratio": 0.5}, "data.filters.max_ratio is 0.5; it must be above 1, or 0"),
        ({"min_script_share": 1.5}, "data.filters.min_script_share is 1.5"),
        ({"language_margin": -0.1}, "data.filters.language_margin is -0.1; it must be from 0 to 5"),
        ({"language_margin": float("nan")}, "data.filters.language_margin is nan"),
    ],
)
def test_impossible_limits_are_refused(values: dict[str, float], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        FilterConfig(**values)  # type: ignore[arg-type]


def test_limits_may_be_at_either_end() -> None:
    FilterConfig(max_ratio=1.01, min_script_share=1.0, language_margin=5.0, max_characters=1)
    FilterConfig(max_ratio=0.0, min_script_share=0.0, language_margin=0.0, max_characters=0)


def test_a_ratio_of_zero_is_no_limit() -> None:
    found = verdict_on_lengths(1, 10, max_length=10, config=FilterConfig())
    assert found is Verdict.KEPT
    exact = [
        verdict_on_lengths(2, number, max_length=10, config=FilterConfig(max_ratio=1.5))
        for number in (3, 4)
    ]
    assert exact == [Verdict.KEPT, Verdict.RATIO]
