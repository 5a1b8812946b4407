"""Codes of other programs as tags."""

import pytest

from model.exchange.imports.language_codes import language_tag, split_pair


@pytest.mark.parametrize(
    ("code", "tag"),
    [
        ("deu", "de"), ("en", "en"), ("cmn_Hans", "zh-Hans"), ("cmn_Hant", "zh-Hant"),
        ("zho", "zh-Hans"), ("zh_TW", "zh-Hant"), ("pt_BR", "pt-BR"), ("srp_Latn", "sr-Latn"),
        ("war", "war"), ("yue_Hant", "yue-Hant"), ("", None), ("not a code", None),
    ],
)  # fmt: skip
def test_tags(code: str, tag: str | None) -> None:
    assert language_tag(code) == tag


@pytest.mark.parametrize(
    ("name", "pair"),
    [
        ("ende", ("en", "de")), ("deu-eng", ("de", "en")), ("enzh_hant", ("en", "zh-Hant")),
        ("zhen", ("zh-Hans", "en")), ("vocab", None), ("gem-gem", None), ("", None),
    ],
)  # fmt: skip
def test_pairs(name: str, pair: tuple[str, str] | None) -> None:
    assert split_pair(name) == pair
