import pytest

from model.exchange.spdx import hub_word, spdx, stated_licence


@pytest.mark.parametrize(
    ("word", "spelling"),
    [
        ("mit", "MIT"),
        ("apache-2.0", "Apache-2.0"),
        ("lgpl-3.0", "LGPL-3.0"),
        ("cc-by-nc-4.0", "CC-BY-NC-4.0"),
        ("cc0-1.0", "CC0-1.0"),
        ("NLLB licence", "NLLB licence"),
        (" mit ", "MIT"),
        (" NLLB licence\n", "NLLB licence"),
    ],
)
def test_licences_are_spelt_as_spdx_does(word: str, spelling: str) -> None:
    assert spdx(word) == spelling


@pytest.mark.parametrize(
    ("licence", "word"),
    [
        ("MIT", "mit"),
        ("CC-BY-NC-4.0", "cc-by-nc-4.0"),
        ("Mit", None),
        ("CC-BY-4.0, MIT", None),
        ("LicenseRef-unknown", None),
        ("other", None),
    ],
)
def test_the_hubs_word_is_one_that_comes_back_as_the_licence(
    licence: str, word: str | None
) -> None:
    assert hub_word(licence) == word
    assert word is None or spdx(word) == licence


@pytest.mark.parametrize(
    ("words", "names", "licence"),
    [
        ((), (), None),
        ((), ("research-only",), None),
        (("mit",), ("research-only",), "MIT"),
        (("mit", "cc-by-4.0"), (), "MIT, CC-BY-4.0"),
        (("other",), ("research-only",), "research-only"),
        (("other", "mit"), ("foo-nc",), "foo-nc, MIT"),
        (("mit", "Other"), ("a", "b"), "MIT, a, b"),
        (("other",), (), "other"),
        (("other",), (" \n",), "other"),
        (("\u200b", " mit\n"), (), "MIT"),
    ],
)
def test_a_card_names_its_licence_where_the_hub_has_no_word_for_it(
    words: tuple[str, ...], names: tuple[str, ...], licence: str | None
) -> None:
    assert stated_licence(words, names) == licence
