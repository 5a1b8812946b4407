import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.errors import InputError
from model.text.languages.tags import (
    MAX_TAG_LENGTH,
    Language,
    all_pairs,
    canonical_tag,
    lenient_tag,
    lookup_tags,
    primary_language,
)


@pytest.mark.parametrize(
    ("tag", "canonical"),
    [
        ("en", "en"),
        ("EN", "en"),
        ("zh-hans", "zh-Hans"),
        ("ZH-HANT-tw", "zh-Hant-TW"),
        ("pt-br", "pt-BR"),
        ("es-419", "es-419"),
        ("sl-ROZAJ-biske", "sl-rozaj-biske"),
        ("de-1996", "de-1996"),
        ("de-1ABC", "de-1abc"),
        ("zh-CMN-hans-cn", "zh-cmn-Hans-CN"),
        ("en-ca-X-CA", "en-CA-x-ca"),
        ("de-DE-u-CO-PHONEBK", "de-DE-u-co-phonebk"),
        ("de-U-CO-phonebk-T-EN", "de-u-co-phonebk-t-en"),
        ("en-ABCDEFGH-x-A", "en-abcdefgh-x-a"),
        ("en-x-LATN-us", "en-x-latn-us"),
        ("zh-cmn-yue-nan", "zh-cmn-yue-nan"),
        ("ABCDEFGH", "abcdefgh"),
    ],
)
def test_a_well_formed_tag_gets_its_canonical_case(tag: str, canonical: str) -> None:
    assert canonical_tag(tag) == canonical


@pytest.mark.parametrize(
    "tag",
    ["", "e", "pt_BR", "zh-", "-zh", "en--US", "en US", "zh-Hans-", "12", "en-é", "en-x", "en\n"],
)
def test_a_tag_that_is_not_well_formed_is_refused(tag: str) -> None:
    with pytest.raises(InputError, match="not a well-formed language tag"):
        canonical_tag(tag)


def test_a_long_tag_is_refused_by_its_length_and_not_shown() -> None:
    with pytest.raises(InputError, match=f"100000 characters; at most {MAX_TAG_LENGTH}") as caught:
        canonical_tag("a" * 100_000)
    assert caught.value.value == 100_000
    assert caught.value.limit == MAX_TAG_LENGTH


def test_a_tag_may_have_64_characters_and_no_more() -> None:
    longest = "en-x" + "-abcdefgh" * 6 + "-abcde"
    assert len(longest) == MAX_TAG_LENGTH == 64
    assert canonical_tag(longest) == longest
    with pytest.raises(InputError, match="65 characters; at most 64"):
        canonical_tag(longest + "f")


@pytest.mark.parametrize(
    "tag", ["abcdefghi", "en-abcdefghi", "en-x-abcdefghi", "en-u", "en-abcd-efg"]
)
def test_a_part_that_is_too_long_or_in_no_place_is_refused(tag: str) -> None:
    with pytest.raises(InputError, match="not a well-formed language tag"):
        canonical_tag(tag)


@given(st.from_regex(r"[a-zA-Z]{2,3}(-[a-zA-Z]{4})?(-[a-zA-Z]{2})?", fullmatch=True))
def test_canonical_case_is_reached_in_one_step_whatever_the_case_was(tag: str) -> None:
    canonical = canonical_tag(tag)
    assert canonical_tag(canonical) == canonical
    assert canonical_tag(tag.upper()) == canonical_tag(tag.lower()) == canonical


def test_the_primary_language_is_what_stands_before_the_first_hyphen() -> None:
    assert primary_language("zh-Hans") == "zh"
    assert primary_language("EN") == "en"


@pytest.mark.parametrize(
    ("tag", "expected"),
    [
        ("de", ("de",)),
        ("de-AT", ("de-AT", "de")),
        ("sl-IT-rozaj", ("sl-IT-rozaj", "sl-IT", "sl")),
        ("zh-Hant-TW", ("zh-Hant-TW", "zh-Hant")),
        ("sr-Latn", ("sr-Latn",)),
        ("zh-yue", ("zh-yue",)),
        ("sr-Cyrl", ("sr-Cyrl", "sr")),
        ("sr-RS", ("sr-RS", "sr", "sr-Cyrl")),
        ("az-Latn-AZ", ("az-Latn-AZ", "az-Latn", "az")),
        ("kk", ("kk", "kk-Cyrl")),
        ("zh", ("zh", "zh-Hans")),
        ("zh-Hans", ("zh-Hans", "zh")),
        ("zh-Hant", ("zh-Hant",)),
        ("zh-CN", ("zh-CN", "zh-Hans", "zh")),
        ("zh-TW", ("zh-TW", "zh-Hant")),
        ("es-419", ("es-419", "es")),
        ("no", ("no", "nb")),
        ("nb-NO", ("nb-NO", "nb", "no")),
        ("iw", ("iw", "he")),
    ],
)
def test_regions_may_be_left_out_and_scripts_only_where_they_go_without_saying(
    tag: str, expected: tuple[str, ...]
) -> None:
    assert lookup_tags(tag) == expected


@pytest.mark.parametrize(
    ("code", "tag"),
    [("zh_Hans", "zh-Hans"), ("PT_br", "pt-BR"), ("EN", "en"), ("zh_hant_TW", "zh-Hant-TW")],
)
def test_a_code_may_have_underscores_and_any_case(code: str, tag: str) -> None:
    assert lenient_tag(code) == tag
    with pytest.raises(InputError):
        lenient_tag("e n")


def test_every_language_is_paired_with_every_other_in_their_order() -> None:
    languages = (
        Language(tag="en", source_prefix=("__en__",), target_prefix=("__en__",)),
        Language(tag="de", wanted_prefix=("<2de>",)),
        Language(tag="fr"),
    )
    pairs = all_pairs(iter(languages))
    assert [(pair.source, pair.target) for pair in pairs] == [
        ("en", "de"),
        ("en", "fr"),
        ("de", "en"),
        ("de", "fr"),
        ("fr", "en"),
        ("fr", "de"),
    ]
    assert pairs[0].source_prefix == ("__en__", "<2de>")
    assert pairs[2].target_prefix == ("__en__",)
    assert (pairs[5].source_prefix, pairs[5].target_prefix) == (("<2de>",), ())
