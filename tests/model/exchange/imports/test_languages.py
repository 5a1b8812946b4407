import pytest
from transformers.models.nllb.tokenization_nllb import FAIRSEQ_LANGUAGE_CODES

from model.exchange.imports.languages import (
    FLORES_CODES,
    first_of_each,
    flores_tag,
    language_tag,
    nearest_tag,
    plain_pair,
    split_pair,
    typed_tag,
)
from model.text.languages.tags import canonical_tag

WORDS = ["data", "base", "tiny", "best", "test", "fast", "nano", "lite", "code", "save", "beam"]


def test_the_codes_of_flores_are_those_of_nllb_in_its_order() -> None:
    assert list(FLORES_CODES) == FAIRSEQ_LANGUAGE_CODES


def test_every_code_of_flores_has_a_tag_of_its_own() -> None:
    tags = [flores_tag(code) for code in FLORES_CODES]
    assert len(set(tags)) == 202
    assert all(tag is not None and canonical_tag(tag) == tag for tag in tags)


@pytest.mark.parametrize(
    ("code", "tag"),
    [
        ("eng_Latn", "en"),
        ("zho_Hans", "zh-Hans"),
        ("zho_Hant", "zh-Hant"),
        ("arb_Arab", "ar"),
        ("arz_Arab", "arz"),
        ("kas_Arab", "ks"),
        ("kas_Deva", "ks-Deva"),
        ("pes_Arab", "fa"),
        ("english", None),
    ],
)
def test_a_script_is_left_out_where_it_goes_without_saying(code: str, tag: str | None) -> None:
    assert flores_tag(code) == tag


@pytest.mark.parametrize(
    ("code", "tag"),
    [
        ("deu", "de"),
        ("de", "de"),
        ("cmn", "zh-Hans"),
        ("zho", "zh-Hans"),
        ("cmn_Hans", "zh-Hans"),
        ("cmn_Hant", "zh-Hant"),
        ("zh_CN", "zh-Hans"),
        ("zh_TW", "zh-Hant"),
        ("yue_Hant", "yue-Hant"),
        ("pt_br", "pt-BR"),
        ("es_419", "es-419"),
        ("srp_Latn", "sr-Latn"),
        ("quy", "qu"),
        ("ceb", "ceb"),
        ("war", "war"),
        ("ROMANCE", None),
        ("gem", None),
        ("mul", None),
        ("en+de", None),
        ("cat_oci_spa", None),
        ("zh-yue", None),
        ("not a code", None),
        ("", None),
    ],
)
def test_codes_become_tags(code: str, tag: str | None) -> None:
    assert language_tag(code) == tag


@pytest.mark.parametrize(
    ("code", "tag"),
    [
        ("zh", "zh-Hans"),
        ("ZH", "zh-Hans"),
        ("zh_TW", "zh-Hant"),
        ("zh-Hant-HK", "zh-Hant-HK"),
        ("zt", "zh-Hant"),
        ("pb", "pt-BR"),
        ("eng", "en"),
        ("cmn", "zh-Hans"),
        ("eng_Latn", "en"),
        ("zho_hant", "zh-Hant"),
        ("quy_Latn", "qu"),
        ("quy", "quy"),
        ("srp-Latn", "sr-Latn"),
        ("ber", "ber"),
        ("de-AT", "de-AT"),
        ("no", "no"),
    ],
)
def test_a_person_may_write_any_programs_code(code: str, tag: str) -> None:
    assert typed_tag(code) == tag


def test_the_nearest_of_a_networks_languages_is_meant() -> None:
    known = {"nb", "nn", "qu", "zh-Hans", "az", "pt"}
    for tag, nearest in (
        *(("no", "nb"), ("quy", "qu"), ("zh", "zh-Hans"), ("az-Latn", "az"), ("pt-BR", "pt")),
        *(("zh-TW", "zh-TW"), ("az-Cyrl", "az-Cyrl"), ("de", "de")),
    ):
        assert nearest_tag(tag, known) == nearest


def test_of_several_codes_with_one_tag_the_first_stands() -> None:
    codes = [(code, language_tag(code)) for code in ("cmn", "zho", "x", "fra")]
    assert first_of_each(codes) == {"zh-Hans": "cmn", "fr": "fra"}


@pytest.mark.parametrize(
    ("name", "pair"),
    [
        ("ende", ("en", "de")),
        ("deu-eng", ("de", "en")),
        ("enzh_hant", ("en", "zh-Hant")),
        ("zh_hanten", ("zh-Hant", "en")),
        ("zhen", ("zh-Hans", "en")),
        ("vocab", None),
        ("gem-gem", None),
        ("", None),
    ],
)
def test_names_of_files_become_pairs(name: str, pair: tuple[str, str] | None) -> None:
    assert split_pair(name) == pair


@pytest.mark.parametrize(
    ("name", "pair"),
    [
        ("en-de", ("en", "de")),
        ("eng-deu", ("en", "de")),
        ("en-zh_hant", ("en", "zh-Hant")),
        ("deueng", ("de", "en")),
        *((word, None) for word in WORDS),
    ],
)
def test_a_word_is_no_pair(name: str, pair: tuple[str, str] | None) -> None:
    assert plain_pair(name) == pair
