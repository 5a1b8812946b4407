import pytest
from transformers.models.nllb.tokenization_nllb import FAIRSEQ_LANGUAGE_CODES

from model.exchange.imports.languages import (
    FLORES_CODES,
    first_of_each,
    flores_tag,
    language_tag,
)
from model.text.language import canonical_tag


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
        ("cmn_Hans", "zh-Hans"),
        ("pt_br", "pt-BR"),
        ("srp_Latn", "sr-Latn"),
        ("ceb", "ceb"),
        ("ROMANCE", None),
        ("gem", None),
        ("mul", None),
        ("en+de", None),
        ("", None),
    ],
)
def test_codes_of_marian_become_tags(code: str, tag: str | None) -> None:
    assert language_tag(code) == tag


def test_of_several_codes_with_one_tag_the_first_stands() -> None:
    codes = [(code, language_tag(code)) for code in ("cmn", "zho", "x", "fra")]
    assert first_of_each(codes) == {"zh": "cmn", "fr": "fra"}
